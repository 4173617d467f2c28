//! Tests of `add_models`, which adds chat models to an organization.

use serde_json::{Value, json};
use workspace_management::{operation::Operation, store::Table};

use super::{Problems, Sample, Samples, Stored, Values, Write};
use crate::support::{TestApp, assert_created_by, assert_rejected};

const PATH: &str = "/api/v1/org/acme/addModelsToOrg/chat";

/// A body that adds models with these ids and names.
fn models(models: &[(i64, &str)]) -> Value {
    let models: Vec<_> = models
        .iter()
        .map(|(id, modelid)| json!({ "id": id, "modelid": modelid }))
        .collect();
    json!({ "aIModelsSelectedToAddToOrg": models })
}

inventory::submit!(Samples(Operation::AddModels, sample, problems));

/// A valid request and the records that it stores, for the tests that cover every operation: see
/// [`Sample`].
fn sample(values: &Values) -> Sample {
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

fn problems() -> Problems {
    let body = json!([{ "id": 1_u64 << 53, "modelid": "a" }, { "id": 1 }]);
    let body = json!({ "aIModelsSelectedToAddToOrg": body });
    let taken = vec![models(&[(2, "b")]), models(&[(1, "a"), (1, "b")])];
    vec![
        ("ModelTaken/other_id", taken),
        ("InvalidBody/invalid_body", vec![body]),
    ]
}

#[tokio::test]
async fn stores_a_record_for_each_model() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();

    let response = anonymous.post(PATH, models(&[(2, "b"), (1, "a")])).await;

    response.assert_success();
    let records = app.records(Table::MODELS).await;
    assert_eq!(records.len(), 2);
    for (record, (model, id)) in records.iter().zip([("chat#a", 1), ("chat#b", 2)]) {
        assert_eq!(record["org_id"], "acme");
        assert_eq!(record["model"], model);
        assert_eq!(record["id"], id);
        assert_created_by(record, "anonymous");
    }
}

/// A transaction costs twice as much as an update.
#[tokio::test]
async fn uses_a_transaction_only_for_several_models() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();

    for body in [models(&[(1, "a")]), models(&[(2, "b"), (3, "c")])] {
        anonymous.post(PATH, body).await.assert_success();
    }

    let actions = app.dynamodb_requests.take_actions();
    assert_eq!(
        actions,
        ["BatchGetItem", "UpdateItem", "TransactWriteItems"]
    );
}

#[tokio::test]
async fn adds_new_models_and_leaves_existing_ones_unchanged() {
    let app = TestApp::new().await;
    let (acme, anonymous) = (app.client_with_new_key("acme").await, app.anonymous());
    let one_model = models(&[(1, "a")]);
    let response = anonymous.post(PATH, one_model.clone()).await;
    response.assert_success();
    let existing = app.only_record(Table::MODELS).await;

    let response = anonymous.post(PATH, one_model).await;
    response.assert_success();
    let response = acme.post(PATH, models(&[(1, "a"), (2, "b")])).await;
    response.assert_success();

    let records = app.records(Table::MODELS).await;
    assert_eq!(records.len(), 2);
    assert_eq!(records[0], existing);
}

#[tokio::test]
async fn returns_409_and_adds_nothing_when_a_model_exists_with_another_id() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    let response = anonymous.post(PATH, models(&[(1, "a")])).await;
    response.assert_success();
    let existing = app.only_record(Table::MODELS).await;

    for body in [models(&[(2, "a")]), models(&[(3, "b"), (2, "a"), (4, "c")])] {
        let response = anonymous.post(PATH, body).await;
        response.assert_problem(409, "model_taken");
    }

    assert_eq!(app.only_record(Table::MODELS).await, existing);
}

#[tokio::test]
async fn a_409_points_at_each_conflicting_entry_of_the_array_as_sent() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    let response = anonymous
        .post(PATH, models(&[(1, "a"), (2, "b"), (3, "c")]))
        .await;
    response.assert_success();

    for (entries, detail, expected) in [
        (
            &[(1, "a"), (1, "a"), (5, "d"), (9, "b")][..],
            "1 model already exists with another `id`. Nothing was added.",
            &[3][..],
        ),
        (
            &[(9, "a"), (2, "b"), (9, "a"), (8, "c"), (8, "c")],
            "2 models already exist with another `id`. Nothing was added.",
            &[0, 2, 3, 4],
        ),
        (
            &[(9, "c")],
            "1 model already exists with another `id`. Nothing was added.",
            &[0],
        ),
    ] {
        let response = anonymous.post(PATH, models(entries)).await;

        response.assert_problem(409, "model_taken");
        let problem = response.body.unwrap();
        assert_eq!(problem["reason"], "other_id");
        // Several models can conflict, and `errors` points at each.
        assert_eq!(problem["resource_id"], Value::Null);
        assert_eq!(problem["detail"], detail);
        let errors = expected.iter().map(|index| {
            json!({
                "pointer": format!("#/aIModelsSelectedToAddToOrg/{index}/id"),
                "rule": "conflict",
                "detail": "differs from the existing model's `id`",
            })
        });
        assert_eq!(problem["errors"], Value::from_iter(errors), "{entries:?}");
    }

    assert_eq!(app.records(Table::MODELS).await.len(), 3);
}

#[tokio::test]
async fn a_409_names_the_existing_id_to_callers_with_a_key() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let response = acme.post(PATH, models(&[(-1, "a"), (2, "b")])).await;
    response.assert_success();

    let entries = models(&[(9, "b"), (1, "c"), (9, "a"), (9, "b")]);
    let response = acme.post(PATH, entries).await;

    response.assert_problem(409, "model_taken");
    let expected = [(0, 2), (2, -1), (3, 2)].map(|(index, id)| {
        let pointer = format!("#/aIModelsSelectedToAddToOrg/{index}/id");
        format!("{pointer} differs from the existing model's `id` {id}")
    });
    assert_eq!(response.violations(), expected);
}

#[tokio::test]
async fn stores_models_of_different_types_separately() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    let image_path = "/api/v1/org/acme/addModelsToOrg/image";

    for (path, id) in [(PATH, 1), (image_path, 2)] {
        let response = anonymous.post(path, models(&[(id, "a")])).await;
        response.assert_success();
    }

    assert_eq!(app.records(Table::MODELS).await.len(), 2);
}

#[tokio::test]
async fn stores_a_repeated_entry_once() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    let body = models(&[(1, "a"), (1, "a"), (2, "b"), (1, "a")]);

    anonymous.post(PATH, body).await.assert_success();

    assert_eq!(app.records(Table::MODELS).await.len(), 2);
}

#[tokio::test]
async fn accepts_100_models_with_the_longest_modelids() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    // 200 characters. 𝄞 has four bytes, the maximum in UTF-8.
    let modelids: Vec<_> = (0..100)
        .map(|number| format!("{number:03}{}", "𝄞".repeat(197)))
        .collect();
    let entries: Vec<_> = modelids
        .iter()
        .map(|modelid| (1, modelid.as_str()))
        .collect();
    let path = format!("/api/v1/org/acme/addModelsToOrg/{}", "t".repeat(64));

    let response = anonymous.post(&path, models(&entries)).await;

    response.assert_success();
    assert_eq!(app.records(Table::MODELS).await.len(), 100);
}

#[tokio::test]
async fn stores_every_integer_from_the_minimum_to_the_maximum_exactly() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();

    for (modelid, sent, stored) in [
        ("a", "-9007199254740991", -9_007_199_254_740_991_i64),
        ("b", "-9007199254740991.0", -9_007_199_254_740_991),
        ("c", "-1", -1),
        ("d", "-0.0", 0),
        ("e", "0", 0),
        ("f", "3.0", 3),
        ("g", "9007199254740991", 9_007_199_254_740_991),
    ] {
        let body = format!(
            r#"{{"aIModelsSelectedToAddToOrg": [{{"id": {sent}, "modelid": "{modelid}"}}]}}"#
        );
        anonymous.post_text(PATH, &body).await.assert_success();
        // Succeeds only if the id was stored exactly.
        anonymous.post_text(PATH, &body).await.assert_success();

        let records = app.records(Table::MODELS).await;
        assert_eq!(records.last().unwrap()["id"], stored, "{sent}: {records:?}");
    }
}

#[tokio::test]
async fn returns_422_for_an_invalid_array() {
    let array = |entries: Value| json!({ "aIModelsSelectedToAddToOrg": entries });
    let too_many: Vec<_> = (0..101).map(|id| (id, "a")).collect();
    assert_rejected(
        PATH,
        Table::MODELS,
        &[
            (
                "an empty object",
                json!({}),
                &["#/aIModelsSelectedToAddToOrg is required"],
            ),
            (
                "null instead of an array",
                array(json!(null)),
                &["#/aIModelsSelectedToAddToOrg must be an array, but is null"],
            ),
            (
                "an object instead of an array",
                array(json!({})),
                &["#/aIModelsSelectedToAddToOrg must be an array, but is an object"],
            ),
            (
                "an empty array",
                array(json!([])),
                &["#/aIModelsSelectedToAddToOrg must have at least 1 entry"],
            ),
            (
                "101 entries",
                models(&too_many),
                &["#/aIModelsSelectedToAddToOrg must have at most 100 entries, but has 101"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn returns_422_for_an_invalid_model() {
    let array = |entries: Value| json!({ "aIModelsSelectedToAddToOrg": entries });
    assert_rejected(
        PATH,
        Table::MODELS,
        &[
            (
                "an array instead of an object",
                array(json!([[1, "a"]])),
                &["#/aIModelsSelectedToAddToOrg/0 must be an object, but is an array"],
            ),
            (
                "an empty object and an integer",
                array(json!([{}, 1])),
                &[
                    "#/aIModelsSelectedToAddToOrg/0/id is required",
                    "#/aIModelsSelectedToAddToOrg/0/modelid is required",
                    "#/aIModelsSelectedToAddToOrg/1 must be an object, but is an integer",
                ],
            ),
            (
                "a string instead of an id",
                array(json!([{ "id": "1", "modelid": "a" }])),
                &["#/aIModelsSelectedToAddToOrg/0/id must be an integer, but is a string"],
            ),
            (
                "an empty modelid and one of 201 characters",
                models(&[(1, ""), (1, &"x".repeat(201))]),
                &[
                    "#/aIModelsSelectedToAddToOrg/0/modelid must not be empty",
                    "#/aIModelsSelectedToAddToOrg/1/modelid \
                    must have at most 200 characters, but has 201",
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn returns_422_for_an_id_out_of_range() {
    let body = json!({ "aIModelsSelectedToAddToOrg": [
        { "id": -9_007_199_254_740_992i64, "modelid": "a" },
        { "id": 9_007_199_254_740_992u64, "modelid": "b" },
        { "id": 1.5, "modelid": "c" },
        { "id": -1e300, "modelid": "d" },
        { "id": 1e300, "modelid": "e" },
    ] });
    let violations = [
        "#/aIModelsSelectedToAddToOrg/0/id must be at least -9007199254740991",
        "#/aIModelsSelectedToAddToOrg/1/id must be at most 9007199254740991",
        "#/aIModelsSelectedToAddToOrg/2/id must be an integer, but is a number",
        "#/aIModelsSelectedToAddToOrg/3/id must be at least -9007199254740991",
        "#/aIModelsSelectedToAddToOrg/4/id must be at most 9007199254740991",
    ];
    let description = "below the minimum, above the maximum, a fraction, and far out of range";
    assert_rejected(PATH, Table::MODELS, &[(description, body, &violations)]).await;
}

#[tokio::test]
async fn returns_422_for_two_ids_of_one_model() {
    assert_rejected(
        PATH,
        Table::MODELS,
        &[
            (
                "two models with two ids each",
                models(&[(1, "a"), (2, "b"), (3, "a"), (4, "b")]),
                &[
                    "#/aIModelsSelectedToAddToOrg/2 conflicts with the entry at index 0",
                    "#/aIModelsSelectedToAddToOrg/3 conflicts with the entry at index 1",
                ],
            ),
            (
                "a model with two ids after an invalid entry",
                json!({ "aIModelsSelectedToAddToOrg": [
                    { "modelid": "x" },
                    { "id": 1, "modelid": "m" },
                    { "id": 2, "modelid": "m" },
                ] }),
                &[
                    "#/aIModelsSelectedToAddToOrg/0/id is required",
                    "#/aIModelsSelectedToAddToOrg/2 conflicts with the entry at index 1",
                ],
            ),
        ],
    )
    .await;
}
