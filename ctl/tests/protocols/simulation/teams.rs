//! Two operators remove a team while clients add users to it and create it again.

use std::{fs, path::Path, sync::Arc, time::Duration};

use fastrand::Rng;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use workspace_local::fixtures;
use workspace_management::store::Table;
use workspacectl::{
    commands::remove::team::{remove, target},
    export::AppendedExport,
    wait::{SAFE_WAIT, Wait},
};

use super::{Attempt, Weakness, World, assert_breaks, assert_holds, operator, pause};

const TEAMS: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";
const MEMBERS: &str = "/api/v1/project/acme/apollo/docs/addUsersToTheTeam";

/// Adds users, of whom there are few, so that old and new teams have the same.
async fn add_users(world: Arc<World>, key: String, mut rng: Rng) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    while world.is_running() {
        let user = format!("user-{}", rng.u64(0..6));
        let body = json!({ "usersAddingToTeam": [{ "userid": user }] });
        let attempt = world.send(&mut rng, MEMBERS, &key, &body).await;
        attempts.push(Attempt {
            content: user,
            ..attempt
        });
        pause(&mut rng, 0..12).await;
    }
    attempts
}

/// Creates the team with the same content again and again.
async fn create_team(world: Arc<World>, key: String, mut rng: Rng) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    while world.is_running() {
        let body = json!({ "teamName": "Docs" });
        attempts.push(world.send(&mut rng, TEAMS, &key, &body).await);
        pause(&mut rng, 0..8).await;
    }
    attempts
}

/// Removes the first team. Killed at random times, and run again. Returns when it was completed. With a
/// folder, each run exports to one of two files.
async fn remove_team(
    world: Arc<World>,
    number: usize,
    mut rng: Rng,
    folder: Option<Arc<Path>>,
) -> Option<Duration> {
    pause(&mut rng, 0..120).await;
    for run in 0..4 {
        let deployment = world.deployment(&mut rng);
        let (operator, key) = (operator(number), target("acme#apollo", "docs"));
        let is_rerun = run > 0 || number > 0;
        let wait = match world.weakness {
            Some(Weakness::NoWaitInRerun) if is_rerun => 0,
            _ => SAFE_WAIT.as_secs(),
        };
        let mut confirmed = false;
        let confirm = |team: &serde_json::Value| {
            confirmed = team["request_id"] == "first-team";
            anyhow::ensure!(confirmed, "this is not the team to remove");
            Ok(())
        };
        let wait = Wait::seconds(wait);
        let export = folder.as_ref().map(|folder| {
            let name = format!("{}.jsonl", rng.u64(0..2));
            AppendedExport::open(&folder.join(name))
        });
        let removal = async {
            let mut export = export.transpose()?;
            remove(&deployment, &operator, &key, wait, export.as_mut(), confirm).await
        };
        let is_killed = run < 3 && rng.bool();
        let time = if is_killed { rng.u64(0..140) } else { 400 };
        match timeout(Duration::from_secs(time), removal).await {
            Ok(Ok(_)) => return Some(world.now()),
            // Another operator can be writing the file.
            Ok(Err(_)) if !confirmed && folder.is_none() => return None,
            _ => pause(&mut rng, 0..20).await,
        }
    }
    None
}

/// Returns the rules that a schedule violates.
async fn simulate(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let (world, completed, adds, creates) = run(seed, weakness, None).await;
    match completed {
        Some(completed) => violations(&world, completed, &adds, &creates),
        None => world.invalid_records(),
    }
}

/// The same with exports. Returns the deleted records that no export has.
async fn simulate_exports(seed: u64) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let (world, ..) = run(seed, None, Some(folder.path().into())).await;
    let mut exported = Vec::new();
    for file in fs::read_dir(&folder).expect("a folder") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("text");
        let lines = text.lines().map(serde_json::from_str::<Value>);
        exported.extend(lines.map(|line| line.expect("JSON")["record"].take()));
    }
    let mut violations = world.invalid_records();
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

/// Runs a schedule. Returns when the first operator completed, and what clients sent.
async fn run(
    seed: u64,
    weakness: Option<Weakness>,
    folder: Option<Arc<Path>>,
) -> (Arc<World>, Option<Duration>, Vec<Attempt>, Vec<Attempt>) {
    let world = World::new(seed, weakness).await;
    let mut rng = world.rng.clone();
    let key = world.register("acme", 1);
    let mut team = fixtures::team("acme", "apollo", "docs", "Docs");
    team["request_id"] = json!("first-team");
    world.tables.put(Table::TEAMS, team);
    let adders = [0, 1, 2].map(|_| tokio::spawn(add_users(world.clone(), key.clone(), rng.fork())));
    let creator = tokio::spawn(create_team(world.clone(), key.clone(), rng.fork()));
    let operators = [0, 1].map(|number| {
        let (world, rng) = (world.clone(), rng.fork());
        tokio::spawn(remove_team(world, number, rng, folder.clone()))
    });
    let mut completions = Vec::new();
    for operator in operators {
        completions.extend(operator.await.expect("a time"));
    }
    world.finish().await;
    let mut adds = Vec::new();
    for adder in adders {
        adds.extend(adder.await.expect("attempts"));
    }
    let creates = creator.await.expect("attempts");
    sleep(Duration::from_secs(60)).await; // for the last late writes
    (world, completions.into_iter().min(), adds, creates)
}

fn violations(
    world: &World,
    completed: Duration,
    adds: &[Attempt],
    creates: &[Attempt],
) -> Vec<String> {
    let mut violations = world.invalid_records();
    let team = world.tables.records(Table::TEAMS).pop();
    let members = world.tables.records(Table::TEAM_MEMBERS);
    // A run that was killed at its end can have deleted the team before another one completed.
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
    if let Some(create) = creates.iter().find(is_new)
        && team
            .as_ref()
            .is_none_or(|team| !team["removing_id"].is_null())
    {
        violations.push(format!("the new team is lost: {create:?} {team:?}"));
    }
    for add in adds.iter().filter(is_new) {
        if !members
            .iter()
            .any(|member| member["user_id"] == *add.content)
        {
            violations.push(format!("a member of the new team is lost: {add:?}"));
        }
    }
    violations
}

#[test]
fn a_removed_team_leaves_nothing_and_a_new_one_loses_nothing() {
    assert_holds(|seed| simulate(seed, None));
}

#[test]
fn an_export_has_everything_that_was_removed() {
    assert_holds(simulate_exports);
}

#[test]
fn every_part_of_the_protocol_is_needed() {
    for (weakness, seed) in [
        (Weakness::AnyTeamIsMarked, 136),
        (Weakness::DeletesWithoutCheck, 0),
        (Weakness::LastDeleteWithoutCondition, 0),
        (Weakness::EventualReads, 0),
        (Weakness::NoWaitInRerun, 0),
    ] {
        assert_breaks(weakness, seed, |seed| simulate(seed, Some(weakness)));
    }
}

#[test]
fn teams_of_every_size_are_removed() {
    for members in [0, 1, 99, 100, 1_000] {
        let violated = super::run(0..1, async |_| {
            let world = World::new(members, None).await;
            let mut rng = world.rng.clone();
            let team = fixtures::team("acme", "apollo", "docs", "Docs");
            world.tables.put(Table::TEAMS, team);
            let put = |team: &str, number| {
                let user = format!("user-{number}");
                let member = fixtures::member("acme", "apollo", team, &user);
                world.tables.put(Table::TEAM_MEMBERS, member);
            };
            (0..members).for_each(|number| put("docs", number));
            put("docs-2", 0);
            let key = target("acme#apollo", "docs");
            let deployment = world.deployment(&mut rng);
            let wait = Wait::seconds(90);
            let removed = remove(&deployment, &operator(0), &key, wait, None, |_| Ok(())).await;
            assert_eq!(removed.expect("a count") as u64, members);
            assert!(world.tables.records(Table::TEAMS).is_empty());
            let left = world.tables.records(Table::TEAM_MEMBERS);
            assert_eq!(left.len(), 1, "{left:?}");
            world.invalid_records()
        });
        assert!(violated.is_empty(), "{violated:?}");
    }
}
