//! Removes a single record: exactly the one that was read.

use std::time::SystemTime;

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use workspace_management::store::timestamp;

use crate::{
    commands::target::Target,
    deployment::Deployment,
    export::Export,
    output::print_record,
    session::{Operator, Session},
    text::escape,
};

pub(super) async fn run(
    target: &Target,
    mut export: Option<Export>,
    session: &Session,
) -> Result<()> {
    let (deployment, operator) = session.deployment_and_operator().await?;
    let Some(record) = remove(deployment, target, export.as_mut()).await? else {
        bail!("{} does not exist", target.display_name);
    };
    session.say(&format!("{} was removed", target.display_name));
    print_removed(record, &target.key[1], &operator, session)
}

/// Exports and then deletes a record. Returns the record, or `None` if there is no such record.
/// Fails if the record was written since it was read.
pub(super) async fn remove(
    deployment: &Deployment,
    target: &Target,
    export: Option<&mut Export>,
) -> Result<Option<Value>> {
    let Some(record) = target.read(deployment).await? else {
        return Ok(None);
    };
    if let Some(export) = export {
        export.write(target.table, record.clone())?;
        export.keep()?;
    }
    let is_deleted = target.unchanged(&record).delete(deployment).await?;
    ensure!(is_deleted, target.change_error());
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
