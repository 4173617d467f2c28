//! `edit`: corrects the name or the description of a record. Its id stays, and so do the members of a
//! team. The update has the condition that the record has not changed since it was read.

use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use workspace_management::{
    store::{Table, timestamp},
    values::{parse_description, parse_name, parse_project_name},
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
    /// The new values of attributes, the name first.
    values: Vec<(&'static str, String)>,
    /// The id that a new record with the new name gets. `None` if the name does not change.
    id_of_name: Option<String>,
}

pub(crate) async fn run(command: Command, session: &Session) -> Result<()> {
    let (table, noun, key, names, change) = match command {
        Command::Team {
            project: Project { org, project },
            team,
            change,
        } => {
            let noun = format!("the team {team}");
            let names = ["team_name", "team_description"];
            (
                Table::TEAMS,
                noun,
                [format!("{org}#{project}"), team],
                names,
                change,
            )
        }
        Command::DataStore { org, id, change } => {
            let noun = format!("the data store {id}");
            let names = ["data_store_name", "data_store_description"];
            (Table::DATA_STORES, noun, [org.org, id], names, change)
        }
        Command::LoggingInstance {
            project: Project { org, project },
            project_name,
        } => {
            let name = parse_project_name(&project_name);
            let name = name.map_err(|rule| UsageError(format!("--project-name {rule}")))?;
            let edit = Edit {
                table: Table::LOGGING_INSTANCES,
                noun: format!("the logging instance of the project {project}"),
                key: [org, project],
                values: vec![("project_name", name)],
                id_of_name: None,
            };
            return edit.run(session).await;
        }
    };
    let (mut values, mut id_of_name) = (Vec::new(), None);
    if let Some(name) = change.name {
        let (id, name) = parse_name(&name).map_err(|rule| UsageError(format!("--name {rule}")))?;
        id_of_name = Some(id);
        values.push((names[0], name));
    }
    if let Some(description) = change.description {
        let description = parse_description(&description);
        let description =
            description.map_err(|rule| UsageError(format!("--description {rule}")))?;
        values.push((names[1], description));
    }
    let edit = Edit {
        table,
        noun,
        key,
        values,
        id_of_name,
    };
    edit.run(session).await
}

impl Edit {
    async fn run(mut self, session: &Session) -> Result<()> {
        session.check_confirmation()?;
        let (deployment, operator) = session.start().await?;
        let noun = &self.noun;
        let record = self.read(deployment).await?;
        let record = record.with_context(|| format!("{noun} does not exist"))?;
        if record.get("removing_id").is_some() {
            bail!("{noun} is being removed");
        }
        self.values
            .retain(|(name, value)| text(&record, name) != value);
        if !self.values.iter().any(|(name, _)| name.ends_with("_name")) {
            self.id_of_name = None;
        }
        if self.values.is_empty() {
            session.say(&format!("{noun} already has these values"));
            return print_record(&record, &escape(&self.key[1]), session.json);
        }
        if let Some(id_of_name) = &self.id_of_name {
            self.check_name_is_free(deployment, id_of_name).await?;
        }
        session.confirm(&self.describe(&record), &self.key[1])?;
        let updated = match self.update(deployment, &operator, &record).await? {
            Some(updated) => updated,
            // An attempt whose response was lost can have changed it.
            None => {
                let own = |current: &Value| current["updated_request_id"] == operator.run_id;
                let current = self.read(deployment).await?.filter(own);
                current.with_context(|| {
                    format!("{noun} has changed since it was read: run the command again")
                })?
            }
        };
        session.say(&format!("{noun} was changed"));
        print_record(&updated, &escape(&self.key[1]), session.json)
    }

    async fn read(&self, deployment: &Deployment) -> Result<Option<Value>> {
        get(deployment, self.table, &self.key).await
    }

    /// Updates the record as it was read. Returns its new attributes, or `None` if it has changed since.
    async fn update(
        &self,
        deployment: &Deployment,
        operator: &Operator,
        record: &Value,
    ) -> Result<Option<Value>> {
        let now = timestamp(SystemTime::now());
        let mut update = "SET updated_at = :updated_at, updated_by = :updated_by, \
            updated_request_id = :updated_request_id"
            .to_owned();
        let mut values = vec![
            (":updated_at", &*now),
            (":updated_by", &*operator.name),
            (":updated_request_id", &*operator.run_id),
        ];
        for (placeholder, (name, value)) in [":first", ":second"].into_iter().zip(&self.values) {
            update += &format!(", {name} = {placeholder}");
            values.push((placeholder, value));
        }
        // The update would create a missing record without the first part.
        let exists = "attribute_exists(org_id) AND attribute_not_exists(removing_id)";
        let key = self.key.each_ref().map(String::as_str);
        let condition = Condition::new(self.table, &key).and(exists, &[]);
        let condition = condition.and_unchanged(record, &WRITE);
        condition.update(deployment, &update, &values).await
    }

    /// Fails if another record has the new name, or the id that the name gives.
    async fn check_name_is_free(&self, deployment: &Deployment, id_of_name: &str) -> Result<()> {
        let scope = Scope::partition(self.table.primary_key[0], &self.key[0]);
        let records = Query::new(self.table, scope).run(deployment).await?.records;
        let (name, value) = &self.values[0];
        for record in &records {
            let id = text(record, self.table.primary_key[1]);
            if id != self.key[1] && (text(record, name) == value || id == id_of_name) {
                bail!(
                    "{id} has this name already, or the id that the name gives: choose another name"
                );
            }
        }
        Ok(())
    }

    /// What changes, and what clients get then.
    fn describe(&self, record: &Value) -> String {
        let changes = self.values.iter().map(|(name, value)| {
            let before = text(record, name);
            format!("{name} changes from \"{before}\" to \"{value}\"")
        });
        let (noun, changes) = (&self.noun, Vec::from_iter(changes).join(", and "));
        let new = match &self.id_of_name {
            Some(id) if *id != self.key[1] => {
                format!(", and a request with the new name creates a record with the id {id}")
            }
            _ => String::new(),
        };
        format!("{noun}: {changes}. A repeated request with the old values then gets a 409{new}.")
    }
}
