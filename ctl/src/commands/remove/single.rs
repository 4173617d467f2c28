//! Removes a single record: the one that was read, and no other.

use std::{path::Path, time::SystemTime};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use crate::{
    deployment::Deployment,
    export::Export,
    output::print_record,
    query::get,
    session::{Operator, Session},
    text::escape,
    write::{Condition, WRITE},
};

/// A record to remove.
pub(super) struct Target {
    pub(super) table: Table,
    /// What messages call it.
    pub(super) name: String,
    /// The values of its primary key.
    pub(super) key: [String; 2],
}

pub(super) async fn run(target: &Target, export: Option<&Path>, session: &Session) -> Result<()> {
    let mut export = export.map(Export::create).transpose()?;
    let (deployment, operator) = session.start().await?;
    let Some(record) = remove(deployment, target, export.as_mut()).await? else {
        bail!("{} does not exist", target.name);
    };
    session.say(&format!("{} was removed", target.name));
    print_removed(record, &target.key[1], &operator, session)
}

/// Deletes a record that has not changed since it was read, and returns it. The export has it before.
/// `None` if there is no such record.
///
/// # Errors
/// If the record has changed since it was read, the export cannot be written, or DynamoDB cannot be
/// reached.
pub(super) async fn remove(
    deployment: &Deployment,
    target: &Target,
    export: Option<&mut Export>,
) -> Result<Option<Value>> {
    let key = target.key.each_ref().map(String::as_str);
    let Some(record) = get(deployment, target.table, &key).await? else {
        return Ok(None);
    };
    if let Some(export) = export {
        export.write(target.table, record.clone())?;
        export.keep()?;
    }
    let condition = Condition::new(target.table, &key).and_unchanged(&record, &WRITE);
    if !condition.delete(deployment).await? {
        let name = &target.name;
        bail!("{name} has changed since it was read: run the command again");
    }
    Ok(Some(record))
}

/// Prints what was removed, by whom and when, or the id alone.
pub(super) fn print_removed(
    mut removed: Value,
    id: &str,
    operator: &Operator,
    session: &Session,
) -> Result<()> {
    removed["removed_at"] = json!(timestamp(SystemTime::now()));
    removed["removed_by"] = json!(operator.name);
    removed["removed_request_id"] = json!(operator.run_id);
    print_record(&removed, &escape(id), session.json)
}
