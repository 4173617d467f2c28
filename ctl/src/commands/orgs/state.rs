//! `orgs disable` and `orgs enable`. Each is a single write to the record of the organization, which
//! every operation checks. A random `state_id` is written with each change and is part of the
//! condition of the next one, so that a late attempt of one command cannot revert another.

use std::time::SystemTime;

use anyhow::{Result, bail};
use serde_json::Value;
use workspace_management::store::{MAX_PARENT_TTL, Table, timestamp};

use super::record;
use crate::{
    deployment::Deployment,
    output::print_record,
    session::{Operator, Session, random_id},
    wait::{SAFE_WAIT, Wait},
    write::Condition,
};

pub(crate) const DISABLE_EXAMPLES: &str = "\
Examples:
  workspacectl orgs disable globex
  workspacectl orgs disable globex --no-wait";

pub(crate) const ENABLE_EXAMPLES: &str = "\
Examples:
  workspacectl orgs enable globex";

const DISABLE: &str = "SET disabled_at = :at, disabled_by = :by, state_id = :id \
    REMOVE enabled_at, enabled_by";

const ENABLE: &str = "SET enabled_at = :at, enabled_by = :by, state_id = :id \
    REMOVE disabled_at, disabled_by";

/// Disables or enables an organization. `wait` is for disabling: until no operation can succeed.
pub(super) async fn run(
    org: &str,
    wanted: &str,
    wait: Option<Wait>,
    session: &Session,
) -> Result<()> {
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let mut organization = change(deployment, &operator, org, wanted).await?;
    let times = match wanted {
        "disabled" => format!(
            ": functions reject new requests within {} seconds, and the last writes end within {} seconds",
            MAX_PARENT_TTL.as_secs(),
            SAFE_WAIT.as_secs(),
        ),
        _ => String::new(),
    };
    eprintln!("the organization {org} is {wanted}{times}");
    if let Some(wait) = wait {
        let reason = "functions still use what they have cached, and their last writes end";
        wait.run(deployment, reason).await;
        if wait.is_safe() {
            eprintln!("no operation succeeds for {org} any more");
        }
    }
    record::add_state(&mut organization);
    print_record(&organization, org, session.json)
}

/// Brings an organization into the state `enabled` or `disabled`, and returns its record.
///
/// # Errors
/// If there is no such organization, it is being erased and cannot be enabled, or DynamoDB cannot
/// be reached.
pub async fn change(
    deployment: &Deployment,
    operator: &Operator,
    org: &str,
    wanted: &str,
) -> Result<Value> {
    let expression = match wanted {
        "enabled" => ENABLE,
        _ => DISABLE,
    };
    // An attempt fails if another one has changed the state, which may be an earlier one of this run.
    for _ in 0..10 {
        let organization = record::find(deployment, org).await?;
        match (record::state(&organization), wanted) {
            ("being erased", "enabled") => {
                bail!("the organization {org} is being erased: it cannot be enabled again")
            }
            ("being erased", _) => return Ok(organization),
            (state, wanted) if state == wanted => return Ok(organization),
            _ => {}
        }
        let condition = Condition::unchanged(Table::ORGANIZATIONS, &organization, &["state_id"])
            .and("attribute_not_exists(erasing_id)", &[]);
        let (now, id) = (timestamp(SystemTime::now()), random_id()?);
        let values = [("at", now), ("by", operator.name.clone()), ("id", id)];
        if let Some(updated) = condition.update(deployment, expression, &values).await? {
            return Ok(updated);
        }
    }
    bail!("other operators keep changing the organization {org}: agree with them, and try again")
}
