//! `orgs disable` and `orgs enable`. Each sends a single update, which fails if `disabled_at` or
//! `enabled_at` has changed since the record was read. So a delayed retry cannot undo a later
//! command.

use std::time::SystemTime;

use anyhow::{Result, bail};
use workspace_management::{
    records::{
        Organization,
        OrganizationState::{BeingErased, Disabled, Enabled},
    },
    store::{MAX_CACHE_TTL, timestamp},
};

use crate::{
    context::{GlobalOptions, ReasonArgs, Run},
    deployment::Deployment,
    organization,
    output::print_json_or_text,
    record::Stored,
    wait::{SAFE_WAIT, WaitArgs},
    write::{Outcome, Write, change, remove, set},
};

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
    reason: ReasonArgs,
    options: GlobalOptions,
) -> Result<()> {
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    let now = SystemTime::now();
    let organization = change_state(&context.deployment, &run, org, change, now).await?;
    let state = organization::state_name(organization.fields.state());
    let title = organization::id_and_name(&organization.record);
    context.report(&format!("the organization {title} is {state}"));
    if change == StateChange::Disable {
        context.report(&format!(
            "the function will reject all new requests within {} seconds, and its last writes will have finished within {} seconds",
            MAX_CACHE_TTL.as_secs(),
            SAFE_WAIT.as_secs()
        ));
    }
    if let Some(wait_args) = wait_args {
        wait_args.wait(&context.deployment).await;
        if wait_args.is_safe() {
            context.report(&format!("every operation for {org} now fails"));
        }
    }
    let output = organization::to_output(&organization);
    print_json_or_text(&output, org, &context.options)
}

/// Enables or disables an organization and returns it. Fails if there is no such organization, if
/// it is being erased and `state_change` is `Enable`, or if operators make different changes at the same
/// time.
pub async fn change_state(
    deployment: &Deployment,
    run: &Run,
    org: &str,
    state_change: StateChange,
    now: SystemTime,
) -> Result<Stored<Organization>> {
    let organization = organization::require(deployment, org).await?;
    let (at, by) = (timestamp(now), &run.operator);
    let (verb, wanted, assignments) = match (organization.fields.state(), state_change) {
        (BeingErased, StateChange::Enable) => bail!(
            "the organization {org} is being erased: to stop that, run `workspacectl orgs erase {org} --cancel`"
        ),
        // An organization that is being erased is disabled already.
        (Enabled, StateChange::Enable) | (Disabled | BeingErased, StateChange::Disable) => {
            return Ok(organization);
        }
        (Disabled, StateChange::Enable) => {
            let mut assignments = vec![set("enabled_at", at), set("enabled_by", by)];
            assignments.extend([remove("disabled_at"), remove("disabled_by")]);
            ("enable", Enabled, assignments)
        }
        (Enabled, StateChange::Disable) => {
            let assignments = vec![set("disabled_at", at), set("disabled_by", by)];
            ("disable", Disabled, assignments)
        }
    };
    let write = Write::update(&organization.record, assignments)
        .if_missing("erasing_id")
        .if_unchanged(&organization.record, &["disabled_at", "enabled_at"])
        .or_say(format!("another operator changed the organization {org} at the same time: check with them, then run the command again"));
    let changed = write.result();
    let refusal = match change(deployment, run, verb, vec![write]).await? {
        Outcome::Done => return changed.parse(),
        Outcome::Refused(refusal) => refusal,
    };
    // A different operator may have made the same change.
    if let Some(existing) = &refusal.existing {
        let existing: Stored<Organization> = existing.clone().parse()?;
        if existing.fields.state() == wanted {
            return Ok(existing);
        }
    }
    Err(refusal.into_error())
}
