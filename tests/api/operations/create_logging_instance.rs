//! `create_logging_instance`.

use serde_json::json;
use workspace_management::store::Table;

use super::{Sample, Stored, Values, Write};
use crate::support::{TestApp, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/project/acme/apollo/createLoggingInstance";

/// A sample for the tests that cover every operation.
pub fn sample(values: &Values) -> Sample {
    let name = &values.name;
    let key = json!({ "org_id": "acme", "project_id": "apollo" });
    let content = json!({ "project_name": name.trim() });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "projectName": name }),
        records: vec![Stored::new(Table::LOGGING_INSTANCES, key, content)],
        write: Write::Create,
        requires: None,
    }
}

#[tokio::test]
async fn create_logging_instance_writes_the_record_of_the_project() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;

    app.with_key(&key)
        .post(PATH, json!({ "projectName": " Apollo … " }))
        .await
        .assert_success();

    let logging_instance = app.only_record(Table::LOGGING_INSTANCES).await;
    assert_eq!(logging_instance["org_id"], "acme");
    assert_eq!(logging_instance["project_id"], "apollo");
    assert_eq!(logging_instance["project_name"], "Apollo …");
    assert_created_by(&logging_instance, &key_id(&key));
}

#[tokio::test]
async fn create_logging_instance_changes_nothing_when_it_is_repeated() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    acme.post(PATH, json!({ "projectName": "Apollo" }))
        .await
        .assert_success();
    let first = app.only_record(Table::LOGGING_INSTANCES).await;

    acme.post(PATH, json!({ "projectName": "Apollo" }))
        .await
        .assert_success();

    assert_eq!(app.only_record(Table::LOGGING_INSTANCES).await, first);
}

#[tokio::test]
async fn create_logging_instance_refuses_another_name_for_the_project() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    acme.post(PATH, json!({ "projectName": "Apollo" }))
        .await
        .assert_success();
    let first = app.only_record(Table::LOGGING_INSTANCES).await;

    acme.post(PATH, json!({ "projectName": "Gemini" }))
        .await
        .assert_problem(409, "name_taken");

    assert_eq!(app.only_record(Table::LOGGING_INSTANCES).await, first);
}

#[tokio::test]
async fn create_logging_instance_takes_a_name_that_makes_no_slug() {
    let app = TestApp::new().await;

    app.key_holder("acme")
        .await
        .post(PATH, json!({ "projectName": "🚀" }))
        .await
        .assert_success();

    assert_eq!(
        app.only_record(Table::LOGGING_INSTANCES).await["project_name"],
        "🚀"
    );
}

#[tokio::test]
async fn create_logging_instance_refuses_every_bad_body() {
    assert_rejected(
        PATH,
        Table::LOGGING_INSTANCES,
        &[
            ("nothing", json!({}), &["#/projectName is required"]),
            (
                "a boolean",
                json!({ "projectName": false }),
                &["#/projectName must be a string, but is a boolean"],
            ),
            (
                "an object",
                json!({ "projectName": {} }),
                &["#/projectName must be a string, but is an object"],
            ),
            (
                "a blank name",
                json!({ "projectName": " " }),
                &["#/projectName must not be empty"],
            ),
            (
                "a name of 101 characters",
                json!({ "projectName": "x".repeat(101) }),
                &["#/projectName must have at most 100 characters, but has 101"],
            ),
        ],
    )
    .await;
}
