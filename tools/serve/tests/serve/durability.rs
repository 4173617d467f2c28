//! `cargo serve --data`: after a kill at any moment, the next start works, and no acknowledged
//! record is lost.

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead as _, BufReader},
    os::unix::process::ExitStatusExt as _,
    process::Stdio,
    thread,
    time::Duration,
};

use serde_json::json;
use test_support::server::{agent, create_data_store, dynamodb};
use workspace_local::demo::DEMO_KEY;

use crate::{Process, path, spawn};

#[test]
fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged() {
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
        // A process that does not listen yet creates the tables, which takes only milliseconds.
        let max_delay = if is_listening { 200 } else { 60 };
        let delay = Duration::from_millis(fastrand::u64(0..max_delay));
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
        // The demo organization and its API key exist.
        let created = create_data_store(&agent(), &process.url, "acme", DEMO_KEY, "Papers");
        assert_eq!(created.unwrap(), 204);
        process.stop("-TERM");
    }
    println!("{kills} kills, {writes} acknowledged writes");
    assert!(writes > 0);
}

/// Kills a new process after a delay. With `is_listening`, the delay begins when the process
/// listens, and clients create data stores. Returns the ids of the acknowledged data stores.
fn write_until_killed(file: &str, is_listening: bool, delay: Duration) -> Vec<String> {
    let mut process = spawn(&["--data", file], Stdio::piped(), Stdio::null());
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    let mut clients = Vec::new();
    if is_listening {
        stdout.read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on ").unwrap();
        for _ in 0..4 {
            let url = url.to_owned();
            clients.push(thread::spawn(move || create_data_stores(&url)));
        }
    }
    thread::sleep(delay);
    process.kill().unwrap();
    let status = process.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "it ended by itself: {status}");
    let mut created = Vec::new();
    for client in clients {
        created.extend(client.join().unwrap());
    }
    created
}

/// Creates data stores until the service is killed. Returns the ids of the created data stores.
fn create_data_stores(url: &str) -> Vec<String> {
    let agent = agent();
    let mut created = Vec::new();
    loop {
        let id = format!("store-{:x}", fastrand::u64(..));
        match create_data_store(&agent, url, "acme", DEMO_KEY, &id) {
            Ok(status) => assert_eq!(status, 204, "{id}"),
            Err(_) => return created,
        }
        created.push(id);
    }
}
