//! `orgs disable` and `orgs enable`. Each sends a single update, which fails if `disabled_at` or
//! `enabled_at` has changed since the record was read. So a delayed retry cannot undo a later
//! command.

use std::time::SystemTime;

use anyhow::{Result, bail, ensure};
use workspace_management::{
    records::{Organization, OrganizationState},
    store::{MAX_CACHE_TTL, Table, timestamp},
};
use workspace_records::stored::Stored;

use crate::{
    deployment::Deployment,
    organization,
    output::print_json_or_text,
    session::{Run, Session},
    wait::{SAFE_WAIT, WaitArgs},
    write::GuardedRecord,
};

const SET_DISABLED: &str = "SET disabled_at = :at, disabled_by = :by";

const SET_ENABLED: &str = "SET enabled_at = :at, enabled_by = :by REMOVE disabled_at, disabled_by";

/// Whether to enable or disable an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange {
    /// Accept requests for it.
    Enable,
    /// Reject requests for it.
    Disable,
}

/// Enables or disables an organization. Then waits, if `wait_args` is given.
pub(super) async fn execute(
    org: &str,
    change: StateChange,
    wait_args: Option<WaitArgs>,
    session: &Session,
) -> Result<()> {
    let (deployment, run) = session.deployment_and_run().await?;
    let now = SystemTime::now();
    let organization = change_state(deployment, &run, org, change, now).await?;
    let state = organization::state_name(organization.record.state());
    session.report(&format!("the organization {org} is {state}"));
    if change == StateChange::Disable {
        session.report(&format!(
            "the function will reject all new requests within {} seconds, and its last writes will have finished within {} seconds",
            MAX_CACHE_TTL.as_secs(),
            SAFE_WAIT.as_secs()
        ));
    }
    if let Some(wait_args) = wait_args {
        wait_args.wait(deployment).await;
        if wait_args.is_safe() {
            session.report(&format!("every operation for {org} now fails"));
        }
    }
    print_json_or_text(&organization::into_output(organization), org, session)
}

/// Enables or disables an organization and returns it. Fails if there is no such organization, if
/// it is being erased and `change` is `Enable`, or if operators make different changes at the same
/// time.
pub async fn change_state(
    deployment: &Deployment,
    run: &Run,
    org: &str,
    change: StateChange,
    now: SystemTime,
) -> Result<Stored<Organization>> {
    let organization = organization::require(deployment, org).await?;
    let state = organization.record.state();
    if state == OrganizationState::BeingErased && change == StateChange::Enable {
        bail!("the organization {org} is being erased: it cannot be enabled again");
    }
    let (wanted, expression) = match change {
        StateChange::Enable => (OrganizationState::Enabled, SET_ENABLED),
        StateChange::Disable => (OrganizationState::Disabled, SET_DISABLED),
    };
    // An organization that is being erased is disabled already.
    if state == OrganizationState::BeingErased || state == wanted {
        return Ok(organization);
    }
    let org_if_unchanged = GuardedRecord::if_exists(Table::ORGANIZATIONS, &[org])
        .and("attribute_not_exists(erasing_id)", &[])
        .and_unchanged(&organization.attributes, &["disabled_at", "enabled_at"]);
    let changed_at = timestamp(now);
    let values = [(":at", changed_at.as_str()), (":by", &run.operator)];
    let updated = org_if_unchanged
        .update(deployment, expression, &values)
        .await?;
    if let Some(record) = updated {
        return organization::parse(record);
    }
    // An earlier attempt by this run may have succeeded even though its response was lost, or a
    // different operator made the same change.
    let organization = organization::require(deployment, org).await?;
    ensure!(
        organization.record.state() == wanted,
        "another operator changed the organization {org} at the same time: check with them, then run the command again"
    );
    Ok(organization)
}
