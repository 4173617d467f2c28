//! `keys usage`: shows how API keys were used, from the log.

use std::time::Duration;

use anyhow::Result;
use clap::value_parser;
use serde_json::json;
use workspace_management::records::Table;

use crate::{
    arguments::parse_identifier,
    context::GlobalOptions,
    deployment::Place,
    key_record,
    log::{KeyUse, key_uses, time_before_now},
    message::print_message,
    organization,
    output::print_rows,
    read::Scope,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys usage
  workspacectl keys usage --org globex --days 7
  workspacectl keys usage --json | jq '.[] | select(.usage == \"unused\")'";

/// How many addresses of a key are shown.
const MAX_ADDRESSES: usize = 3;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only keys of this organization
    #[arg(long, value_parser = parse_identifier)]
    org: Option<String>,
    /// Count the requests of so many days. On AWS, Logs Insights bills each gigabyte that it reads
    #[arg(long, default_value_t = 30, value_parser = value_parser!(u64).range(1..=3653))]
    days: u64,
}

#[rustfmt::skip] // five per line
const COLUMNS: [&str; 9] = [
    "key_id", "org_id", "state", "usage", "last_request_at",
    "requests", "errors", "addresses", "label",
];

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let since = time_before_now(Duration::from_secs(args.days * 86_400))?;
    let context = options.connect().await?;
    let deployment = &context.deployment;
    let scope = match &args.org {
        Some(org) => {
            organization::require(deployment, org).await?;
            Scope::organization_in_index(Table::API_KEYS, org)
        }
        None => Scope::all(Table::API_KEYS),
    };
    let mut keys = scope.read(deployment).await?;
    keys.sort_by_cached_key(|key| key.key.values());
    let uses = key_uses(deployment, since).await?;
    let unused = KeyUse::default();
    let rows = keys.iter().map(|key| {
        let id = key.text("key_id").unwrap_or_default();
        let mut row = key_record::to_output(key);
        let key_use = uses.get(id).unwrap_or(&unused);
        let is_used = key_use.requests > 0;
        row["usage"] = json!(if is_used { "used" } else { "unused" });
        let time = key_use
            .last_request_at
            .map(humantime::format_rfc3339_millis);
        row["last_request_at"] = json!(time.map(|time| time.to_string()));
        row["requests"] = json!(key_use.requests);
        row["errors"] = json!(key_use.errors);
        let mut addresses = Vec::from_iter(key_use.addresses.clone());
        if !context.options.json && addresses.len() > MAX_ADDRESSES {
            let more = addresses.split_off(MAX_ADDRESSES).len();
            addresses.push(format!("and {more} more"));
        }
        row["addresses"] = json!(addresses);
        row
    });
    print_rows(&Vec::from_iter(rows), &COLUMNS, &context.options)?;
    print_message(match deployment.place {
        Place::LocalService { .. } => "note: only the last 10,000 requests are counted",
        _ => {
            "note: requests are counted for at most LogRetentionDays (by default 30), and addresses for 30 days"
        }
    });
    Ok(())
}
