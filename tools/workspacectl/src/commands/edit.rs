//! `edit`: corrects the name or the description of a record. Its id does not change, and a team
//! keeps its members. The update fails if the record has been written since it was read.

use std::time::SystemTime;

use anyhow::{Result, bail, ensure};
use serde_json::Value;
use workspace_management::{
    api_key::ApiKey,
    store::timestamp,
    values::{Description, DisplayName, NameWithId, Violation},
};
use workspace_records::item::string_attribute;

use crate::{
    arguments::parse_identifier,
    deployment::Deployment,
    output::print_json_or_text,
    read::Reader,
    session::{Run, Session},
    target::{DataStoreArgs, ProjectArgs, Target},
    text::escape,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl edit team --org globex --project apollo docs --name Manuals --description Handbooks
  workspacectl edit data-store --org globex papers --name Maps
  workspacectl edit logging-instance --org globex --project apollo --project-name Apollo";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Correct the name or the description of a team. Its id and its members do not change
    #[command(
        after_help = "Example:\n  workspacectl edit team --org globex --project apollo docs --name Manuals --description Handbooks"
    )]
    Team {
        #[command(flatten)]
        project_args: ProjectArgs,
        /// The id of the team
        #[arg(value_parser = parse_identifier)]
        team: String,
        #[command(flatten)]
        new_values: NewValueArgs,
    },
    /// Correct the name or the description of a data store. Its id does not change
    #[command(
        after_help = "Example:\n  workspacectl edit data-store --org globex papers --name Maps"
    )]
    DataStore {
        #[command(flatten)]
        data_store_args: DataStoreArgs,
        #[command(flatten)]
        new_values: NewValueArgs,
    },
    /// Correct the project name of a logging instance
    #[command(
        after_help = "Example:\n  workspacectl edit logging-instance --org globex --project apollo --project-name Apollo"
    )]
    LoggingInstance {
        #[command(flatten)]
        project_args: ProjectArgs,
        /// The new project name
        #[arg(long, value_name = "NAME", value_parser = parse_project_name)]
        project_name: NewValue,
    },
}

/// A new value for a stored attribute.
#[derive(Debug, Clone)]
pub(crate) struct NewValue {
    text: String,
    /// The id that a new record with this value would get. `None` if no id is derived from it.
    derived_id: Option<String>,
}

fn parse_name(text: &str) -> Result<NewValue, String> {
    let (text, id) = parse_as_api(text, NameWithId::parse)?.into_name_and_id();
    Ok(NewValue {
        text,
        derived_id: Some(id),
    })
}

fn parse_project_name(text: &str) -> Result<NewValue, String> {
    Ok(NewValue {
        text: parse_as_api(text, DisplayName::parse)?.into_string(),
        derived_id: None,
    })
}

fn parse_description(text: &str) -> Result<NewValue, String> {
    Ok(NewValue {
        text: parse_as_api(text, Description::parse)?.into_string(),
        derived_id: None,
    })
}

/// Parses a value by the rules of the API. The error is the first violation, because a value rarely
/// has several.
fn parse_as_api<T>(text: &str, parse: fn(&str) -> Result<T, Vec<Violation>>) -> Result<T, String> {
    if ApiKey::is_in(text) {
        return Err("must not contain an API key".to_owned());
    }
    parse(text).map_err(|mut violations| violations.remove(0).detail)
}

/// The new name and description. Data stores have the same rules as teams.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct NewValueArgs {
    /// The new name
    #[arg(long, value_parser = parse_name)]
    name: Option<NewValue>,
    /// The new description, which can be empty
    #[arg(long, value_parser = parse_description)]
    description: Option<NewValue>,
}

/// The new value of an attribute.
struct Change {
    attribute: &'static str,
    /// The placeholder of the new value in the update expression.
    placeholder: &'static str,
    new_value: NewValue,
}

impl NewValueArgs {
    /// The changes to a record, given the names of its attributes for the name and the description.
    fn into_changes(
        self,
        name_attribute: &'static str,
        description_attribute: &'static str,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        if let Some(new_value) = self.name {
            changes.push(Change {
                attribute: name_attribute,
                placeholder: ":name",
                new_value,
            });
        }
        if let Some(new_value) = self.description {
            changes.push(Change {
                attribute: description_attribute,
                placeholder: ":description",
                new_value,
            });
        }
        changes
    }
}

struct Edit {
    target: Target,
    changes: Vec<Change>,
}

pub(crate) async fn execute(command: Command, session: &Session) -> Result<()> {
    let (target, changes) = match command {
        Command::Team {
            project_args,
            team,
            new_values,
        } => (
            Target::team(&project_args.teams_partition(), &team),
            new_values.into_changes("team_name", "team_description"),
        ),
        Command::DataStore {
            data_store_args,
            new_values,
        } => (
            data_store_args.target(),
            new_values.into_changes("data_store_name", "data_store_description"),
        ),
        Command::LoggingInstance {
            project_args,
            project_name,
        } => (
            project_args.logging_instance_target(),
            vec![Change {
                attribute: "project_name",
                placeholder: ":name",
                new_value: project_name,
            }],
        ),
    };
    Edit { target, changes }.apply(session).await
}

impl Edit {
    async fn apply(mut self, session: &Session) -> Result<()> {
        session.check_can_confirm()?;
        let (deployment, run) = session.deployment_and_run().await?;
        let display_name = &self.target.display_name;
        let Some(record) = self.target.find(deployment).await? else {
            bail!("{display_name} does not exist");
        };
        ensure!(
            record.get("removing_id").is_none(),
            "{display_name} is being removed"
        );
        self.changes
            .retain(|change| string_attribute(&record, change.attribute) != change.new_value.text);
        let (edited, outcome) = if self.changes.is_empty() {
            (record, "already has these values")
        } else {
            self.check_name_is_free(deployment).await?;
            session.confirm(&self.summary(&record), self.target.id_in_partition())?;
            let edited = self.update(deployment, run, &record).await?;
            (edited, "was changed")
        };
        session.report(&format!("{display_name} {outcome}"));
        print_json_or_text(&edited, &escape(self.target.id_in_partition()), session)
    }

    /// Fails if a different record has the new name, or the id that is derived from the new name.
    async fn check_name_is_free(&self, deployment: &Deployment) -> Result<()> {
        let target = &self.target;
        // Only the name of a team or data store has a `derived_id`: the id that a create request
        // with this name would use.
        let mut changes = self.changes.iter();
        let Some(rename) = changes.find(|change| change.new_value.derived_id.is_some()) else {
            return Ok(());
        };
        let reader = Reader::partition(target.table, &target.primary_key[0]);
        for record in &reader.read(deployment).await?.records {
            let id = string_attribute(record, target.table.primary_key_attributes[1]);
            let has_new_name = string_attribute(record, rename.attribute) == rename.new_value.text;
            let has_new_id = Some(id) == rename.new_value.derived_id.as_deref();
            if id != target.id_in_partition() && (has_new_name || has_new_id) {
                bail!(
                    "the record {id} already has this name, or the id derived from this name: choose a different name"
                );
            }
        }
        Ok(())
    }

    /// Describes the changes and how they affect create requests.
    fn summary(&self, record: &Value) -> String {
        let mut descriptions = Vec::new();
        let mut new_id_warning = String::new();
        for change in &self.changes {
            let attribute = change.attribute;
            let old_text = string_attribute(record, attribute);
            let new_text = &change.new_value.text;
            descriptions.push(format!(
                "{attribute} changes from \"{old_text}\" to \"{new_text}\""
            ));
            if let Some(id) = &change.new_value.derived_id
                && id != self.target.id_in_partition()
            {
                new_id_warning = format!(
                    " A create request with the new name will create a different record, with the id {id}."
                );
            }
        }
        let display_name = &self.target.display_name;
        let descriptions = descriptions.join(", and ");
        format!(
            "{display_name}: {descriptions}. A client that repeats its create request with the old values will get a 409.{new_id_warning}"
        )
    }

    /// Updates the record unless it has been written since it was read. Returns the updated record.
    async fn update(&self, deployment: &Deployment, run: Run, record: &Value) -> Result<Value> {
        let now = timestamp(SystemTime::now());
        let mut expression =
            "SET updated_at = :at, updated_by = :by, updated_request_id = :run".to_owned();
        let mut values = vec![
            (":at", now.as_str()),
            (":by", &run.operator),
            (":run", &run.id),
        ];
        for change in &self.changes {
            expression += &format!(", {} = {}", change.attribute, change.placeholder);
            values.push((change.placeholder, &change.new_value.text));
        }
        let record_if_unchanged = self.target.if_unchanged(record);
        let updated = record_if_unchanged
            .and("attribute_not_exists(removing_id)", &[])
            .update(deployment, &expression, &values)
            .await?;
        if let Some(record) = updated {
            return Ok(record);
        }
        // An earlier attempt by this run may have succeeded even though its response was lost.
        match self.target.find(deployment).await? {
            Some(current) if current["updated_request_id"] == run.id => Ok(current),
            _ => bail!(self.target.conflict_message()),
        }
    }
}
