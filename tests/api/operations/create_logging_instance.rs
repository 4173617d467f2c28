//! Tests of `create_logging_instance`, which creates the logging instance of a project.

use serde_json::json;
use test_support::TestApp;
use workspace_management::records::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues, trimmed};
use crate::bodies::violations;

const PATH: &str = "/api/v1/project/acme/apollo/createLoggingInstance";

pub(super) fn sample(values: &SampleValues) -> Sample {
    let name = &values.name;
    let key = json!({ "org_id": "acme", "project_id": "apollo" });
    let content = json!({ "project_name": trimmed(name) });
    let body = json!({ "projectName": name });
    let record = ExpectedRecord::new(Table::LOGGING_INSTANCES, key, content);
    Sample::new(PATH, body, vec![record])
}

pub(super) fn problems() -> ProblemExamples {
    // No id is derived from the name, so it needs no letter or digit.
    let names = ["Apollo", "🚀"].map(|name| json!({ "projectName": name }));
    vec![("LoggingInstanceTaken/other_project_name", names.to_vec())]
}

#[tokio::test]
async fn a_name_is_trimmed_before_it_is_checked() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let padded = format!(" \t\u{feff}{}\u{3000}\u{2028}", "x".repeat(100));
    let response = acme.post(PATH, json!({ "projectName": padded })).await;
    response.assert_success();
    let record = app.only_record(Table::LOGGING_INSTANCES).await;
    assert_eq!(record["project_name"], "x".repeat(100));
    for blank in ["", " \u{a0} ", "\u{feff}"] {
        let response = acme.post(PATH, json!({ "projectName": blank })).await;
        let expected = ["#/projectName must not be empty"];
        assert_eq!(violations(&response), expected, "{blank:?}");
    }
}

#[tokio::test]
async fn a_name_needs_a_visible_character() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    for name in [
        "\u{200b}",
        "\u{3164}",
        "\u{2060}\u{ad}",
        "\u{2800} \u{e0020}",
    ] {
        let response = acme.post(PATH, json!({ "projectName": name })).await;
        let expected = ["#/projectName must contain a visible character"];
        assert_eq!(violations(&response), expected, "{name:?}");
    }
    for (index, name) in ["🎉", "…", "a\u{200b}", "한"].into_iter().enumerate() {
        let path = PATH.replace("apollo", &format!("project-{index}"));
        let response = acme.post(&path, json!({ "projectName": name })).await;
        assert_eq!(response.status, 204, "{name:?}");
    }
}
