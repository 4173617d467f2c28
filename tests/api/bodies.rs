//! The body of each operation: the service stores what `openapi.yaml` allows, and rejects the rest.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use test_support::{TestApp, TestResponse, event, fixtures};
use workspace_local::demo::DEMO_KEY;
use workspace_management::{operations::Operation, records::Table};
use workspace_records::contract::{Description, contract, resolve};
use yaml_serde::Value as Schema;

use crate::operations::{Sample, pointers};

const DATA_STORES: &str = "/api/v1/org/acme/dataStores/create";
const VOICE: &str = "/api/v1/bot/playground/bot-7/voice";

fn body_schema(operation: Operation) -> &'static Schema {
    resolve(&Description::of(operation).body()["schema"])
}

/// A change of a valid body that violates a rule of the schema.
#[derive(Debug)]
struct Invalid {
    /// The JSON pointer to the value, such as `/usersAddingToTeam/0/userid`.
    pointer: String,
    /// The new value. `None` removes the field.
    value: Option<Value>,
    rule: &'static str,
    limit: Option<i64>,
}

impl Invalid {
    /// Replaces the value in a valid body, or removes the field.
    fn apply_to(&self, body: &Value) -> Value {
        let mut body = body.clone();
        match &self.value {
            Some(value) => *body.pointer_mut(&self.pointer).unwrap() = value.clone(),
            None => {
                let (parent, name) = self.pointer.rsplit_once('/').unwrap();
                let parent = body.pointer_mut(parent).unwrap().as_object_mut();
                parent.unwrap().remove(name).unwrap();
            }
        }
        body
    }
}

/// Values that violate one rule of the schema itself, not of its fields or entries. Each is after
/// the rule that it violates. `valid` is a valid value.
fn violations_of_rules(schema: &Schema, valid: &Value) -> Vec<(&'static str, Value)> {
    let limit = |rule: &str| schema[rule].as_i64().expect(rule);
    let mut violations = match valid {
        Value::String(_) => {
            let too_long = "x".repeat(limit("maxLength") as usize + 1);
            vec![
                ("type", json!(1)),
                ("maxLength", json!(too_long)),
                ("pattern", json!("a\u{7}b")),
            ]
        }
        Value::Number(_) => vec![
            ("type", json!("1")),
            ("type", json!(1.5)),
            ("minimum", json!(limit("minimum") - 1)),
            ("minimum", json!(-1e300)),
            ("maximum", json!(limit("maximum") + 1)),
            ("maximum", json!(1e300)),
        ],
        Value::Bool(_) => vec![("type", json!("true"))],
        Value::Array(entries) => {
            let too_many = vec![&entries[0]; limit("maxItems") as usize + 1];
            vec![
                ("type", json!({})),
                ("minItems", json!([])),
                ("maxItems", json!(too_many)),
            ]
        }
        Value::Object(_) => vec![("type", json!([]))],
        Value::Null => panic!("a sample contains null"),
    };
    if schema.get("minLength").is_some() {
        violations.push(("minLength", json!("")));
    }
    // If `type` is an array, it contains `null`.
    if schema["type"].is_string() {
        violations.push(("type", Value::Null));
    }
    violations
}

/// Every way in which a value at this pointer in a valid body can violate its schema.
fn invalid_values(schema: &'static Schema, pointer: &str, valid: &Value) -> Vec<Invalid> {
    let schema = resolve(schema);
    let mut found = Vec::new();
    for (rule, value) in violations_of_rules(schema, valid) {
        found.push(Invalid {
            pointer: pointer.to_owned(),
            value: Some(value),
            rule,
            limit: schema[rule].as_i64(),
        });
    }
    if let Value::Array(entries) = valid {
        let pointer = format!("{pointer}/0");
        let in_entry = invalid_values(&schema["items"], &pointer, &entries[0]);
        found.extend(in_entry);
    }
    for (name, property) in properties(schema) {
        let pointer = format!("{pointer}/{name}");
        let value = valid.get(name).expect("a sample has every field");
        found.extend(invalid_values(property, &pointer, value));
        if is_required(schema, name) {
            found.push(Invalid {
                pointer,
                value: None,
                rule: "required",
                limit: None,
            });
        }
    }
    found
}

/// The names of the fields of an object, and their schemas.
fn properties(schema: &Schema) -> impl Iterator<Item = (&str, &Schema)> {
    let properties = schema["properties"].as_mapping().into_iter().flatten();
    properties.map(|(name, property)| (name.as_str().unwrap(), property))
}

fn is_required(schema: &Schema, name: &str) -> bool {
    let required = schema["required"].as_sequence().unwrap();
    required.iter().any(|it| it == name)
}

/// The team does not exist, but the body is checked before the team is read.
#[tokio::test]
async fn a_value_that_violates_a_rule_of_the_contract_is_rejected_with_the_rule_and_its_limit() {
    let rules = &contract()["components"]["schemas"]["Violation"]["properties"]["rule"];
    let rules = rules["description"].as_str().unwrap();
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    for operation in Operation::ALL {
        let sample = Sample::example(*operation);
        for invalid in invalid_values(body_schema(*operation), "", &sample.body) {
            let body = invalid.apply_to(&sample.body);

            let response = acme.post(&sample.path, body).await;

            let case = format!("{operation:?} {invalid:?}: {response:?}");
            assert_eq!(response.code(), "invalid_body", "{case}");
            let problem = response.body.unwrap();
            let [violation] = &problem["errors"].as_array().unwrap()[..] else {
                panic!("{case}");
            };
            assert_eq!(
                violation["pointer"],
                format!("#{}", invalid.pointer),
                "{case}"
            );
            assert_eq!(violation["rule"], invalid.rule, "{case}");
            assert_eq!(violation["limit"].as_i64(), invalid.limit, "{case}");
            let rule = format!("`{}`", invalid.rule);
            assert!(rules.contains(&rule), "the contract does not name {rule}");
        }
    }

    assert!(app.all_records().await.values().all(Vec::is_empty));
}

/// The smallest or the largest value that a schema allows. `number` makes the entries of an array
/// different.
fn extreme(schema: &'static Schema, is_largest: bool, number: usize) -> Value {
    let schema = resolve(schema);
    let limit = |min: &str, max: &str| &schema[if is_largest { max } else { min }];
    match schema["type"].as_str() {
        Some("object") => {
            let mut object = json!({});
            for (name, property) in properties(schema) {
                if is_largest || is_required(schema, name) {
                    object[name] = extreme(property, is_largest, number);
                }
            }
            object
        }
        Some("array") => {
            let length = limit("minItems", "maxItems").as_u64().unwrap() as usize;
            (0..length)
                .map(|number| extreme(&schema["items"], is_largest, number))
                .collect()
        }
        Some("integer") => json!(limit("minimum", "maximum")),
        Some("boolean") => json!(is_largest),
        _ => {
            let length = limit("minLength", "maxLength").as_u64().unwrap() as usize;
            // 𝄞 has four bytes, the maximum in UTF-8.
            json!(format!("{number:𝄞>length$}"))
        }
    }
}

/// The largest request of some operations stores 100 records with the longest keys that DynamoDB
/// accepts, in one transaction.
#[tokio::test]
async fn the_smallest_and_the_largest_request_of_each_operation_are_stored() {
    for is_largest in [false, true] {
        let app = TestApp::new().await;
        let length = |schema: &Schema| {
            let limit = if is_largest { "maxLength" } else { "minLength" };
            schema[limit].as_u64().unwrap() as usize
        };
        let id = "x".repeat(length(&contract()["components"]["schemas"]["Identifier"]));
        app.register(&id).await;
        app.insert(Table::TEAMS, fixtures::team(&id, &id, &id, "X"))
            .await;
        let client = app.client_with_new_key(&id).await;
        for operation in Operation::ALL {
            let description = Description::of(*operation);
            let path = description
                .path_with(|parameter| "x".repeat(length(resolve(&parameter["schema"]))));
            let body = extreme(body_schema(*operation), is_largest, 0);
            let count = async || app.all_records().await.values().flatten().count();
            let before = count().await;

            client.post(&path, body.clone()).await.assert_success();

            let entries = body.as_object().unwrap().values().find_map(Value::as_array);
            let expected = entries.map_or(1, Vec::len);
            assert_eq!(count().await, before + expected, "{operation:?}");
        }
    }
}

#[tokio::test]
async fn a_body_with_an_api_key_is_rejected_and_the_key_is_not_repeated() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let key = DEMO_KEY;
    let acme = app.client(key);
    let before = app.all_records().await;
    for operation in Operation::ALL {
        let sample = Sample::example(*operation);
        let mut bodies = Vec::new();
        for pointer in pointers(&sample.body) {
            let mut body = sample.body.clone();
            if let Value::String(text) = body.pointer_mut(&pointer).unwrap() {
                *text = format!("{text} {key}.");
                bodies.push(body.to_string());
            }
        }
        let with_field = |name: &str, value: &str| {
            let mut body = sample.body.clone();
            body[name] = json!([value]);
            body.to_string()
        };
        bodies.push(with_field("unknown", key));
        bodies.push(with_field("unknown", &format!("é{key}0")));
        bodies.push(with_field(key, "a"));
        let mut deep = json!(key);
        for _ in 0..100 {
            deep = json!({ "é".repeat(64): deep });
        }
        bodies.push(json!({ "unknown": deep }).to_string());
        let escaped = key.replacen('w', r"\u0077", 1);
        bodies.push(with_field("unknown", "PLACEHOLDER").replace("PLACEHOLDER", &escaped));
        for strict in ["", "handling=strict"] {
            let client = acme.clone().header("prefer", strict);
            for body in &bodies {
                let response = client.post_text(&sample.path, body).await;
                response.assert_problem(422, "invalid_body");
                let problem = response.body.unwrap();
                let violation = &problem["errors"][0];
                assert_eq!(violation["detail"], "must not contain an API key");
                assert!(violation["pointer"].as_str().unwrap().len() <= 1000);
                assert!(!problem.to_string().contains("wsk_"), "{problem}");
            }
        }
    }
    assert_eq!(app.all_records().await, before);
}

#[tokio::test]
async fn a_text_that_only_resembles_an_api_key_is_accepted() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous_client();
    let wrong_checksum = DEMO_KEY.replace("Key1", "Key2");
    for name in ["wsk_", &DEMO_KEY[..66], &wrong_checksum] {
        let body = json!({ "dataStoreName": name });
        let response = anonymous.post(DATA_STORES, body).await;
        response.assert_success();
    }
    assert_eq!(app.records(Table::DATA_STORES).await.len(), 3);
}

/// Each violation in a response as its pointer and its detail.
pub fn violations(response: &TestResponse) -> Vec<String> {
    response.assert_problem(422, "invalid_body");
    let problem = response.body.as_ref().unwrap();
    let mut found = Vec::new();
    for violation in problem["errors"].as_array().unwrap() {
        let [pointer, detail] = ["pointer", "detail"].map(|name| violation[name].as_str().unwrap());
        found.push(format!("{pointer} {detail}"));
    }
    found
}

#[tokio::test]
async fn a_violation_names_the_expected_and_the_actual_type() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    for (value, name) in [
        (json!(null), "null"),
        (json!(1), "an integer"),
        (json!(-1), "an integer"),
        (json!(1.5), "a number"),
        (json!("true"), "a string"),
        (json!([]), "an array"),
        (json!({}), "an object"),
    ] {
        let body = json!({ "type": "alloy", "enabled": value });
        let response = acme.post(VOICE, body).await;
        let expected = format!("#/enabled must be a boolean, but is {name}");
        assert_eq!(violations(&response), [expected]);
    }
    let response = acme.post(VOICE, json!([true])).await;
    let expected = ["# must be an object, but is an array"];
    assert_eq!(violations(&response), expected);
    let response = acme.post(VOICE, json!({ "type": "alloy" })).await;
    assert_eq!(violations(&response), ["#/enabled is required"]);
}

#[tokio::test]
async fn the_place_where_a_body_stops_being_json_is_reported() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let nested = "[".repeat(200);
    for (body, what_is_wrong) in [
        (&b""[..], "empty"),
        (b"\xef\xbb\xbf \n", "empty"),
        (b"teamName=Docs", "invalid at line 1, column 2"),
        (b"{\"flag\": tr", "invalid at line 1, column 11"),
        (b"{\n \"flag\": yes}", "invalid at line 2, column 10"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", "invalid at line 1, column 1"),
        (b"{\"id\": 1e-400.}", "invalid at line 1, column 14"),
        (b"{\"id\": 01e-400}", "invalid at line 1, column 9"),
        (b"{\"id\": --1e-400}", "invalid at line 1, column 9"),
        // Before the body is parsed, the first number is replaced.
        (b"{\"id\": 1e400, yes}", "invalid at line 1, column 15"),
        (b"{} {}", "invalid at line 1, column 4"),
        // half a surrogate pair
        (br#"{"flag": "\ud800"}"#, "invalid at line 1, column 17"),
        (b"{\"flag\": \"\xe9\"}", "invalid at line 1, column 11"),
        (nested.as_bytes(), "invalid at line 1, column 128"),
    ] {
        let mut event = event("POST", VOICE, &acme.headers, Some(&STANDARD.encode(body)));
        event["isBase64Encoded"] = json!(true);
        let response = app.send(event).await;
        response.assert_problem(400, "not_json");
        let expected = format!("The request body is not JSON. It is {what_is_wrong}.");
        let detail = response.body.unwrap()["detail"].take();
        assert_eq!(detail, expected, "{}", body.escape_ascii());
    }
}

#[tokio::test]
async fn one_byte_order_mark_is_skipped() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let marked = "\u{feff}{\"type\": \"alloy\", \"enabled\": true}";
    acme.post_text(VOICE, marked).await.assert_success();
}

#[tokio::test]
async fn the_last_of_several_fields_with_the_same_name_is_used() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let body = r#"{"type": "alloy", "enabled": 1, "enabled": true}"#;
    acme.post_text(VOICE, body).await.assert_success();
    let body = r#"{"type": "alloy", "enabled": true, "enabled": 1}"#;
    let response = acme.post_text(VOICE, body).await;
    let expected = ["#/enabled must be a boolean, but is an integer"];
    assert_eq!(violations(&response), expected);
}
