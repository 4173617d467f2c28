//! `restore`: copies records back from a restored table or an export. It never overwrites a record.

pub(crate) mod copy;
mod parent;
pub(crate) mod source;

use std::collections::BTreeMap;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use workspace_management::store::Table;

use self::{copy::restore, source::Source};
use crate::{
    output::{escape, print_records},
    session::{Operator, Session},
    usage::UsageError,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl restore --from TeamsTable-restored --to teams
  workspacectl restore --from KeysTable-restored --to keys --keys
  workspacectl restore --from globex.jsonl";

/// The options of `restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A table restored from a backup, or a file written by `orgs export`
    #[arg(long, value_name = "TABLE|FILE")]
    from: String,
    /// The kind of the records. Required for a table; each line of a file names its kind
    #[arg(long, value_name = "KIND", value_parser = kind_parser())]
    to: Option<Table>,
    /// Required to restore API keys. Restored keys work again unless they are expired or revoked.
    /// Keys in an export cannot be restored, because their hashes are omitted
    #[arg(long)]
    keys: bool,
}

fn kind_parser() -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(Table::ALL.iter().map(|table| table.noun)).try_map(|name| {
        let table = Table::ALL.iter().copied().find(|table| table.noun == name);
        table.ok_or("unknown kind")
    })
}

/// What became of the records.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) copied: usize,
    /// Records that exist with the same content.
    pub(crate) existed: usize,
    /// Records that exist with other content, which stays.
    pub(crate) differ: usize,
    /// How many records were skipped, by the reason.
    pub(crate) skipped: BTreeMap<&'static str, usize>,
    /// The ids of the keys that can be used again.
    pub(crate) keys: Vec<String>,
}

/// Copies records and reports what became of them.
///
/// # Errors
/// If an option is missing, the source cannot be read, or DynamoDB cannot be reached.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    if options.to == Some(Table::KEYS) && !options.keys {
        let message = "keys are only restored with --keys, because they become usable";
        return Err(UsageError(message.to_owned()).into());
    }
    let source = Source::new(&options.from, options.to)?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let report = restore(deployment, &operator, &source, options.keys).await?;
    let Report {
        copied,
        existed,
        differ,
        skipped,
        keys,
    } = report;
    for (reason, count) in &skipped {
        eprintln!("{count} skipped: {reason}");
    }
    if !keys.is_empty() {
        eprintln!("these keys can be used again: {}", escape(&keys.join(", ")));
    }
    let report = json!({
        "copied": copied, "existed": existed, "differ": differ,
        "skipped": skipped.values().sum::<usize>(), "skipped_because": skipped, "keys": keys,
        "restored_by": operator.name, "request_id": operator.run_id,
    });
    print_records(
        &[report],
        &["copied", "existed", "differ", "skipped"],
        session.json,
    )
}
