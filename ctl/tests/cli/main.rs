//! `workspacectl` as a process, as an operator runs it.
#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

fn workspacectl(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workspacectl"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// `workspacectl serve` on free ports.
struct Server {
    process: Child,
    url: String,
    dynamodb: String,
    key: String,
    curls: Vec<String>,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut process = workspacectl(&["serve", "--port", "0", "--dynamodb-port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .for_each(|line| drop(sender.send(line)))
        });
        let next = |prefix: &str| {
            let line = lines
                .recv_timeout(Duration::from_secs(20))
                .expect("serve prints in time");
            line.strip_prefix(prefix)
                .unwrap_or_else(|| panic!("{line:?} begins with {prefix:?}"))
                .to_owned()
        };
        let url = next("listening on ");
        let dynamodb = next("dynamodb on ");
        let key = next("key: ");
        let curls = (0..6).map(|_| next("curl ")).collect();
        Self {
            process,
            url,
            dynamodb,
            key,
            curls,
        }
    }

    /// Runs a command on what is served; its standard output.
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn output(&self, arguments: &[&str]) -> Output {
        workspacectl(arguments)
            .env("AWS_ENDPOINT_URL_DYNAMODB", &self.dynamodb)
            .output()
            .unwrap()
    }

    fn records(&self, arguments: &[&str]) -> Vec<Value> {
        serde_json::from_str(&self.run(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Sends a request; the response's status and its text.
    fn post(&self, path: &str, authorization: &str, body: &str) -> (u16, String) {
        let headers = format!("Content-Type: */*\r\n{authorization}");
        let response = exchange(&self.url, &format!("POST {path}"), &headers, body).unwrap();
        (status(&response).unwrap(), response)
    }

    /// Creates a data store with a key; the status.
    fn create_data_store(&self, org: &str, key: &str, name: &str) -> u16 {
        let path = format!("/api/v1/org/{org}/dataStores/create");
        let authorization = format!("Authorization: Bearer {key}\r\n");
        self.post(
            &path,
            &authorization,
            &format!(r#"{{"dataStoreName":"{name}"}}"#),
        )
        .0
    }

    /// Asks it to stop, and waits until it has, well.
    fn stop(mut self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &id])
                .status()
                .unwrap()
                .success()
        );
        let asked = Instant::now();
        let status = loop {
            match self.process.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(
                    asked.elapsed() < Duration::from_secs(10),
                    "serve stops in time"
                ),
            }
            thread::sleep(Duration::from_millis(10));
        };
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The pieces that a shell makes of a line with single quotes alone.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.last_mut().unwrap().push_str(part);
        } else {
            let mut pieces = part.split(' ');
            words.last_mut().unwrap().push_str(pieces.next().unwrap());
            words.extend(pieces.map(str::to_owned));
        }
    }
    words
}

#[test]
fn serve_prints_six_requests_that_succeed_and_list_shows_their_records() {
    let server = Server::start(&[]);

    for curl in &server.curls {
        let words = words(curl);
        let path = words
            .iter()
            .find_map(|word| word.strip_prefix(&server.url))
            .unwrap();
        let after = |flag: &str| words.iter().skip_while(|word| *word != flag).nth(1);
        let authorization = words
            .iter()
            .find(|word| word.starts_with("Authorization: "));
        let authorization = authorization
            .map(|header| format!("{header}\r\n"))
            .unwrap_or_default();
        let (status, response) = server.post(path, &authorization, after("-d").unwrap());
        assert_eq!(status, 204, "{curl}: {response}");
    }

    let teams = server.run(&["list", "teams", "--org", "acme"]);
    assert!(
        teams.contains("research-team") && teams.contains("Research Team"),
        "{teams}"
    );
    assert!(!teams.contains('\u{1b}'), "{teams:?}");
    for (kind, count) in [
        ("models", 2),
        ("teams", 1),
        ("members", 2),
        ("voices", 1),
        ("data-stores", 1),
        ("logging-instances", 1),
    ] {
        assert_eq!(server.records(&["list", kind]).len(), count, "{kind}");
        assert_eq!(
            server.records(&["list", kind, "--org", "acme"]).len(),
            count,
            "{kind}"
        );
        assert_eq!(
            server.records(&["list", kind, "--org", "acm"]).len(),
            0,
            "{kind}"
        );
    }
    let of_team = [
        "list",
        "members",
        "--org",
        "acme",
        "--project",
        "apollo",
        "--team",
        "research-team",
    ];
    assert_eq!(server.records(&of_team).len(), 2);
    assert_eq!(server.records(&of_team[..6]).len(), 2);
    assert!(
        !server
            .output(&["list", "voices", "--org", "acme", "--project", "apollo"])
            .status
            .success()
    );
}

#[test]
fn serve_stops_well_when_it_is_interrupted_or_terminated() {
    for signal in ["-INT", "-TERM"] {
        let server = Server::start(&[]);
        assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
        server.stop(signal);
    }
}

#[test]
fn serve_stops_though_someone_holds_a_request_open() {
    let server = Server::start(&[]);
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    write!(
        stream,
        "POST /api/v1/org/acme/dataStores/create HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{{"
    )
    .unwrap();
    thread::sleep(Duration::from_millis(200));

    server.stop("-TERM");
}

#[test]
fn serve_keeps_its_data_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.sqlite");
    let data = ["--data", file.to_str().unwrap()];
    let first = Server::start(&data);
    assert_eq!(first.create_data_store("acme", &first.key, "Papers"), 204);
    let before = first.records(&["list", "data-stores"]);
    first.stop("-TERM");

    let second = Server::start(&data);

    assert_eq!(before.len(), 1);
    assert_eq!(second.records(&["list", "data-stores"]), before);
    assert_eq!(second.create_data_store("acme", &second.key, "Papers"), 204);
    assert_eq!(second.records(&["list", "data-stores"]), before);
}

#[test]
fn serve_says_what_is_wrong_when_it_cannot_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/data.sqlite");
    let no_database = folder.path().join("text");
    std::fs::write(
        &no_database,
        "this is no database, and long enough to be seen as none",
    )
    .unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let rows = [
        (
            ["--port", &port],
            format!("127.0.0.1:{port} is taken: choose another port with --port"),
        ),
        (
            ["--dynamodb-port", &port],
            format!("127.0.0.1:{port} is taken: choose another port with --dynamodb-port"),
        ),
        (
            ["--data", &text(&missing)],
            format!("cannot open the data file {}", text(&missing)),
        ),
        (
            ["--data", &text(&no_database)],
            format!("cannot open the data file {}", text(&no_database)),
        ),
    ];

    for (arguments, sentence) in rows {
        let free = ["--port", "--dynamodb-port"].into_iter();
        let free = free.filter(|option| *option != arguments[0]);
        let free: Vec<_> = free.flat_map(|option| [option, "0"]).collect();
        let mut serve = workspacectl(&["serve"]);
        let output = serve.args(arguments).args(free).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.starts_with("error: ") && error.contains(&sentence),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_organization_is_registered_once() {
    let server = Server::start(&[]);

    assert_eq!(server.run(&["orgs", "create", "globex"]), "globex\n");
    let first = server.records(&["orgs", "list"]);
    assert_eq!(server.run(&["orgs", "create", "globex"]), "globex\n");

    assert_eq!(server.records(&["orgs", "list"]), first);
    let ids: Vec<_> = first
        .iter()
        .map(|org| org["org_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["acme", "globex"]);
    let refused = server.output(&["orgs", "create", "no organization"]);
    assert!(!refused.status.success());
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("no organization id")
    );
}

#[test]
fn a_key_is_issued_works_and_is_revoked() {
    let server = Server::start(&[]);
    server.run(&["orgs", "create", "globex"]);

    let key = server.run(&[
        "keys",
        "create",
        "--org",
        "globex",
        "--label",
        "ci",
        "--expires",
        "90d",
    ]);
    let key = key.trim();

    assert_eq!(server.create_data_store("globex", key, "Papers"), 204);
    assert_eq!(server.create_data_store("acme", key, "Papers"), 403);
    let listed = server.records(&["keys", "list", "--org", "globex"]);
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0]["state"], &listed[0]["label"]),
        (&"active".into(), &"ci".into())
    );
    assert!(listed[0]["expires_at"].is_string() && listed[0]["secret_sha256"].is_null());
    assert!(!server.run(&["keys", "list", "--json"]).contains(&key[18..]));

    let id = listed[0]["key_id"].as_str().unwrap();
    server.run(&["keys", "revoke", id]);
    server.run(&["keys", "revoke", id]);
    assert_eq!(
        server.records(&["keys", "list", "--org", "globex"])[0]["state"],
        "revoked"
    );
}

#[test]
fn a_key_is_allowed_what_it_is_issued_for() {
    let server = Server::start(&[]);

    let key = server.run(&[
        "keys",
        "create",
        "--org",
        "acme",
        "--allow",
        "create_team,set_bot_voice",
    ]);

    assert_eq!(server.create_data_store("acme", key.trim(), "Papers"), 403);
    let unknown = server.output(&["keys", "create", "--org", "acme", "--allow", "delete_team"]);
    assert_eq!(unknown.status.code(), Some(2));
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("create_logging_instance"), "{error}");
}

#[test]
fn a_key_that_nobody_could_read_is_revoked() {
    let server = Server::start(&[]);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);

    for out in [Stdio::from(full), Stdio::from(closed)] {
        let output = workspacectl(&["keys", "create", "--org", "acme", "--label", "lost"])
            .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb)
            .stdout(out)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
    }

    let keys = server.records(&["keys", "list"]);
    let lost = keys.iter().filter(|key| key["label"] == "lost");
    assert_eq!(lost.clone().count(), 2);
    assert!(
        lost.clone().all(|key| key["state"] == "revoked"),
        "{keys:?}"
    );
}

#[test]
fn a_text_of_several_lines_is_listed_in_one() {
    let server = Server::start(&[]);
    let body = r#"{"dataStoreName":"a","dataStoreDescription":"one\ntwo\r\tthree"}"#;
    let (status, _) = server.post("/api/v1/org/acme/dataStores/create", "", body);
    assert_eq!(status, 204);

    let listed = server.run(&["list", "data-stores"]);

    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains(r"one\ntwo\r\tthree"), "{listed}");
}

#[test]
fn a_key_that_cannot_be_issued_or_revoked_is_explained() {
    let server = Server::start(&[]);
    let rows: [(&[&str], &str); 4] = [
        (
            &["keys", "create", "--org", "nobody"],
            "run `workspacectl orgs create nobody` first",
        ),
        (&["keys", "revoke", "nothing"], "there is no key nothing"),
        (
            &["keys", "create", "--org", "acme", "--expires", "soon"],
            "--expires",
        ),
        (
            &["keys", "create", "--org", "acme", "--expires", "9000y"],
            "after the year 9999",
        ),
    ];

    for (arguments, sentence) in rows {
        let output = server.output(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && error.contains(sentence),
            "{error}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_unreachable_deployment_is_named() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let endpoint = format!("http://{closed}");

    let output = workspacectl(&["orgs", "list"])
        .env("AWS_ENDPOINT_URL_DYNAMODB", &endpoint)
        .output()
        .unwrap();

    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error.contains(&endpoint) && error.contains("cargo serve"),
        "{error}"
    );
}

#[test]
fn tables_named_in_part_are_asked_for() {
    let output = workspacectl(&["orgs", "list"])
        .env("KEYS_TABLE", "some-table")
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap();

    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("ORGANIZATIONS_TABLE is not set"), "{error}");
}

/// What was acknowledged is there after the process was killed, however busy it was.
#[test]
fn serve_keeps_what_it_acknowledged_when_it_is_killed_under_load() {
    const KILLS: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.db");
    let file = file.to_str().unwrap();
    let mut acknowledged = Vec::new();
    for kill in 0..KILLS {
        let mut server = Server::start(&["--data", file]);
        let process = &mut server.process;
        let (url, key) = (&server.url, &server.key);
        let path = "/api/v1/org/acme/dataStores/create";
        let begun = AtomicBool::new(false);
        let begun = &begun;
        thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|client| {
                    scope.spawn(move || {
                        let mut created = Vec::new();
                        for number in 0.. {
                            let name = format!("store-{kill}-{client}-{number}");
                            match try_post(
                                url,
                                path,
                                key,
                                &format!(r#"{{"dataStoreName":"{name}"}}"#),
                            ) {
                                Ok(204) => {
                                    created.push(name);
                                    begun.store(true, Ordering::Relaxed);
                                }
                                Ok(status) => panic!("{status}"),
                                Err(_) => break,
                            }
                        }
                        created
                    })
                })
                .collect();
            let started = Instant::now();
            while !begun.load(Ordering::Relaxed) && started.elapsed() < Duration::from_secs(30) {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(20 * (kill as u64 % 7)));
            process.kill().unwrap();
            process.wait().unwrap();
            for client in clients {
                acknowledged.extend(client.join().unwrap());
            }
        });
        assert!(
            begun.load(Ordering::Relaxed),
            "nothing was written before the kill"
        );
    }

    let server = Server::start(&["--data", file]);
    let present = server.records(&["list", "data-stores", "--org", "acme"]);
    let present: std::collections::HashSet<_> = present
        .iter()
        .map(|record| record["data_store_id"].as_str().unwrap())
        .collect();
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|name| !present.contains(name.as_str()))
        .collect();
    println!(
        "{KILLS} kills, {} acknowledged, {} lost",
        acknowledged.len(),
        lost.len()
    );
    assert!(lost.is_empty(), "{lost:?}");
    server.stop("-TERM");
}

/// Sends a request; the response's status, or how the connection failed.
fn try_post(url: &str, path: &str, key: &str, body: &str) -> std::io::Result<u16> {
    let authorization = format!("Authorization: Bearer {key}\r\n");
    let response = exchange(url, &format!("POST {path}"), &authorization, body)?;
    status(&response).ok_or(std::io::ErrorKind::UnexpectedEof.into())
}

/// Sends a request on a connection of its own; the response.
fn exchange(url: &str, start: &str, headers: &str, body: &str) -> std::io::Result<String> {
    let host = url.strip_prefix("http://").unwrap();
    let length = body.len();
    let mut stream = TcpStream::connect(host)?;
    write!(
        stream,
        "{start} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

fn status(response: &str) -> Option<u16> {
    response.split(' ').nth(1)?.parse().ok()
}

#[test]
fn a_key_is_replaced_by_another_while_it_goes_on_working() {
    let server = Server::start(&[]);
    let of_acme = [
        "--org",
        "acme",
        "--label",
        "ci",
        "--expires",
        "90d",
        "--allow",
        "create_data_store",
    ];
    let old = server.run(&[&["keys", "create"], &of_acme[..]].concat());
    let keys = server.records(&["keys", "list"]);
    let ci = keys.iter().find(|key| key["label"] == "ci").unwrap();
    assert_eq!(ci["last_four"], old.trim()[old.trim().len() - 4..]);
    let id = ci["key_id"].as_str().unwrap();

    let rotated = server.run(&["keys", "rotate", id, "--overlap", "2s", "--json"]);

    let rotated: Value = serde_json::from_str(&rotated).unwrap();
    let new = rotated["key"].as_str().unwrap();
    assert_eq!(
        (&rotated["org_id"], &rotated["label"]),
        (&ci["org_id"], &ci["label"])
    );
    assert_eq!(rotated["operations"], ci["operations"]);
    let lifetime = |key: &Value| {
        let moment = |name: &str| humantime::parse_rfc3339(key[name].as_str().unwrap()).unwrap();
        moment("expires_at")
            .duration_since(moment("created_at"))
            .unwrap()
            .as_secs()
            / 86_400
    };
    assert_eq!(lifetime(&rotated), lifetime(ci));
    assert_eq!(server.create_data_store("acme", old.trim(), "Papers"), 204);
    assert_eq!(server.create_data_store("acme", new, "Books"), 204);
    thread::sleep(Duration::from_millis(2100));
    let of = |id: &Value| {
        let keys = server.records(&["keys", "list", "--org", "acme"]);
        keys.into_iter().find(|key| key["key_id"] == *id).unwrap()["state"].clone()
    };
    assert_eq!(of(&ci["key_id"]), "expired");
    assert_eq!(of(&rotated["key_id"]), "active");

    let refused = server.output(&["keys", "rotate", id]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && error.contains("revoked or expired"),
        "{error}"
    );
    let unknown = server.output(&["keys", "rotate", "nothing"]);
    assert!(
        String::from_utf8(unknown.stderr)
            .unwrap()
            .contains("there is no key nothing")
    );
}

#[test]
fn an_overlap_makes_no_key_live_longer() {
    let server = Server::start(&[]);
    server.run(&[
        "keys",
        "create",
        "--org",
        "acme",
        "--label",
        "short",
        "--expires",
        "1h",
    ]);
    let short = |server: &Server| {
        let keys = server.records(&["keys", "list"]);
        keys.into_iter()
            .filter(|key| key["label"] == "short")
            .collect::<Vec<_>>()
    };
    let before = short(&server).remove(0);

    server.run(&[
        "keys",
        "rotate",
        before["key_id"].as_str().unwrap(),
        "--overlap",
        "7d",
    ]);

    let after = short(&server);
    assert_eq!(after.len(), 2);
    assert!(after.contains(&before), "{after:?}");
}

#[test]
fn a_list_is_read_in_pages() {
    let server = Server::start(&[]);
    for number in 0..7 {
        let name = format!("Store {number}");
        assert_eq!(server.create_data_store("acme", &server.key, &name), 204);
    }
    let all = server.records(&["list", "data-stores"]);
    for scope in [
        &["list", "data-stores"][..],
        &["list", "data-stores", "--org", "acme"],
    ] {
        let mut read: Vec<Value> = Vec::new();
        let mut mark = None::<String>;
        loop {
            let after: Vec<_> = mark.iter().flat_map(|mark| ["--after", mark]).collect();
            let page = server.output(&[scope, &["--limit", "3", "--json"], &after].concat());
            assert!(page.status.success(), "{page:?}");
            let records: Vec<Value> = serde_json::from_slice(&page.stdout).unwrap();
            assert!(records.len() <= 3);
            read.extend(records);
            let told = String::from_utf8(page.stderr).unwrap();
            mark = told
                .split_once("--after ")
                .map(|(_, mark)| mark.trim().to_owned());
            if mark.is_none() {
                break;
            }
        }
        read.sort_by_key(|record| record["data_store_id"].to_string());
        assert_eq!(read, all);
    }

    let wrong = server.output(&["list", "data-stores", "--limit", "3", "--after", "nonsense"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        String::from_utf8(wrong.stderr)
            .unwrap()
            .contains("is no mark that a list gave")
    );
}

#[test]
fn a_moment_is_told_as_a_person_would() {
    let server = Server::start(&[]);
    server.run(&["keys", "create", "--org", "acme", "--expires", "90d"]);

    let keys = server.run(&["keys", "list"]);

    assert!(
        keys.contains("ago") && keys.contains("in 90 days"),
        "{keys}"
    );
}

#[test]
fn the_doctor_tells_what_is_well_and_what_is_not() {
    let server = Server::start(&[]);

    let well = server.output(&["doctor", "--url", &server.url, "--json"]);

    assert!(well.status.success(), "{well:?}");
    let findings: Vec<Value> = serde_json::from_slice(&well.stdout).unwrap();
    assert_eq!(findings.len(), 9);
    assert!(
        findings.iter().all(|finding| finding["state"] == "well"),
        "{findings:?}"
    );

    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let rows = [
        (format!("http://{nobody}"), "cannot be reached"),
        (
            server.dynamodb.clone(),
            "something else than this service answers",
        ),
    ];
    for (url, sentence) in rows {
        let sick = server.output(&["doctor", "--url", &url]);
        let told = String::from_utf8(sick.stdout).unwrap();
        assert_eq!(sick.status.code(), Some(1), "{told}");
        assert!(told.contains(sentence), "{told}");
    }

    let mut misnamed = workspacectl(&["doctor", "--json"]);
    for table in workspace_management::store::Table::ALL {
        misnamed.env(table.variable, "OrganizationsTable");
    }
    let sick = misnamed
        .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("KEYS_TABLE", "NoTable")
        .output()
        .unwrap();
    assert_eq!(sick.status.code(), Some(1));
    let findings: Vec<Value> = serde_json::from_slice(&sick.stdout).unwrap();
    let told = |table: &str| {
        let mut findings = findings.iter();
        findings
            .find(|finding| finding["looked_at"].as_str().unwrap().starts_with(table))
            .unwrap()
            .to_string()
    };
    assert!(told("OrganizationsTable").contains("well"));
    assert!(
        told("KeysTable").contains("ResourceNotFound"),
        "{}",
        told("KeysTable")
    );
    assert!(told("TeamsTable").contains("another than the template's"));
}

#[test]
fn what_is_missing_is_named_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let named = || {
        let mut command = workspacectl(&["orgs", "list"]);
        for table in workspace_management::store::Table::ALL {
            command.env(table.variable, table.logical_id);
        }
        command
            .env("HOME", folder.path())
            .env("AWS_EC2_METADATA_DISABLED", "true");
        command
    };
    let error =
        |command: &mut Command| String::from_utf8(command.output().unwrap().stderr).unwrap();

    let region = error(&mut named());
    assert!(region.contains("set AWS_REGION"), "{region}");
    let credentials = error(named().env("AWS_REGION", "us-east-1"));
    assert!(
        credentials.contains("No AWS credentials were found"),
        "{credentials}"
    );

    let server = Server::start(&[]);
    let mut missing = named();
    missing
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("ORGANIZATIONS_TABLE", "NoTable")
        .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb);
    let table = error(&mut missing);
    assert!(
        table.contains("NoTable") && table.contains("A table is not there"),
        "{table}"
    );
}

#[test]
fn every_command_speaks_json() {
    let server = Server::start(&[]);
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&server.run(&[arguments, &["--json"]].concat())).unwrap()
    };

    assert_eq!(json(&["orgs", "create", "globex"])["org_id"], "globex");
    assert!(json(&["orgs", "list"]).is_array());
    let key = json(&["keys", "create", "--org", "globex"]);
    assert_eq!(
        server.create_data_store("globex", key["key"].as_str().unwrap(), "Papers"),
        204
    );
    assert!(json(&["list", "data-stores"]).is_array());
    let revoked = json(&["keys", "revoke", key["key_id"].as_str().unwrap()]);
    assert_eq!(
        (&revoked["state"], &revoked["secret_sha256"]),
        (&"revoked".into(), &Value::Null)
    );

    let mut serve = workspacectl(&["--json", "serve", "--port", "0", "--dynamodb-port", "0"]);
    let mut serve = serve
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(serve.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    serve.kill().unwrap();
    serve.wait().unwrap();
    let served: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(served["requests"].as_array().unwrap().len(), 6);
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = workspacectl(&["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && script.contains("rotate"),
            "{shell}: {script}"
        );
    }
    let help = workspacectl(&["--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(
        help.contains("Examples:") && help.contains("Exit codes:"),
        "{help}"
    );
}

#[test]
fn serve_shows_a_page_that_asks_nothing_of_others() {
    let server = Server::start(&[]);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
    let get = |path: &str| {
        let response = exchange(&server.url, &format!("GET {path}"), "", "").unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        (head.to_owned(), body.to_owned())
    };

    let (head, page) = get("/");
    assert!(head.contains("default-src 'self'"), "{head}");
    assert!(page.contains(&server.key));
    for part in page.split('"').filter(|part| part.starts_with('/')) {
        get(part);
    }
    assert!(
        !page.contains("//") && page.contains("/viewer/swagger-ui-bundle.js"),
        "{page}"
    );
    let (_, contract) = get("/openapi.yaml");
    assert!(contract.contains("- url: /\n") && !contract.contains("127.0.0.1"));
    let (_, stored) = get("/stored");
    let stored: Value = serde_json::from_str(&stored).unwrap();
    for kind in stored.as_array().unwrap() {
        let listed = server.records(&["list", kind["kind"].as_str().unwrap()]);
        assert_eq!(kind["records"], Value::from(listed));
    }
    assert_eq!(stored.as_array().unwrap().len(), 6);
    // The operations are the service's, whatever the method.
    let response = exchange(
        &server.url,
        "GET /api/v1/org/acme/dataStores/create",
        "",
        "",
    )
    .unwrap();
    assert!(
        response.starts_with("HTTP/1.1 405") && response.contains("method_not_allowed"),
        "{response}"
    );
}
