//! `orgs erase`: deletes all records of a disabled organization. It can be repeated after an
//! interruption, and by several operators:
//!
//! 1. Mark the organization with a random id. It cannot be enabled any more.
//! 2. Wait until the last writes of functions have ended, in every run.
//! 3. Export, so that the export has these last writes.
//! 4. Delete all records, in transactions that check the mark, until none are found.
//! 5. Delete the organization's record, if it still has the mark.

use std::{path::PathBuf, time::SystemTime};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use super::{
    export::{Reads, write},
    record,
};
use crate::{
    confirmation::Confirmation,
    deployment::Deployment,
    export::CompleteExport,
    output::{counted, print_record},
    query::{Query, Scope},
    records::text_of,
    session::{Operator, Session, random_id},
    usage::identifier,
    wait::Wait,
    write::{Condition, delete_all},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs erase globex --export globex.jsonl
  workspacectl orgs erase globex --without-export --yes";

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
    #[command(flatten)]
    confirmation: Confirmation,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let Options { org, export, .. } = &options;
    options.confirmation.check()?;
    let file = export.as_deref();
    let export = file.map(CompleteExport::create).transpose()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let organization = record::get(deployment, org).await?;
    match &organization {
        Some(organization) if record::state(organization) == "enabled" => {
            bail!("the organization {org} is enabled: run `workspacectl orgs disable {org}` first")
        }
        None if records_of(deployment, org).await?.is_empty() => {
            return Err(record::no_such(org));
        }
        _ => {}
    }
    let question = format!("All records of the organization {org} will be deleted.");
    options.confirmation.ask(&question, org)?;
    let erasure = Erasure {
        deployment,
        operator: &operator,
        org,
    };
    let (count, is_finished) = erasure
        .run(organization.as_ref(), options.wait, export)
        .await
        .with_context(|| format!("the organization {org} is not erased"))?;
    let mut left = file.map_or(vec![], |file| CompleteExport::left_by_others(file, org));
    if !is_finished {
        left.extend(records_of(deployment, org).await?);
    }
    let count_text = counted(count, "record");
    if !left.is_empty() {
        let left = left.join(", ");
        bail!("{count_text} of {org} were deleted, but its data is left: {left}");
    }
    let exports = file.map_or("exports".into(), |file| file.to_string_lossy());
    eprintln!(
        "the organization {org} was erased, with {count_text}: backups, logs and {exports} still contain its data"
    );
    let erased = json!({
        "org_id": org, "deleted": count, "erased_at": timestamp(SystemTime::now()),
        "erased_by": operator.name, "request_id": operator.run_id,
    });
    print_record(&erased, org, session.json)
}

/// An organization that is erased.
pub struct Erasure<'a> {
    /// Where it is.
    pub deployment: &'a Deployment,
    /// Who erases it.
    pub operator: &'a Operator,
    /// Its id.
    pub org: &'a str,
}

impl Erasure<'_> {
    /// Erases the organization as it was read. Returns the number of records that this run deleted, and
    /// whether it deleted the last one.
    ///
    /// # Errors
    /// If the organization has changed since it was read, the export cannot be written, or DynamoDB
    /// cannot be reached.
    pub async fn run(
        &self,
        organization: Option<&Value>,
        wait: Wait,
        export: Option<CompleteExport>,
    ) -> Result<(usize, bool)> {
        let id = match organization {
            Some(organization) => self.mark(organization).await?,
            None => self.mark_missing().await?,
        };
        let reason = "functions still use what they have cached, and their last writes end";
        wait.run(self.deployment, reason).await;
        if let Some(mut export) = export {
            let count = write(self.deployment, self.org, Reads::Complete, &mut export.out).await?;
            export.finish()?;
            eprintln!("exported {} of {}", counted(count, "record"), self.org);
        }
        self.delete(&id).await
    }

    /// Marks the organization as it was read. Returns the id of the mark, which may be that of another
    /// run.
    async fn mark(&self, organization: &Value) -> Result<String> {
        let org = self.org;
        // One that was disabled by hand has no `state_id`.
        let names = ["created_at", "request_id", "state_id"];
        let condition = Condition::unchanged(Table::ORGANIZATIONS, organization, &names)
            .and("attribute_exists(disabled_at)", &[]);
        let marked = condition.mark(self.deployment, self.operator, organization, "erasing");
        match marked.await? {
            Some(marked) => Ok(text_of(&marked, "erasing_id").to_owned()),
            None => bail!(
                "the organization {org} has changed since it was read: look at it with `workspacectl orgs show {org}`"
            ),
        }
    }

    /// Puts a marked record in the place of a missing one, so that nothing can be created for the
    /// organization while its records are deleted.
    async fn mark_missing(&self) -> Result<String> {
        let (now, id) = (timestamp(SystemTime::now()), random_id()?);
        let mut marks = vec![("state_id", id.clone()), ("erasing_id", id.clone())];
        marks.extend(["disabled_at", "erasing_at"].map(|name| (name, now.clone())));
        let operator = &self.operator.name;
        marks.extend(["disabled_by", "erasing_by"].map(|name| (name, operator.clone())));
        match record::create(self.deployment, self.operator, self.org, &marks).await? {
            true => Ok(id),
            false => bail!("the organization {} was registered meanwhile", self.org),
        }
    }

    /// Deletes all records of the marked organization, and its own record last.
    async fn delete(&self, id: &str) -> Result<(usize, bool)> {
        let (org, id) = (self.org, [("id", id.to_owned())]);
        let condition = Condition::new(Table::ORGANIZATIONS, &[org], "erasing_id = :id", &id);
        let queries = || {
            let tables = Table::ALL.iter().copied();
            let others = tables.filter(|table| *table != Table::ORGANIZATIONS);
            let query = |table| Query::new(table, Scope::organization(table, org));
            others.map(query).collect()
        };
        let (count, is_last) = delete_all(self.deployment, &condition, queries, None).await?;
        Ok((count + usize::from(is_last), is_last))
    }
}

/// The records of an organization that exist, such as `2 models`.
async fn records_of(deployment: &Deployment, org: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for table in Table::ALL {
        let query = Query::new(*table, Scope::organization(*table, org));
        let count = query.count(deployment).await?;
        if count > 0 {
            found.push(counted(count, table.noun.trim_end_matches('s')));
        }
    }
    Ok(found)
}
