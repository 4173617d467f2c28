//! The lines that the function logs.

use serde_json::{Value, json};
use test_support::{TestApp, TestClient, event, fixtures, key_id, keys_with_same_id, unique_key};
use workspace_local::runtime_api::TRACE_ID;
use workspace_management::records::{ApiKeyRecord, Table};

use crate::function::{Function, PATH, create_papers};

#[tokio::test]
async fn each_request_logs_one_line_with_every_field() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.client(&key);
    let mut function = Function::start(&app, &[]).await;

    let response = function.invoke(&create_papers(&acme)).await;
    response.assert_success();
    let empty_body = event("POST", PATH, &acme.headers, Some("{}"));
    let response = function.invoke(&empty_body).await;
    response.assert_problem(422, "invalid_body");
    app.delete_table(Table::DATA_STORES).await;
    let response = function.invoke(&create_papers(&acme)).await;
    response.assert_problem(500, "internal");

    let log = function.log().await;
    let expected = [
        json!({ "level": "INFO", "status": 204, "code": null, "cold_start": true }),
        json!({ "level": "INFO", "status": 422, "code": "invalid_body", "cold_start": false }),
        json!({ "level": "ERROR", "status": 500, "code": "internal", "cold_start": false }),
    ];
    assert_fields(&log, &expected);
    for line in &log {
        assert_eq!(line["message"], "request", "{line}");
        assert_eq!(line["operation"], "create_data_store", "{line}");
        assert_eq!(line["caller_org_id"], "acme", "{line}");
        assert_eq!(line["key_id"], key_id(&key), "{line}");
        assert_eq!(line["request_id"], "gateway-request", "{line}");
        assert_eq!(line["lambda_request_id"], "invocation", "{line}");
        assert_eq!(line["trace_id"], TRACE_ID, "{line}");
        assert!(line["duration_ms"].as_f64().unwrap() > 0.0, "{line}");
        assert!(line["timestamp"].is_string(), "{line}");
    }
    let cause = log[2]["cause"].as_str().unwrap();
    assert!(cause.contains("ResourceNotFoundException"), "{cause}");
}

/// Without credentials, the SDK looks for a profile when it first needs one.
#[tokio::test]
async fn a_warning_of_the_sdk_has_the_ids_of_the_request() {
    let app = TestApp::new().await;
    let variables = [
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_CONFIG_FILE", "/no/such/file"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    let mut function = Function::start(&app, &variables).await;

    let response = function
        .invoke(&create_papers(&app.anonymous_client()))
        .await;
    assert!(response.status >= 500, "{response:?}");

    let log = function.log().await;
    assert!(log.len() > 1, "{log:?}");
    for warning in &log[..log.len() - 1] {
        assert_eq!(warning["level"], "WARN");
        assert_eq!(warning["request_id"], "gateway-request", "{warning}");
        assert_eq!(warning["lambda_request_id"], "invocation", "{warning}");
    }
}

/// Sends requests to a function. Returns the log: one line for each request.
async fn logged(app: &TestApp, requests: &[(&TestClient<'_>, &str, Value)]) -> Vec<Value> {
    let mut function = Function::start(app, &[]).await;
    for (client, path, body) in requests {
        let event = event("POST", path, &client.headers, Some(&body.to_string()));
        function.invoke(&event).await;
    }
    let log = function.log().await;
    assert_eq!(log.len(), requests.len(), "{log:?}");
    log
}

/// Checks these fields of each log line. Null means that the line does not have the field.
#[track_caller]
fn assert_fields(log: &[Value], expected: &[Value]) {
    assert_eq!(log.len(), expected.len(), "{log:?}");
    for (line, fields) in log.iter().zip(expected) {
        for (field, value) in fields.as_object().unwrap() {
            assert_eq!(line[field], *value, "{field} of {line}");
        }
    }
}

#[tokio::test]
async fn a_line_shows_which_records_a_request_was_about_and_why_it_was_rejected() {
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
            (&acme, create_team, json!({ "teamName": "Secret." })),
            (&acme, add_users, json!({ "usersAddingToTeam": users })),
            (&acme, add_models, json!({})),
        ],
    )
    .await;

    let expected = [
        json!({ "status": 204, "reason": null, "org_id": "acme", "project_id": "apollo",
            "team_id": null, "entries": null }),
        json!({ "status": 409, "reason": "other_name", "resource_id": "secret" }),
        json!({ "status": 204, "team_id": "secret", "entries": 2 }),
        json!({ "status": 403, "caller_org_id": "acme", "org_id": "globex", "model_type": "chat" }),
    ];
    assert_fields(&log, &expected);
}

#[tokio::test]
async fn a_line_shows_which_part_of_a_request_was_invalid_but_not_the_value() {
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
    assert_fields(&log, &expected);
    assert!(!json!(log).to_string().contains("Grace"), "{log:?}");
}

#[tokio::test]
async fn a_line_shows_why_a_credential_is_rejected_and_the_id_of_a_well_formed_key() {
    let app = TestApp::new().await;
    let [revoked, wrong_secret] = keys_with_same_id();
    app.insert_key(&revoked, "acme", |_| {}).await;
    app.revoke_key(&revoked).await;
    let issue = |change: fn(&mut ApiKeyRecord)| app.issue_key("acme", change);
    let expired = issue(|key| key.expires_at = Some("2026-01-01T00:00:00Z".to_owned())).await;
    let earlier = issue(|key| key.registration_id = Some("earlier".to_owned())).await;
    let unknown = unique_key();
    let malformed = &revoked[..revoked.len() - 1];
    let cases = [
        (revoked.as_str(), "revoked", Some(key_id(&revoked))),
        (&wrong_secret, "wrong_secret", Some(key_id(&revoked))),
        (&expired, "expired", Some(key_id(&expired))),
        (&earlier, "wrong_registration", Some(key_id(&earlier))),
        (&unknown, "unknown", Some(key_id(&unknown))),
        (malformed, "malformed", None),
        ("", "none", None),
    ];
    let mut clients = cases.clone().map(|(key, ..)| app.client(key)).to_vec();
    let invalid_headers = [
        ("Basic", "malformed"),
        ("Bearer Bearer", "malformed"),
        ("Basic YTpi", "unsupported_scheme"),
        (r#"Digest uri="a,b", c=d"#, "unsupported_scheme"),
        // as payload 2.0 joins the values of repeated headers
        (",", "several_headers"),
        ("Bearer a,Bearer a", "several_headers"),
        ("a, a", "several_headers"),
        ("Basic YTo=,Bearer a", "several_headers"),
        ("Bearer a,YTo=", "several_headers"),
        ("Bearer a,Basic\tYTpiYw==", "several_headers"),
        ("Bearer a,Basic YTo=", "several_headers"),
    ];
    for (header, _) in invalid_headers {
        clients.push(app.anonymous_client().header("authorization", header));
    }
    let path = "/api/v1/bot/playground/bot-7/voice";
    let requests: Vec<_> = clients.iter().map(|it| (it, path, json!({}))).collect();

    let log = logged(&app, &requests).await;

    let mut expected = cases.map(|(_, credential, id)| {
        json!({ "status": 401, "key_rejection": credential, "key_id": id, "bot_id": "bot-7",
            "caller_org_id": null })
    });
    // A key of an earlier registration belongs to a known organization.
    expected[3]["caller_org_id"] = json!("acme");
    let (with_keys, others) = log.split_at(expected.len());
    assert_fields(with_keys, &expected);
    let expected = invalid_headers.map(|(_, rejection)| json!({ "key_rejection": rejection }));
    assert_fields(others, &expected);
}

#[tokio::test]
async fn a_line_has_the_reason_that_the_response_does_not_tell() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let mut marked = fixtures::team("acme", "apollo", "docs", "Docs");
    marked["removing_id"] = json!(fixtures::RANDOM_ID);
    app.insert(Table::TEAMS, marked).await;
    let initech = fixtures::disabled_organization("initech");
    app.insert(Table::ORGANIZATIONS, initech).await;
    let anonymous = app.anonymous_client();
    let users = |team| format!("/api/v1/project/acme/apollo/{team}/addUsersToTheTeam");
    let data_store = |organization| PATH.replace("acme", organization);
    let user = r#"{ "usersAddingToTeam": [{ "userid": "ada" }] }"#;
    let invalid = "It is invalid at line 1, column 2.";
    let cases = [
        (&anonymous, data_store("absent"), "{}", "not_registered"),
        (&anonymous, data_store("initech"), "{}", "disabled"),
        (&acme, users("absent"), user, "not_found"),
        (&acme, users("docs"), user, "being_removed"),
        (&acme, users("docs"), "", "It is empty."),
        (&acme, users("docs"), "{x", invalid),
    ];
    let mut function = Function::start(&app, &[]).await;
    for (client, path, body, _) in &cases {
        let event = event("POST", path, &client.headers, Some(body));
        function.invoke(&event).await;
    }
    let log = function.log().await;

    for (line, (_, path, _, reason)) in log.iter().zip(&cases) {
        assert_eq!(line["reason"], **reason, "{path}: {line}");
    }
}
