//! Tests of `create_logging_instance`, which creates the logging instance of a project.

use serde_json::json;
use test_support::TestApp;
use workspace_management::store::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues, WriteKind, trimmed};

const PATH: &str = "/api/v1/project/acme/apollo/createLoggingInstance";

/// A sample for the tests that cover every operation.
pub(super) fn sample(values: &SampleValues) -> Sample {
    let name = &values.name;
    let key = json!({ "org_id": "acme", "project_id": "apollo" });
    let content = json!({ "project_name": trimmed(name) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "projectName": name }),
        records: vec![ExpectedRecord::new(Table::LOGGING_INSTANCES, key, content)],
        write: WriteKind::Create,
        requires: None,
    }
}

pub(super) fn problems() -> ProblemExamples {
    let names = ["Apollo", "Gemini"].map(|name| json!({ "projectName": name }));
    vec![("LoggingInstanceTaken/other_project_name", names.to_vec())]
}

/// No id is derived from the name, because the project id identifies the record.
#[tokio::test]
async fn accepts_a_name_without_a_letter_or_a_digit() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    let response = acme.post(PATH, json!({ "projectName": "🚀" })).await;

    response.assert_success();
    let logging_instance = app.only_record(Table::LOGGING_INSTANCES).await;
    assert_eq!(logging_instance["project_name"], "🚀");
}
