//! `create_team`.

use serde_json::{Value, json};
use workspace_management::store::Table;

use super::{Sample, Stored, Values, Write};
use crate::support::{TestApp, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

/// A sample for the tests that cover every operation.
pub fn sample(values: &Values) -> Sample {
    let (name, description) = (&values.name, &values.description);
    let key = json!({ "project": "acme#apollo", "team_id": name.to_lowercase() });
    let content = json!({ "team_name": name.trim(), "team_description": description });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "teamName": name, "teamDescription": description }),
        records: vec![Stored::new(Table::TEAMS, key, content)],
        write: Write::Create,
        requires: None,
    }
}

#[tokio::test]
async fn create_team_writes_the_record_under_the_slug_of_its_name() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;

    let response = app
        .with_key(&key)
        .post(
            PATH,
            json!({ "teamName": "  My TEam Näme ", "teamDescription": "One\nline\tmore" }),
        )
        .await;

    response.assert_success();
    assert_eq!(response.headers["x-request-id"], "gateway-request");
    let team = app.only_record(Table::TEAMS).await;
    assert_eq!(team["project"], "acme#apollo");
    assert_eq!(team["team_id"], "my-team-name");
    assert_eq!(team["team_name"], "My TEam Näme");
    assert_eq!(team["team_description"], "One\nline\tmore");
    assert_created_by(&team, &key_id(&key));
}

#[tokio::test]
async fn create_team_takes_an_absent_and_a_null_description_as_empty() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;

    acme.post(PATH, json!({ "teamName": "Absent" }))
        .await
        .assert_success();
    acme.post(PATH, json!({ "teamName": "Null", "teamDescription": null }))
        .await
        .assert_success();

    let teams = app.records(Table::TEAMS).await;
    assert_eq!(teams.len(), 2);
    assert!(
        teams.iter().all(|team| team["team_description"] == ""),
        "{teams:?}"
    );
}

#[tokio::test]
async fn create_team_changes_nothing_when_it_is_repeated() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    let body = json!({ "teamName": "Research", "teamDescription": "Reads" });
    acme.post(PATH, body.clone()).await.assert_success();
    let first = app.only_record(Table::TEAMS).await;

    acme.post(PATH, body).await.assert_success();

    assert_eq!(app.only_record(Table::TEAMS).await, first);
}

#[tokio::test]
async fn create_team_refuses_a_name_that_is_taken() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    acme.post(
        PATH,
        json!({ "teamName": "Research", "teamDescription": "Reads" }),
    )
    .await
    .assert_success();
    let first = app.only_record(Table::TEAMS).await;

    let another_description = json!({ "teamName": "Research", "teamDescription": "Writes" });
    acme.post(PATH, another_description)
        .await
        .assert_problem(409, "name_taken");
    let another_name_of_the_same_slug =
        json!({ "teamName": "research!", "teamDescription": "Reads" });
    acme.post(PATH, another_name_of_the_same_slug)
        .await
        .assert_problem(409, "name_taken");
    let another_caller = app.key_holder("acme").await;
    let the_same = json!({ "teamName": "Research", "teamDescription": "Reads" });
    another_caller
        .post(PATH, the_same)
        .await
        .assert_problem(409, "name_taken");

    assert_eq!(app.only_record(Table::TEAMS).await, first);
}

#[tokio::test]
async fn create_team_keeps_projects_and_organizations_apart() {
    let app = TestApp::new().await;
    app.register("globex").await;
    let acme = app.key_holder("acme").await;
    let globex = app.with_key(&app.issue_key("globex", |_| {}).await);
    let body = json!({ "teamName": "Research" });

    acme.post(PATH, body.clone()).await.assert_success();
    acme.post(
        "/api/v1/project/acme/gemini/createNewTeamOnProject",
        body.clone(),
    )
    .await
    .assert_success();
    globex
        .post("/api/v1/project/globex/apollo/createNewTeamOnProject", body)
        .await
        .assert_success();

    let projects: Vec<Value> = app
        .records(Table::TEAMS)
        .await
        .into_iter()
        .map(|team| team["project"].clone())
        .collect();
    assert_eq!(projects, ["acme#apollo", "acme#gemini", "globex#apollo"]);
}

#[tokio::test]
async fn create_team_ignores_fields_it_does_not_know() {
    let app = TestApp::new().await;

    let response = app
        .key_holder("acme")
        .await
        .post(
            PATH,
            json!({ "teamName": "Research", "colour": { "red": 1 } }),
        )
        .await;

    response.assert_success();
    assert_eq!(app.only_record(Table::TEAMS).await["colour"], Value::Null);
}

#[tokio::test]
async fn create_team_refuses_every_bad_body() {
    let long = |length: usize| "x".repeat(length);
    assert_rejected(
        PATH,
        Table::TEAMS,
        &[
            ("nothing", json!({}), &["#/teamName is required"]),
            ("an array", json!(["Research", ""]), &["# must be an object, but is an array"]),
            ("a string", json!("Research"), &["# must be an object, but is a string"]),
            ("a null name", json!({ "teamName": null }), &["#/teamName must be a string, but is null"]),
            ("a number as name", json!({ "teamName": 1 }), &["#/teamName must be a string, but is an integer"]),
            ("an empty name", json!({ "teamName": "" }), &["#/teamName must not be empty"]),
            ("a blank name", json!({ "teamName": " \t " }), &["#/teamName must not be empty"]),
            (
                "a name of 101 characters",
                json!({ "teamName": long(101) }),
                &["#/teamName must have at most 100 characters, but has 101"],
            ),
            (
                "a control character in the name",
                json!({ "teamName": "a\u{7}b" }),
                &["#/teamName must not contain control characters"],
            ),
            ("a line break in the name", json!({ "teamName": "a\nb" }), &["#/teamName must not contain control characters"]),
            ("a name without letter or digit", json!({ "teamName": "---" }), &["#/teamName must contain a letter or a digit"]),
            ("an emoji as name", json!({ "teamName": "🎉" }), &["#/teamName must contain a letter or a digit"]),
            (
                "a long name with a control character",
                json!({ "teamName": format!("{}\u{7}x", long(100)) }),
                &[
                    "#/teamName must have at most 100 characters, but has 102",
                    "#/teamName must not contain control characters",
                ],
            ),
            (
                "a name whose slug is too long",
                json!({ "teamName": "語".repeat(100) }),
                &["#/teamName produces an id of 299 characters; the maximum is 128"],
            ),
            (
                "a description of 1001 characters",
                json!({ "teamName": "a", "teamDescription": long(1001) }),
                &["#/teamDescription must have at most 1000 characters, but has 1001"],
            ),
            (
                "a control character in the description",
                json!({ "teamName": "a", "teamDescription": "\u{0}" }),
                &["#/teamDescription must not contain control characters other than line breaks and tabs"],
            ),
            (
                "both fields wrong",
                json!({ "teamDescription": true, "teamName": [] }),
                &[
                    "#/teamDescription must be a string, but is a boolean",
                    "#/teamName must be a string, but is an array",
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn create_team_takes_the_longest_that_it_may() {
    let app = TestApp::new().await;
    let body = json!({ "teamName": "é".repeat(100), "teamDescription": "𝄞".repeat(1000) });

    app.key_holder("acme")
        .await
        .post(PATH, body.clone())
        .await
        .assert_success();

    let team = app.only_record(Table::TEAMS).await;
    assert_eq!(team["team_name"], body["teamName"]);
    assert_eq!(team["team_description"], body["teamDescription"]);
    assert_eq!(team["team_id"], "e".repeat(100));
}
