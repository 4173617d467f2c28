//! `keys list` and `keys check`: show the records of API keys.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use workspace_management::store::Table;
use workspace_records::item::string_attribute;

use super::key_arguments::{KeyArgs, parse_duration, read_key_ids};
use crate::{
    arguments::parse_identifier,
    key_record::{self, KeyState, into_output, is_active_and_expires_within},
    organization::{OrgState, Organization},
    output::{print_listing, print_rows},
    read::{PageArgs, Reader},
    session::Session,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys list --org globex
  workspacectl keys list --expiring 14d
  workspacectl keys list --state revoked --json";

#[rustfmt::skip] // five per line
const COLUMNS: [&str; 10] = [
    "key_id", "last_four", "org_id", "label", "state",
    "created_at", "expires_at", "revoked_at", "replaced_by", "operations",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only keys of this organization
    #[arg(long, value_parser = parse_identifier)]
    org: Option<String>,
    /// Only active keys that expire within this period, such as 14d. Applies after --limit, so
    /// fewer than COUNT keys may be printed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expiring: Option<Duration>,
    /// Only keys in this state. Also applies after --limit
    #[arg(long)]
    state: Option<KeyState>,
    #[command(flatten)]
    page: PageArgs,
}

pub(crate) async fn execute(args: Args, session: &Session) -> Result<()> {
    if let Some(org) = &args.org {
        args.page.check_cursor("org_id", org)?;
    }
    let deployment = session.deployment().await?;
    let reader = match &args.org {
        Some(org) => {
            Reader::partition(Table::API_KEYS, org).with_index("by_organization", "org_id")
        }
        None => Reader::all(Table::API_KEYS),
    };
    let mut listing = reader.with_page(args.page).read(deployment).await?;
    // An empty list can mean a mistyped id, so check that the organization exists.
    if listing.records.is_empty()
        && let Some(org) = &args.org
    {
        Organization::require(deployment, org).await?;
    }
    let records = &mut listing.records;
    if let Some(state) = args.state {
        records.retain(|record| KeyState::of(record) == state);
    }
    if let Some(period) = args.expiring {
        records.retain(|record| is_active_and_expires_within(record, period));
    }
    listing.records = listing.records.into_iter().map(into_output).collect();
    print_listing(&listing, &COLUMNS, session)
}

/// Shows keys and says which of their organizations are not enabled. Does not check the secrets.
pub(crate) async fn check(args: &KeyArgs, session: &Session) -> Result<()> {
    let ids = read_key_ids(&args.keys_or_ids)?;
    let deployment = session.deployment().await?;
    let records = key_record::require_records(deployment, &ids).await?;
    let outputs: Vec<_> = records.into_iter().map(into_output).collect();
    print_rows(&outputs, &COLUMNS, session)?;
    let org_of = |record| string_attribute(record, "org_id");
    for org in BTreeSet::from_iter(outputs.iter().map(org_of)) {
        let state = match Organization::find(deployment, org).await? {
            Some(organization) if organization.state() == OrgState::Enabled => continue,
            Some(organization) => organization.state().as_str(),
            None => "not registered",
        };
        session.report(&format!(
            "the organization {org} is {state}: its keys are not accepted"
        ));
    }
    Ok(())
}
