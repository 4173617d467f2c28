//! `doctor`.

use std::{
    collections::BTreeSet,
    fs,
    process::Stdio,
    time::{Duration, SystemTime},
};

use axum::{Router, http::StatusCode};
use serde_json::{Value, json};
use test_support::{
    faults::DENIED,
    fixtures::{self, key_record},
    key_id, unique_key,
};
use workspace_local::demo::DEMO_KEY;
use workspace_management::{operations::Operation, records::Table};
use workspace_records::kinds::ALL_TABLES;

use crate::{
    AWS, assert_usage_error, network::Network, new_file, on_stack, server::Server, unused_url,
    workspacectl,
};

/// Runs `doctor` on the stack of a network. Returns its exit code and its rows.
fn check_stack(network: &Network, options: &str) -> (Option<i32>, Vec<Value>) {
    let url = network.listen(|_| None);
    let mut doctor = on_stack(&url, &format!("doctor --json {options}"));
    let output = doctor.output().unwrap();
    let checks = serde_json::from_slice(&output.stdout);
    let checks = checks.unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), checks)
}

/// The status and the detail of the first check whose name begins with this text.
fn find<'a>(checks: &'a [Value], name: &str) -> (&'a str, &'a str) {
    let text = |check: &'a Value, name: &str| check[name].as_str().unwrap();
    let mut checks = checks.iter();
    let found = checks.find(|check| text(check, "check").starts_with(name));
    let found = found.unwrap();
    (text(found, "status"), text(found, "detail"))
}

#[test]
fn a_stack_passes_every_check() {
    let network = Network::with_api();
    let put = |table, record| network.dynamodb.put(table, record);
    put(Table::ORGANIZATIONS, fixtures::organization("acme"));
    let globex = fixtures::disabled_organization("globex");
    put(Table::ORGANIZATIONS, globex);
    for (id, attribute, value) in [
        ("replaced0001", "replaced_by", json!("for7days0001")),
        ("for7days0001", "issued_for", json!(7 * 86_400)),
        ("disabled0001", "org_id", json!("globex")),
    ] {
        let mut key = expiring_key(id);
        key[attribute] = value;
        key["replaced_at"] = json!(fixtures::CREATED_AT);
        put(Table::API_KEYS, key);
    }

    let (code, checks) = check_stack(&network, "--strict");

    // With `--strict`, this means that every check is ok.
    assert_eq!(code, Some(0), "{checks:?}");
    let claim = "no key of an enabled organization will expire within 14 days without a \
        replacement. Keys issued for 14 days or less are not checked";
    assert_eq!(find(&checks, "API keys"), ("ok", claim));
    let url = &network.stack.outputs["ApiUrl"];
    find(&checks, &format!("API {url}"));
}

#[test]
fn a_local_service_passes_every_check() {
    let server = Server::start();

    let output = server.output(&format!("doctor --json --url {}", server.url));

    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checks.len(), ALL_TABLES.len() + 3);
    let is_ok = |check: &Value| check["status"] == "ok";
    assert!(checks.iter().all(is_ok), "{checks:?}");
    find(&checks, &format!("API {}", server.url));
    let notes = String::from_utf8(output.stderr).unwrap();
    let dynamodb = &server.dynamodb_url;
    let reads_only =
        "note: writes through the API were not checked: to check them, pass an API key";
    let expected = format!("checking local DynamoDB at {dynamodb}\n{reads_only}");
    assert!(notes.starts_with(&expected), "{notes}");
    assert!(!notes.contains("without --stack"), "{notes}");

    // The API at the default URL belongs to a different service.
    let error = format!("but at {dynamodb}: pass the URL with --url. `cargo serve` prints it");
    assert_usage_error(&server.output("doctor"), &error);
}

/// Only the 401 for an unknown key shows that the function reads its tables.
#[test]
fn any_different_response_of_the_api_is_a_failure_that_says_what_to_check() {
    let server = Server::start();
    let network = Network::new();
    let unauthenticated = |detail| json!({ "code": "unauthenticated", "detail": detail });
    let (unknown, none) = ("This API key is not accepted.", "No API key was sent.");
    #[rustfmt::skip] // keeps a table short
    let cases = [
        (401, "x-request-id", unauthenticated(none), "responds as if no API key was sent"),
        (401, "x-other", unauthenticated(unknown), "responds with 401, but the response is not from"),
        (500, "x-request-id", json!({ "code": "internal" }), "responds with 500, for example"),
        (503, "x-request-id", json!({ "code": "unavailable" }), "responds with 503, because"),
        (500, "x-other", json!({}), "responds with 500, but the response is not from"),
        (204, "x-request-id", Value::Null, "responds with 204, but the response is not from"),
    ];
    let mut urls = vec![(unused_url(), "cannot connect")];
    for (status, header, body, detail) in cases {
        let status = StatusCode::from_u16(status).unwrap();
        let respond = async move || (status, [(header, "id")], body.to_string());
        urls.push((network.serve(Router::new().fallback(respond)), detail));
    }
    for (url, detail) in urls {
        let output = server.output(&format!("doctor --json --url {url}"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let (status, actual) = find(&checks, "API http");
        assert!(status == "failed" && actual.starts_with(detail), "{actual}");
    }
}

/// A closed pipe alone is no failure.
#[test]
fn a_failed_check_is_a_failure_even_if_no_one_reads_the_output() {
    let server = Server::start();
    let mut doctor = server.command(&format!("doctor --url {}", unused_url()));
    let mut process = doctor.stdout(Stdio::piped()).spawn().unwrap();
    drop(process.stdout.take());
    assert_eq!(process.wait().unwrap().code(), Some(1));
}

/// Causes a problem of a stack.
type Change = fn(&mut Network);

#[test]
fn a_problem_of_a_stack_is_reported_and_a_warning_is_a_failure_only_with_strict() {
    let wrong_tables =
        "KEYS_TABLE is not set: it must be KeysTable; TEAMS_TABLE is ModelsTable instead of";
    let cases: [(&str, &str, &str, Change); 13] = [
        (
            "Function",
            "failed",
            "its timeout is 30 s instead of 10 s: see",
            |network| {
                network.stack.timeout = 30;
            },
        ),
        (
            "Stack",
            "failed",
            "UPDATE_ROLLBACK_FAILED: see `aws ",
            |network| {
                network.stack.status = "UPDATE_ROLLBACK_FAILED";
            },
        ),
        (
            "Stack",
            "warning",
            "UPDATE_ROLLBACK_COMPLETE: see",
            |network| {
                network.stack.status = "UPDATE_ROLLBACK_COMPLETE";
            },
        ),
        (
            "Log groups",
            "failed",
            "the log group LogGroup does not",
            |network| {
                network.stack.log_groups.remove("LogGroup");
            },
        ),
        (
            "Log groups",
            "failed",
            "the log group ApiLogGroup keeps its lines for 1 days instead of 30",
            |network| {
                network.stack.log_groups.insert("ApiLogGroup", 1);
            },
        ),
        (
            "Log groups",
            "failed",
            "the metric filter CheckFilter of LogGroup does not exist",
            |network| {
                network.stack.metric_filters.pop();
            },
        ),
        ("API", "failed", "the URL of the API", |network| {
            network.stack.outputs.remove("ApiUrl");
        }),
        // A request does not show this, because it reads two tables, and every table exists.
        ("Function", "failed", wrong_tables, |network| {
            network.stack.variables.insert("TEAMS_TABLE", "ModelsTable");
            network.stack.variables.remove("KEYS_TABLE");
        }),
        ("Termination protection", "warning", "off: run", |network| {
            network.stack.has_termination_protection = false;
        }),
        ("Alarm recipients", "warning", "none: the st", |network| {
            network.stack.outputs.remove("AlarmTopicArn");
        }),
        (
            "Alarm recipients",
            "warning",
            "no subscription is confirmed",
            |network| {
                network.stack.subscriptions = vec!["PendingConfirmation"];
            },
        ),
        ("API keys", "warning", "2 keys with", |network| {
            let acme = fixtures::organization("acme");
            network.dynamodb.put(Table::ORGANIZATIONS, acme);
            // The replacement of the first is revoked, and the second has none.
            for id in ["expires00001", "expires00002", "revoked00001"] {
                let mut key = expiring_key(id);
                match id {
                    "expires00001" => key["replaced_by"] = json!("revoked00001"),
                    "revoked00001" => key["revoked_at"] = json!(fixtures::CREATED_AT),
                    _ => {}
                }
                key["replaced_at"] = json!(fixtures::CREATED_AT);
                network.dynamodb.put(Table::API_KEYS, key);
            }
        }),
        (
            "API keys",
            "warning",
            "the key old000000001: its rotation was interrupted, so it does not expire: run",
            |network| {
                let acme = fixtures::organization("acme");
                network.dynamodb.put(Table::ORGANIZATIONS, acme);
                let mut old = json!(key_record(DEMO_KEY, "acme", "ci"));
                let mut new = old.clone();
                (old["key_id"], new["key_id"]) = (json!("old000000001"), json!("new000000001"));
                old["replaced_by"] = new["key_id"].clone();
                network.dynamodb.put(Table::API_KEYS, old);
                network.dynamodb.put(Table::API_KEYS, new);
            },
        ),
    ];
    for (check, expected, text, change) in cases {
        let mut network = Network::with_api();
        change(&mut network);
        let is_failure = i32::from(expected == "failed");
        let strict = if expected == "failed" { 1 } else { 3 };
        for (options, expected_code) in [("", is_failure), ("--strict", strict)] {
            let (code, checks) = check_stack(&network, options);
            let (status, detail) = find(&checks, check);
            let result = (status, code);
            assert_eq!(result, (expected, Some(expected_code)), "{checks:?}");
            assert!(detail.starts_with(text), "{detail}");
            let problems = checks.iter().filter(|check| check["status"] != "ok");
            assert_eq!(problems.count(), 1, "{checks:?}");
        }
    }
}

/// An API key of `acme` that expires soon.
fn expiring_key(id: &str) -> Value {
    let end = SystemTime::now() + Duration::from_secs(13 * 86_400);
    let mut key = json!(key_record(DEMO_KEY, "acme", "ci"));
    key["key_id"] = json!(id);
    key["expires_at"] = json!(humantime::format_rfc3339_seconds(end).to_string());
    key
}

/// The checks that are not ok, after a run with an API key of the organization `doctor`.
fn problems_with_key(network: &Network) -> Vec<Value> {
    let url = network.listen(|_| None);
    let mut doctor = on_stack(&url, "doctor --json --retry 0");
    let output = doctor.env("WORKSPACECTL_DOCTOR_KEY", DEMO_KEY).output();
    let mut checks: Vec<Value> = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(checks.len(), ALL_TABLES.len() + 8 + Operation::ALL.len());
    checks.retain(|check| check["status"] != "ok");
    checks
}

#[test]
fn with_a_key_each_operation_writes_and_a_write_that_is_denied_is_named() {
    let mut network = Network::with_api();
    let put = |table, record| network.dynamodb.put(table, record);
    put(Table::ORGANIZATIONS, fixtures::organization("doctor"));
    let mut key = json!(key_record(DEMO_KEY, "doctor", "doctor"));
    key["org_request_id"] = fixtures::organization("doctor")["request_id"].clone();
    put(Table::API_KEYS, key);

    let records = |network: &Network| {
        let tables = Table::ALL.iter();
        let records = tables.map(|table| network.dynamodb.records(*table));
        records.collect::<Vec<_>>()
    };
    assert_eq!(problems_with_key(&network), [] as [Value; 0]);
    let stored = records(&network);
    assert!(stored.iter().all(|records| !records.is_empty()));
    // A different bot could be a customer's.
    let voice = &network.dynamodb.records(Table::BOT_VOICES)[0];
    assert_eq!(voice["bot_id"], "doctor");
    assert_eq!(problems_with_key(&network), [] as [Value; 0]);
    assert_eq!(records(&network), stored);

    let mut failed_checks = BTreeSet::new();
    for table in &Table::ALL[2..] {
        let dynamodb = network.listen(|request| {
            let is_denied =
                !request.is_read() && request.body.to_string().contains(table.logical_id);
            is_denied.then_some(DENIED)
        });
        let url = network.serve_api(&dynamodb);
        network.stack.outputs.insert("ApiUrl", url);
        let problems = problems_with_key(&network);
        assert_eq!(problems.len(), 1, "{problems:?}");
        let detail = problems[0]["detail"].as_str().unwrap();
        let permission = detail.split_once("lacks a permission on ").unwrap().1;
        assert!(
            permission.split(' ').any(|word| word == table.logical_id),
            "{detail}"
        );
        failed_checks.insert(problems[0]["check"].to_string());
    }
    assert_eq!(failed_checks.len(), Operation::ALL.len());
}

#[test]
fn after_a_failed_check_of_the_api_and_with_the_key_of_a_customer_nothing_is_written() {
    let mut network = Network::with_api();
    let put = |table, record| network.dynamodb.put(table, record);
    put(Table::ORGANIZATIONS, fixtures::organization("acme"));
    put(Table::API_KEYS, json!(key_record(DEMO_KEY, "acme", "ci")));
    let run = |network: &Network| {
        let url = network.listen(|_| None);
        let mut doctor = on_stack(&url, "doctor --json --retry 0");
        let output = doctor.env("WORKSPACECTL_DOCTOR_KEY", DEMO_KEY).output();
        let checks: Vec<Value> = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        let (status, detail) = find(&checks, "API writes");
        (status.to_owned(), detail.to_owned())
    };
    let (status, detail) = run(&network);
    let expected = "the API key is of the organization acme: on a stack, use a key of";
    assert!(
        status == "failed" && detail.starts_with(expected),
        "{detail}"
    );

    network.stack.outputs.insert("ApiUrl", unused_url());
    let (status, detail) = run(&network);
    assert!(
        status == "skipped" && detail.starts_with("not sent, because"),
        "{detail}"
    );
    assert!(network.dynamodb.records(Table::TEAMS).is_empty());
}

#[test]
fn a_key_that_cannot_be_used_is_named_and_never_printed() {
    let server = Server::start();
    let (_folder, file) = new_file();
    fs::write(&file, "wsk_mistyped").unwrap();
    let line = format!("doctor --url {} --key-file {file}", server.url);
    let run = || {
        let output = server.output(&line);
        let text = [output.stdout, output.stderr].concat();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(text).unwrap()
    };
    assert!(run().contains("the API key is malformed: use the one"));
    let unknown = unique_key();
    fs::write(&file, format!("{unknown}\n")).unwrap();
    let text = run();
    let error = format!("there is no key {}", key_id(&unknown));
    assert!(text.contains(&error), "{text}");
    assert!(!text.contains(&unknown), "{text}");
}

/// As `echo`, editors, Windows and secret stores leave it.
#[test]
fn a_key_is_used_without_the_white_space_around_it() {
    let server = Server::start();
    let (_folder, file) = new_file();
    let line = format!("doctor --json --url {}", server.url);
    for (before, after) in [("", "\n"), ("", "\r"), (" ", " "), ("\u{feff}", "\r\n")] {
        let text = [before, DEMO_KEY, after].concat();
        fs::write(&file, &text).unwrap();
        let mut with_variable = server.command(&line);
        with_variable.env("WORKSPACECTL_DOCTOR_KEY", &text);
        let outputs = [
            with_variable.output().unwrap(),
            server.output(&format!("{line} --key-file {file}")),
            server.output_with_input(&format!("{line} --key-file -"), &text),
        ];
        for output in outputs {
            let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
            let count = ALL_TABLES.len() + 3 + Operation::ALL.len();
            assert_eq!(checks.len(), count, "{checks:?}");
            assert!(output.status.success(), "{text:?}: {checks:?}");
        }
        let checked = server.output_with_input("keys check -", &text);
        assert!(checked.status.success(), "{text:?}: {checked:?}");
    }
}

#[test]
fn a_check_that_was_skipped_is_a_failure_only_with_strict() {
    let network = Network::with_api();
    for action in [
        "DescribeLogGroups",
        "ListSubscriptionsByTopic",
        "Query",
        "Scan",
    ] {
        let url = network.listen(move |request| (request.action == action).then_some(DENIED));
        let output = on_stack(&url, "doctor --strict").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(": skipped: "), "{error}");
        assert!(error.contains("hint: Your AWS identity lacks"), "{error}");
        let output = on_stack(&url, "doctor").output().unwrap();
        assert!(output.status.success(), "{action}: {output:?}");
    }
}

#[test]
fn a_table_that_differs_from_the_template_fails() {
    let server = Server::start();
    let mut command = workspacectl("doctor --json");
    for table in Table::ALL {
        command.env(table.env_variable, "OrganizationsTable");
    }
    command.env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb_url);
    command.envs(AWS).env("KEYS_TABLE", "NoTable");
    let output = command.output().unwrap();

    assert_eq!(output.status.code(), Some(1));
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    for (check, status, detail) in [
        ("OrganizationsTable", "ok", "about "),
        ("API", "skipped", "the URL of the API is unknown: pass it"),
        ("KeysTable NoTable", "failed", "ResourceNotFoundException"),
        ("TeamsTable", "failed", "primary key differs from the"),
    ] {
        let found = find(&checks, check);
        let is_expected = found.0 == status && found.1.contains(detail);
        assert!(is_expected, "{check}: {found:?}");
    }
    let notes = String::from_utf8(output.stderr).unwrap();
    let unseen = "note: without --stack, the function (its variables and timeout), its logs";
    assert!(notes.contains(unseen), "{notes}");
}

/// A table that was restored from a backup lacks most settings.
#[test]
fn a_table_without_encryption_limits_and_an_active_index_fails() {
    let mut network = Network::with_api();
    network.stack.change_table = |table| {
        table["SSEDescription"].take();
        table["OnDemandThroughput"]["MaxWriteRequestUnits"] = json!(-1);
        if table["TableName"] == "TeamMembersTable" {
            let index = &mut table["GlobalSecondaryIndexes"][0];
            index["OnDemandThroughput"].take();
            index["IndexStatus"] = json!("CREATING");
        }
    };

    let (code, checks) = check_stack(&network, "");

    assert_eq!(code, Some(1));
    let problems = "its encryption does not use AWS KMS; its write units have no maximum";
    assert_eq!(find(&checks, "TeamsTable"), ("failed", problems));
    let problems = format!(
        "the status of its index by_user is CREATING; {problems}; \
         the write units of its index by_user have no maximum"
    );
    assert_eq!(find(&checks, "TeamMembersTable"), ("failed", &*problems));
}

/// As the replicas of a global table need it.
#[test]
fn a_table_may_have_a_change_stream_that_the_template_lacks() {
    let mut network = Network::with_api();
    network.stack.change_table = |table| {
        let stream = json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });
        table["StreamSpecification"] = stream;
    };
    assert_eq!(check_stack(&network, "--strict").0, Some(0));

    network.stack.change_table = |table| {
        table["StreamSpecification"]["StreamViewType"] = json!("KEYS_ONLY");
        table["StreamSpecification"]["StreamEnabled"] = json!(true);
    };
    let (_, checks) = check_stack(&network, "");
    assert_eq!(find(&checks, "KeysTable").0, "ok");
    let problem = "its change stream differs from the template";
    assert_eq!(find(&checks, "TeamsTable"), ("failed", problem));
}
