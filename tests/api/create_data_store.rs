//! `create_data_store`.

use serde_json::json;
use workspace_management::store::Table;

use crate::support::{World, assert_made_by, key_id, refuses};

const PATH: &str = "/api/v1/org/acme/dataStores/create";

#[tokio::test]
async fn create_data_store_writes_the_record_for_an_anonymous_caller() {
    let world = World::new().await;

    let body = json!({ "dataStoreName": "Field Notes", "dataStoreDescription": "2026" });
    world.anonymous().post(PATH, body).await.is_success();

    let data_store = world.record(Table::DATA_STORES).await;
    assert_eq!(data_store["org_id"], "acme");
    assert_eq!(data_store["data_store_id"], "field-notes");
    assert_eq!(data_store["data_store_name"], "Field Notes");
    assert_eq!(data_store["data_store_description"], "2026");
    assert_made_by(&data_store, "anonymous");
}

#[tokio::test]
async fn create_data_store_names_the_key_of_a_caller_who_sends_one() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;

    world
        .holder(&key)
        .post(PATH, json!({ "dataStoreName": "Field Notes" }))
        .await
        .is_success();

    assert_made_by(&world.record(Table::DATA_STORES).await, &key_id(&key));
}

#[tokio::test]
async fn create_data_store_changes_nothing_when_it_is_repeated() {
    let world = World::new().await;
    let body = json!({ "dataStoreName": "Field Notes" });
    world
        .anonymous()
        .post(PATH, body.clone())
        .await
        .is_success();
    let first = world.record(Table::DATA_STORES).await;

    world.anonymous().post(PATH, body).await.is_success();

    assert_eq!(world.record(Table::DATA_STORES).await, first);
}

#[tokio::test]
async fn create_data_store_refuses_a_name_that_is_taken() {
    let world = World::new().await;
    world
        .anonymous()
        .post(PATH, json!({ "dataStoreName": "Field Notes" }))
        .await
        .is_success();
    let first = world.record(Table::DATA_STORES).await;

    let another_description =
        json!({ "dataStoreName": "Field Notes", "dataStoreDescription": "2027" });
    world
        .anonymous()
        .post(PATH, another_description)
        .await
        .is(409, "name_taken");
    world
        .acme()
        .await
        .post(PATH, json!({ "dataStoreName": "Field Notes" }))
        .await
        .is(409, "name_taken");

    assert_eq!(world.record(Table::DATA_STORES).await, first);
}

#[tokio::test]
async fn create_data_store_refuses_every_bad_body() {
    refuses(
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
                &["#/dataStoreName must hold a letter or a digit"],
            ),
        ],
    )
    .await;
}
