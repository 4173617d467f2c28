//! Removes a single record: the one that was read, and no other.

use std::{path::Path, time::SystemTime};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use crate::{
    deployment::Deployment,
    export::AppendedExport,
    output::{counted, escape, print_record},
    records::get,
    session::{Operator, Session},
    similar,
    write::{Condition, Deletion},
};

/// The attributes that say which write a record is from. Only voices have those of changes.
const WRITE: [&str; 4] = [
    "created_at",
    "request_id",
    "updated_at",
    "updated_request_id",
];

/// A record to remove.
pub struct Target {
    pub(crate) table: Table,
    /// What messages call it.
    pub(crate) name: String,
    /// The values of its primary key.
    pub(crate) key: [String; 2],
}

impl Target {
    /// Prints the ids of similar members, if the record is a member: see [`similar::report`].
    async fn report_similar(&self, deployment: &Deployment, was_member: bool) -> Result<()> {
        if self.table != Table::TEAM_MEMBERS {
            return Ok(());
        }
        let [team, user] = &self.key;
        similar::report(deployment, vec![team.clone()], user, was_member).await
    }

    pub(super) async fn get(&self, deployment: &Deployment) -> Result<Option<Value>> {
        get(deployment, self.table, &self.key()).await
    }

    /// The values of its primary key, as requests need them.
    pub(super) fn key(&self) -> [&str; 2] {
        self.key.each_ref().map(String::as_str)
    }

    /// How many records an export has of it, as the end of a sentence.
    pub(super) fn in_export(&self, export: Option<&AppendedExport>) -> String {
        let Some(export) = export else {
            return String::new();
        };
        let mut count = export.count(self.table, &self.key());
        if self.table == Table::TEAMS {
            count += export.count(Table::TEAM_MEMBERS, &[&self.key.join("#")]);
        }
        let count = counted(count, "record");
        format!(", and {} has {count} of it", export.path.display())
    }

    /// Checks that the record is gone, and prints it.
    ///
    /// # Errors
    /// If it exists, perhaps because it was added again, or DynamoDB cannot be reached.
    pub(super) async fn finish(
        &self,
        mut record: Value,
        message: &str,
        operator: &Operator,
        session: &Session,
    ) -> Result<()> {
        if self.get(session.deployment().await?).await?.is_some() {
            bail!(
                "{} still exists, or exists again: run the command again",
                self.name
            );
        }
        eprintln!("{}", escape(message));
        record["removed_at"] = json!(timestamp(SystemTime::now()));
        record["removed_by"] = json!(operator.name);
        record["removed_request_id"] = json!(operator.run_id);
        print_record(&record, &escape(&self.key[1]), session.json)
    }
}

pub(crate) async fn run(target: &Target, export: Option<&Path>, session: &Session) -> Result<()> {
    let mut export = export.map(AppendedExport::open).transpose()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let (deletion, record) = try_remove(deployment, target, export.as_mut()).await?;
    let (name, in_export) = (&target.name, target.in_export(export.as_ref()));
    match deletion {
        Deletion::Done => {
            let message = format!("{name} was removed{in_export}");
            target.finish(record, &message, &operator, session).await?;
            target.report_similar(deployment, true).await
        }
        Deletion::Missing => {
            target.report_similar(deployment, false).await?;
            bail!("{name} does not exist{in_export}")
        }
        Deletion::Changed => {
            bail!("{name} has changed since it was read: run the command again")
        }
    }
}

/// Deletes the record as it was read, and returns it. The export has it before.
pub(super) async fn try_remove(
    deployment: &Deployment,
    target: &Target,
    export: Option<&mut AppendedExport>,
) -> Result<(Deletion, Value)> {
    let Some(record) = target.get(deployment).await? else {
        return Ok((Deletion::Missing, Value::Null));
    };
    if let Some(export) = export {
        export.append(target.table, [record.clone()])?;
    }
    let condition = Condition::unchanged(target.table, &record, &WRITE);
    let deletion = condition.delete(deployment).await?;
    Ok((deletion, record))
}
