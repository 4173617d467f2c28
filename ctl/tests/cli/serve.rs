//! `serve`: what it prints, how it stops, and how it fails to start.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::{self, fs::PermissionsExt as _},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use workspace_local::events;

use crate::{
    assert_fails, assert_usage_error, listed_tables,
    server::{Server, agent},
    workspacectl,
};

#[test]
fn the_printed_requests_succeed_and_store_a_record_of_every_kind() {
    let server = Server::start(&[]);

    server.send_events();

    for table in listed_tables() {
        let records = server.records(&["list", table.noun]);
        assert!(!records.is_empty(), "{}", table.noun);
    }
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

#[test]
fn serve_stops_with_exit_code_0_when_it_is_interrupted_or_terminated() {
    for signal in ["-INT", "-TERM"] {
        let server = Server::start(&[]);
        assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
        server.stop(signal);
    }
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

#[test]
fn serve_keeps_its_data_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.sqlite");
    let data = ["--data", file.to_str().unwrap()];
    let first = Server::start(&data);
    assert_eq!(first.create_data_store("acme", &first.key, "Papers"), 204);
    let records = first.records(&["list", "data-stores"]);
    assert_eq!(records.len(), 1);
    first.stop("-TERM");

    let second = Server::start(&data);

    assert_eq!(second.records(&["list", "data-stores"]), records);
    assert_eq!(second.create_data_store("acme", &second.key, "Papers"), 204);
    assert_eq!(second.records(&["list", "data-stores"]), records);
}

/// The tables of an older version lack an index, and tables are not changed.
/// An earlier version stored the key without `org_request_id`, or an operator has registered the
/// organization again.
#[test]
fn the_demo_key_works_with_an_older_data_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.sqlite");
    let data = ["--data", file.to_str().unwrap()];
    let server = Server::start(&data);
    let update = json!({
        "TableName": "KeysTable", "Key": { "key_id": { "S": "acmeDemoKey1" } },
        "UpdateExpression": "REMOVE org_request_id",
    });
    server.dynamodb("UpdateItem", &update);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 401);
    server.stop("-TERM");

    let server = Server::start(&data);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
    server.run(&["orgs", "disable", "acme", "--wait", "0"]);
    let erase = "orgs erase acme --without-export --yes --wait 0";
    server.run(&erase.split(' ').collect::<Vec<_>>());
    server.run(&["orgs", "create", "acme"]);
    server.stop("-TERM");

    let server = Server::start(&data);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
}

#[test]
fn a_data_file_of_another_version_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.sqlite");
    let file = file.to_str().unwrap();
    let server = Server::start(&["--data", file]);
    server.recreate_without_index("TeamsTable");
    server.stop("-TERM");

    assert_fails(
        &serve(&["--data", file]),
        "was created by another version: TeamsTable: its index by_organization is missing",
    );
}

#[test]
fn serve_explains_why_it_cannot_start() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (missing, text) = (path("no/data.sqlite"), path("text"));
    fs::write(&text, "A text that is long enough for an SQLite header.").unwrap();
    let moved = path("moved");
    let mut server = Server::start(&["--data", &moved]);
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    fs::remove_file(&moved).unwrap();
    let rows = [
        (
            ["--port", &port],
            format!("127.0.0.1:{port} is in use: choose another port with --port"),
        ),
        (
            ["--dynamodb-port", &port],
            format!("127.0.0.1:{port} is in use: choose another port with --dynamodb-port"),
        ),
        (
            ["--data", &missing],
            format!("cannot open the data file {missing}"),
        ),
        (
            ["--data", &text],
            format!("{text} is not a data file of this version of `serve`"),
        ),
        (
            ["--data", &moved],
            format!("{moved} is missing or empty, but {moved}-wal has changes of it"),
        ),
    ];

    for (arguments, message) in rows {
        let ports = ["--port", "--dynamodb-port"].into_iter();
        let free = ports.filter(|option| *option != arguments[0]);
        let free: Vec<_> = free.flat_map(|option| [option, "0"]).collect();
        let output = workspacectl(&["serve"]).args(arguments).args(free).output();
        let output = output.unwrap();
        assert_fails(&output, &message);
        let lines = output.stderr.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, 1, "{output:?}");
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
    let tables = r#"{"TableName":"KeysTable"}"#;
    let rows = [
        ("host", "evil.example", false),
        ("host", "devbox.example", true),
        ("host", "host.docker.internal:8000", false),
        ("host", "[::1].evil.example", false),
        ("origin", "http://evil.example", false),
        ("origin", "null", false),
    ];
    for (name, value, is_allowed) in rows {
        let send = |url: &str, target: &str, body: &str| {
            let request = agent().post(url).header(name, value);
            let request = request.header("x-amz-target", target);
            request.send(body).unwrap().status().as_u16()
        };
        let body = r#"{"dataStoreName":"Papers"}"#;
        let path = format!("{}/api/v1/org/acme/dataStores/create", server.url);
        let expected = if is_allowed { 204 } else { 403 };
        assert_eq!(send(&path, "", body), expected, "{name}: {value}");
        let expected = if is_allowed { 200 } else { 403 };
        let scan = send(&server.dynamodb, "DynamoDB_20120810.Scan", tables);
        assert_eq!(scan, expected, "{name}: {value}");
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
    let server = Server::start(&["--cors", "http://localhost:5173"]);
    let request = |method: &str, url: String| {
        ureq::http::Request::builder()
            .method(method)
            .uri(url)
            .header("origin", "http://localhost:5173")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,prefer")
            .body(r#"{"dataStoreName":"Papers"}"#)
            .unwrap()
    };
    let path = format!("{}/api/v1/org/acme/dataStores/create", server.url);
    for (method, status) in [("OPTIONS", 200), ("POST", 204)] {
        let response = agent().run(request(method, path.clone())).unwrap();
        assert_eq!(response.status(), status);
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(
            header("access-control-allow-origin"),
            "http://localhost:5173"
        );
        let names = match method {
            "OPTIONS" => header("access-control-allow-headers"),
            _ => header("access-control-expose-headers"),
        };
        let expected = match method {
            "OPTIONS" => &["authorization", "prefer", "content-type"][..],
            _ => &[
                "x-resource-id",
                "x-resource-state",
                "preference-applied",
                "x-request-id",
            ],
        };
        let names: Vec<_> = names.split(',').collect();
        assert!(
            expected.iter().all(|name| names.contains(name)),
            "{names:?}"
        );
    }
    let stored = agent().run(request("GET", format!("{}/stored", server.url)));
    assert!(
        !stored
            .unwrap()
            .headers()
            .contains_key("access-control-allow-origin")
    );
    let dynamodb = agent().run(request("OPTIONS", server.dynamodb.clone()));
    assert_eq!(dynamodb.unwrap().status(), 403);
}

#[test]
fn requests_are_limited_as_on_aws() {
    let server = Server::start(&[]);
    let path = "/api/v1/org/acme/dataStores/create";
    let body = r#"{"dataStoreName":"Papers"}"#;
    for (length, status) in [(9_000, 204), (10_240, 431)] {
        let request = agent().post(format!("{}{path}", server.url));
        let request = request.header("x-filler", "a".repeat(length));
        assert_eq!(request.send(body).unwrap().status(), status);
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
        let response = request
            .send("{}".to_owned() + &" ".repeat(length - 2))
            .unwrap();
        assert_eq!(response.status(), status);
    }
}

#[test]
fn without_anonymous_callers_the_printed_requests_have_a_key() {
    let server = Server::start(&["--anonymous", "denied"]);
    server.send_events();
    let body = r#"{"dataStoreName":"Papers"}"#;
    let response = server.post("/api/v1/org/acme/dataStores/create", None, body);
    assert_eq!(response.status, 401);
}

/// Runs a `serve` that cannot start.
fn serve(arguments: &[&str]) -> Output {
    let mut command = workspacectl(&["serve", "--port", "0", "--dynamodb-port", "0"]);
    command.args(arguments).output().unwrap()
}

/// Starts `serve` and returns what it prints on standard error until it listens.
fn notes(arguments: &[&str]) -> String {
    let mut process = workspacectl(&["serve", "--port", "0", "--dynamodb-port", "0"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let lines = lines.map(Result::unwrap);
    let lines = lines.take_while(|line| !line.starts_with("paste these requests"));
    let notes = lines.map(|line| line + "\n").collect();
    process.kill().unwrap();
    process.wait().unwrap();
    notes
}

#[test]
fn the_printed_command_checks_the_service() {
    let mut process = workspacectl(&["serve", "--port", "0", "--dynamodb-port", "0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let prefix = "to check the service: ";
    let command = lines.find_map(|line| Some(line.strip_prefix(prefix)?.to_owned()));
    let program = env!("CARGO_BIN_EXE_workspacectl");
    let command = command.unwrap().replace("cargo ctl", program);
    let output = Command::new("sh")
        .args(["-c", &command])
        .env_clear()
        .output();
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
    let file = folder.path().join("data.sqlite");
    let file = file.to_str().unwrap();
    let options = format!(
        "--host 0.0.0.0 --key-cache 5 --anonymous denied --cors http://a:1 --allow-host b --data {file}"
    );
    let options: Vec<_> = options.split(' ').collect();
    let changed = notes(&options);
    assert!(changed.contains("other machines can connect"), "{changed}");
    assert!(
        changed.contains(&format!("settings: {}\n", options.join(" "))),
        "{changed}"
    );
    assert!(!changed.contains("revoked"), "{changed}");

    let server = Server::start(&["--data", file]);
    server.run(&["keys", "revoke", &server.key, "--yes"]);
    server.run(&["orgs", "disable", "acme", "--no-wait"]);
    server.stop("-TERM");
    let revoked = notes(&["--data", file]);
    assert!(revoked.contains("the demo key is revoked"), "{revoked}");
    assert!(
        revoked.contains("the organization acme is disabled"),
        "{revoked}"
    );
}

#[test]
fn a_data_file_has_one_user_and_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.sqlite");
    let file = file.to_str().unwrap();
    let server = Server::start(&["--data", file]);
    for name in ["", "-wal", "-shm", "-lock"] {
        let metadata = fs::metadata(format!("{file}{name}")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_fails(&serve(&["--data", file]), "is in use by another `serve`");
    server.stop("-TERM");
}

#[test]
fn a_data_file_has_one_user_under_all_of_its_paths() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, symlink, link, moved) = (path("a"), path("b"), path("c"), path("d"));
    let server = Server::start(&["--data", &file]);
    unix::fs::symlink(&file, &symlink).unwrap();
    assert_fails(&serve(&["--data", &symlink]), "is in use");
    fs::hard_link(&file, &link).unwrap();
    assert_fails(&serve(&["--data", &link]), "has another name (a hard link)");
    fs::remove_file(&link).unwrap();
    if cfg!(target_os = "linux") {
        fs::rename(&file, &moved).unwrap();
        assert_fails(&serve(&["--data", &moved]), "is in use");
        fs::rename(&moved, &file).unwrap();
    }
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
    server.stop("-TERM");

    let server = Server::start(&["--data", &symlink]);
    assert_eq!(server.records(&["list", "data-stores"]).len(), 1);
}

#[test]
fn a_data_file_is_a_regular_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (pipe, socket, broken) = (path("pipe"), path("socket"), path("broken"));
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let _listener = unix::net::UnixListener::bind(&socket).unwrap();
    unix::fs::symlink("nothing", &broken).unwrap();
    for file in [folder.path().to_str().unwrap(), &pipe, &socket, &broken] {
        let kind = || fs::symlink_metadata(file).unwrap().file_type();
        let before = kind();
        let output = serve(&["--data", file]);
        assert_fails(&output, "is not a file, but");
        assert_eq!(kind(), before, "{file}");
    }
}
