//! What `cargo serve` prints, how it stops, why it does not start, and which requests it accepts.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{
    fixtures,
    server::{Server, agent, create_data_store},
};
use workspace_local::demo::DEMO_KEY;

use crate::{command, path, spawn, start};

const CREATE: &str = "/api/v1/org/acme/dataStores/create";
const PAPERS: &str = r#"{"dataStoreName":"Papers"}"#;

#[test]
fn the_printed_requests_succeed_even_without_anonymous_callers() {
    let server = Server::start(&["--anonymous", "denied"]);
    for curl in &server.curls {
        let output = Command::new("sh").args(["-c", curl]).output().unwrap();
        let response = String::from_utf8(output.stdout).unwrap();
        assert!(response.starts_with("HTTP/1.1 204"), "{curl}: {response}");
    }
    assert_eq!(server.post(CREATE, None, PAPERS).status, 401);
}

#[test]
fn serve_stops_at_once_while_a_request_is_incomplete() {
    let server = start(&[]);
    let address = server.url.strip_prefix("http://").unwrap();
    let mut request = TcpStream::connect(address).unwrap();
    // The server sends a 100 as soon as it waits for the body.
    let head = "Host: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n";
    write!(request, "POST {CREATE} HTTP/1.1\r\n{head}").unwrap();
    request.read_exact(&mut [0]).unwrap();

    let started = Instant::now();
    assert!(server.stop("-INT").success());

    assert!(started.elapsed() < Duration::from_secs(3));
}

#[test]
fn serve_explains_why_it_cannot_start() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| path(&folder, name);
    fs::write(file("foreign"), "This is text, and not an SQLite header.").unwrap();
    let sqlite = [b"SQLite format 3\0".as_slice(), &[0; 4080]].concat();
    fs::write(file("sqlite"), sqlite).unwrap();
    fs::create_dir(file("folder")).unwrap();
    let _socket = UnixListener::bind(file("socket")).unwrap();
    let mkfifo = Command::new("mkfifo").arg(file("fifo")).status();
    assert!(mkfifo.unwrap().success());
    symlink("fifo", file("link-to-fifo")).unwrap();
    symlink("no/data.sqlite", file("link-to-missing")).unwrap();
    // Kills the process, which leaves `moved-wal`.
    drop(start(&["--data", &file("moved")]));
    fs::remove_file(file("moved")).unwrap();
    fs::write(file("other-journal"), "").unwrap();
    let _server = start(&["--data", &file("used")]);
    symlink("used", file("link")).unwrap();
    fs::hard_link(file("used"), file("hard-link")).unwrap();
    let (irregular, is_used) = (
        "is not a regular file",
        "another `cargo serve` uses the file",
    );
    let mut cases = vec![
        (
            "--port",
            port.clone(),
            "choose a different port with --port",
        ),
        (
            "--dynamodb-port",
            port,
            "choose a different port with --dynamodb-port",
        ),
    ];
    #[rustfmt::skip] // keeps a table short
    let files = [
        ("no/data.sqlite", "cannot open the data file"), ("new/", "cannot open the data file"),
        ("link-to-missing", "cannot open the data file"), ("moved", "the file is missing or empty, but"),
        ("other", "other-journal may have its changes"),
        ("foreign", "did not create it"), ("sqlite", "did not create it"),
        ("folder", irregular), ("fifo", irregular), ("link-to-fifo", irregular), ("socket", irregular),
        ("used", is_used), ("folder/../used", is_used), ("link", is_used), ("hard-link", is_used),
    ];
    for (name, message) in files {
        if name != "hard-link" || cfg!(target_os = "linux") {
            cases.push(("--data", file(name), message));
        }
    }
    let before = listing(&folder);

    for (option, value, message) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_serve"));
        for port in ["--port", "--dynamodb-port"] {
            if port != option {
                command.args([port, "0"]);
            }
        }
        let output = command.args([option, &*value]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(message), "{error}");
        assert!(error.starts_with("error: "), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert_eq!(listing(&folder), before);
    for suffix in ["", "-wal", "-shm"] {
        let metadata = fs::metadata(file("used") + suffix).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{suffix}");
    }
}

/// What `ls -l` prints: the names, kinds, sizes and times of the files in a folder.
fn listing(folder: &TempDir) -> String {
    let mut ls = Command::new("ls");
    let output = ls.arg("-lR").arg(folder.path()).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn a_data_file_can_be_a_link_to_a_missing_or_an_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(path(&folder, "volume")).unwrap();
    fs::write(path(&folder, "volume/empty"), "").unwrap();
    for target in ["volume/missing", "volume/empty"] {
        let link = path(&folder, "link");
        symlink(target, &link).unwrap();
        assert!(start(&["--data", &link]).stop("-TERM").success());
        assert!(fs::metadata(path(&folder, target)).unwrap().len() > 0);
        fs::remove_file(link).unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn serve_says_that_it_has_no_space_and_can_create_the_data_file_later() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "data.sqlite");
    let limited = |blocks: &str| {
        let serve = env!("CARGO_BIN_EXE_serve");
        let script = r#"ulimit -f "$1" && exec "$2" --port 0 --dynamodb-port 0 --data "$3""#;
        let mut sh = Command::new("sh");
        let output = sh.args(["-c", script, "sh", blocks, serve, &file]).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    // The later the failure, the more the file contains.
    for blocks in ["4", "100", "400"] {
        let error = limited(blocks);
        let expected = format!("error: cannot open the data file {file}: File too large");
        assert!(error.starts_with(&expected), "{blocks}: {error}");
    }
    let server = start(&["--data", &file]);
    assert_eq!(server.create_data_store("acme", DEMO_KEY, "Papers"), 204);
}

#[test]
fn serve_goes_on_if_its_output_cannot_be_written() {
    let mut makers: Vec<fn() -> Stdio> = vec![|| std::io::pipe().unwrap().1.into()];
    if cfg!(target_os = "linux") {
        makers.push(|| {
            File::options()
                .write(true)
                .open("/dev/full")
                .unwrap()
                .into()
        });
    }
    for broken in makers {
        let mut child = spawn(&[], Stdio::piped(), broken());
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on ").unwrap();
        for _ in 0..2 {
            let created = create_data_store(&agent(), url, "acme", DEMO_KEY, "Papers");
            assert_eq!(created.unwrap(), 204);
        }
        child.kill().unwrap();
        child.wait().unwrap();

        let mut child = spawn(&["--json"], broken(), Stdio::piped());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("cannot print the addresses"), "{line}");
        thread::sleep(Duration::from_millis(100));
        assert_eq!(child.try_wait().unwrap(), None, "it ended");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn the_log_has_colors_only_if_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    let is_colored = |variables: &[(&str, &str)]| {
        let mut command = command(&[]);
        command.envs(variables.to_vec());
        let server = Server::run(command.stderr(File::create(&file).unwrap()));
        assert_eq!(server.create_data_store("acme", DEMO_KEY, "Papers"), 204);
        assert!(server.stop("-TERM").success());
        let log = fs::read_to_string(&file).unwrap();
        assert!(log.contains("create_data_store"), "{log}");
        log.contains('\x1b')
    };
    let force = ("CLICOLOR_FORCE", "1");
    assert!(!is_colored(&[]));
    assert!(is_colored(&[force]));
    assert!(!is_colored(&[force, ("NO_COLOR", "1")]));
}

/// A newer version can have a table that the data file lacks.
#[test]
fn a_data_file_keeps_its_records_and_gets_missing_tables() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "data.sqlite");
    let create = |server: &Server| server.create_data_store("acme", DEMO_KEY, "Papers");
    let server = start(&["--data", &file]);
    assert_eq!(create(&server), 204);
    server.dynamodb("DeleteTable", &json!({ "TableName": "TeamsTable" }));
    assert!(server.stop("-TERM").success());

    let server = start(&["--data", &file]);
    for (table, count) in [("TeamsTable", 0), ("DataStoresTable", 1), ("KeysTable", 1)] {
        assert_eq!(server.count(table), count, "{table}");
    }
    // The demo organization is stored only in new files.
    let key = json!({ "TableName": "KeysTable", "Key": { "key_id": { "S": "acmeDemoKey1" } } });
    server.dynamodb("DeleteItem", &key);
    assert!(server.stop("-TERM").success());
    assert_eq!(create(&start(&["--data", &file])), 401);
}

#[test]
fn requests_with_an_unknown_origin_or_host_name_are_rejected() {
    let server = Server::start(&["--allow-host", "devbox.example"]);
    for (name, value, expected) in [
        ("host", "evil.example", [403, 403]),
        ("host", "devbox.example", [204, 200]),
        ("origin", "http://evil.example", [403, 403]),
    ] {
        let send = |url: &str, target: &str, body: &str| {
            let request = agent().post(url).header(name, value);
            let request = request.header("x-amz-target", target);
            request.send(body).unwrap().status().as_u16()
        };
        let statuses = [
            send(&format!("{}{CREATE}", server.url), "", PAPERS),
            send(&server.dynamodb_url, "DynamoDB_20120810.ListTables", "{}"),
        ];
        assert_eq!(statuses, expected, "{name}: {value}");
        let mut urls = vec![format!("{}/log", server.dynamodb_url)];
        urls.extend(
            ["/", "/stored", "/openapi.yaml", "/unknown"].map(|it| server.url.clone() + it),
        );
        for url in urls {
            let request = agent().get(&url);
            let status = request.header(name, value).call().unwrap().status();
            assert_eq!(status == 403, expected[0] == 403, "{url}, {name}: {value}");
        }
    }
}

#[test]
fn the_log_has_a_line_with_the_address_for_each_request() {
    let server = start(&[]);
    let response = server.post(CREATE, None, PAPERS);
    assert_eq!(server.get("/").status, 200);

    let log = agent().get(format!("{}/log", server.dynamodb_url)).call();
    let log = log.unwrap().body_mut().read_to_string().unwrap();

    let line: Value = serde_json::from_str(&log).unwrap();
    assert_eq!(
        line["request_id"],
        response.headers["x-request-id"].to_str().unwrap()
    );
    assert_eq!(
        (&line["ip"], &line["status"]),
        (&json!("127.0.0.1"), &json!(204))
    );
    assert!(!log.contains("Papers"), "{log}");
}

#[test]
fn requests_above_the_rate_limit_get_the_429_of_api_gateway() {
    let server = Server::start(&["--rate-limit", "2"]);
    let send = || server.post(CREATE, None, PAPERS);
    assert_eq!([send().status, send().status], [204, 204]);

    let response = send();
    assert_eq!(response.status, 429);
    assert_eq!(response.body, r#"{"message":"Too Many Requests"}"#);
    thread::sleep(Duration::from_millis(600));
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
        agent().run(request.body(PAPERS).unwrap()).unwrap()
    };
    let create = format!("{}{CREATE}", server.url);
    // `tests/api/openapi.rs` compares all headers in the template with the contract.
    for (method, status, kind, name) in [
        ("OPTIONS", 200, "allow", "authorization"),
        ("POST", 204, "expose", "x-resource-id"),
    ] {
        let response = send(method, &create);
        assert_eq!(response.status(), status);
        let headers = response.headers();
        assert_eq!(headers["access-control-allow-origin"], origin);
        let names = &headers[format!("access-control-{kind}-headers")];
        assert!(names.to_str().unwrap().contains(name), "{names:?}");
    }
    let stored = send("GET", &format!("{}/stored", server.url));
    assert!(!stored.headers().contains_key("access-control-allow-origin"));
    assert_eq!(send("OPTIONS", &server.dynamodb_url).status(), 403);
}

#[test]
fn requests_are_limited_as_on_aws() {
    let server = Server::start(&[]);
    for (length, status) in [(9_000, 204), (10_240, 431)] {
        let request = agent().post(format!("{}{CREATE}", server.url));
        let request = request.header("x-filler", "a".repeat(length));
        assert_eq!(request.send(PAPERS).unwrap().status(), status);
    }
    // The function accepts less than API Gateway, and responds with a different message.
    const GATEWAY: usize = 10 * 1024 * 1024;
    for (length, is_forwarded) in [(GATEWAY, true), (GATEWAY + 1, false)] {
        let response = server.post(CREATE, None, &" ".repeat(length));
        let message = r#"{"message":"Request Too Long"}"#;
        assert_eq!(response.body != message, is_forwarded, "{}", response.body);
    }
}

/// What the process prints on standard error until it listens.
fn notes(arguments: &[&str]) -> String {
    let mut process = spawn(arguments, Stdio::null(), Stdio::piped());
    let notes = BufReader::new(process.stderr.take().unwrap())
        .lines()
        .map(|line| line.unwrap() + "\n")
        .take_while(|line| !line.starts_with("paste these requests"))
        .collect();
    process.kill().unwrap();
    process.wait().unwrap();
    notes
}

#[test]
fn serve_prints_settings_that_are_not_the_default() {
    let default = notes(&[]);
    assert!(!default.contains("settings"), "{default}");
    assert!(default.contains("export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:"));
    assert!(default.contains("to check the service: AWS_ENDPOINT_URL_DYNAMODB='http://"));

    let options =
        "--host 0.0.0.0 --key-cache 5 --anonymous denied --cors http://a:1 --allow-host b";
    let changed = notes(&options.split(' ').collect::<Vec<_>>());
    assert!(changed.contains("other machines can connect"), "{changed}");
    let settings = format!("settings: {options}\n");
    assert!(changed.contains(&settings), "{changed}");

    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "data.sqlite");
    let server = start(&["--data", &file]);
    for (table, key, id, attribute) in [
        ("KeysTable", "key_id", "acmeDemoKey1", "revoked_at"),
        ("OrganizationsTable", "org_id", "acme", "disabled_at"),
    ] {
        let (key, now) = (
            json!({ key: { "S": id } }),
            json!({ "S": fixtures::CREATED_AT }),
        );
        server.update_item(table, key, &format!("SET {attribute} = :value"), now);
    }
    assert!(server.stop("-TERM").success());
    let stored = notes(&["--data", &file]);
    assert!(stored.contains("the demo key is revoked"), "{stored}");
    assert!(stored.contains("organization acme is disabled"), "{stored}");
}
