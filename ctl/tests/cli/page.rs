//! The page of `serve`.

use serde_json::Value;

use crate::{listed_tables, server::Server};

#[test]
fn the_page_and_its_files_come_from_the_server_itself() {
    let server = Server::start(&[]);

    let page = server.get("/");

    assert_eq!(page.status, 200);
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'self'"), "{policy}");
    assert!(page.body.contains(&server.key), "{}", page.body);
    assert!(!page.body.contains("//"), "{}", page.body);
    let files: Vec<_> = page
        .body
        .split('"')
        .filter(|part| part.starts_with('/'))
        .collect();
    assert!(files.contains(&"/viewer/swagger-ui-bundle.js"), "{files:?}");
    for file in files {
        assert_eq!(server.get(file).status, 200, "{file}");
    }
    let openapi = server.get("/openapi.yaml").body;
    assert!(openapi.contains("- url: /\n") && !openapi.contains("127.0.0.1"));
}

#[test]
fn the_page_shows_the_same_records_as_list() {
    let server = Server::start(&[]);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);

    let stored: Vec<Value> = serde_json::from_str(&server.get("/stored").body).unwrap();

    let kinds: Vec<_> = stored.iter().map(|kind| &kind["kind"]).collect();
    assert_eq!(
        kinds,
        listed_tables().map(|table| table.name).collect::<Vec<_>>()
    );
    for kind in &stored {
        let records = server.records(&["list", kind["kind"].as_str().unwrap()]);
        assert_eq!(kind["records"], Value::from(records));
    }
}

#[test]
fn the_page_does_not_hide_the_api() {
    let server = Server::start(&[]);
    let response = server.get("/api/v1/org/acme/dataStores/create");
    assert_eq!(response.status, 405, "{}", response.body);
    assert!(
        response.body.contains("method_not_allowed"),
        "{}",
        response.body
    );
}
