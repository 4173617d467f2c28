//! `serve --data`: acknowledged writes survive a kill.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::server::{Server, agent, create_data_store};

const KILLS: usize = 20;
const CLIENTS: usize = 4;

#[test]
fn acknowledged_writes_survive_a_kill_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.db");
    let data = ["--data", file.to_str().unwrap()];
    let mut acknowledged = Vec::new();
    for kill in 0..KILLS {
        acknowledged.extend(write_until_killed(Server::start(&data), kill));
    }

    let server = Server::start(&data);
    let records = server.records(&["list", "data-stores", "--org", "acme"]);
    let stored: HashSet<_> = records
        .iter()
        .map(|record| record["data_store_id"].as_str().unwrap())
        .collect();
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|name| !stored.contains(name.as_str()))
        .collect();
    println!(
        "{KILLS} kills, {} acknowledged writes, {} lost",
        acknowledged.len(),
        lost.len()
    );
    assert!(lost.is_empty(), "{lost:?}");
    server.stop("-TERM");
}

/// Creates data stores with several clients until the server is killed. Returns the names of those
/// that it acknowledged.
fn write_until_killed(mut server: Server, kill: usize) -> Vec<String> {
    let process = &mut server.process;
    let (url, key) = (&server.url, &server.key);
    let has_begun = &AtomicBool::new(false);
    thread::scope(|scope| {
        let start_client = |client| {
            scope.spawn(move || {
                let (agent, mut created) = (agent(), Vec::new());
                for number in 0.. {
                    let name = format!("store-{kill}-{client}-{number}");
                    match create_data_store(&agent, url, "acme", key, &name) {
                        Ok(204) => created.push(name),
                        Ok(status) => panic!("{status}"),
                        Err(_) => break,
                    }
                    has_begun.store(true, Ordering::Relaxed);
                }
                created
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(start_client).collect();
        let started = Instant::now();
        while !has_begun.load(Ordering::Relaxed) && started.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(1));
        }
        // Varies how long the process runs under load.
        thread::sleep(Duration::from_millis(20 * (kill as u64 % 7)));
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(
            has_begun.load(Ordering::Relaxed),
            "no write before kill {kill}"
        );
        let created = clients.into_iter().map(|client| client.join().unwrap());
        created.flatten().collect()
    })
}
