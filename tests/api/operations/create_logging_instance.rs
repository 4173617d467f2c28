//! Tests of `create_logging_instance`, which creates the logging instance of a project.

use serde_json::json;
use workspace_management::{operation::Operation, store::Table};

use super::{Problems, Sample, Samples, Stored, Values, Write, trimmed};
use crate::support::{TestApp, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/project/acme/apollo/createLoggingInstance";

inventory::submit!(Samples(Operation::CreateLoggingInstance, sample, problems));

/// A sample for the tests that cover every operation.
fn sample(values: &Values) -> Sample {
    let name = &values.name;
    let key = json!({ "org_id": "acme", "project_id": "apollo" });
    let content = json!({ "project_name": trimmed(name) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "projectName": name }),
        records: vec![Stored::new(Table::LOGGING_INSTANCES, key, content)],
        write: Write::Create,
        requires: None,
    }
}

fn problems() -> Problems {
    let names = ["Apollo", "Gemini"].map(|name| json!({ "projectName": name }));
    vec![("LoggingInstanceTaken/other_project_name", names.to_vec())]
}

#[tokio::test]
async fn stores_the_logging_instance_under_the_id_of_its_project() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.with_key(&key);

    let body = json!({ "projectName": " Apollo … " });
    acme.post(PATH, body).await.assert_success();

    let logging_instance = app.only_record(Table::LOGGING_INSTANCES).await;
    assert_eq!(logging_instance["org_id"], "acme");
    assert_eq!(logging_instance["project_id"], "apollo");
    assert_eq!(logging_instance["project_name"], "Apollo …");
    assert_created_by(&logging_instance, &key_id(&key));
}

#[tokio::test]
async fn returns_409_when_the_logging_instance_has_another_name() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let response = acme.post(PATH, json!({ "projectName": "Apollo" })).await;
    response.assert_success();
    let existing = app.only_record(Table::LOGGING_INSTANCES).await;

    let response = acme.post(PATH, json!({ "projectName": "Gemini" })).await;

    response.assert_problem(409, "name_taken");
    assert_eq!(app.only_record(Table::LOGGING_INSTANCES).await, existing);
}

/// The id of the record is the project's, so no id is derived from the name.
#[tokio::test]
async fn accepts_a_name_without_a_letter_or_a_digit() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    let response = acme.post(PATH, json!({ "projectName": "🚀" })).await;

    response.assert_success();
    let logging_instance = app.only_record(Table::LOGGING_INSTANCES).await;
    assert_eq!(logging_instance["project_name"], "🚀");
}

#[tokio::test]
async fn returns_422_for_an_invalid_body() {
    assert_rejected(
        PATH,
        Table::LOGGING_INSTANCES,
        &[
            ("an empty object", json!({}), &["#/projectName is required"]),
            (
                "a boolean instead of a name",
                json!({ "projectName": false }),
                &["#/projectName must be a string, but is a boolean"],
            ),
            (
                "an object instead of a name",
                json!({ "projectName": {} }),
                &["#/projectName must be a string, but is an object"],
            ),
            (
                "a name of white space",
                json!({ "projectName": " " }),
                &["#/projectName must not be empty"],
            ),
            (
                "a name of invisible characters",
                json!({ "projectName": "\u{200b}" }),
                &["#/projectName must contain a visible character"],
            ),
            (
                "a line separator",
                json!({ "projectName": "a\u{2028}b" }),
                &["#/projectName must not contain control characters or line separators"],
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
