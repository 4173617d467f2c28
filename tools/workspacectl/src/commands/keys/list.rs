//! `keys list`: lists the records of API keys.

use std::time::Duration;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use workspace_management::records::{ApiKeyRecord, ApiKeyState, Table};

use super::{KEY_COLUMNS, key_arguments::parse_duration};
use crate::{
    arguments::parse_identifier,
    context::GlobalOptions,
    key_record, organization,
    output::print_listing,
    read::{LimitArgs, Scope},
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
    limit: LimitArgs,
}

/// A parser of a state, as it is printed.
fn state_parser() -> impl TypedValueParser<Value = ApiKeyState> {
    PossibleValuesParser::new(["active", "expired", "revoked", "malformed"])
        .try_map(|name| serde_json::from_value(json!(name)))
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let context = options.connect().await?;
    let scope = match &args.org {
        Some(org) => Scope::organization_in_index(Table::API_KEYS, org),
        None => Scope::all(Table::API_KEYS),
    };
    let listing = scope.list(&context.deployment, args.limit).await?;
    // An empty list can mean a mistyped id, so check that the organization exists.
    if listing.records.is_empty()
        && let Some(org) = &args.org
    {
        organization::require(&context.deployment, org).await?;
    }
    let mut keys = listing.records;
    if let Some(state) = args.state {
        keys.retain(|key| key_record::state_of(key) == state);
    }
    if let Some(period) = args.expiring {
        keys.retain(|key| {
            let key = key.clone().parse::<ApiKeyRecord>();
            key.is_ok_and(|key| key_record::is_active_and_expires_within(&key.fields, period))
        });
    }
    let outputs: Vec<_> = keys.iter().map(key_record::to_output).collect();
    print_listing(&outputs, listing.is_cut, &KEY_COLUMNS, &context.options)
}
