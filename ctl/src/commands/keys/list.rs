//! `keys list` and `keys check`.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use anyhow::Result;
use serde_json::Value;
use workspace_management::store::Table;
use workspace_records::item::text;

use super::{
    arguments::{Keys, duration, key_ids},
    stored::{find_all, to_display},
};
use crate::{
    commands::orgs::organization::{Organization, State},
    output::{print_page, print_records},
    query::{PageOptions, Query, Scope},
    session::Session,
    usage::identifier,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys list --org globex
  workspacectl keys list --expiring 14d
  workspacectl keys list --state revoked --json";

pub(crate) const CHECK_EXAMPLES: &str = "\
Examples:
  workspacectl keys check 0fzzzxjylrx3
  workspacectl keys check - < keys.txt";

#[rustfmt::skip] // keeps a table short
const COLUMNS: [&str; 10] = [
    "key_id", "last_four", "org_id", "label", "state",
    "created_at", "expires_at", "revoked_at", "replaced_by", "operations",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only keys of this organization
    #[arg(long, value_parser = identifier)]
    org: Option<String>,
    /// Only active keys that expire within this time, such as 14d
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expiring: Option<Duration>,
    /// Only keys in this state
    #[arg(long, value_parser = ["active", "expired", "revoked", "malformed"])]
    state: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let deployment = session.deployment().await?;
    let query = match &options.org {
        Some(org) => {
            let scope = Scope::partition("org_id", org);
            Query::new(Table::KEYS, scope).index("by_organization")
        }
        None => Query::new(Table::KEYS, Scope::All),
    };
    let mut page = query.page(options.page).run(deployment).await?;
    if let Some(org) = options.org.filter(|_| page.records.is_empty()) {
        Organization::find(deployment, &org).await?;
    }
    page.records = page.records.into_iter().map(to_display).collect();
    if let Some(state) = options.state {
        page.records.retain(|key| key["state"] == *state);
    }
    if let Some(time) = options.expiring {
        let now = SystemTime::now();
        page.records.retain(|key| expires_within(key, time, now));
    }
    print_page(&page, &COLUMNS, session)
}

/// Shows keys, and names their organizations that are not enabled. Does not compare secrets, which the
/// service does.
pub(crate) async fn check(keys: &Keys, session: &Session) -> Result<()> {
    let ids = key_ids(&keys.keys)?;
    let deployment = session.deployment().await?;
    let keys = find_all(deployment, &ids).await?;
    let keys: Vec<_> = keys.into_iter().map(to_display).collect();
    print_records(&keys, &COLUMNS, session)?;
    let orgs: BTreeSet<&str> = keys.iter().map(|key| text(key, "org_id")).collect();
    for org in orgs {
        let organization = Organization::get(deployment, org).await?;
        let state = organization.map(|organization| organization.state());
        if state != Some(State::Enabled) {
            let state = state.map_or("not registered".to_owned(), |state| state.to_string());
            session.say(&format!(
                "the organization {org} is {state}: its keys are not accepted"
            ));
        }
    }
    Ok(())
}

/// Whether an active key expires within a time.
pub(crate) fn expires_within(key: &Value, time: Duration, now: SystemTime) -> bool {
    let expires_at = key["expires_at"].as_str().map(humantime::parse_rfc3339);
    let left = expires_at.and_then(|at| at.ok()?.duration_since(now).ok());
    key["state"] == "active" && left.is_some_and(|left| left <= time)
}
