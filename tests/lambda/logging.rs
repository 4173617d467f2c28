//! The function's log.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::{TestApp, TestClient, event, fixtures, key_id, keys_with_same_id, unique_key};
use workspace_local::runtime_api::TRACE_ID;
use workspace_management::{api_key::KeyRecord, store::Table};

use crate::function::{Function, PATH, create_papers};

#[tokio::test]
async fn each_request_logs_one_line_with_every_field() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.with_key(&key);
    let mut function = Function::start(&app, &[]).await;

    let response = function.invoke(create_papers(&acme)).await;
    response.assert_success();
    let empty_body = event("POST", PATH, &acme.headers, Some("{}"));
    let response = function.invoke(empty_body).await;
    response.assert_problem(422, "invalid_body");
    app.delete_table(Table::DATA_STORES).await;
    let response = function.invoke(create_papers(&acme)).await;
    response.assert_problem(500, "internal");
    let other_path = PATH.replace("acme", "globex");
    let other_organization = event("POST", &other_path, &acme.headers, Some("{}"));
    let response = function.invoke(other_organization).await;
    response.assert_problem(403, "other_organization");

    let log = function.log().await;
    assert_eq!(log.len(), 4, "{log:?}");
    let expected = [
        json!({ "level": "INFO", "status": 204, "code": null, "cold_start": true }),
        json!({ "level": "INFO", "status": 422, "code": "invalid_body", "cold_start": false }),
        json!({ "level": "ERROR", "status": 500, "code": "internal", "cold_start": false }),
        json!({
            "level": "INFO",
            "status": 403,
            "code": "other_organization",
            "cold_start": false,
        }),
    ];
    for (line, expected) in log.iter().zip(expected) {
        assert_fields(line, expected);
        assert_common_fields(line, &key);
    }
    let cause = log[2]["cause"].as_str().unwrap();
    assert!(cause.contains("ResourceNotFoundException"), "{cause}");
}

/// Sends requests to a function. Returns the lines of its log.
async fn logged(app: &TestApp, requests: &[(&TestClient<'_>, &str, Value)]) -> Vec<Value> {
    let mut function = Function::start(app, &[]).await;
    for (client, path, body) in requests {
        let event = event("POST", path, &client.headers, Some(&body.to_string()));
        function.invoke(event).await;
    }
    let log = function.log().await;
    assert_eq!(log.len(), requests.len(), "{log:?}");
    log
}

/// Checks some fields of a line. Null means that the line does not have the field.
#[track_caller]
fn assert_fields(line: &Value, fields: Value) {
    for (field, value) in fields.as_object().unwrap() {
        assert_eq!(line[field], *value, "{field} of {line}");
    }
}

#[tokio::test]
async fn a_line_shows_which_records_were_asked_for_and_why_the_request_was_rejected() {
    let app = TestApp::new().await;
    app.register("globex").await;
    let acme = app.client_with_new_key("acme").await;
    let create_team = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let add_users = "/api/v1/project/acme/apollo/secret/addUsersToTheTeam";
    let add_models = "/api/v1/org/globex/addModelsToOrg/chat";
    let users = json!([{ "userid": "ada" }, { "userid": "ada" }, { "userid": "grace" }]);

    let log = logged(
        &app,
        &[
            (&acme, create_team, json!({ "teamName": "Secret" })),
            (&acme, create_team, json!({ "teamName": "Secret!" })),
            (&acme, add_users, json!({ "usersAddingToTeam": users })),
            (&acme, add_models, json!({})),
        ],
    )
    .await;

    assert_fields(
        &log[0],
        json!({ "status": 204, "reason": null, "org_id": "acme", "project_id": "apollo",
            "team_id": null, "entries": null }),
    );
    assert_fields(
        &log[1],
        json!({ "status": 409, "reason": "other_name", "resource_id": "secret" }),
    );
    assert_fields(
        &log[2],
        json!({ "status": 204, "team_id": "secret", "entries": 2 }),
    );
    assert_fields(
        &log[3],
        json!({ "status": 403, "organization": "acme", "org_id": "globex", "model_type": "chat" }),
    );
}

#[tokio::test]
async fn a_line_shows_which_part_of_a_request_was_invalid_without_its_value() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let acme = app.client_with_new_key("acme").await;
    let create_team = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let add_users = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    let team = json!({ "teamName": 1, "teamDescription": "x".repeat(1001) });
    let users = json!({ "usersAddingToTeam": vec![json!({ "userid": " Grace" }); 6] });
    let unknown = format!("/api/v1/teams/\u{202e}wsk_/{}", "x".repeat(100));
    let long = format!("/{}", "x".repeat(101));

    let log = logged(
        &app,
        &[
            (&acme, create_team, team),
            (&acme, add_users, users),
            (&acme, "/api/v1/org/../dataStores/create", json!({})),
            (&acme, &unknown, json!({})),
            (&acme, &long, json!({})),
            (&acme, create_team, json!({ "teamName": "Docs" })),
        ],
    )
    .await;

    let first_5 = [0, 1, 2, 3, 4].map(|i| format!("#/usersAddingToTeam/{i}/userid pattern"));
    let expected = [
        json!({ "errors": "#/teamDescription maxLength, #/teamName type", "parameter": null }),
        json!({ "errors": first_5.join(", ") }),
        json!({ "status": 400, "parameter": "org_id", "errors": null, "path": null }),
        json!({ "code": "no_such_path", "path": r"/api/v1/teams/\u{202e}" }),
        json!({ "path": long[..100] }),
        json!({ "status": 204, "parameter": null, "errors": null, "path": null }),
    ];
    for (line, expected) in log.iter().zip(expected) {
        assert_fields(line, expected);
        assert!(!line.to_string().contains("Grace"), "{line}");
    }
}

#[tokio::test]
async fn a_line_shows_why_a_credential_is_rejected_and_the_id_of_a_well_formed_key() {
    let app = TestApp::new().await;
    let [revoked, other_secret] = keys_with_same_id();
    app.insert_key(&revoked, "acme", |_| {}).await;
    app.revoke_key(&revoked).await;
    let issue = |change: fn(&mut KeyRecord)| app.issue_key("acme", change);
    let expired = issue(|key| key.expires_at = Some("2026-01-01T00:00:00Z".to_owned())).await;
    let other = issue(|key| key.org_request_id = Some("an earlier one".to_owned())).await;
    let (unknown, malformed) = (unique_key(), &revoked[..revoked.len() - 1]);
    let rows = [
        (revoked.as_str(), "revoked", Some(key_id(&revoked))),
        (&other_secret, "wrong_secret", Some(key_id(&revoked))),
        (&expired, "expired", Some(key_id(&expired))),
        (&other, "other_registration", Some(key_id(&other))),
        (&unknown, "unknown", Some(key_id(&unknown))),
        (malformed, "malformed", None),
        ("", "none", None),
    ];
    let clients = rows.clone().map(|(key, ..)| app.with_key(key));
    let path = "/api/v1/bot/playground/bot-7/voice";
    let requests: Vec<_> = clients.iter().map(|it| (it, path, json!({}))).collect();

    let log = logged(&app, &requests).await;

    for (line, (_, credential, id)) in log.iter().zip(rows) {
        // The holder of a key of an earlier registration is known.
        let organization = (credential == "other_registration").then_some("acme");
        let expected = json!({
            "status": 401, "credential": credential, "key_id": id, "bot_id": "bot-7",
            "organization": organization,
        });
        assert_fields(line, expected);
    }
}

#[tokio::test]
async fn a_line_has_the_reason_that_a_response_hides() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let mut marked = fixtures::team("acme", "apollo", "docs", "Docs");
    marked["removing_id"] = json!(fixtures::RANDOM_ID);
    app.insert(Table::TEAMS, marked).await;
    let initech = fixtures::disabled_organization("initech");
    app.insert(Table::ORGANIZATIONS, initech).await;
    let (anonymous, basic) = (
        app.anonymous(),
        acme.clone().header("authorization", "Basic YTpi"),
    );
    let users = |team| format!("/api/v1/project/acme/apollo/{team}/addUsersToTheTeam");
    let data_store = |organization| PATH.replace("acme", organization);
    let user = r#"{ "usersAddingToTeam": [{ "userid": "ada" }] }"#;
    let rows = [
        (&anonymous, data_store("absent"), "{}", "not_registered"),
        (&anonymous, data_store("initech"), "{}", "disabled"),
        (&acme, users("absent"), user, "not_found"),
        (&acme, users("docs"), user, "being_removed"),
        (&acme, users("docs"), "", "It is empty."),
        (
            &acme,
            users("docs"),
            "{x",
            "It is invalid at line 1, column 2.",
        ),
    ];
    let mut function = Function::start(&app, &[]).await;
    for (client, path, body, _) in &rows {
        let event = event("POST", path, &client.headers, Some(body));
        function.invoke(event).await;
    }
    let event = event("POST", PATH, &basic.headers, Some("{}"));
    function.invoke(event).await;
    let log = function.log().await;

    for (line, (_, path, _, reason)) in log.iter().zip(&rows) {
        assert_eq!(line["reason"], **reason, "{path}: {line}");
    }
    let expected = json!({ "status": 401, "credential": "other_scheme" });
    assert_fields(log.last().unwrap(), expected);
}

/// Checks the fields that the requests of a client with this API key have in common.
fn assert_common_fields(line: &Value, key: &str) {
    assert_eq!(line["operation"], "create_data_store", "{line}");
    assert_eq!(line["organization"], "acme", "{line}");
    assert_eq!(line["key_id"], key_id(key), "{line}");
    assert_eq!(line["request_id"], "gateway-request", "{line}");
    assert_eq!(line["trace_id"], TRACE_ID, "{line}");
    assert!(line["duration_ms"].as_f64().unwrap() > 0.0, "{line}");
    assert!(line["timestamp"].is_string(), "{line}");
    let text = line.to_string();
    assert!(!text.contains(key) && !text.contains("Papers"), "{text}");
}

#[tokio::test]
async fn the_log_contains_every_field_that_the_runbook_queries() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let (acme, anonymous) = (app.client_with_new_key("acme").await, app.anonymous());
    let team = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let users = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    app.delete_table(Table::DATA_STORES).await;

    let log = logged(
        &app,
        &[
            (&acme, PATH, json!({ "dataStoreName": "Papers" })), // has a cause
            (
                &acme,
                users,
                json!({ "usersAddingToTeam": [{ "userid": "ada" }] }),
            ), // has entries
            (&acme, team, json!({ "teamName": "Research Team!" })), // has a reason
            (&acme, team, json!({})),                            // has errors
            (&acme, "/api/v1/org/../dataStores/create", json!({})), // has a parameter
            (&acme, "/api/v2", json!({})),                       // has a path
            (&anonymous, team, json!({})),                       // has a credential
        ],
    )
    .await;

    let members: BTreeSet<_> = log
        .iter()
        .flat_map(|line| line.as_object().unwrap().keys())
        .collect();
    let fields: BTreeSet<_> = runbook_queries().flat_map(queried_fields).collect();
    assert!(fields.len() > 8, "{fields:?}");
    for field in fields {
        assert!(
            members.contains(&field.to_owned()),
            "a query in docs/operations.md uses {field}, which the log does not contain"
        );
    }
}

/// The queries of the function's log in `docs/operations.md`. Each is one line.
fn runbook_queries() -> impl Iterator<Item = &'static str> {
    let runbook = include_str!("../../docs/operations.md");
    let (_, queries) = runbook.split_once("# A request, by the").unwrap();
    let (queries, _) = queries.split_once("```").unwrap();
    // The last query is for the log of API Gateway, which has other fields.
    let (queries, api_query) = queries.split_once("in the API's log:").unwrap();
    assert!(api_query.contains("by ip"));
    queries.lines().filter(|line| line.starts_with("filter "))
}

/// The fields in a query: its words, except strings and the words of the query language.
fn queried_fields(query: &str) -> impl Iterator<Item = &str> {
    const KEYWORDS: &[&str] = &[
        "and", "as", "by", "desc", "display", "filter", "in", "like", "limit", "or", "sort",
        "stats",
    ];
    const FUNCTIONS: &[&str] = &["count", "ispresent", "latest", "max", "pct", "sum"];
    /// Names that the queries give to their results.
    const ALIASES: &[&str] = &["requests", "total", "why"];
    let reserved = [KEYWORDS, FUNCTIONS, ALIASES].concat();
    let is_separator =
        |character: char| !character.is_ascii_alphabetic() && !"_@".contains(character);
    let outside_strings = query.split('"').step_by(2);
    let words = outside_strings.flat_map(move |text| text.split(is_separator));
    // CloudWatch adds the fields that begin with `@`.
    words.filter(move |word| !word.is_empty() && !word.starts_with('@') && !reserved.contains(word))
}
