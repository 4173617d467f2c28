//! `orgs erase`: deletes all records of a disabled organization. It can be run again after an
//! interruption, and by several operators at the same time. The steps:
//!
//! 1. Mark the organization with a random id. From then on, it cannot be enabled.
//! 2. Wait, in every run, until the function's last writes have ended.
//! 3. Export, if `--export` was given, including these last writes. Fail if another run finished
//!    first, because only the export of that run is complete.
//! 4. Delete all records, in transactions that check the mark, until none are found.
//! 5. Delete the organization's record, if it still has the mark.

use std::{path::PathBuf, time::SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use workspace_management::{
    records::Organization,
    store::{Table, timestamp},
};
use workspace_records::stored::Stored;

use crate::{
    arguments::{is_dash, parse_identifier},
    deployment::Deployment,
    export::{ExportWriter, check_export},
    message::print_message,
    organization,
    output::print_json_or_text,
    read::org_readers,
    session::{Run, Session},
    text::pluralize,
    wait::WaitArgs,
    write::{GuardedRecord, ORG_MARK, delete_with_children},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs erase globex --export globex.jsonl
  workspacectl orgs erase globex --without-export --yes";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The id of the organization, which must be disabled
    #[arg(value_parser = parse_identifier)]
    org: String,
    /// Export the records to this new file before deleting them. `restore` can copy them back. `-`
    /// is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", required_unless_present = "without_export")]
    export: Option<PathBuf>,
    /// Delete the records without an export
    #[arg(long, conflicts_with = "export")]
    without_export: bool,
    #[command(flatten)]
    wait_args: WaitArgs,
}

pub(crate) async fn execute(args: Args, session: &Session) -> Result<()> {
    let Args { org, wait_args, .. } = &args;
    session.check_can_confirm()?;
    let path = args.export.as_deref();
    check_export(path)?;
    let (deployment, run) = session.deployment_and_run().await?;
    let organization = organization::require(deployment, org).await?;
    if organization.record.is_enabled() {
        bail!("the organization {org} is enabled: run `workspacectl orgs disable {org}` first");
    }
    let undo_sentence = match path {
        Some(_) => "`restore` can copy them back from the export, except for API keys.",
        None => "This cannot be undone.",
    };
    let text = format!("all records of the organization {org} will be deleted. {undo_sentence}");
    session.confirm(&text, org)?;
    let export = path.map(ExportWriter::create).transpose()?;
    let count = erase(deployment, &run, org, &organization, *wait_args, export)
        .await
        .with_context(|| format!("cannot finish erasing the organization {org}"))?;
    let export_name = match path {
        Some(path) if is_dash(path) => "the export".into(),
        Some(path) => path.to_string_lossy(),
        None => "any exports".into(),
    };
    session.report(&format!(
        "the organization {org} was erased ({}). Backups, logs and {export_name} still contain its data",
        pluralize(count, "record")
    ));
    let erased = json!({
        "org_id": org, "deleted": count, "erased_at": timestamp(SystemTime::now()),
        "erased_by": run.operator, "request_id": run.id, "deployment": deployment.display_name,
    });
    if path.is_some_and(is_dash) {
        return Ok(());
    }
    print_json_or_text(&erased, org, session)
}

/// Erases an organization. Returns how many records this run deleted. The organization's own record
/// always counts, even if another run deleted it. Fails if the organization has changed since it
/// was read, if another run erases it before the export is complete, or if the export cannot be
/// written.
pub async fn erase(
    deployment: &Deployment,
    run: &Run,
    org: &str,
    organization: &Stored<Organization>,
    wait_args: WaitArgs,
    export: Option<ExportWriter>,
) -> Result<usize> {
    let org_if_disabled = GuardedRecord::if_exists(Table::ORGANIZATIONS, &[org])
        .and("attribute_exists(disabled_at)", &[])
        .and_unchanged(&organization.attributes, &["request_id", "disabled_at"]);
    let Some(marked_org) = org_if_disabled.mark(deployment, run, ORG_MARK).await? else {
        bail!("{org} has changed since it was read: check it with `workspacectl orgs show {org}`");
    };
    wait_args.wait(deployment).await;
    if let Some(mut export) = export {
        let readers = org_readers(org);
        let count = export.write_from(deployment, readers).await?;
        let current = organization::find(deployment, org).await?;
        ensure!(
            current.is_some_and(
                |current| current.attributes["erasing_id"] == marked_org.record["erasing_id"]
            ),
            "another run has erased {org}, and may have deleted records before this run could export them: keep the export of that run"
        );
        export.persist()?;
        let count = pluralize(count, "record");
        let name = &deployment.display_name;
        print_message(&format!("{name}: exported {count} of {org}"));
    }
    // All but the organization's own record, which is deleted last.
    let make_readers = || {
        let mut readers = org_readers(org);
        readers.retain(|reader| reader.table != Table::ORGANIZATIONS);
        readers
    };
    let deleted =
        delete_with_children(deployment, &marked_org.record_if_marked, make_readers).await?;
    Ok(deleted + 1)
}
