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
use tokio::time::timeout;
use workspace_management::store::Table;
use workspacectl::{commands::remove::team::remove_teams, export::ExportWriter, target::Target};

use super::{
    Attempt, Request, Weakness, World, assert_breaks, assert_holds, join, pause, run_by,
    time_until_kill,
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

/// Removes the first team. The command is killed at random times, and run again. Each run exports
/// to a new file in the folder. Returns when the removal was completed.
async fn remove_team(
    world: Arc<World>,
    number: usize,
    mut rng: Rng,
    folder: PathBuf,
) -> Option<Duration> {
    pause(&mut rng, 0..120).await;
    for run in 0..4 {
        let deployment = world.deployment(&mut rng);
        let this_run = run_by(number);
        let wait = world.wait(run > 0 || number > 0);
        let mut confirmed = false;
        let export = folder.join(format!("{number}-{run}.jsonl"));
        let export = Some(ExportWriter::create(&export).expect("a new file"));
        let removal = async {
            let team = Target::team("acme#apollo", "docs");
            let found = team.find(&deployment).await?.unwrap_or_default();
            confirmed = found["request_id"] == "first-team";
            anyhow::ensure!(confirmed, "this is not the team to remove");
            let (teams, mut removed) = ([(team, found)], Vec::new());
            remove_teams(&deployment, &this_run, &teams, wait, export, &mut removed).await?;
            anyhow::ensure!(removed[0].is_some(), "the team has changed");
            anyhow::Ok(())
        };
        match timeout(time_until_kill(run, &mut rng), removal).await {
            Ok(Ok(_)) => return Some(world.now()),
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
    let operators = [0, 1].map(|number| {
        let (world, rng, folder) = (world.clone(), rng.fork(), folder.path().to_owned());
        tokio::spawn(remove_team(world, number, rng, folder))
    });
    let completions = join(operators).await;
    let adds = world.finish(adders).await;
    let creates = join([creator]).await;
    let mut violations = world.invalid_records();
    if let Some(completed) = completions.into_iter().min() {
        violations.extend(completion_violations(&world, completed, &adds, &creates));
    }
    if weakness.is_none() {
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
        (Weakness::AnyTeamIsMarked, 78),
        (Weakness::DeletesWithoutCheck, 4),
        (Weakness::LastDeleteWithoutCondition, 10),
        (Weakness::EventualReads, 0),
        (Weakness::NoWaitInRerun, 0),
    ];
    assert_breaks(simulate, &weaknesses);
}
