//! `create_data_store`.

use serde_json::json;
use workspace_management::store::Table;

use super::{Sample, Stored, Values, Write};
use crate::support::{TestApp, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/org/acme/dataStores/create";

/// A sample for the tests that cover every operation.
pub fn sample(values: &Values) -> Sample {
    let (name, description) = (&values.name, &values.description);
    let key = json!({ "org_id": "acme", "data_store_id": name.to_lowercase() });
    let content = json!({ "data_store_name": name.trim(), "data_store_description": description });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "dataStoreName": name, "dataStoreDescription": description }),
        records: vec![Stored::new(Table::DATA_STORES, key, content)],
        write: Write::Create,
        requires: None,
    }
}

#[tokio::test]
async fn create_data_store_writes_the_record_for_an_anonymous_caller() {
    let app = TestApp::new().await;

    let body = json!({ "dataStoreName": "Field Notes", "dataStoreDescription": "2026" });
    app.anonymous().post(PATH, body).await.assert_success();

    let data_store = app.only_record(Table::DATA_STORES).await;
    assert_eq!(data_store["org_id"], "acme");
    assert_eq!(data_store["data_store_id"], "field-notes");
    assert_eq!(data_store["data_store_name"], "Field Notes");
    assert_eq!(data_store["data_store_description"], "2026");
    assert_created_by(&data_store, "anonymous");
}

#[tokio::test]
async fn create_data_store_names_the_key_of_a_caller_who_sends_one() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;

    app.with_key(&key)
        .post(PATH, json!({ "dataStoreName": "Field Notes" }))
        .await
        .assert_success();

    assert_created_by(&app.only_record(Table::DATA_STORES).await, &key_id(&key));
}

#[tokio::test]
async fn create_data_store_changes_nothing_when_it_is_repeated() {
    let app = TestApp::new().await;
    let body = json!({ "dataStoreName": "Field Notes" });
    app.anonymous()
        .post(PATH, body.clone())
        .await
        .assert_success();
    let first = app.only_record(Table::DATA_STORES).await;

    app.anonymous().post(PATH, body).await.assert_success();

    assert_eq!(app.only_record(Table::DATA_STORES).await, first);
}

#[tokio::test]
async fn create_data_store_refuses_a_name_that_is_taken() {
    let app = TestApp::new().await;
    app.anonymous()
        .post(PATH, json!({ "dataStoreName": "Field Notes" }))
        .await
        .assert_success();
    let first = app.only_record(Table::DATA_STORES).await;

    let another_description =
        json!({ "dataStoreName": "Field Notes", "dataStoreDescription": "2027" });
    app.anonymous()
        .post(PATH, another_description)
        .await
        .assert_problem(409, "name_taken");
    app.key_holder("acme")
        .await
        .post(PATH, json!({ "dataStoreName": "Field Notes" }))
        .await
        .assert_problem(409, "name_taken");

    assert_eq!(app.only_record(Table::DATA_STORES).await, first);
}

#[tokio::test]
async fn create_data_store_refuses_every_bad_body() {
    assert_rejected(
        PATH,
        Table::DATA_STORES,
        &[
            ("nothing", json!({}), &["#/dataStoreName is required"]),
            (
                "numbers",
                json!({ "dataStoreName": 1.5, "dataStoreDescription": -1 }),
                &[
                    "#/dataStoreDescription must be a string, but is an integer",
                    "#/dataStoreName must be a string, but is a number",
                ],
            ),
            (
                "a blank name",
                json!({ "dataStoreName": "\u{a0}" }),
                &["#/dataStoreName must not be empty"],
            ),
            (
                "a name without letter or digit",
                json!({ "dataStoreName": "…" }),
                &["#/dataStoreName must contain a letter or a digit"],
            ),
        ],
    )
    .await;
}
