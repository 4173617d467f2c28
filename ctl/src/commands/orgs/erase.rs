//! `orgs erase`: deletes all records of a disabled organization. It can be repeated after an
//! interruption, and by several operators:
//!
//! 1. Mark the organization with a random id. It cannot be enabled any more.
//! 2. Wait until the last writes of functions have ended, in every run.
//! 3. Export, so that the export has these last writes. If another run has finished, its export is the
//!    complete one.
//! 4. Delete all records, in transactions that check the mark, until none are found.
//! 5. Delete the organization's record, if it still has the mark.

use std::{path::PathBuf, time::SystemTime};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use workspace_management::store::{Table, timestamp};

use super::organization::{Organization, State};
use crate::{
    deployment::Deployment,
    export::Export,
    output::print_record,
    query::Query,
    session::{Operator, Session},
    text::counted,
    usage::identifier,
    wait::{LAST_WRITES, Wait},
    write::{Condition, delete_all},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs erase globex --export globex.jsonl
  workspacectl orgs erase globex --without-export --yes";

const MARK: &str = "SET erasing_id = if_not_exists(erasing_id, :id), \
    erasing_at = if_not_exists(erasing_at, :at), erasing_by = if_not_exists(erasing_by, :by)";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The id of the organization, which must be disabled
    #[arg(value_parser = identifier)]
    org: String,
    /// Export the records to this new file before they are deleted
    #[arg(long, value_name = "FILE", required_unless_present = "without_export")]
    export: Option<PathBuf>,
    /// Delete the records without an export
    #[arg(long, conflicts_with = "export")]
    without_export: bool,
    #[command(flatten)]
    wait: Wait,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let Options {
        org, export, wait, ..
    } = &options;
    session.check_confirmation()?;
    let file = export.as_deref().map(Export::create_partial).transpose()?;
    let (deployment, operator) = session.start().await?;
    let organization = Organization::find(deployment, org).await?;
    if organization.state() == State::Enabled {
        bail!("the organization {org} is enabled: run `workspacectl orgs disable {org}` first");
    }
    let what =
        format!("all records of the organization {org} will be deleted, which cannot be undone.");
    session.confirm(&what, org)?;
    let count = erase(deployment, &operator, org, &organization, *wait, file).await;
    let count = count.with_context(|| format!("the organization {org} is not erased"))?;
    let count_text = counted(count, "record");
    let exports = export
        .as_deref()
        .map_or("exports".into(), |file| file.to_string_lossy());
    session.say(&format!(
        "the organization {org} was erased, with {count_text}. Backups, logs and {exports} still contain its data"
    ));
    let erased = json!({
        "org_id": org, "deleted": count, "erased_at": timestamp(SystemTime::now()),
        "erased_by": operator.name, "request_id": operator.run_id,
    });
    print_record(&erased, org, session.json)
}

/// Erases an organization that has not changed since it was read. Returns the number of records that
/// this run deleted.
///
/// # Errors
/// If the organization has changed since it was read, the export cannot be written, or DynamoDB cannot
/// be reached.
pub async fn erase(
    deployment: &Deployment,
    operator: &Operator,
    org: &str,
    organization: &Organization,
    wait: Wait,
    export: Option<Export>,
) -> Result<usize> {
    let is_disabled = "attribute_exists(disabled_at)";
    let condition = Condition::new(Table::ORGANIZATIONS, &[org])
        .and(is_disabled, &[])
        .and_unchanged(&organization.0, &["request_id", "disabled_at"]);
    let marked = condition.mark(deployment, operator, MARK, "erasing_id");
    let (record, marked) = marked.await?.with_context(|| {
        format!("it has changed since it was read: look at it with `workspacectl orgs show {org}`")
    })?;
    wait.run(deployment, LAST_WRITES).await;
    if let Some(mut export) = export {
        let count = export
            .write_all(deployment, Query::organization(org))
            .await?;
        let current = Organization::get(deployment, org).await?;
        if current.is_none_or(|current| current.0["erasing_id"] != record["erasing_id"]) {
            bail!(
                "another run has erased it, and may have deleted records before this run could export them: keep the other run's export"
            );
        }
        export.finish()?;
        eprintln!("exported {} of {org}", counted(count, "record"));
    }
    let others = || {
        let mut queries = Query::organization(org);
        queries.retain(|query| query.table != Table::ORGANIZATIONS);
        queries
    };
    let deleted = delete_all(deployment, &marked, others).await?;
    // With the record of the organization.
    Ok(deleted + 1)
}
