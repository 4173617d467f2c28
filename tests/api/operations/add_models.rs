//! Tests of `add_models`, which adds chat models to an organization.

use serde_json::{Value, json};
use test_support::TestApp;
use workspace_management::records::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues};

const PATH: &str = "/api/v1/org/acme/addModelsToOrg/chat";

/// A body that adds models with these `id`s and names.
fn models(models: &[(i64, &str)]) -> Value {
    let models: Vec<_> = models
        .iter()
        .map(|(id, modelid)| json!({ "id": id, "modelid": modelid }))
        .collect();
    json!({ "aIModelsSelectedToAddToOrg": models })
}

pub(super) fn sample(values: &SampleValues) -> Sample {
    let mut entries = Vec::new();
    let mut records = Vec::new();
    for (name, id) in &values.entries {
        entries.push((*id, name.as_str()));
        let key = json!({ "org_id": "acme", "model": format!("chat#{name}") });
        let content = json!({ "id": id });
        records.push(ExpectedRecord::new(Table::MODELS, key, content));
    }
    Sample::new(PATH, models(&entries), records)
}

pub(super) fn problems() -> ProblemExamples {
    let entries = json!([{ "id": 1_u64 << 53, "modelid": "a" }, { "id": 1 }]);
    let invalid = json!({ "aIModelsSelectedToAddToOrg": entries });
    let conflict = vec![models(&[(2, "b")]), models(&[(1, "a"), (1, "b")])];
    vec![
        ("ModelTaken/other_id", conflict),
        ("InvalidBody/invalid_body", vec![invalid]),
    ]
}

/// Several models can conflict. `errors` points at the first entry of each conflicting model. Only
/// a caller with a key sees the existing `id`.
#[tokio::test]
async fn a_409_points_at_the_first_entry_of_each_conflicting_model() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let existing = models(&[(-1, "a"), (2, "b"), (3, "c")]);
    acme.post(PATH, existing).await.assert_success();
    let before = app.records(Table::MODELS).await;

    for (entries, detail, conflicts) in [
        (
            &[(-1, "a"), (-1, "a"), (5, "d"), (9, "b")][..],
            "1 model already exists with a different `id`. Nothing was added.",
            &[(3, " 2")][..],
        ),
        (
            &[(9, "a"), (2, "b"), (9, "a"), (8, "c"), (8, "c")],
            "2 models already exist with a different `id`. Nothing was added.",
            &[(0, " -1"), (3, " 3")],
        ),
        (
            &[(9, "c")],
            "1 model already exists with a different `id`. Nothing was added.",
            &[(0, " 3")],
        ),
    ] {
        for (client, has_key) in [(app.anonymous_client(), false), (acme.clone(), true)] {
            let response = client.post(PATH, models(entries)).await;

            response.assert_problem(409, "model_taken");
            let problem = response.body.unwrap();
            assert_eq!(problem["reason"], "other_id");
            assert_eq!(problem["resource_id"], Value::Null);
            assert_eq!(problem["detail"], detail);
            let mut errors = Vec::new();
            for (index, id) in conflicts {
                let id = if has_key { id } else { "" };
                errors.push(json!({
                    "pointer": format!("#/aIModelsSelectedToAddToOrg/{index}/id"),
                    "rule": "conflict",
                    "detail": format!("differs from the existing model's `id`{id}"),
                }));
            }
            assert_eq!(problem["errors"], json!(errors), "{entries:?}");
        }
    }

    assert_eq!(app.records(Table::MODELS).await, before);
}

#[tokio::test]
async fn an_id_is_any_number_whose_exact_value_is_an_integer() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let digits = "1".repeat(400);
    let cases = [
        ("3.0", Ok(3)),
        ("1E+2", Ok(100)),
        ("-100e-2", Ok(-1)),
        ("-120.0e-1", Ok(-12)),
        ("-0.0", Ok(0)),
        ("0e-999", Ok(0)),
        ("0e99999999999999999999", Ok(0)),
        ("9007199254740991.0", Ok(9_007_199_254_740_991_i64)),
        ("10e-2", Err("type")),
        ("1e-400", Err("type")),
        ("1e-99999999999999999999", Err("type")),
        ("4503599627370496.5", Err("type")),
        ("-9007199254740991.1", Err("type")),
        ("1.00000000000000000001", Err("type")),
        ("9007199254740992", Err("maximum")),
        ("1e400", Err("maximum")),
        (&digits, Err("maximum")),
        ("-1e99999999999999999999", Err("minimum")),
    ];
    for (index, (id, expected)) in cases.into_iter().enumerate() {
        // A string stays, even if a part of it looks like a number.
        let modelid = format!(r#"{index}: "1e-400\"#);
        let entry = format!(r#"{{ "modelid": {}, "id": {id} }}"#, json!(modelid));
        let body = format!(r#"{{ "aIModelsSelectedToAddToOrg": [{entry}] }}"#);
        let response = acme.post_text(PATH, &body).await;
        match expected {
            Ok(stored) => {
                response.assert_success();
                let records = app.records(Table::MODELS).await;
                let record = records.iter().find(|record| record["model_id"] == modelid);
                assert_eq!(record.unwrap()["id"], stored, "{id}");
            }
            Err(rule) => {
                response.assert_problem(422, "invalid_body");
                let violation = &response.body.unwrap()["errors"][0];
                assert_eq!(violation["rule"], rule, "{id}");
            }
        }
    }
}

#[tokio::test]
async fn returns_422_for_a_model_with_two_ids() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous_client();
    // The indexes count the duplicate.
    let entries = [(1, "a"), (1, "a"), (2, "b"), (3, "b")];

    let response = anonymous.post(PATH, models(&entries)).await;

    response.assert_problem(422, "invalid_body");
    let violation = json!({
        "pointer": "#/aIModelsSelectedToAddToOrg/3",
        "rule": "conflict",
        "detail": "conflicts with the entry at index 2",
    });
    assert_eq!(response.body.unwrap()["errors"], json!([violation]));
    assert!(app.records(Table::MODELS).await.is_empty());
}
