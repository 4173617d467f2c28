//! The record to edit or remove, and the arguments that identify it.

use anyhow::{Result, ensure};
use serde_json::Value;
use workspace_management::store::Table;

use crate::{
    arguments::{ORG_HELP, parse_identifier},
    deployment::Deployment,
    export::ExportWriter,
    read,
    write::GuardedRecord,
};

/// The attributes that identify the latest write to a record. Marks do not change them. The last
/// three are absent until the record is changed or restored.
const LAST_WRITE_ATTRIBUTES: [&str; 5] = [
    "created_at",
    "request_id",
    "updated_at",
    "updated_request_id",
    "restored_request_id",
];

/// The arguments that name a project.
#[derive(Debug, clap::Args)]
pub(crate) struct ProjectArgs {
    #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
    pub(crate) org: String,
    /// The id of the project
    #[arg(long, value_parser = parse_identifier)]
    pub(crate) project: String,
}

impl ProjectArgs {
    /// The partition of the project's teams: `<organization>#<project>`.
    pub(crate) fn teams_partition(&self) -> String {
        format!("{}#{}", self.org, self.project)
    }

    pub(crate) fn logging_instance_target(self) -> Target {
        Target {
            table: Table::LOGGING_INSTANCES,
            display_name: format!("the logging instance of the project {}", self.project),
            primary_key: [self.org, self.project],
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct DataStoreArgs {
    #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
    org: String,
    /// The id of the data store
    #[arg(value_parser = parse_identifier)]
    id: String,
}

impl DataStoreArgs {
    pub(crate) fn target(self) -> Target {
        Target {
            table: Table::DATA_STORES,
            display_name: format!("the data store {}", self.id),
            primary_key: [self.org, self.id],
        }
    }
}

/// A record that a command edits or removes.
pub struct Target {
    pub(crate) table: Table,
    /// The name of the record in messages, such as `the team docs`.
    pub(crate) display_name: String,
    /// The partition key and the sort key.
    pub(crate) primary_key: [String; 2],
}

impl Target {
    /// A team in the partition of its project: `<organization>#<project>`.
    pub fn team(teams_partition: &str, id: &str) -> Self {
        Self {
            table: Table::TEAMS,
            display_name: format!("the team {id}"),
            primary_key: [teams_partition.to_owned(), id.to_owned()],
        }
    }

    /// The sort key. The operator types it to confirm, and commands print it.
    pub(crate) fn id_in_partition(&self) -> &str {
        &self.primary_key[1]
    }

    /// Reads the record. `None` if it does not exist.
    pub async fn find(&self, deployment: &Deployment) -> Result<Option<Value>> {
        read::find(deployment, self.table, &self.primary_key).await
    }

    /// Removes and returns the record, or `None` if there is none. Exports it first if requested.
    /// Fails if the record is written between the read and the delete.
    pub(crate) async fn remove(
        &self,
        deployment: &Deployment,
        export: Option<&mut ExportWriter>,
    ) -> Result<Option<Value>> {
        let Some(record) = self.find(deployment).await? else {
            return Ok(None);
        };
        if let Some(export) = export {
            export.write(self.table, record.clone())?;
            export.persist()?;
        }
        let is_deleted = self.if_unchanged(&record).delete(deployment).await?;
        ensure!(is_deleted, self.conflict_message());
        Ok(Some(record))
    }

    /// The record, guarded: a write fails if the record has changed since `record` was read.
    pub(crate) fn if_unchanged(&self, record: &Value) -> GuardedRecord {
        self.if_exists()
            .and_unchanged(record, &LAST_WRITE_ATTRIBUTES)
    }

    /// The record, guarded: a write fails if the record does not exist.
    pub(crate) fn if_exists(&self) -> GuardedRecord {
        GuardedRecord::if_exists(self.table, &self.primary_key)
    }

    /// The message for a record that has been written since it was read.
    pub(crate) fn conflict_message(&self) -> String {
        format!(
            "{} has changed since it was read: run the command again",
            self.display_name
        )
    }
}
