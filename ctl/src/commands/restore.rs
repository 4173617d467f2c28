//! `restore`: copies records back from a restored table or an export. It never overwrites a record.
//!
//! It reads its source twice: first to check every record, then to copy them.

mod copy;
mod parent;
mod record;
mod report;
mod scope;
mod source;

use std::collections::HashMap;

use anyhow::{Context as _, Result, bail};
use workspace_management::store::Table;

use self::{copy::Restore, parent::Parents, report::Report, scope::Scope, source::Source};
use crate::{
    output::counted,
    session::{Operator, Session},
    usage::UsageError,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl restore --from globex.jsonl --dry-run
  workspacectl restore --from globex.jsonl
  workspacectl restore --from globex.jsonl --org globex --project apollo --team docs
  workspacectl restore --from TeamsTable-restored --to teams --all-orgs
  workspacectl restore --from KeysTable-restored --to keys --org globex --keys";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A table restored from a backup, or a file in the format of `orgs export`
    #[arg(long, value_name = "TABLE|FILE")]
    from: String,
    #[command(flatten)]
    scope: Scope,
    /// Write nothing. Print a line for each record: its kind, its key, and `copied`, `exists`,
    /// `differs` or `skipped`, separated by tabs. Without this option, the command prints the lines
    /// of the records that it skips or that differ, and of the keys that can be used again
    #[arg(long)]
    dry_run: bool,
    /// Also copy records that are older than their organization or team. By default, they are
    /// skipped, because they belonged to an earlier one with this id
    #[arg(long)]
    force_older: bool,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let Options { from, scope, .. } = &options;
    if scope.to == Some(Table::KEYS) && !scope.keys {
        let message = "keys are only restored with --keys, because they become usable";
        return Err(UsageError(message.to_owned()).into());
    }
    let file = Source::open(from, scope)?;
    let deployment = session.deployment().await?;
    let source = match file {
        Some(file) => file,
        None => Source::download(from, scope, deployment).await?,
    };
    let contents = source.inspect().context("nothing was restored")?;
    if contents.keys_left_out > 0 {
        let keys = counted(contents.keys_left_out, "key");
        eprintln!("{keys} left out: keys need --keys, and their hashes, which exports omit");
    }
    if contents.records == 0 {
        bail!("nothing was restored: {from} has no such records");
    }
    deployment.check_clock().await?;
    let mut restore = Restore {
        deployment,
        operator: Operator::of(deployment).await?,
        parents: Parents {
            deployment,
            organizations: contents.organizations,
            force_older: options.force_older,
            cache: HashMap::new(),
            planned: HashMap::new(),
        },
        report: Report::new(options.dry_run, session.json),
    };
    let copied = restore.run(&source).await;
    eprintln!("{}", restore.report.summary());
    copied?;
    restore.report.check()
}
