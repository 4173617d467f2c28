//! Operators remove a user from all teams of an organization while clients add members, and while
//! a different operator removes one of the teams.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fastrand::Rng;
use serde_json::{Value, json};
use test_support::fixtures;
use tokio::time::{Instant, timeout};
use workspace_management::records::Table;
use workspacectl::commands::remove::{
    from_all_teams::remove_from_all_teams,
    team::{find_team, remove_teams},
};

use super::{
    Attempt, MAX_LAG_OF_INDEXES, Request, Weakness, World, assert_breaks, assert_holds,
    attempts_of_run, join, pause, run_by, teams::create_team,
};

/// The organization and the user. `acme2` has a user with the same id.
const ORG: &str = "acme";
const USER: &str = "ada";

/// The teams. The last team is removed and created again.
const TEAMS: [&str; 3] = ["docs", "lab", "ops"];
const REMOVED: &str = "acme#apollo#ops";

/// A membership: its team, its user and the request that created it.
type Membership = [String; 3];

fn membership(record: &Value) -> Membership {
    ["team", "user_id", "request_id"].map(|name| record[name].as_str().expect("text").to_owned())
}

/// Whether the command removes a membership.
fn is_of_user(membership: &Membership) -> bool {
    let [team, user, _] = membership;
    team.split('#').next() == Some(ORG) && user == USER
}

/// Adds a user to a team of an organization. `Ada` is a different user.
fn add_member(org: &str, rng: &mut Rng) -> Request {
    let team = TEAMS[rng.usize(0..TEAMS.len())];
    let user = [USER, USER, "Ada", "bob"][rng.usize(0..4)];
    let path = format!("/api/v1/project/{org}/apollo/{team}/addUsersToTheTeam");
    Request::new(path, json!({ "usersAddingToTeam": [{ "userid": user }] }))
}

async fn remove_team(world: Arc<World>, mut rng: Rng) {
    pause(&mut rng, 0..20).await;
    let (deployment, run) = (world.deployment(&mut rng), run_by(9));
    let team = find_team(&deployment, ORG, "apollo", "ops").await;
    let mut teams = [team.expect("a response").expect("a team")];
    let removed = remove_teams(&deployment, &run, &mut teams, world.wait(false), None).await;
    removed.expect("it is removed");
}

/// A run of the command that exited with 0.
#[derive(Debug)]
struct Completion {
    began: Instant,
    last_pass: Instant,
    ended: Instant,
}

/// Runs the command again and again. It is killed at random times.
async fn remove_user(world: Arc<World>, mut rng: Rng) -> Vec<Completion> {
    let mut completions = Vec::new();
    for _ in 0..4 {
        pause(&mut rng, 0..20).await;
        let attempts = attempts_of_run(0, &mut rng);
        let (deployment, index_reads) = world.observed_deployment(&mut rng, attempts);
        let run = run_by(0);
        let began = Instant::now();
        let is_killed = rng.bool();
        let time = Duration::from_secs(if is_killed { rng.u64(0..12) } else { 400 });
        let mut removed = BTreeSet::new();
        let command = remove_from_all_teams(&deployment, &run, Some(ORG), USER, None, &mut removed);
        if let Ok(Ok(_)) = timeout(time, command).await {
            completions.push(Completion {
                began,
                last_pass: *index_reads.lock().expect("a lock").last().expect("a pass"),
                ended: Instant::now(),
            });
        }
    }
    completions
}

/// Runs a schedule, and returns the rules that it violates.
async fn simulate(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let (world, mut rng) = World::new(seed, weakness).await;
    let keys = [(ORG, 1), ("acme2", 2)].map(|(org, number)| world.tables.register(org, number));
    for org in [ORG, "acme2"] {
        for (id, name) in TEAMS.into_iter().zip(["Docs", "Lab", "Ops"]) {
            let team = fixtures::team(org, "apollo", id, name);
            world.tables.put(Table::TEAMS, team);
            let member = fixtures::member(org, "apollo", id, USER);
            world.tables.put(Table::TEAM_MEMBERS, member);
        }
    }
    let clients = [(ORG, &keys[0]), (ORG, &keys[0]), ("acme2", &keys[1])];
    let clients =
        clients.map(|(org, key)| world.spawn_client(key, &mut rng, 15, |rng| add_member(org, rng)));
    // Creates the removed team again.
    let creator = world.spawn_client(&keys[0], &mut rng, 15, |_| create_team("Ops"));
    let remover = tokio::spawn(remove_team(world.clone(), rng.fork()));
    let operators = [0, 1].map(|_| tokio::spawn(remove_user(world.clone(), rng.fork())));
    let completions = join(operators).await;
    let last_command = world.now();
    remover.await.expect("an end");
    let adds = world.finish(clients).await;
    join([creator]).await;
    // The memberships after each write, with the time of the write.
    let history = world.tables.history(Table::TEAM_MEMBERS).await.into_iter();
    let states = history.map(|(at, records)| (at, records.iter().map(membership).collect()));
    let history: Vec<(Instant, Vec<Membership>)> = states.collect();
    let mut violations = world.invalid_records();
    violations.extend(completion_violations(&world, &history, &completions));
    violations.extend(deletion_violations(&history, last_command, &adds));
    violations.extend(rerun_violations(&world, &mut rng).await);
    violations
}

/// What a completed command left although it had to find it: a membership that exists since before
/// the command began, or since before the oldest state that the index returned to the last pass.
fn completion_violations(
    world: &World,
    history: &[(Instant, Vec<Membership>)],
    completions: &[Completion],
) -> Vec<String> {
    let mut violations = Vec::new();
    for completion in completions {
        let mut since = BTreeMap::new();
        for (at, present) in history.iter().filter(|(at, _)| *at <= completion.ended) {
            since.retain(|membership, _| present.contains(membership));
            for membership in present.iter().filter(|present| is_of_user(present)) {
                since.entry(membership.clone()).or_insert(*at);
            }
        }
        for (membership, since) in since {
            let is_older =
                since <= completion.began || since + MAX_LAG_OF_INDEXES < completion.last_pass;
            if is_older {
                let since = since - world.tables.started;
                violations.push(format!(
                    "a membership is left: {membership:?} since {since:?} by {completion:?}"
                ));
            }
        }
    }
    violations
}

/// Deleted memberships that no command was to delete: those of other users and organizations, and
/// those that were added after the last command.
fn deletion_violations(
    history: &[(Instant, Vec<Membership>)],
    last_command: Duration,
    adds: &[Attempt],
) -> Vec<String> {
    let began = |request_id: &String| {
        let mut sources = adds.iter();
        let source = sources.find(|add| add.request_id == *request_id);
        source.map_or(Duration::ZERO, |add| add.began)
    };
    let mut violations = Vec::new();
    for ((_, before), (_, after)) in history.iter().zip(&history[1..]) {
        for deleted in before.iter().filter(|old| !after.contains(old)) {
            let is_expected = is_of_user(deleted) && began(&deleted[2]) < last_command;
            if !is_expected && deleted[0] != REMOVED {
                violations.push(format!("a membership is lost: {deleted:?}"));
            }
        }
    }
    violations
}

/// A command that runs alone removes all memberships of the user, and changes nothing else.
async fn rerun_violations(world: &World, rng: &mut Rng) -> Vec<String> {
    let members = || -> Vec<_> {
        let records = world.tables.records(Table::TEAM_MEMBERS);
        records.iter().map(membership).collect()
    };
    let mut expected = members();
    expected.retain(|member| !is_of_user(member));
    let (deployment, run) = (world.deployment(rng), run_by(1));
    let mut teams = BTreeSet::new();
    let removed = remove_from_all_teams(&deployment, &run, Some(ORG), USER, None, &mut teams).await;
    let left = members();
    match left == expected {
        true if removed.is_ok() => vec![],
        _ => vec![format!("a command that runs alone: {removed:?} {left:?}")],
    }
}

#[test]
fn a_removed_user_is_in_no_team_and_others_lose_nothing() {
    assert_holds(|seed| simulate(seed, None));
}

#[test]
fn every_part_of_the_removal_is_needed() {
    let weaknesses = [
        (Weakness::OnePass, 1),
        (Weakness::SlowIndex, 3),
        (Weakness::EventualGets, 0),
        (Weakness::LastDeleteWithoutCondition, 65),
    ];
    assert_breaks(simulate, &weaknesses);
}
