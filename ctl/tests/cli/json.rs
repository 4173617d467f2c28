//! `--json`.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use serde_json::Value;
use workspace_local::events;

use crate::{server::Server, workspacectl};

#[test]
fn every_command_prints_json() {
    let server = Server::start(&[]);

    assert_eq!(
        server.json(&["orgs", "create", "globex"])["org_id"],
        "globex"
    );
    assert!(server.json(&["orgs", "list"]).is_array());
    let created = server.json(&["keys", "create", "--org", "globex"]);
    let key = created["key"].as_str().unwrap();
    assert_eq!(server.create_data_store("globex", key, "Papers"), 204);
    assert!(server.json(&["list", "data-stores"]).is_array());
    let id = created["key_id"].as_str().unwrap();
    let revoked = server.json(&["keys", "revoke", id]);
    assert_eq!(revoked["state"], "revoked");
    assert_eq!(revoked["secret_sha256"], Value::Null);
}

#[test]
fn serve_prints_its_addresses_and_requests_as_json() {
    let mut process = workspacectl(&["--json", "serve", "--port", "0", "--dynamodb-port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    process.kill().unwrap();
    process.wait().unwrap();

    let printed: Value = serde_json::from_str(&line).unwrap();
    for name in ["url", "dynamodb", "key"] {
        assert!(printed[name].is_string(), "{line}");
    }
    let requests = printed["requests"].as_array().unwrap();
    assert_eq!(requests.len(), events::all().count());
}
