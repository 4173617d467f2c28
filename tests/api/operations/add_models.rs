//! `add_models`.

use serde_json::{Value, json};
use workspace_management::store::Table;

use super::{Sample, Stored, Values, Write};
use crate::support::{TestApp, assert_created_by, assert_rejected};

const PATH: &str = "/api/v1/org/acme/addModelsToOrg/chat";

fn models(models: &[(u64, &str)]) -> Value {
    let models: Vec<_> = models
        .iter()
        .map(|(id, modelid)| json!({ "id": id, "modelid": modelid }))
        .collect();
    json!({ "aIModelsSelectedToAddToOrg": models })
}

/// A sample for the tests that cover every operation.
pub fn sample(values: &Values) -> Sample {
    let entries: Vec<_> = values
        .entries
        .iter()
        .map(|(name, id)| (*id, name.as_str()))
        .collect();
    Sample {
        path: PATH.to_owned(),
        body: models(&entries),
        records: entries
            .iter()
            .map(|(id, name)| {
                let key = json!({ "org_id": "acme", "model": format!("chat#{name}") });
                Stored::new(Table::MODELS, key, json!({ "id": id }))
            })
            .collect(),
        write: Write::Add,
        requires: None,
    }
}

#[tokio::test]
async fn add_models_writes_a_record_for_each_model() {
    let app = TestApp::new().await;

    app.anonymous()
        .post(PATH, models(&[(2, "b"), (1, "a")]))
        .await
        .assert_success();

    let records = app.records(Table::MODELS).await;
    assert_eq!(records.len(), 2);
    for (record, (model, id)) in records.iter().zip([("chat#a", 1), ("chat#b", 2)]) {
        assert_eq!(record["org_id"], "acme");
        assert_eq!(record["model"], model);
        assert_eq!(record["id"], id);
        assert_created_by(record, "anonymous");
    }
}

#[tokio::test]
async fn add_models_writes_one_model_with_one_update_and_more_with_one_transaction() {
    let app = TestApp::new().await;
    app.anonymous()
        .post(PATH, models(&[(1, "a")]))
        .await
        .assert_success();
    app.requests.take();

    app.anonymous()
        .post(PATH, models(&[(2, "b")]))
        .await
        .assert_success();
    app.anonymous()
        .post(PATH, models(&[(3, "c"), (4, "d")]))
        .await
        .assert_success();

    let actions = app.requests.take_actions();
    assert_eq!(actions, ["UpdateItem", "TransactWriteItems"]);
}

#[tokio::test]
async fn add_models_adds_what_is_new_and_keeps_what_is_there() {
    let app = TestApp::new().await;
    app.anonymous()
        .post(PATH, models(&[(1, "a")]))
        .await
        .assert_success();
    let first = app.only_record(Table::MODELS).await;

    app.anonymous()
        .post(PATH, models(&[(1, "a")]))
        .await
        .assert_success();
    app.key_holder("acme")
        .await
        .post(PATH, models(&[(1, "a"), (2, "b")]))
        .await
        .assert_success();

    let records = app.records(Table::MODELS).await;
    assert_eq!(records.len(), 2);
    assert_eq!(records[0], first);
}

#[tokio::test]
async fn add_models_adds_none_if_one_is_there_with_another_id() {
    let app = TestApp::new().await;
    app.anonymous()
        .post(PATH, models(&[(1, "a")]))
        .await
        .assert_success();
    let first = app.only_record(Table::MODELS).await;

    app.anonymous()
        .post(PATH, models(&[(2, "a")]))
        .await
        .assert_problem(409, "model_taken");
    app.anonymous()
        .post(PATH, models(&[(3, "b"), (2, "a"), (4, "c")]))
        .await
        .assert_problem(409, "model_taken");

    assert_eq!(app.only_record(Table::MODELS).await, first);
}

#[tokio::test]
async fn add_models_keeps_model_types_apart() {
    let app = TestApp::new().await;

    app.anonymous()
        .post(PATH, models(&[(1, "a")]))
        .await
        .assert_success();
    app.anonymous()
        .post("/api/v1/org/acme/addModelsToOrg/image", models(&[(2, "a")]))
        .await
        .assert_success();

    assert_eq!(app.records(Table::MODELS).await.len(), 2);
}

#[tokio::test]
async fn add_models_collapses_equal_entries() {
    let app = TestApp::new().await;

    app.anonymous()
        .post(PATH, models(&[(1, "a"), (1, "a"), (2, "b"), (1, "a")]))
        .await
        .assert_success();

    assert_eq!(app.records(Table::MODELS).await.len(), 2);
}

#[tokio::test]
async fn add_models_takes_100_models_of_the_longest_ids() {
    let app = TestApp::new().await;
    let long: Vec<_> = (0..100)
        .map(|number| format!("{number:03}{}", "𝄞".repeat(197)))
        .collect();
    let body: Vec<_> = long
        .iter()
        .map(|modelid| ((1 << 53) - 1, modelid.as_str()))
        .collect();
    let path = format!("/api/v1/org/acme/addModelsToOrg/{}", "t".repeat(64));

    app.anonymous()
        .post(&path, models(&body))
        .await
        .assert_success();

    let records = app.records(Table::MODELS).await;
    assert_eq!(records.len(), 100);
    assert_eq!(records[0]["id"], json!(9_007_199_254_740_991u64));
}

#[tokio::test]
async fn add_models_takes_an_integer_that_is_written_with_a_fraction() {
    let app = TestApp::new().await;

    let body = r#"{"aIModelsSelectedToAddToOrg": [{"id": 3.0, "modelid": "a"}]}"#;
    app.anonymous().post_text(PATH, body).await.assert_success();

    assert_eq!(app.only_record(Table::MODELS).await["id"], 3);
}

#[tokio::test]
async fn add_models_refuses_every_bad_body() {
    let field = |entries: Value| json!({ "aIModelsSelectedToAddToOrg": entries });
    let range = "must be an integer from 0 to 9007199254740991";
    let at = |pointer: &str| format!("#/aIModelsSelectedToAddToOrg/{pointer} {range}");
    let (first, second, third) = (at("0/id"), at("1/id"), at("2/id"));
    let many: Vec<_> = (0..101).map(|id| (id, "a")).collect();
    assert_rejected(
        PATH,
        Table::MODELS,
        &[
            ("nothing", json!({}), &["#/aIModelsSelectedToAddToOrg is required"]),
            ("null", field(json!(null)), &["#/aIModelsSelectedToAddToOrg must be an array, but is null"]),
            ("an object", field(json!({})), &["#/aIModelsSelectedToAddToOrg must be an array, but is an object"]),
            ("no entry", field(json!([])), &["#/aIModelsSelectedToAddToOrg must have at least 1 entry"]),
            ("101 entries", models(&many), &["#/aIModelsSelectedToAddToOrg must have at most 100 entries, but has 101"]),
            (
                "arrays for objects",
                field(json!([[1, "a"]])),
                &["#/aIModelsSelectedToAddToOrg/0 must be an object, but is an array"],
            ),
            (
                "an entry without fields, and one that is none",
                field(json!([{}, 1])),
                &[
                    "#/aIModelsSelectedToAddToOrg/0/id is required",
                    "#/aIModelsSelectedToAddToOrg/0/modelid is required",
                    "#/aIModelsSelectedToAddToOrg/1 must be an object, but is an integer",
                ],
            ),
            (
                "ids out of range",
                field(json!([
                    { "id": -1, "modelid": "a" },
                    { "id": 9_007_199_254_740_992u64, "modelid": "b" },
                    { "id": 1.5, "modelid": "c" },
                ])),
                &[&first, &second, &third],
            ),
            (
                "a string as id",
                field(json!([{ "id": "1", "modelid": "a" }])),
                &["#/aIModelsSelectedToAddToOrg/0/id must be an integer, but is a string"],
            ),
            (
                "an empty and a long modelid",
                field(json!([{ "id": 1, "modelid": "" }, { "id": 1, "modelid": "x".repeat(201) }])),
                &[
                    "#/aIModelsSelectedToAddToOrg/0/modelid must not be empty",
                    "#/aIModelsSelectedToAddToOrg/1/modelid must have at most 200 characters, but has 201",
                ],
            ),
            (
                "an entry without id, and contradicting ones",
                field(json!([{ "modelid": "x" }, { "id": 1, "modelid": "m" }, { "id": 2, "modelid": "m" }])),
                &[
                    "#/aIModelsSelectedToAddToOrg/0/id is required",
                    "#/aIModelsSelectedToAddToOrg/2 conflicts with entry 1",
                ],
            ),
            (
                "contradicting entries",
                models(&[(1, "a"), (2, "b"), (3, "a"), (4, "b")]),
                &[
                    "#/aIModelsSelectedToAddToOrg/2 conflicts with entry 0",
                    "#/aIModelsSelectedToAddToOrg/3 conflicts with entry 1",
                ],
            ),
        ],
    )
    .await;
}
