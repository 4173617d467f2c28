//! The local page of `cargo serve`.

use serde_json::{Value, json};

use test_support::server::Server;
use workspace_local::demo::DEMO_KEY;
use workspace_records::kinds::{Kind, api_tables};

const POLICY: &str =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

fn json(server: &Server, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    serde_json::from_str(&response.body).unwrap()
}

#[test]
fn the_page_and_its_files_come_from_the_server_itself() {
    let server = Server::start(&[]);

    let page = server.get("/");

    assert_eq!(page.status, 200);
    assert!(page.body.contains(DEMO_KEY), "{}", page.body);
    assert!(!page.body.contains("//"), "{}", page.body);
    let mut files: Vec<_> = page.body.split('"').collect();
    files.retain(|part| part.starts_with('/'));
    assert!(files.contains(&"/page.js"), "{files:?}");
    for file in files {
        let response = server.get(file);
        assert_eq!(response.status, 200, "{file}");
        let header = |name: &str| response.headers[name].to_str().unwrap();
        assert_eq!(header("content-security-policy"), POLICY, "{file}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{file}");
    }
    // The server in the contract is the one that serves the page.
    for (path, url) in [
        ("/openapi.yaml", "- url: /\n"),
        ("/openapi.json", r#"{"url":"/","#),
    ] {
        let contract = server.get(path).body;
        assert!(contract.contains(url) && !contract.contains("127.0.0.1"));
    }
}

#[test]
fn the_page_shows_every_record() {
    let server = Server::start(&[]);
    server.send_events();

    let stored = json(&server, "/stored");

    let kinds = stored.as_array().unwrap();
    assert_eq!(kinds.len(), api_tables().count());
    for (kind, table) in kinds.iter().zip(api_tables()) {
        assert_eq!(kind["kind"], Kind::of(table).plural);
        let records = kind["records"].as_array().unwrap();
        let expected = server.records_of(table);
        assert!(!expected.is_empty() && records.len() == expected.len());
        assert!(expected.iter().all(|record| records.contains(record)));
        let all = json(&server, &format!("/stored/{}", Kind::of(table).plural));
        assert_eq!(all["records"], kind["records"]);
    }
    assert_eq!(server.get("/stored/nothing").status, 404);
}

#[test]
fn the_page_shows_the_newest_records_first_and_at_most_four_of_a_kind() {
    let server = Server::start(&[]);
    for number in 0..25 {
        let name = format!("Store {number}");
        assert_eq!(server.create_data_store("acme", DEMO_KEY, &name), 204);
    }

    let stored = json(&server, "/stored");
    let all = json(&server, "/stored/data-stores");

    let records = all["records"].as_array().unwrap();
    assert_eq!(records.len(), 25);
    for (record, number) in records.iter().zip((0..25).rev()) {
        assert_eq!(record["data_store_id"], format!("store-{number}"));
    }
    let mut kinds = stored.as_array().unwrap().iter();
    let kind = kinds.find(|kind| kind["kind"] == "data-stores").unwrap();
    assert_eq!(kind["records"], json!(records[..4]));
    assert_eq!(kind["total"], 25);
}
