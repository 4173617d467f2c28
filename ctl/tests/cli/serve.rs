//! `serve`: what it prints, how it stops, and how it fails to start.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::{self, fs::PermissionsExt as _},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    assert_fails, assert_usage_error,
    server::{Server, agent, serve},
    text, words, workspacectl,
};

/// The path of a file in a folder.
fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn the_printed_requests_succeed_also_without_anonymous_callers() {
    let server = Server::start(&["--anonymous", "denied"]);
    for curl in &server.curls {
        let output = Command::new("sh").args(["-c", curl]).output().unwrap();
        let response = text(&output.stdout);
        assert!(response.starts_with("HTTP/1.1 204"), "{curl}: {response}");
    }
    let body = r#"{"dataStoreName":"Papers"}"#;
    let response = server.post("/api/v1/org/acme/dataStores/create", None, body);
    assert_eq!(response.status, 401);
}

#[test]
fn serve_stops_at_once_with_idle_connections_and_incomplete_requests() {
    let server = Server::start(&[]);
    let request = "POST /api/v1/org/acme/dataStores/create HTTP/1.1\r\nHost: localhost\r\n";
    let open = |rest: &str, status: &[u8]| {
        let address = server.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{request}{rest}").unwrap();
        let mut response = vec![0; status.len()];
        stream.read_exact(&mut response).unwrap();
        assert_eq!(response, status);
        stream
    };
    let _incomplete_headers = open("", b"");
    // The server sends this status once it waits for the body.
    let waits = "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n";
    let _incomplete_body = open(waits, b"HTTP/1.1 100");
    let _idle = open("Content-Length: 0\r\n\r\n", b"HTTP/1.1 400");

    let started = Instant::now();
    server.stop("-INT");

    assert!(started.elapsed() < Duration::from_secs(3));
}

/// An earlier version stored the key without `org_request_id`, or an operator has registered the
/// organization again.
#[test]
fn the_demo_key_works_with_an_older_data_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "data.sqlite");
    let data = ["--data", file.as_str()];
    let server = Server::start(&data);
    let key = json!({ "key_id": { "S": "acmeDemoKey1" } });
    server.update_item("KeysTable", key, "REMOVE org_request_id", json!(null));
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 401);
    server.stop("-TERM");

    let server = Server::start(&data);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
    server.erase("acme");
    server.run(&["orgs", "create", "acme"]);
    server.stop("-TERM");

    let server = Server::start(&data);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
}

#[test]
fn serve_explains_why_it_cannot_start() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let names = ["no/data.sqlite", "other", "moved", "older"];
    let [missing, other, moved, older] = names.map(|name| path(&folder, name));
    fs::write(&other, "A text that is long enough for an SQLite header.").unwrap();
    let mut server = Server::start(&["--data", &moved]);
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    fs::remove_file(&moved).unwrap();
    // The tables of an older version lack an index.
    let server = Server::start(&["--data", &older]);
    server.recreate_without_index("TeamsTable");
    server.stop("-TERM");
    #[rustfmt::skip] // keeps a table short
    let rows = [
        ("--port", &port, "is in use: choose another port with --port"),
        ("--dynamodb-port", &port, "is in use: choose another port with --dynamodb-port"),
        ("--data", &missing, "cannot open the data file"),
        ("--data", &other, "is not a data file of this version of `serve`"),
        ("--data", &moved, "is missing or empty, but"),
        ("--data", &older, "another version: TeamsTable: its index by_organization is missing"),
    ];

    for (option, value, message) in rows {
        let ports = ["--port", "--dynamodb-port"].into_iter();
        let free = ports.filter(|port| *port != option);
        let free = free.flat_map(|port| [port, "0"]);
        let mut serve = workspacectl(&["serve", option, value]);
        let output = serve.args(free).output().unwrap();
        assert_fails(&output, message);
        let error = text(&output.stderr);
        assert!(
            error.contains(value) && error.lines().count() == 1,
            "{error}"
        );
    }
}

#[test]
fn serve_rejects_a_stack() {
    let output = workspacectl(&["--stack", "a", "serve"]).output().unwrap();
    assert_usage_error(&output, "remove --stack");
}

/// `ci/page` tests the same in a browser.
#[test]
fn requests_of_other_origins_and_host_names_are_rejected() {
    let server = Server::start(&["--allow-host", "devbox.example"]);
    for (name, value, is_allowed) in [
        ("host", "evil.example", false),
        ("host", "devbox.example", true),
        ("host", "host.docker.internal:8000", false),
        ("origin", "http://evil.example", false),
    ] {
        let send = |url: &str, target: &str, body: &str| {
            let request = agent().post(url).header(name, value);
            let request = request.header("x-amz-target", target);
            request.send(body).unwrap().status().as_u16()
        };
        let expected = if is_allowed { [204, 200] } else { [403, 403] };
        let create = format!("{}/api/v1/org/acme/dataStores/create", server.url);
        let statuses = [
            send(&create, "", r#"{"dataStoreName":"Papers"}"#),
            send(&server.dynamodb, "DynamoDB_20120810.ListTables", "{}"),
        ];
        assert_eq!(statuses, expected, "{name}: {value}");
    }
}

#[test]
fn requests_above_the_rate_limit_get_the_429_of_api_gateway() {
    let server = Server::start(&["--rate-limit", "2"]);
    let path = "/api/v1/org/acme/dataStores/create";
    let send = || server.post(path, None, r#"{"dataStoreName":"Papers"}"#);
    let statuses = [send().status, send().status];
    assert_eq!(statuses, [204, 204]);

    let response = send();
    assert_eq!(response.status, 429);
    assert_eq!(response.body, r#"{"message":"Too Many Requests"}"#);
    assert!(!response.headers.contains_key("x-request-id"));
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(send().status, 204);
}

#[test]
fn pages_of_the_origin_in_cors_may_call_the_api_and_nothing_else() {
    let origin = "http://localhost:5173";
    let server = Server::start(&["--cors", origin]);
    let send = |method: &str, url: &str| {
        let request = ureq::http::Request::builder().method(method).uri(url);
        let request = request
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,prefer");
        let request = request.body(r#"{"dataStoreName":"Papers"}"#).unwrap();
        agent().run(request).unwrap()
    };
    let exposed = "x-resource-id x-resource-state preference-applied x-request-id";
    let allowed = "authorization prefer content-type";
    let create = format!("{}/api/v1/org/acme/dataStores/create", server.url);
    for (method, status, header, expected) in [
        ("OPTIONS", 200, "access-control-allow-headers", allowed),
        ("POST", 204, "access-control-expose-headers", exposed),
    ] {
        let response = send(method, &create);
        assert_eq!(response.status(), status);
        let headers = response.headers();
        assert_eq!(headers["access-control-allow-origin"], origin);
        let names = headers[header].to_str().unwrap().split(',');
        let names: Vec<_> = names.collect();
        for name in words(expected) {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
    }
    let stored = send("GET", &format!("{}/stored", server.url));
    assert!(
        stored
            .headers()
            .get("access-control-allow-origin")
            .is_none()
    );
    assert_eq!(send("OPTIONS", &server.dynamodb).status(), 403);
}

#[test]
fn requests_are_limited_as_on_aws() {
    let server = Server::start(&[]);
    let path = "/api/v1/org/acme/dataStores/create";
    for (length, status) in [(9_000, 204), (10_240, 431)] {
        let request = agent().post(format!("{}{path}", server.url));
        let request = request.header("x-filler", "a".repeat(length));
        let response = request.send(r#"{"dataStoreName":"Papers"}"#);
        assert_eq!(response.unwrap().status(), status);
    }
    // The function accepts less than API Gateway, and responds with another message.
    const GATEWAY: usize = 10 * 1024 * 1024;
    for (length, is_forwarded) in [(GATEWAY, true), (GATEWAY + 1, false)] {
        let response = server.post(path, None, &" ".repeat(length));
        let message = r#"{"message":"Request Too Long"}"#;
        assert_eq!(response.body != message, is_forwarded, "{}", response.body);
    }
    const DYNAMODB: usize = 16 * 1024 * 1024;
    for (length, status) in [(DYNAMODB, 200), (DYNAMODB + 1, 400)] {
        let request = agent().post(&server.dynamodb);
        let request = request.header("x-amz-target", "DynamoDB_20120810.ListTables");
        let response = request.send("{}".to_owned() + &" ".repeat(length - 2));
        assert_eq!(response.unwrap().status(), status);
    }
}

/// Starts `serve`, and returns what it prints on standard error until it listens.
fn start(arguments: &[&str]) -> (Child, String) {
    let mut command = serve(arguments);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let lines = lines.map(Result::unwrap);
    let lines = lines.take_while(|line| !line.starts_with("paste these requests"));
    let notes = lines.map(|line| line + "\n").collect();
    (process, notes)
}

/// The same, but stops it.
fn notes(arguments: &[&str]) -> String {
    let (mut process, notes) = start(arguments);
    process.kill().unwrap();
    process.wait().unwrap();
    notes
}

#[test]
fn the_printed_command_checks_the_service() {
    let (mut process, notes) = start(&[]);
    let mut lines = notes.lines();
    let command = lines.find_map(|line| line.strip_prefix("to check the service: "));
    let program = env!("CARGO_BIN_EXE_workspacectl");
    let command = command.unwrap().replace("cargo ctl", program);
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &command]).env_clear().output();
    process.kill().unwrap();
    process.wait().unwrap();

    let output = output.unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}

#[test]
fn serve_prints_settings_that_are_not_the_default() {
    let default = notes(&[]);
    assert!(!default.contains("settings"), "{default}");
    assert!(default.contains("export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:"));

    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "data.sqlite");
    let options = format!(
        "--host 0.0.0.0 --key-cache 5 --anonymous denied --cors http://a:1 --allow-host b --data {file}"
    );
    let changed = notes(&words(&options));
    assert!(changed.contains("other machines can connect"), "{changed}");
    let settings = format!("settings: {options}\n");
    assert!(changed.contains(&settings), "{changed}");
    assert!(!changed.contains("revoked"), "{changed}");

    let server = Server::start(&["--data", &file]);
    server.run(&["keys", "revoke", &server.key, "--yes"]);
    server.run(&["orgs", "disable", "acme", "--no-wait"]);
    server.stop("-TERM");
    let notes = notes(&["--data", &file]);
    assert!(notes.contains("the demo key is revoked"), "{notes}");
    assert!(notes.contains("organization acme is disabled"), "{notes}");
}

/// Starts `serve` with a data file that it must reject.
fn rejected(file: &str) -> Output {
    serve(&["--data", file]).output().unwrap()
}

#[test]
fn a_data_file_has_one_owner_and_one_user_under_all_of_its_paths() {
    let folder = tempfile::tempdir().unwrap();
    let [file, symlink, link, moved] = ["a", "b", "c", "d"].map(|name| path(&folder, name));
    let server = Server::start(&["--data", &file]);
    for suffix in ["", "-wal", "-shm", "-lock"] {
        let metadata = fs::metadata(format!("{file}{suffix}")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{suffix}");
    }
    assert_fails(&rejected(&file), "is in use by another `serve`");
    unix::fs::symlink(&file, &symlink).unwrap();
    assert_fails(&rejected(&symlink), "is in use");
    fs::hard_link(&file, &link).unwrap();
    assert_fails(&rejected(&link), "has another name (a hard link)");
    fs::remove_file(&link).unwrap();
    if cfg!(target_os = "linux") {
        fs::rename(&file, &moved).unwrap();
        assert_fails(&rejected(&moved), "is in use");
        fs::rename(&moved, &file).unwrap();
    }
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
    server.stop("-TERM");

    let server = Server::start(&["--data", &symlink]);
    assert_eq!(server.count("DataStoresTable"), 1);
}

#[test]
fn a_data_file_is_a_regular_file() {
    let folder = tempfile::tempdir().unwrap();
    let [pipe, socket, broken] = ["pipe", "socket", "broken"].map(|name| path(&folder, name));
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let _listener = unix::net::UnixListener::bind(&socket).unwrap();
    unix::fs::symlink("nothing", &broken).unwrap();
    for file in [folder.path().to_str().unwrap(), &pipe, &socket, &broken] {
        let kind = || fs::symlink_metadata(file).unwrap().file_type();
        let before = kind();
        assert_fails(&rejected(file), "is not a file, but");
        assert_eq!(kind(), before, "{file}");
    }
}
