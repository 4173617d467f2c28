//! Two operators remove a team while clients add users to it and create it again.

use std::{fs, path::Path, sync::Arc, time::Duration};

use fastrand::Rng;
use serde_json::{Value, json};
use test_support::fixtures;
use tokio::time::{sleep, timeout};
use workspace_management::store::Table;
use workspacectl::{commands::remove::team::Team, export::Export};

use super::{
    Attempt, Request, Weakness, World, assert_breaks, assert_holds, join, operator, pause,
    time_until_kill,
};

/// The team that operators remove.
const TEAM: Team = Team {
    project: "acme#apollo",
    id: "docs",
};

const TEAMS: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";
const MEMBERS: &str = "/api/v1/project/acme/apollo/docs/addUsersToTheTeam";

/// Adds a user. There are few, so that old and new teams have the same.
fn add_user(rng: &mut Rng) -> Request {
    let user = format!("user-{}", rng.u64(0..6));
    Request {
        path: MEMBERS.to_owned(),
        body: json!({ "usersAddingToTeam": [{ "userid": user }] }),
        content: user,
        is_anonymous: false,
    }
}

/// Creates a team of `acme` with the same content as before.
pub(super) fn create_team(name: &str) -> Request {
    Request {
        path: TEAMS.to_owned(),
        body: json!({ "teamName": name }),
        content: String::new(),
        is_anonymous: false,
    }
}

/// Removes the first team. Killed at random times, and run again. Returns when it was completed. With a
/// folder, each run exports to a new file.
async fn remove_team(
    world: Arc<World>,
    number: usize,
    mut rng: Rng,
    folder: Option<Arc<Path>>,
) -> Option<Duration> {
    pause(&mut rng, 0..120).await;
    for run in 0..4 {
        let deployment = world.deployment(&mut rng);
        let operator = operator(number);
        let wait = world.wait(run > 0 || number > 0);
        let mut confirmed = false;
        let export = folder.as_ref().map(|folder| {
            let name = format!("{number}-{run}.jsonl");
            Export::create(&folder.join(name)).expect("a new file")
        });
        let removal = async {
            let found = TEAM.find(&deployment).await?;
            confirmed = found["request_id"] == "first-team";
            anyhow::ensure!(confirmed, "this is not the team to remove");
            TEAM.remove(&deployment, &operator, &found, wait, export)
                .await
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
    let (world, mut rng) = World::new(seed, weakness).await;
    let key = world.tables.register("acme", 1);
    let mut team = fixtures::team("acme", "apollo", "docs", "Docs");
    team["request_id"] = json!("first-team");
    world.tables.put(Table::TEAMS, team);
    let adders = [0, 1, 2].map(|_| world.spawn_client(&key, &mut rng, 12, add_user));
    let creator = world.spawn_client(&key, &mut rng, 8, |_| create_team("Docs"));
    let operators = [0, 1].map(|number| {
        let (world, rng) = (world.clone(), rng.fork());
        tokio::spawn(remove_team(world, number, rng, folder.clone()))
    });
    let completions = join(operators).await;
    world.finish().await;
    let (adds, creates) = (join(adders).await, join([creator]).await);
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
    let weaknesses = [
        (Weakness::AnyTeamIsMarked, 136),
        (Weakness::DeletesWithoutCheck, 0),
        (Weakness::LastDeleteWithoutCondition, 0),
        (Weakness::EventualReads, 0),
        (Weakness::NoWaitInRerun, 0),
    ];
    assert_breaks(simulate, &weaknesses);
}

#[tokio::test(start_paused = true)]
async fn teams_of_every_size_are_removed() {
    for members in [0, 1, 99, 100, 1_000] {
        let (world, mut rng) = World::new(members, None).await;
        let team = fixtures::team("acme", "apollo", "docs", "Docs");
        world.tables.put(Table::TEAMS, team);
        let put = |team: &str, number| {
            let user = format!("user-{number}");
            let member = fixtures::member("acme", "apollo", team, &user);
            world.tables.put(Table::TEAM_MEMBERS, member);
        };
        (0..members).for_each(|number| put("docs", number));
        put("docs-2", 0);
        let (deployment, wait) = (world.deployment(&mut rng), world.wait(false));
        let found = TEAM.find(&deployment).await.expect("a team");
        let removed = TEAM
            .remove(&deployment, &operator(0), &found, wait, None)
            .await;
        assert_eq!(removed.expect("a count") as u64, members);
        assert!(world.tables.records(Table::TEAMS).is_empty());
        let left = world.tables.records(Table::TEAM_MEMBERS);
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
