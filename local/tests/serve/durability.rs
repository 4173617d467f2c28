//! `cargo serve --data`: after a kill at any moment, the next start works, and nothing that was
//! acknowledged is lost. A failure prints its seed, which repeats the delays: `KILL_SEED=...`.

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead as _, BufReader},
    iter,
    os::unix::process::ExitStatusExt as _,
    process::Stdio,
    thread,
    time::Duration,
};

use fastrand::Rng;
use serde_json::json;
use test_support::server::{agent, create_data_store, dynamodb};
use workspace_local::demo::DEMO_KEY;

use crate::{Process, path, serve};

#[test]
fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged() {
    let seed = env::var("KILL_SEED");
    let seed = seed.map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("KILL_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let kills = if env::var("STRESS").is_ok() { 200 } else { 10 };
    let mut folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    let mut writes = 0;

    for kill in 0..kills {
        if kill % 3 == 0 {
            folder = tempfile::tempdir().unwrap();
            acknowledged.clear();
        }
        let file = path(&folder, "data.sqlite");
        let is_listening = kill % 2 == 1;
        // The tables are created in the first milliseconds.
        let limit = if is_listening { 200 } else { 60 };
        let delay = Duration::from_millis(rng.u64(0..limit));
        let created = write_until_killed(&file, is_listening, delay);
        writes += created.len();
        acknowledged.extend(created);

        let process = Process::start(&["--data", &file]);
        let scan = json!({ "TableName": "DataStoresTable" });
        let found = dynamodb(&agent(), &process.dynamodb_url, "Scan", &scan);
        let stored: BTreeSet<_> = found["Items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["data_store_id"]["S"].as_str().unwrap().to_owned())
            .collect();
        let lost: Vec<_> = acknowledged.difference(&stored).collect();
        assert!(lost.is_empty(), "kill {kill} after {delay:?}: {lost:?}");
        // The demo organization is complete.
        let created = create_data_store(&agent(), &process.url, "acme", DEMO_KEY, "Papers");
        assert_eq!(created.unwrap(), 204);
        process.stop("-TERM");
    }
    println!("{kills} kills, {writes} acknowledged writes");
    assert!(writes > 0);
}

/// Starts the service, and kills it after a delay, which can begin when it listens. Until then, clients
/// create data stores. Returns the ids of those that it acknowledged.
fn write_until_killed(file: &str, is_listening: bool, delay: Duration) -> Vec<String> {
    let mut command = serve(&["--data", file]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    let mut clients = Vec::new();
    if is_listening {
        stdout.read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on ").unwrap();
        clients.extend([url; 4].map(|url| {
            let url = url.to_owned();
            thread::spawn(move || create_data_stores(&url))
        }));
    }
    thread::sleep(delay);
    process.kill().unwrap();
    let status = process.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "it has ended by itself: {status}");
    let created = clients.into_iter().map(|client| client.join().unwrap());
    created.flatten().collect()
}

/// Creates data stores until the service is killed. Returns the names of those that were created.
fn create_data_stores(url: &str) -> Vec<String> {
    let agent = agent();
    let names = iter::repeat_with(|| format!("store-{:x}", fastrand::u64(..)));
    let is_created = |name: &String| {
        let response = create_data_store(&agent, url, "acme", DEMO_KEY, name);
        response.is_ok_and(|status| {
            assert_eq!(status, 204, "{name}");
            true
        })
    };
    names.take_while(is_created).collect()
}
