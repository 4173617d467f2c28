//! `restore`: copies missing records from a restored table or an export. Overwrites nothing.
//!
//! 1. Read the source, and check the records that match the filter. If one is invalid, fail.
//! 2. Copy organizations first, and teams before their members. Each write has the condition that
//!    no record has the same primary key.

mod copy;
mod outcome;
mod pace;
mod source;

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::value_parser;
use workspace_management::{records::Table, store::Item};

use self::{copy::Restore, pace::Pace, source::Source};
use crate::{
    arguments::{is_dash, parse_identifier, stdin, table_parser},
    context::{GlobalOptions, ReasonArgs},
    errors::UsageError,
    message::print_message,
    organization,
    output::JsonArray,
    text::pluralize,
    write::LongChange,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl restore --from globex.jsonl --dry-run
  workspacectl restore --from globex.jsonl
  zcat globex.jsonl.gz | workspacectl restore --from -
  workspacectl restore --from export.jsonl --org globex
  workspacectl restore --from TeamsTable-restored --to teams --all-orgs
  workspacectl restore --from KeysTable-restored --to keys --org globex";

/// The maximum difference between two clocks. `orgs create` fails above it, so that `restore` can
/// compare times from different machines.
pub(crate) const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A table restored from a backup, or a file in the format of `orgs export`. `-` is standard
    /// input
    #[arg(long, value_name = "TABLE|FILE")]
    from: String,
    #[command(flatten)]
    filter: RestoreFilter,
    /// Write nothing and print each record's kind, key and result (`copied`, `exists`, `differs`
    /// or `skipped`), separated by tabs. Without this option, prints only records that differ or
    /// are skipped
    #[arg(long)]
    dry_run: bool,
    /// Write at most UNITS write units (1 kB each) per second to a table, and at most as many to its
    /// index. Without this option, the only limit is that 16 records are copied at the same time
    #[arg(long, value_name = "UNITS", value_parser = value_parser!(u32).range(1..))]
    write_units: Option<u32>,
    #[command(flatten)]
    reason: ReasonArgs,
}

/// Which records to restore.
#[derive(Debug, clap::Args)]
struct RestoreFilter {
    /// Copy only this kind of record, to its table. Required unless --from is a file
    #[arg(long = "to", value_name = "KIND", value_parser = table_parser(Table::ALL.iter().copied()))]
    table: Option<Table>,
    /// Only records of this organization. This or --all-orgs is required for a table, and for a
    /// file with several organizations
    #[arg(long, value_parser = parse_identifier)]
    org: Option<String>,
    /// Restore the records of all organizations
    #[arg(long, conflicts_with = "org")]
    all_orgs: bool,
}

impl RestoreFilter {
    /// Whether to restore a record.
    fn matches(&self, table: Table, item: &Item) -> bool {
        let org = item.get("org_id").and_then(|value| value.as_s().ok());
        self.table.is_none_or(|wanted| wanted == table)
            && (self.org.is_none() || self.org.as_ref() == org)
    }
}

/// What `--from` names.
enum Input {
    Export(Box<dyn Read>),
    /// A table with records of this kind.
    Table(Table),
}

/// Opens the export in `--from`. If there is no such file, `from` is a table, which can have the
/// name of a folder. Fails if an option that a table needs is missing.
fn open(from: &str, filter: &RestoreFilter) -> Result<Input> {
    if is_dash(Path::new(from)) {
        return Ok(Input::Export(Box::new(stdin("an export"))));
    }
    // Not only regular files: also pipes, such as `<(zcat FILE)`.
    if fs::metadata(from).is_ok_and(|metadata| !metadata.is_dir()) {
        let file = File::open(from).with_context(|| format!("cannot open {from}"))?;
        return Ok(Input::Export(Box::new(file)));
    }
    match filter.table {
        Some(table) if filter.org.is_some() || filter.all_orgs => Ok(Input::Table(table)),
        _ => Err(UsageError(format!(
            "there is no file {from}: if it is a table, pass --to KIND, and --org ORG or --all-orgs"
        ))
        .into()),
    }
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let Args { from, filter, .. } = &args;
    let input = open(from, filter)?;
    let from = if from == "-" { "standard input" } else { from };
    let context = options.connect().await?;
    let source = match input {
        Input::Export(input) => Source::read_export(from, input, filter),
        Input::Table(table) => Source::check_table(from, table, filter, &context.deployment).await,
    };
    let source = source.context("nothing was restored")?;
    source.check_single_org()?;
    print_notes(&source);
    if source.is_empty_table {
        context.report(&format!("nothing to restore: {from} is empty"));
        return JsonArray::default().close(Ok(()), &context.options);
    }
    if source.orgs.is_empty() {
        bail!("nothing was restored: {from} has no records that match the options");
    }
    let run;
    let change = if args.dry_run {
        None
    } else {
        run = context.begin_run(args.reason.clone()).await?;
        let orgs: Vec<_> = source
            .orgs
            .iter()
            .map(|org| organization::key(org))
            .collect();
        Some(LongChange::begin(&context.deployment, &run, "restore", &orgs).await?)
    };
    let restore = Restore {
        context: &context,
        change,
        source,
        pace: Pace::new(args.write_units),
    };
    restore.execute().await
}

/// Says what is left out, and what may be wrong with the records.
fn print_notes(source: &Source<'_>) {
    if source.keys_without_hash_count > 0 {
        let keys_text = pluralize(source.keys_without_hash_count, "key");
        print_message(&format!(
            "note: leaving out {keys_text}, because exports lack the hashes of keys: create new keys"
        ));
    }
    if source.history_count > 0 {
        print_message("note: leaving out the history, which only changes of records extend");
    }
    if source.has_keys() && !source.orgs.is_empty() {
        print_message(
            "note: copying a key that was revoked after the backup makes it valid again: revoke such keys again",
        );
    }
}
