//! Tests of `add_models`, which adds chat models to an organization.

use serde_json::{Value, json};
use test_support::TestApp;
use workspace_management::store::Table;

use super::{Problems, Sample, Stored, Values, Write};

const PATH: &str = "/api/v1/org/acme/addModelsToOrg/chat";

/// A body that adds models with these ids and names.
fn models(models: &[(i64, &str)]) -> Value {
    let models: Vec<_> = models
        .iter()
        .map(|(id, modelid)| json!({ "id": id, "modelid": modelid }))
        .collect();
    json!({ "aIModelsSelectedToAddToOrg": models })
}

/// A valid request and the records that it stores, for the tests that cover every operation: see
/// [`Sample`].
pub(super) fn sample(values: &Values) -> Sample {
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

pub(super) fn problems() -> Problems {
    let body = json!([{ "id": 1_u64 << 53, "modelid": "a" }, { "id": 1 }]);
    let body = json!({ "aIModelsSelectedToAddToOrg": body });
    let taken = vec![models(&[(2, "b")]), models(&[(1, "a"), (1, "b")])];
    vec![
        ("ModelTaken/other_id", taken),
        ("InvalidBody/invalid_body", vec![body]),
    ]
}

/// Several models can conflict, and `errors` points at the first entry of each. Only a caller with a key
/// sees an `id`.
#[tokio::test]
async fn a_409_points_at_the_first_entry_of_each_conflicting_model_in_the_array_as_sent() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let stored = models(&[(-1, "a"), (2, "b"), (3, "c")]);
    acme.post(PATH, stored).await.assert_success();
    let before = app.records(Table::MODELS).await;

    for (entries, detail, conflicts) in [
        (
            &[(-1, "a"), (-1, "a"), (5, "d"), (9, "b")][..],
            "1 model already exists with another `id`. Nothing was added.",
            &[(3, " 2")][..],
        ),
        (
            &[(9, "a"), (2, "b"), (9, "a"), (8, "c"), (8, "c")],
            "2 models already exist with another `id`. Nothing was added.",
            &[(0, " -1"), (3, " 3")],
        ),
        (
            &[(9, "c")],
            "1 model already exists with another `id`. Nothing was added.",
            &[(0, " 3")],
        ),
    ] {
        for (client, has_key) in [(app.anonymous(), false), (acme.clone(), true)] {
            let response = client.post(PATH, models(entries)).await;

            response.assert_problem(409, "model_taken");
            let problem = response.body.unwrap();
            assert_eq!(problem["reason"], "other_id");
            assert_eq!(problem["resource_id"], Value::Null);
            assert_eq!(problem["detail"], detail);
            let errors = conflicts.iter().map(|(index, id)| {
                let id = if has_key { id } else { "" };
                json!({
                    "pointer": format!("#/aIModelsSelectedToAddToOrg/{index}/id"),
                    "rule": "conflict",
                    "detail": format!("differs from the existing model's `id`{id}"),
                })
            });
            assert_eq!(problem["errors"], Value::from_iter(errors), "{entries:?}");
        }
    }

    assert_eq!(app.records(Table::MODELS).await, before);
}

#[tokio::test]
async fn returns_422_for_two_ids_of_one_model() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();

    let entries = models(&[(1, "a"), (2, "b"), (3, "a")]);
    let response = anonymous.post(PATH, entries).await;

    response.assert_problem(422, "invalid_body");
    let violation = json!({
        "pointer": "#/aIModelsSelectedToAddToOrg/2",
        "rule": "conflict",
        "detail": "conflicts with the entry at index 0",
    });
    assert_eq!(response.body.unwrap()["errors"], json!([violation]));
    assert!(app.records(Table::MODELS).await.is_empty());
}
