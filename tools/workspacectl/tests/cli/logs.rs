//! `logs` and `keys usage`.

use std::{
    io::{BufRead as _, BufReader, Lines},
    process::{Child, ChildStdout, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use test_support::{
    faults::{Fault, Phase},
    fixtures::{self, key_record},
    key_id, unique_key,
};
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;

use crate::{
    AWS, assert_fails, assert_usage_error, json_lines, network::Network, on_stack, server::Server,
    text, unused_url, workspacectl,
};

/// The id of the demo key.
const KEY_ID: &str = "acmeDemoKey1";

/// An event of a log group that is so many seconds old.
fn event(age: u64, mut fields: Value) -> Value {
    let time = SystemTime::now() - Duration::from_secs(age);
    if fields["message"] == "request" {
        fields["timestamp"] = json!(humantime::format_rfc3339_micros(time).to_string());
    }
    let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    json!({ "timestamp": time.as_millis() as u64, "message": fields.to_string() })
}

/// An event of the function's log, about a request with the demo key.
fn request(age: u64, id: &str, status: u64, others: Value) -> Value {
    let mut fields = json!({
        "level": "INFO", "message": "request", "operation": "create_team", "status": status,
        "caller_org_id": "acme", "org_id": "acme", "key_id": KEY_ID,
        "request_id": id, "lambda_request_id": format!("lambda-{id}"), "duration_ms": 1.5,
    });
    let others = others.as_object().into_iter().flatten();
    for (name, value) in others {
        fields[name] = value.clone();
    }
    event(age, fields)
}

/// An event of the API's log.
fn access(age: u64, id: &str, status: &str, error: &str) -> Value {
    event(
        age,
        json!({
            "request_id": id, "time": "29/Nov/2026:10:00:00 +0000", "ip": "192.0.2.7",
            "route": "POST /x", "status": status, "error": error,
        }),
    )
}

/// A network with an organization that has the demo key, and with logs.
fn network() -> Network {
    let network = Network::new();
    let put = |table, record| network.dynamodb.put(table, record);
    put(Table::ORGANIZATIONS, fixtures::organization("acme"));
    put(Table::API_KEYS, json!(key_record(DEMO_KEY, "acme", "ci")));
    let rejected = json!({
        "operation": "set_bot_voice", "code": "unauthenticated", "key_rejection": "wrong_secret",
        "caller_org_id": null, "org_id": null,
    });
    let mut foreign = rejected.clone();
    foreign["key_id"] = json!("globexKey001");
    let errors = json!({ "code": "invalid_body", "errors": "#/teamName required, #/x type" });
    let invalid = request(50, "second=", 422, errors);
    let panic = json!({ "message": "panicked", "request_id": "second=", "org_id": "acme" });
    let slow = json!({ "code": "unavailable", "cause": "\u{1b}[31mslow" });
    let pages = vec![
        vec![request(60, "first=", 204, json!({})), invalid.clone()],
        vec![],
        vec![
            // Twice, as after a retry of Lambda's.
            invalid,
            event(45, panic),
            request(40, "third=", 401, rejected),
            request(40, "foreign=", 401, foreign),
            request(30, "fourth=", 503, slow),
        ],
    ];
    let throttled = access(35, "throttled=", "429", "Too Many Requests");
    let second = access(50, "second=", "422", "-");
    let first = access(60, "first=", "204", "-");
    let api_pages = vec![vec![first, second.clone()], vec![], vec![second, throttled]];
    let mut logs = network.stack.logs.lock().unwrap();
    logs.pages.insert("LogGroup", pages);
    logs.pages.insert("ApiLogGroup", api_pages);
    drop(logs);
    network
}

/// Runs a command with `--json` on the stack, and returns its lines.
fn lines(network: &Network, line: &str) -> Vec<Value> {
    let url = network.listen(|_| None);
    let output = on_stack(&url, &format!("{line} --json")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    json_lines(text(&output.stdout))
}

/// Some fields of an object, as JSON.
fn fields(object: &Value, names: &str) -> String {
    let fields = names.split(' ').map(|name| object[name].to_string());
    Vec::from_iter(fields).join(" ")
}

fn ids(lines: &[Value]) -> Vec<&str> {
    let ids = lines.iter().map(|line| line["request_id"].as_str());
    ids.collect::<Option<_>>().unwrap()
}

#[test]
fn each_request_has_one_line_with_fields_of_both_logs() {
    let network = network();

    let all = lines(&network, "logs --org acme");

    assert_eq!(ids(&all), ["first=", "second=", "third=", "fourth="]);
    assert_eq!(
        fields(&all[0], "status ip error"),
        r#"204 "192.0.2.7" null"#
    );
    assert_eq!(
        fields(&all[1], "status ip level"),
        r#"422 "192.0.2.7" null"#
    );
    assert_eq!(fields(&all[2], "status ip"), "401 null");
    let time = all[1]["time"].as_str().unwrap();
    let time = humantime::parse_rfc3339(time).unwrap();
    assert_eq!(time.elapsed().unwrap().as_secs() / 10, 5);

    for (line, expected) in [
        ("logs --org acme --status 4xx", &["second=", "third="][..]),
        ("logs --org acme --status 5xx", &["fourth="]),
        ("logs --org acme --since 45s", &["third=", "fourth="]),
        ("logs --key acmeDemoKey1 --since 35s", &["fourth="]),
        ("logs --request second=", &["second="]),
        ("logs --request throttled=", &["throttled="]),
    ] {
        assert_eq!(ids(&lines(&network, line)), expected, "{line}");
    }
}

#[test]
fn the_text_has_the_pointers_of_a_422_and_no_secrets_or_control_characters() {
    let (network, sent) = (network(), Arc::new(Mutex::new(String::new())));
    let bodies = sent.clone();
    let url = network.listen(move |request| {
        *bodies.lock().unwrap() += &request.body.to_string();
        None
    });
    let command = |line: &str| on_stack(&url, line).output().unwrap();

    let output = command(&format!("logs --key {DEMO_KEY}"));

    let printed = text(&output.stdout);
    let words = |line: &str| Vec::from_iter(line.split_whitespace().skip(1)).join(" ");
    let rows: Vec<String> = printed.lines().map(words).collect();
    assert_eq!(
        rows[1],
        "422 create_team invalid_body acme/acmeDemoKey1 192.0.2.7 second= #/teamName required, #/x type"
    );
    assert_eq!(
        rows[2],
        "401 set_bot_voice unauthenticated -/acmeDemoKey1 - third= wrong_secret"
    );
    assert!(rows[3].ends_with(r"\u{1b}[31mslow"), "{printed}");
    let printed = [output.stdout, output.stderr].concat();
    let secret = &DEMO_KEY[20..40];
    assert!(!text(&printed).contains(secret) && !sent.lock().unwrap().contains(secret));

    let throttled = command("logs --request throttled=");
    let row = "429 - - -/- 192.0.2.7 throttled= Too Many Requests";
    assert_eq!(words(text(&throttled.stdout)), row);
}

#[test]
fn nothing_is_found_without_saying_why() {
    let network = network();
    let url = network.listen(|_| None);
    let run = |line: &str| on_stack(&url, line).output().unwrap();
    let error = "stack stack: the log of the last 30 days has no such request unknown=";
    assert_fails(&run("logs --request unknown="), error);
    for (line, error) in [
        ("logs --org globex", "there is no organization globex"),
        ("logs --key unknownKey01", "there is no key unknownKey01"),
    ] {
        assert_fails(&run(line), error);
    }
    let none = run("logs --org acme --since 1s");
    assert!(none.status.success() && none.stdout.is_empty());
    let note = "no requests in the last 1 second match the options";
    assert!(text(&none.stderr).contains(note), "{none:?}");

    for (line, error) in [
        ("logs", "--request <ID>|--key"),
        ("logs --org acme --key acmeDemoKey1", "cannot be used with"),
        (
            "logs --request a=\")||($.x=\"*",
            "give an id as in the header",
        ),
        ("logs --key wsk_mistyped", "the API key is incomplete"),
    ] {
        assert_usage_error(&run(line), error);
    }
    let mut named_tables = workspacectl("logs --key acmeDemoKey1");
    for table in Table::ALL {
        named_tables.env(table.env_variable, table.logical_id);
    }
    let output = named_tables.envs(AWS).output().unwrap();
    assert_usage_error(&output, "only a stack and the local service have a known");
}

#[test]
fn throttled_requests_are_retried() {
    let network = network();
    let throttle = Fault::Status(400, "ThrottlingException");
    let url = network.listen(move |request| {
        let is_early = request.service == "logs" && request.number < 7;
        is_early.then_some((throttle, Phase::BeforeExecution))
    });
    let output = on_stack(&url, "logs --org acme").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout).lines().count(), 4);
}

/// A running command, and the lines that it prints.
struct Running(Child, Option<Lines<BufReader<ChildStdout>>>);

impl Running {
    fn start(url: &str, line: &str) -> Self {
        let mut process = on_stack(url, line).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self(process, Some(lines))
    }

    fn next(&mut self) -> Value {
        let line = self.1.as_mut().unwrap().next();
        serde_json::from_str(&line.unwrap().unwrap()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_page_is_printed_before_the_next_one_is_read() {
    let network = network();
    let url = network.listen(|request| {
        let is_next_page =
            request.body["nextToken"] == "1" && request.body["logGroupName"] == "LogGroup";
        is_next_page.then_some((Fault::NoResponse, Phase::BeforeExecution))
    });
    let mut command = Running::start(&url, "logs --org acme --json");
    assert_eq!(command.next()["request_id"], "first=");
    assert_eq!(command.next()["request_id"], "second=");
}

#[test]
fn follow_prints_late_lines_once_and_ends_when_nobody_reads_them() {
    let network = network();
    let url = network.listen(|_| None);
    let mut command = Running::start(&url, "logs --key acmeDemoKey1 --follow --json");
    for id in ["first=", "second=", "third=", "fourth="] {
        assert_eq!(command.next()["request_id"], id);
    }
    let add = |group: &str, event: Value| {
        let mut logs = network.stack.logs.lock().unwrap();
        logs.pages.get_mut(group).unwrap()[0].push(event);
    };
    // The line is older than those that were printed, and its address comes later.
    add("LogGroup", request(55, "late=", 204, json!({})));
    add("LogGroup", request(0, "new=", 204, json!({})));
    let late = command.next();
    assert_eq!(fields(&late, "request_id ip"), r#""late=" null"#);
    add("ApiLogGroup", access(0, "new=", "204", "-"));
    let new = command.next();
    assert_eq!(fields(&new, "request_id ip"), r#""new=" "192.0.2.7""#);

    command.1 = None;
    add("LogGroup", request(11, "last=", 204, json!({})));
    assert!(command.0.wait().unwrap().success());
}

#[test]
fn the_use_of_a_key_is_counted_over_all_addresses() {
    let network = network();
    let other = unique_key();
    let record = json!(key_record(&other, "acme", "unused"));
    network.dynamodb.put(Table::API_KEYS, record);
    let row = |address: &str, requests: &str, last: &str| {
        json!({
            "used_key": KEY_ID, "address": address, "requests": requests, "errors": "1",
            "last_at": last,
        })
    };
    network.stack.logs.lock().unwrap().rows = vec![
        row("192.0.2.1", "40", "1767225600000"),
        row("192.0.2.2", "2.0", "1.7672256001E12"),
        row("192.0.2.3", "1", "1767225600000"),
        row("192.0.2.4", "1", "1767225600000"),
        // Requests without a line of the API.
        json!({ "used_key": KEY_ID, "requests": "1", "errors": "0", "last_at": "1767225600000" }),
        json!({ "used_key": "anonymous", "requests": "9" }),
    ];
    let url = network.listen(|_| None);

    let output = on_stack(&url, "keys usage --org acme --json")
        .output()
        .unwrap();

    let note = "note: requests are counted for at most LogRetentionDays (by default 30)";
    assert!(text(&output.stderr).starts_with(note), "{output:?}");
    let keys: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let find = |id: &str| keys.iter().find(|key| key["key_id"] == id).unwrap();
    let (used, unused) = (find(KEY_ID), find(&key_id(&other)));
    assert_eq!(keys.len(), 2);
    let names = "usage requests errors last_request_at secret_sha256";
    let expected = r#""used" 45 4 "2026-01-01T00:00:00.100Z" null"#;
    assert_eq!(fields(used, names), expected);
    assert_eq!(fields(unused, names), r#""unused" 0 0 null null"#);
    assert_eq!(used["addresses"].as_array().unwrap().len(), 4);
    let table = on_stack(&url, "keys usage").output().unwrap();
    let addresses = "192.0.2.1,192.0.2.2,192.0.2.3,and 1 more";
    assert!(text(&table.stdout).contains(addresses), "{table:?}");
}

#[test]
fn the_local_service_has_the_same_commands() {
    let server = Server::start();
    server.run("orgs create logged");
    let key = server.run("keys create --org logged");
    let (key, unused) = (key.trim(), server.run("keys create --org logged"));
    assert_eq!(server.create_data_store("logged", key, "Papers"), 204);
    let authorization = format!("Bearer {key}");
    let path = "/api/v1/org/logged/dataStores/create";
    let invalid = server.post(path, Some(&authorization), "{}");

    let lines = |line: &str| json_lines(&server.run(&format!("{line} --json")));
    let all = lines("logs --org logged");
    let status = |line: &Value| line["status"].as_u64().unwrap();
    assert_eq!(all.iter().map(status).collect::<Vec<_>>(), [204, 422]);
    assert!(all.iter().all(|line| line["ip"] == "127.0.0.1"));
    let id = invalid.headers["x-request-id"].to_str().unwrap();
    let found = lines(&format!("logs --request {id}"));
    assert_eq!(found, all[1..]);
    assert_eq!(found[0]["errors"], "#/dataStoreName required");
    assert_eq!(lines(&format!("logs --key {key} --status 4xx")), found);
    let unused = format!("logs --key {}", key_id(unused.trim()));
    assert!(lines(&unused).is_empty());

    let keys = server.records("keys usage --org logged");
    let uses = keys
        .iter()
        .map(|key| fields(key, "requests errors addresses"));
    let mut uses = Vec::from_iter(uses);
    uses.sort();
    assert_eq!(uses, ["0 0 []", r#"2 1 ["127.0.0.1"]"#]);

    let mut command = workspacectl("logs --key acmeDemoKey1");
    for (url, error) in [
        (&unused_url(), "run `cargo serve` first"),
        (&server.url, "there is no log, because this is not"),
    ] {
        let output = command.env("AWS_ENDPOINT_URL_DYNAMODB", url).output();
        assert_fails(&output.unwrap(), error);
    }
}
