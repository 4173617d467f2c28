//! `orgs erase`: deletes all records of a disabled organization, as [`crate::marked_deletion`]
//! describes.

use std::{path::PathBuf, time::SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use workspace_management::{
    records::{Organization, Table},
    store::timestamp,
};
use workspace_records::kinds::HISTORY;

use crate::{
    arguments::{is_dash, parse_identifier},
    context::{GlobalOptions, ReasonArgs, Run},
    deployment::Deployment,
    export::{ExportWriter, check_export},
    marked_deletion::{self, DeletionOutcome, ERASING, MarkedDeletion, Parent},
    organization,
    output::print_json_or_text,
    read::{Scope, organization_scopes},
    record::Stored,
    text::pluralize,
    wait::WaitArgs,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs erase globex --export globex.jsonl
  workspacectl orgs erase globex --without-export
  workspacectl orgs erase globex --cancel";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The id of the organization, which must be disabled
    #[arg(value_parser = parse_identifier)]
    org: String,
    /// Export the records to this new file before deleting them. `restore` can copy them back. `-`
    /// is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", required_unless_present_any = ["without_export", "cancel"])]
    export: Option<PathBuf>,
    /// Delete the records without an export
    #[arg(long, conflicts_with = "export")]
    without_export: bool,
    /// Cancel an erasure that has begun. The organization stays disabled
    #[arg(long, conflicts_with_all = ["export", "without_export"])]
    cancel: bool,
    #[command(flatten)]
    wait_args: WaitArgs,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    if args.cancel {
        return cancel(&args.org, args.reason, options).await;
    }
    let Args { org, wait_args, .. } = &args;
    options.check_can_confirm()?;
    let path = args.export.as_deref();
    check_export(path)?;
    let context = options.connect().await?;
    let run = context.begin_run(args.reason.clone()).await?;
    let organization = organization::require(&context.deployment, org).await?;
    if organization.fields.is_enabled() {
        bail!("the organization {org} is enabled: run `workspacectl orgs disable {org}` first");
    }
    let undo_sentence = match (path, context.deployment.is_on_aws()) {
        (Some(_), false) => "`restore` can copy them back from the export, except for API keys.",
        (Some(_), true) => {
            "`restore` can copy them back from the export, and for 35 days, API keys from a backup."
        }
        (None, false) => "This cannot be undone.",
        (None, true) => "Afterwards, only the backups of the tables have them, for 35 days.",
    };
    let title = organization::id_and_name(&organization.record);
    let text = format!("all records of the organization {title} will be deleted. {undo_sentence}");
    context.confirm(&text, org)?;
    let export = path.map(ExportWriter::create).transpose()?;
    let count = erase(&context.deployment, &run, &organization, *wait_args, export)
        .await
        .with_context(|| format!("cannot finish erasing the organization {org}"))?;
    let export_name = match path {
        Some(path) if is_dash(path) => "the export".into(),
        Some(path) => path.to_string_lossy(),
        None => "any exports".into(),
    };
    context.report(&format!(
        "the organization {org} was erased ({}). Backups, logs and {export_name} still contain its data",
        pluralize(count, "record")
    ));
    let erased = json!({
        "org_id": org, "deleted": count, "erased_at": timestamp(SystemTime::now()),
        "erased_by": run.operator, "request_id": run.id,
        "deployment": context.deployment.to_string(),
    });
    if path.is_some_and(is_dash) {
        return Ok(());
    }
    print_json_or_text(&erased, org, &context.options)
}

/// Erases a disabled organization. Returns how many records this run deleted. The organization's own
/// record always counts, even if another run deleted it. Fails if the organization has changed since
/// it was read, the erasure is cancelled, another run erases it before the export is complete, or
/// the export cannot be written.
pub async fn erase(
    deployment: &Deployment,
    run: &Run,
    organization: &Stored<Organization>,
    wait: WaitArgs,
    export: Option<ExportWriter>,
) -> Result<usize> {
    let org = &organization.fields.org_id;
    ensure!(
        !organization.fields.is_enabled(),
        "the organization {org} is enabled"
    );
    // The organization's own record is deleted last.
    let mut children = organization_scopes(org);
    children.retain(|scope| scope.table != Table::ORGANIZATIONS);
    children.push(Scope::organization(HISTORY, org));
    let deletion = MarkedDeletion {
        deployment,
        run,
        mark: &ERASING,
        wait,
        export,
        cancel_command: deployment.command_line(&format!("orgs erase {org} --cancel")),
    };
    let mut parents = [Parent::new(organization.record.clone(), children)];
    deletion.execute(&mut parents).await?;
    match parents[0].outcome {
        Some(DeletionOutcome::Deleted(count)) => Ok(count + 1),
        Some(DeletionOutcome::Cancelled(count)) => {
            bail!(
                "it was cancelled, after {} had been deleted",
                pluralize(count, "record")
            )
        }
        _ => bail!(
            "{org} has changed since it was read: check it with `workspacectl orgs show {org}`"
        ),
    }
}

async fn cancel(org: &str, reason: ReasonArgs, options: GlobalOptions) -> Result<()> {
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    let organization = organization::require(&context.deployment, org).await?;
    let key = organization.record.key.to_string();
    let outcome =
        marked_deletion::cancel(&context.deployment, &run, &ERASING, &organization.record);
    let text = outcome.await?.describe(&key, &ERASING)?;
    context.report(&text);
    let organization = organization::require(&context.deployment, org).await?;
    if !organization.fields.is_enabled() {
        context.report(&format!(
            "the organization {org} is disabled: to enable it, run `workspacectl orgs enable {org}`"
        ));
    }
    print_json_or_text(
        &organization::to_output(&organization),
        org,
        &context.options,
    )
}
