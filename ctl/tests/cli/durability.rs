//! `serve --data`: after a kill at any moment, the next start works, and nothing that was
//! acknowledged is lost. A failure prints its seed, which repeats the delays: `KILL_SEED=...`.

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::Stdio,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use fastrand::Rng;

use crate::{
    server::{Server, agent, create_data_store},
    workspacectl,
};

const CLIENTS: usize = 4;

#[test]
fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged() {
    let seed = env::var("KILL_SEED");
    let seed = seed.map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("KILL_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let kills = if env::var("STRESS").is_ok() { 200 } else { 20 };
    let mut folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    let (mut first_starts, mut before_listening, mut writes) = (0, 0, 0);

    for kill in 0..kills {
        let is_first_start = kill % 3 == 0;
        if is_first_start {
            folder = tempfile::tempdir().unwrap();
            acknowledged.clear();
            first_starts += 1;
        }
        let file = folder.path().join("data.sqlite");
        let moment = match rng.bool() {
            // The tables are created in the first milliseconds.
            true => Moment::AfterStart(Duration::from_millis(rng.u64(0..60))),
            false => Moment::AfterListening(Duration::from_millis(rng.u64(0..200))),
        };
        match write_until_killed(&file, kill, moment) {
            Some(created) => {
                writes += created.len();
                acknowledged.extend(created);
            }
            None => before_listening += 1,
        }

        let server = Server::start(&["--data", file.to_str().unwrap()]);
        let stored: BTreeSet<_> = server
            .records(&["list", "data-stores"])
            .iter()
            .map(|record| record["data_store_id"].as_str().unwrap().to_owned())
            .collect();
        let lost: Vec<_> = acknowledged.difference(&stored).collect();
        assert!(lost.is_empty(), "kill {kill} {moment:?}: {lost:?}");
        if is_first_start {
            server.send_events();
        }
        server.stop("-TERM");
    }
    println!(
        "{kills} kills, {first_starts} at the first start, {before_listening} before listening, \
         {writes} acknowledged writes"
    );
    assert!(before_listening > 0 && writes > 0);
}

/// When the process is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    AfterStart(Duration),
    AfterListening(Duration),
}

/// Creates data stores with several clients until the service is killed. Returns the ids of those that
/// it acknowledged, or nothing if it did not listen yet.
fn write_until_killed(file: &Path, kill: usize, moment: Moment) -> Option<Vec<String>> {
    let mut process = workspacectl(&["serve", "--port", "0", "--dynamodb-port", "0", "--data"])
        .arg(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let is_killed = &AtomicBool::new(false);
    let (listening, has_listened) = mpsc::channel();
    thread::scope(|scope| {
        let clients = scope.spawn(move || {
            let line = lines.next()?.ok()?;
            listening.send(()).unwrap();
            let url = line.strip_prefix("listening on ").unwrap();
            let names = |client| (0..).map(move |number| format!("store-{kill}-{client}-{number}"));
            Some(thread::scope(|scope| {
                let clients = (0..CLIENTS)
                    .map(|client| scope.spawn(move || create(url, names(client), is_killed)));
                let clients: Vec<_> = clients.collect();
                let created = clients.into_iter().map(|client| client.join().unwrap());
                created.flatten().collect()
            }))
        });
        let delay = match moment {
            Moment::AfterStart(delay) => delay,
            Moment::AfterListening(delay) => {
                has_listened.recv().unwrap();
                delay
            }
        };
        thread::sleep(delay);
        is_killed.store(true, Ordering::SeqCst);
        process.kill().unwrap();
        process.wait().unwrap();
        clients.join().unwrap()
    })
}

/// Creates data stores until the service is killed. Returns the names of those that were created.
fn create(url: &str, names: impl Iterator<Item = String>, is_killed: &AtomicBool) -> Vec<String> {
    let agent = agent();
    let mut created = Vec::new();
    for name in names {
        match create_data_store(&agent, url, "acme", workspace_local::demo::DEMO_KEY, &name) {
            Ok(204) => created.push(name),
            Ok(status) => panic!("{name}: {status}"),
            Err(error) => {
                assert!(is_killed.load(Ordering::SeqCst), "{name}: {error}");
                break;
            }
        }
    }
    created
}
