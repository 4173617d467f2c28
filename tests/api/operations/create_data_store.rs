//! Tests of `create_data_store`, which creates a data store in an organization.

use serde_json::json;
use test_support::TestApp;
use workspace_management::store::Table;

use super::{Problems, Sample, Stored, Values, Write, trimmed};

const PATH: &str = "/api/v1/org/acme/dataStores/create";

/// A sample for the tests that cover every operation.
pub(super) fn sample(values: &Values) -> Sample {
    let (name, description) = (&values.name, &values.description);
    let key = json!({ "org_id": "acme", "data_store_id": name.to_lowercase() });
    let content =
        json!({ "data_store_name": trimmed(name), "data_store_description": trimmed(description) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "dataStoreName": name, "dataStoreDescription": description }),
        records: vec![Stored::new(Table::DATA_STORES, key, content)],
        write: Write::Create,
        requires: None,
    }
}

pub(super) fn problems() -> Problems {
    let store =
        |name: &str, text: &str| json!({ "dataStoreName": name, "dataStoreDescription": text });
    let papers = |text: &str| store("Papers", text);
    vec![
        (
            "DataStoreTaken/other_name",
            vec![store("C++", ""), store("C#", "")],
        ),
        (
            "DataStoreTaken/other_description",
            vec![papers(""), papers("x")],
        ),
    ]
}

#[tokio::test]
async fn a_409_names_the_existing_data_store_to_callers_with_a_key() {
    let app = TestApp::new().await;
    let (acme, anonymous) = (app.client_with_new_key("acme").await, app.anonymous());
    let data_store = |name: &str| json!({ "dataStoreName": name });
    // U+202E reverses the text that follows it.
    let response = acme.post(PATH, data_store("C\u{202e}+")).await;
    response.assert_success();

    for (client, name) in [(acme, r#", "C\u{202e}+","#), (anonymous, "")] {
        let response = client.post(PATH, data_store("C#")).await;
        response.assert_problem(409, "name_taken");
        let detail = response.body.unwrap()["detail"].take();
        let expected = format!(
            "An existing data store with a different name{name} has the id `c`. Use this id if it is \
            your data store, or choose a name that gives a different id."
        );
        assert_eq!(detail, expected);
    }
}
