//! `remove member --all-teams` and `--all-orgs`: removes a user from all teams of an organization or,
//! without one, of all organizations.
//!
//! The index of a user's teams is eventually consistent, so it is only a hint. Each membership is
//! read with strong consistency and deleted only if it has not been written since. After the
//! confirmation, the index is read at least twice, until a read finds nothing to remove.
//!
//! Every membership that exists at the start is removed, provided that the index lags by no more
//! than [`Deployment::index_pause`]. A membership that is added while the command runs can remain.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Result, bail};
use serde_json::json;
use tokio::time::sleep;

use super::{print_removed, remove, undo_sentence};
use crate::{
    context::{GlobalOptions, ReasonArgs, Run},
    deployment::Deployment,
    export::ExportWriter,
    organization,
    read::Scope,
    text::{escape, pluralize},
};

/// The maximum number of reads of the index. If the last read still finds a team, clients seem
/// to keep adding the user.
const MAX_READS: u32 = 3;

pub(super) async fn execute(
    org: Option<&str>,
    user: &str,
    export_path: Option<&Path>,
    reason: ReasonArgs,
    options: GlobalOptions,
) -> Result<()> {
    options.check_can_confirm()?;
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    let deployment = &context.deployment;
    if let Some(org) = org {
        organization::require(deployment, org).await?;
    }
    let mut found = Vec::new();
    for member in Scope::user_in_index(org, user).read(deployment).await? {
        found.push(member.key.partition());
    }
    let list = found.join(", ");
    let found = if list.is_empty() { "none" } else { &list };
    let undo = undo_sentence(export_path);
    let scope = org.unwrap_or("all organizations, in which the id can mean different users");
    // Says `so far`, because the index can lack a team that a later read finds.
    let text =
        format!("{user} will be removed from all teams of {scope} (found so far: {found}). {undo}");
    context.confirm(&text, user)?;
    let mut export = export_path.map(ExportWriter::create).transpose()?;
    let mut teams = BTreeSet::new();
    // What was removed is printed even if this fails.
    let result =
        remove_from_all_teams(deployment, &run, org, user, export.as_mut(), &mut teams).await;
    let of_org = org.map_or_else(String::new, |org| format!(" of {org}"));
    if teams.is_empty() {
        return result.and_then(|()| bail!("{user} is not in any team{of_org}"));
    }
    let teams_text = pluralize(teams.len(), "team");
    context.report(&format!("{user} was removed from {teams_text}{of_org}"));
    let removed = json!({ "org_id": org, "user_id": user, "teams": teams });
    print_removed(removed, &escape(user), &run, export_path, &context.options)?;
    result
}

/// Removes a user from all teams of an organization or, without one, of all organizations. Adds these
/// teams to `removed_teams`, as `<org>#<project>#<team>`. Fails if the last read of the index still
/// finds a membership, a membership changes at the same time, or the export cannot be written.
pub async fn remove_from_all_teams(
    deployment: &Deployment,
    run: &Run,
    org: Option<&str>,
    user: &str,
    mut export: Option<&mut ExportWriter>,
    removed_teams: &mut BTreeSet<String>,
) -> Result<()> {
    for read_number in 1..=MAX_READS {
        if read_number > 1 {
            sleep(deployment.index_pause).await;
        }
        let mut removed_any = false;
        for member in Scope::user_in_index(org, user).read(deployment).await? {
            let removed = remove(deployment, run, &member.key, export.as_deref_mut()).await?;
            if removed.is_some() {
                removed_any = true;
                removed_teams.insert(member.key.partition());
            }
        }
        // One read is not enough, because the index can lack a membership.
        if !removed_any && read_number > 1 {
            return Ok(());
        }
    }
    bail!(
        "{user} keeps being added to teams: run the command again once clients have stopped adding the user"
    )
}
