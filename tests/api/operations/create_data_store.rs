//! Tests of `create_data_store`, which creates a data store in an organization.

use serde_json::json;
use workspace_management::{operation::Operation, store::Table};

use super::{Problems, Sample, Samples, Stored, Values, Write, trimmed};
use crate::support::{TestApp, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/org/acme/dataStores/create";

inventory::submit!(Samples(Operation::CreateDataStore, sample, problems));

/// A sample for the tests that cover every operation.
fn sample(values: &Values) -> Sample {
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

fn problems() -> Problems {
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
async fn stores_the_data_store_under_the_id_of_its_name() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();

    let body = json!({ "dataStoreName": "Field Notes", "dataStoreDescription": "2026" });
    anonymous.post(PATH, body).await.assert_success();

    let data_store = app.only_record(Table::DATA_STORES).await;
    assert_eq!(data_store["org_id"], "acme");
    assert_eq!(data_store["data_store_id"], "field-notes");
    assert_eq!(data_store["data_store_name"], "Field Notes");
    assert_eq!(data_store["data_store_description"], "2026");
    assert_created_by(&data_store, "anonymous");
}

#[tokio::test]
async fn stores_the_id_of_the_api_key_as_the_creator() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.with_key(&key);

    let body = json!({ "dataStoreName": "Field Notes" });
    acme.post(PATH, body).await.assert_success();

    assert_created_by(&app.only_record(Table::DATA_STORES).await, &key_id(&key));
}

#[tokio::test]
async fn returns_409_when_the_name_is_taken() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    let data_store = json!({ "dataStoreName": "Field Notes" });
    let response = anonymous.post(PATH, data_store).await;
    response.assert_success();
    let existing = app.only_record(Table::DATA_STORES).await;
    let other_description =
        json!({ "dataStoreName": "Field Notes", "dataStoreDescription": "2027" });

    let response = anonymous.post(PATH, other_description).await;
    response.assert_problem(409, "name_taken");

    assert_eq!(app.only_record(Table::DATA_STORES).await, existing);
}

#[tokio::test]
async fn a_409_names_the_existing_data_store_to_callers_with_a_key() {
    let app = TestApp::new().await;
    let (acme, anonymous) = (app.client_with_new_key("acme").await, app.anonymous());
    let data_store = |name: &str| json!({ "dataStoreName": name });
    // U+202E reverses the text that follows it.
    let response = acme.post(PATH, data_store("C\u{202e}+")).await;
    response.assert_success();

    for (client, name) in [(acme, r#" Its name is "C\u{202e}+"."#), (anonymous, "")] {
        let response = client.post(PATH, data_store("C#")).await;
        response.assert_problem(409, "name_taken");
        let detail = response.body.unwrap()["detail"].take();
        let expected = format!(
            "Another data store already has the id `c`.{name} Choose a name that gives a different id."
        );
        assert_eq!(detail, expected);
    }
}

#[tokio::test]
async fn returns_422_for_an_invalid_body() {
    assert_rejected(
        PATH,
        Table::DATA_STORES,
        &[
            (
                "an empty object",
                json!({}),
                &["#/dataStoreName is required"],
            ),
            (
                "numbers instead of strings",
                json!({ "dataStoreName": 1.5, "dataStoreDescription": -1 }),
                &[
                    "#/dataStoreDescription must be a string, but is an integer",
                    "#/dataStoreName must be a string, but is a number",
                ],
            ),
            (
                "a name of white space",
                json!({ "dataStoreName": "\u{a0}" }),
                &["#/dataStoreName must not be empty"],
            ),
            (
                "a name without a letter or a digit",
                json!({ "dataStoreName": "…" }),
                &["#/dataStoreName must contain a letter or a digit"],
            ),
        ],
    )
    .await;
}
