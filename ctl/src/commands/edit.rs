//! `edit`: corrects the name or the description of a record. Its id stays, and so do the members of a
//! team. The update has the condition that the record has not changed since it was read.

use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use workspace_management::{
    store::{Table, timestamp},
    values::parse_attribute,
};
use workspace_records::item::text;

use super::remove::{Organization, Project};
use crate::{
    deployment::Deployment,
    output::print_record,
    query::{Query, Scope, get},
    session::{Operator, Session},
    text::escape,
    usage::{UsageError, identifier},
    write::{Condition, WRITE},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl edit team --org globex --project apollo docs --name Manuals --description Handbooks
  workspacectl edit data-store --org globex papers --name Maps
  workspacectl edit logging-instance --org globex --project apollo --project-name Apollo";

/// Corrects records.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Change the name or the description of a team. Its id and its members stay
    #[command(after_help = EXAMPLES)]
    Team {
        #[command(flatten)]
        project: Project,
        /// The id of the team
        #[arg(value_parser = identifier)]
        team: String,
        #[command(flatten)]
        change: Change,
    },
    /// Change the name or the description of a data store. Its id stays
    #[command(after_help = EXAMPLES)]
    DataStore {
        #[command(flatten)]
        org: Organization,
        /// The id of the data store
        #[arg(value_parser = identifier)]
        id: String,
        #[command(flatten)]
        change: Change,
    },
    /// Change the project name of a logging instance
    #[command(after_help = EXAMPLES)]
    LoggingInstance {
        #[command(flatten)]
        project: Project,
        /// The new project name
        #[arg(long, value_name = "NAME")]
        project_name: String,
    },
}

/// What changes.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Change {
    /// The new name
    #[arg(long)]
    name: Option<String>,
    /// The new description, which can be empty
    #[arg(long)]
    description: Option<String>,
}

/// A record to change.
struct Edit {
    table: Table,
    /// What messages call it.
    noun: String,
    key: [String; 2],
    values: Vec<NewValue>,
}

/// A new value of an attribute.
struct NewValue {
    attribute: &'static str,
    text: String,
    /// The id that a new record gets if this is its name.
    id: Option<String>,
}

pub(crate) async fn run(command: Command, session: &Session) -> Result<()> {
    let (table, noun, key, values) = match command {
        Command::Team {
            project: Project { org, project },
            team,
            change,
        } => (
            Table::TEAMS,
            format!("the team {team}"),
            [format!("{org}#{project}"), team],
            vec![
                ("--name", "team_name", change.name),
                ("--description", "team_description", change.description),
            ],
        ),
        Command::DataStore { org, id, change } => (
            Table::DATA_STORES,
            format!("the data store {id}"),
            [org.org, id],
            vec![
                ("--name", "data_store_name", change.name),
                (
                    "--description",
                    "data_store_description",
                    change.description,
                ),
            ],
        ),
        Command::LoggingInstance {
            project: Project { org, project },
            project_name,
        } => (
            Table::LOGGING_INSTANCES,
            format!("the logging instance of the project {project}"),
            [org, project],
            vec![("--project-name", "project_name", Some(project_name))],
        ),
    };
    let mut edit = Edit {
        table,
        noun,
        key,
        values: Vec::new(),
    };
    for (option, attribute, text) in values {
        let Some(text) = text else { continue };
        let parsed = parse_attribute(attribute, &text);
        let (text, id) = parsed.map_err(|rules| UsageError(format!("{option} {rules}")))?;
        edit.values.push(NewValue {
            attribute,
            text,
            id,
        });
    }
    edit.run(session).await
}

impl Edit {
    async fn run(mut self, session: &Session) -> Result<()> {
        session.check_confirmation()?;
        let (deployment, operator) = session.start().await?;
        let noun = &self.noun;
        let record = get(deployment, self.table, &self.key).await?;
        let record = record.with_context(|| format!("{noun} does not exist"))?;
        if record.get("removing_id").is_some() {
            bail!("{noun} is being removed");
        }
        self.values
            .retain(|new| text(&record, new.attribute) != new.text);
        let (edited, done) = if self.values.is_empty() {
            (record, "already has these values")
        } else {
            self.check_name_is_free(deployment).await?;
            session.confirm(&self.describe(&record), &self.key[1])?;
            let edited = self.update(deployment, operator, &record).await?;
            (edited, "was changed")
        };
        session.say(&format!("{noun} {done}"));
        print_record(&edited, &escape(&self.key[1]), session.json)
    }

    /// Fails if a different record has the new name, or the id of the new name.
    async fn check_name_is_free(&self, deployment: &Deployment) -> Result<()> {
        let mut values = self.values.iter();
        let Some(name) = values.find(|new| new.id.is_some()) else {
            return Ok(());
        };
        let scope = Scope::partition(self.table.primary_key[0], &self.key[0]);
        let records = Query::new(self.table, scope).run(deployment).await?.records;
        for record in &records {
            let id = text(record, self.table.primary_key[1]);
            let has_name = text(record, name.attribute) == name.text;
            if id != self.key[1] && (has_name || Some(id) == name.id.as_deref()) {
                bail!(
                    "{id} has this name already, or the id that the name gives: choose another name"
                );
            }
        }
        Ok(())
    }

    /// What changes, and what clients get then.
    fn describe(&self, record: &Value) -> String {
        let changes = self.values.iter().map(
            |NewValue {
                 attribute,
                 text: new,
                 ..
             }| {
                let old = text(record, attribute);
                format!("{attribute} changes from \"{old}\" to \"{new}\"")
            },
        );
        let (noun, changes) = (&self.noun, Vec::from_iter(changes).join(", and "));
        let mut ids = self.values.iter().filter_map(|new| new.id.as_ref());
        let new = match ids.find(|id| **id != self.key[1]) {
            Some(id) => {
                format!(", and a request with the new name creates a record with the id {id}")
            }
            None => String::new(),
        };
        format!("{noun}: {changes}. A repeated request with the old values then gets a 409{new}.")
    }

    /// Updates the record as it was read. Returns its new attributes.
    async fn update(
        &self,
        deployment: &Deployment,
        operator: Operator,
        record: &Value,
    ) -> Result<Value> {
        let now = timestamp(SystemTime::now());
        let mut update =
            "SET updated_at = :at, updated_by = :by, updated_request_id = :run".to_owned();
        let mut values = vec![
            (":at", &*now),
            (":by", &*operator.name),
            (":run", &*operator.run_id),
        ];
        for (placeholder, new) in [":first", ":second"].into_iter().zip(&self.values) {
            update += &format!(", {} = {placeholder}", new.attribute);
            values.push((placeholder, &*new.text));
        }
        // The update would create a missing record without the first part.
        let exists = "attribute_exists(org_id) AND attribute_not_exists(removing_id)";
        let key = self.key.each_ref().map(String::as_str);
        let condition = Condition::new(self.table, &key).and(exists, &[]);
        let condition = condition.and_unchanged(record, &WRITE);
        if let Some(updated) = condition.update(deployment, &update, &values).await? {
            return Ok(updated);
        }
        // An attempt whose response was lost can have changed it.
        let current = get(deployment, self.table, &self.key).await?;
        let own = current.filter(|current| current["updated_request_id"] == operator.run_id);
        own.with_context(|| {
            format!(
                "{} has changed since it was read: run the command again",
                self.noun
            )
        })
    }
}
