//! Tests of `create_data_store`, which creates a data store in an organization.

use serde_json::json;
use test_support::TestApp;
use workspace_management::records::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues, id_of, trimmed};

const PATH: &str = "/api/v1/org/acme/dataStores/create";

pub(super) fn sample(values: &SampleValues) -> Sample {
    let name = &values.name;
    let description = &values.description;
    let key = json!({ "org_id": "acme", "data_store_id": id_of(name) });
    let content =
        json!({ "data_store_name": trimmed(name), "data_store_description": trimmed(description) });
    let body = json!({ "dataStoreName": name, "dataStoreDescription": description });
    let record = ExpectedRecord::new(Table::DATA_STORES, key, content);
    Sample::new(PATH, body, vec![record])
}

pub(super) fn problems() -> ProblemExamples {
    let names = ["Research Papers", "Research-Papers"].map(|name| json!({ "dataStoreName": name }));
    let descriptions = ["What the team has read", "x"]
        .map(|text| json!({ "dataStoreName": "Papers", "dataStoreDescription": text }));
    vec![
        ("DataStoreTaken/other_name", names.to_vec()),
        ("DataStoreTaken/other_description", descriptions.to_vec()),
    ]
}

#[tokio::test]
async fn a_409_shortens_what_it_quotes_and_quotes_nothing_to_anonymous_callers() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    // Each character takes 9 characters when it is escaped.
    let [name, description] = [99, 1000].map(|count| format!("a{}", "\u{e0041}".repeat(count - 1)));
    let body = |name: &str, description: &str| json!({ "dataStoreName": name, "dataStoreDescription": description });
    acme.post(PATH, body(&name, &description))
        .await
        .assert_success();

    for (sent, reason) in [
        (body(&id_of(&name).to_uppercase(), ""), "other_name"),
        (body(&name, "b"), "other_description"),
    ] {
        for (client, quote) in [(&acme, r#""a\u{e0041}"#), (&app.anonymous_client(), "")] {
            let response = client.post(PATH, sent.clone()).await;
            response.assert_problem(409, "name_taken");
            let problem = response.body.unwrap();
            assert_eq!(problem["reason"], reason);
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.chars().count() <= 1000, "{detail}");
            assert_eq!(detail.contains("e0041"), !quote.is_empty(), "{detail}");
            assert!(detail.contains(quote), "{detail}");
        }
    }
}
