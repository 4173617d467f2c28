//! Two operators remove a team while clients add users to it and create it again.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fastrand::Rng;
use serde_json::{Value, json};
use test_support::fixtures;
use tokio::time::{sleep, timeout};
use workspace_management::records::Table;
use workspacectl::{
    commands::remove::team::{find_team, remove_teams},
    export::ExportWriter,
    marked_deletion::{Cancel, DeletionOutcome, Parent, REMOVING, cancel as cancel_removal},
};

use super::{
    Attempt, LATE_WRITES, Request, Weakness, World, assert_breaks, assert_holds, join, pause,
    run_by, time_until_kill,
};

const TEAMS: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";
const MEMBERS: &str = "/api/v1/project/acme/apollo/docs/addUsersToTheTeam";

/// Adds a user. There are few users, so that old and new teams have the same ones.
fn add_user(rng: &mut Rng) -> Request {
    let user = format!("user-{}", rng.u64(0..6));
    let body = json!({ "usersAddingToTeam": [{ "userid": user }] });
    Request {
        content: user,
        ..Request::new(MEMBERS, body)
    }
}

/// Creates a team of `acme` with the same content as before.
pub(super) fn create_team(name: &str) -> Request {
    Request::new(TEAMS, json!({ "teamName": name }))
}

/// Removes the first team. The command is killed at random times, and run again. With a folder, each
/// run exports to a new file in it. Returns when and by whom the removal was completed.
async fn remove_team(
    world: Arc<World>,
    number: usize,
    mut rng: Rng,
    folder: Option<PathBuf>,
) -> Option<(Duration, usize)> {
    pause(&mut rng, 0..120).await;
    for run in 0..4 {
        let deployment = world.deployment_of_run(run, &mut rng);
        let this_run = run_by(number);
        let wait = world.wait(run > 0 || number > 0);
        let mut confirmed = false;
        let export = folder.as_ref().map(|folder| {
            let path = folder.join(format!("{number}-{run}.jsonl"));
            ExportWriter::create(&path).expect("a new file")
        });
        let removal = async {
            let team = find_team(&deployment, "acme", "apollo", "docs").await?;
            let is_first = |team: &Parent| team.record.text("request_id") == Some("first-team");
            let Some(mut team) = team.filter(is_first) else {
                anyhow::bail!("this is not the team to remove");
            };
            confirmed = true;
            let teams = std::slice::from_mut(&mut team);
            remove_teams(&deployment, &this_run, teams, wait, export).await?;
            let is_removed = matches!(team.outcome, Some(DeletionOutcome::Deleted(_)));
            anyhow::ensure!(is_removed, "the team has changed");
            anyhow::Ok(())
        };
        match timeout(time_until_kill(run, &mut rng), removal).await {
            Ok(Ok(_)) => return Some((world.now(), number)),
            Ok(Err(_)) if !confirmed => return None,
            _ => pause(&mut rng, 0..20).await,
        }
    }
    None
}

/// Returns the rules that a schedule violates.
async fn simulate(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let (world, mut rng) = World::new(seed, weakness).await;
    let key = world.tables.register("acme", 1);
    let mut team = fixtures::team("acme", "apollo", "docs", "Docs");
    team["request_id"] = json!("first-team");
    world.tables.put(Table::TEAMS, team);
    let adders = [0, 1, 2].map(|_| world.spawn_client(&key, &mut rng, 12, add_user));
    let creator = world.spawn_client(&key, &mut rng, 8, |_| create_team("Docs"));
    let folder = tempfile::tempdir().expect("a folder");
    // In half of the schedules, the second operator does not export.
    let all_export = rng.bool();
    let operators = [(0, true), (1, all_export)].map(|(number, exports)| {
        let folder = exports.then(|| folder.path().to_owned());
        tokio::spawn(remove_team(world.clone(), number, rng.fork(), folder))
    });
    let completions = join(operators).await;
    let adds = world.finish(adders).await;
    let creates = join([creator]).await;
    let mut violations = world.invalid_records();
    if let Some((completed, _)) = completions.iter().min() {
        violations.extend(completion_violations(&world, *completed, &adds, &creates));
    }
    let is_exported = all_export || completions.iter().any(|(_, number)| *number == 0);
    if is_exported && matches!(weakness, None | Some(Weakness::UnexportedUnchecked)) {
        violations.extend(export_violations(&world, folder.path()).await);
    }
    violations
}

/// The deleted records that no export has.
async fn export_violations(world: &World, folder: &Path) -> Vec<String> {
    let mut exported = Vec::new();
    for file in fs::read_dir(folder).expect("a folder") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("text");
        let lines = text.lines().map(serde_json::from_str::<Value>);
        exported.extend(lines.map(|line| line.expect("JSON")["record"].take()));
    }
    let mut violations = Vec::new();
    for table in [Table::TEAMS, Table::TEAM_MEMBERS] {
        let left = world.tables.records(table);
        for (_, records) in world.tables.history(table).await {
            let is_marked = |record: &Value| record["removing_id"].is_string();
            let deleted = records.iter().filter(|record| !left.contains(record));
            let mut lost =
                deleted.filter(|record| !is_marked(record) && !exported.contains(record));
            violations.extend(lost.next().map(|lost| format!("no export has {lost}")));
        }
    }
    violations
}

/// What is left of the old team, and what is lost of a new team.
fn completion_violations(
    world: &World,
    completed: Duration,
    adds: &[Attempt],
    creates: &[Attempt],
) -> Vec<String> {
    let mut violations = Vec::new();
    let team = world.tables.records(Table::TEAMS).pop();
    let members = world.tables.records(Table::TEAM_MEMBERS);
    // A run that was killed at its end can have deleted the team before a different run completed.
    let mut sources = creates.iter();
    let created = team.as_ref().and_then(|team| {
        let source = sources.find(|create| team["request_id"] == *create.request_id);
        source.map(|create| create.began)
    });
    let end_of_old = created.unwrap_or(completed);
    for member in &members {
        let mut sources = adds.iter();
        let source = sources.find(|add| member["request_id"] == *add.request_id);
        if source.is_none_or(|add| add.ended <= end_of_old) {
            violations.push(format!(
                "a member of the old team is left: {member} {source:?}"
            ));
        }
    }
    if let Some(team) = &team
        && team["request_id"] == "first-team"
    {
        violations.push(format!("the old team is left: {team}"));
    }
    let is_new = |attempt: &&Attempt| attempt.began >= completed && attempt.status == 204;
    let is_lost = |team: &Value| !team["removing_id"].is_null();
    if let Some(create) = creates.iter().find(is_new)
        && team.as_ref().is_none_or(is_lost)
    {
        violations.push(format!("the new team is lost: {create:?} {team:?}"));
    }
    for add in adds.iter().filter(is_new) {
        let is_stored = |member: &Value| member["user_id"] == *add.content;
        if !members.iter().any(is_stored) {
            violations.push(format!("a member of the new team is lost: {add:?}"));
        }
    }
    violations
}

#[test]
fn a_removed_team_leaves_nothing_a_new_one_loses_nothing_and_exports_have_everything() {
    assert_holds(|seed| simulate(seed, None));
}

#[test]
fn every_part_of_the_protocol_is_needed() {
    let weaknesses = [
        (Weakness::AnyTeamIsMarked, 144),
        (Weakness::DeletesWithoutCheck, 465),
        (Weakness::LastDeleteWithoutCondition, 234),
        (Weakness::EventualReads, 0),
        (Weakness::NoWaitInRerun, 0),
        (Weakness::UnexportedUnchecked, 102),
    ];
    assert_breaks(simulate, &weaknesses);
}

/// Two operators remove the team, and a third cancels the removal.
async fn cancel(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let (world, mut rng) = World::new(seed, weakness).await;
    let team = fixtures::team("acme", "apollo", "docs", "Docs");
    world.tables.put(Table::TEAMS, team);
    for user in ["ada", "grace"] {
        let member = fixtures::member("acme", "apollo", "docs", user);
        world.tables.put(Table::TEAM_MEMBERS, member);
    }
    let deployment = world.deployment(&mut rng);
    let team = find_team(&deployment, "acme", "apollo", "docs").await;
    let team = team.expect("a response").expect("a team");
    let removals = [0, 2].map(|number| {
        let (world, mut rng, team) = (world.clone(), rng.fork(), team.clone());
        tokio::spawn(async move {
            pause(&mut rng, 0..20 * number + 1).await;
            let remover = world.deployment_of_run(0, &mut rng);
            let time = time_until_kill(0, &mut rng);
            let mut teams = [team];
            let (wait, run) = (world.wait(false), run_by(number as usize));
            let _ = timeout(time, remove_teams(&remover, &run, &mut teams, wait, None)).await;
            teams[0].outcome
        })
    });
    pause(&mut rng, 0..100).await;
    let Some(team) = find_team(&deployment, "acme", "apollo", "docs")
        .await
        .expect("a response")
    else {
        return vec![];
    };
    let cancelled = cancel_removal(&deployment, &run_by(1), &REMOVING, &team.record).await;
    let members = world.tables.records(Table::TEAM_MEMBERS);
    let outcomes = join(removals).await;
    sleep(LATE_WRITES).await;
    let mut violations = world.invalid_records();
    if matches!(
        cancelled,
        Ok(Cancel::Cancelled | Cancel::CancelledHalfway { .. })
    ) {
        let teams = world.tables.records(Table::TEAMS);
        let is_kept = teams.iter().any(|team| team["removing_id"].is_null());
        if !is_kept || world.tables.records(Table::TEAM_MEMBERS) != members {
            violations.push(format!(
                "something was deleted or marked after the cancel: {teams:?}"
            ));
        }
        let is_deleted = |outcome| matches!(outcome, &DeletionOutcome::Deleted(_));
        if outcomes.iter().any(is_deleted) {
            violations.push(format!("a cancelled run reports {outcomes:?}"));
        }
    }
    violations
}

#[test]
fn nothing_is_deleted_or_marked_after_a_cancel() {
    assert_holds(|seed| cancel(seed, None));
    assert_breaks(
        cancel,
        &[
            (Weakness::CancelWithoutStamp, 76),
            (Weakness::DeletesWithoutCheck, 352),
        ],
    );
}
