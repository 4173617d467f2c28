//! Tests of `create_data_store`, which creates a data store in an organization.

use serde_json::json;
use test_support::TestApp;
use workspace_management::store::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues, WriteKind, trimmed};

const PATH: &str = "/api/v1/org/acme/dataStores/create";

pub(super) fn sample(values: &SampleValues) -> Sample {
    let name = &values.name;
    let description = &values.description;
    let key = json!({ "org_id": "acme", "data_store_id": name.to_lowercase() });
    let content =
        json!({ "data_store_name": trimmed(name), "data_store_description": trimmed(description) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "dataStoreName": name, "dataStoreDescription": description }),
        records: vec![ExpectedRecord::new(Table::DATA_STORES, key, content)],
        write: WriteKind::Create,
        requires: None,
    }
}

pub(super) fn problems() -> ProblemExamples {
    let names = ["C++", "C#"].map(|name| json!({ "dataStoreName": name }));
    let descriptions =
        ["", "x"].map(|text| json!({ "dataStoreName": "Papers", "dataStoreDescription": text }));
    vec![
        ("DataStoreTaken/other_name", names.to_vec()),
        ("DataStoreTaken/other_description", descriptions.to_vec()),
    ]
}

#[tokio::test]
async fn a_409_names_the_existing_data_store_to_callers_with_a_key() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let data_store = |name: &str| json!({ "dataStoreName": name });
    // U+202E reverses the text that follows it.
    let response = acme.post(PATH, data_store("C\u{202e}+")).await;
    response.assert_success();

    let anonymous = app.anonymous_client();
    for (client, name) in [(acme, r#", "C\u{202e}+","#), (anonymous, "")] {
        let response = client.post(PATH, data_store("C#")).await;
        response.assert_problem(409, "name_taken");
        let detail = response.body.unwrap()["detail"].take();
        let expected = format!(
            "An existing data store with a different name{name} has the id `c`. Use this id if that \
            data store is yours, or choose a name that gives a different id."
        );
        assert_eq!(detail, expected);
    }
}
