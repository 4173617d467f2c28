//! `keys list`.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde_json::Value;
use workspace_management::store::Table;

use super::{arguments::duration, record::to_display};
use crate::{
    deployment::Deployment,
    output::print_records,
    query::{Query, Scope},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys list --org globex
  workspacectl keys list --expiring 14d
  workspacectl keys list --state revoked --json";

/// The columns of `keys list`.
const COLUMNS: [&str; 10] = [
    "key_id",
    "last_four",
    "org_id",
    "label",
    "state",
    "created_at",
    "expires_at",
    "revoked_at",
    "replaced_by",
    "operations",
];

/// The options of `keys list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only keys of this organization
    #[arg(long)]
    org: Option<String>,
    /// Only active keys that expire within this time, such as 14d
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expiring: Option<Duration>,
    /// Only keys in this state
    #[arg(long, value_parser = ["active", "expired", "revoked", "malformed"])]
    state: Option<String>,
}

/// Lists keys.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn run(options: Options, deployment: &Deployment, json: bool) -> Result<()> {
    let query = match options.org {
        Some(org) => {
            Query::new(Table::KEYS, Scope::Partition("org_id", org)).index("by_organization")
        }
        None => Query::new(Table::KEYS, Scope::All),
    };
    let keys = query.run(deployment).await?.records;
    let mut keys: Vec<Value> = keys.into_iter().map(to_display).collect();
    if let Some(state) = options.state {
        keys.retain(|key| key["state"] == *state);
    }
    if let Some(time) = options.expiring {
        keys.retain(|key| expires_within(key, time, SystemTime::now()));
    }
    print_records(&keys, &COLUMNS, json)
}

/// Whether an active key expires within a time.
fn expires_within(key: &Value, time: Duration, now: SystemTime) -> bool {
    let expires_at = key["expires_at"].as_str().map(humantime::parse_rfc3339);
    let left = expires_at.and_then(|at| at.ok()?.duration_since(now).ok());
    key["state"] == "active" && left.is_some_and(|left| left <= time)
}
