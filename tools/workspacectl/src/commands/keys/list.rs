//! `keys list`: lists the records of API keys.

use std::time::Duration;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Deserialize as _;
use serde_json::json;
use workspace_management::{
    records::{ApiKeyRecord, ApiKeyState},
    store::Table,
};

use super::{KEY_COLUMNS, key_arguments::parse_duration};
use crate::{
    arguments::parse_identifier,
    key_record, organization,
    output::print_listing,
    read::{PageArgs, Reader},
    session::Session,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys list --org globex
  workspacectl keys list --expiring 14d
  workspacectl keys list --state revoked --json";

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
    #[arg(long, value_parser = state_parser())]
    state: Option<ApiKeyState>,
    #[command(flatten)]
    page: PageArgs,
}

/// A parser of a state, as it is printed.
fn state_parser() -> impl TypedValueParser<Value = ApiKeyState> {
    PossibleValuesParser::new(["active", "expired", "revoked", "malformed"])
        .try_map(|name| serde_json::from_value(json!(name)))
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
        organization::require(deployment, org).await?;
    }
    let records = &mut listing.records;
    if let Some(state) = args.state {
        records.retain(|record| key_record::state_of(record) == state);
    }
    if let Some(period) = args.expiring {
        records.retain(|record| {
            let key = ApiKeyRecord::deserialize(record);
            key.is_ok_and(|key| key_record::is_active_and_expires_within(&key, period))
        });
    }
    let records = listing.records.into_iter();
    listing.records = records.map(key_record::into_output).collect();
    print_listing(&listing, &KEY_COLUMNS, session)
}
