//! `cargo serve --data`: after a kill at any moment, the next start works, and no acknowledged
//! record is lost.

use std::{
    collections::BTreeSet, env, os::unix::process::ExitStatusExt as _, process::Stdio, thread,
    time::Duration,
};

use test_support::server::{agent, create_data_store};
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;

use crate::{path, spawn, start};

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

        let server = start(&["--data", &file]);
        let stored: BTreeSet<_> = server
            .records_of(Table::DATA_STORES)
            .iter()
            .map(|record| record["data_store_id"].as_str().unwrap().to_owned())
            .collect();
        let lost: Vec<_> = acknowledged.difference(&stored).collect();
        assert!(lost.is_empty(), "kill {kill} after {delay:?}: {lost:?}");
        // The demo organization and its API key exist.
        assert_eq!(server.create_data_store("acme", DEMO_KEY, "Papers"), 204);
        assert!(server.stop("-TERM").success());
    }
    println!("{kills} kills, {writes} acknowledged writes");
    assert!(writes > 0);
}

/// Kills a new process after a delay. With `is_listening`, the delay begins when the process
/// listens, and clients create data stores. Returns the ids of the acknowledged data stores.
fn write_until_killed(file: &str, is_listening: bool, delay: Duration) -> Vec<String> {
    let mut clients = Vec::new();
    let status = if is_listening {
        let server = start(&["--data", file]);
        for _ in 0..4 {
            let url = server.url.clone();
            clients.push(thread::spawn(move || create_data_stores(&url)));
        }
        thread::sleep(delay);
        server.stop("-KILL")
    } else {
        let mut process = spawn(&["--data", file], Stdio::null(), Stdio::null());
        thread::sleep(delay);
        process.kill().unwrap();
        process.wait().unwrap()
    };
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
