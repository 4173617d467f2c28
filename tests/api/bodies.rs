//! The body of each operation: the service stores what `openapi.yaml` allows, and rejects the rest.

use serde_json::{Value, json};
use test_support::fixtures;
use workspace_management::{operations::Operation, store::Table};

use crate::{
    openapi::{contract, find, path_parameters, resolve},
    operations::{Sample, Values},
};
use test_support::TestApp;

/// The schema of an operation's body.
fn body_schema(contract: &Value, operation: Operation) -> &Value {
    let (_, description) = find(contract, operation);
    &description["requestBody"]["content"]["application/json"]["schema"]
}

/// A value in a body that violates a rule of its schema.
#[derive(Debug)]
struct Invalid {
    /// The place of the value, such as `/usersAddingToTeam/0/userid`.
    pointer: String,
    /// `None` if it is absent.
    value: Option<Value>,
    rule: &'static str,
    limit: Option<i64>,
}

impl Invalid {
    /// A valid body with this value.
    fn replace_in(&self, body: &Value) -> Value {
        let mut body = body.clone();
        let Some(value) = &self.value else {
            let (parent, name) = self.pointer.rsplit_once('/').unwrap();
            let parent = body.pointer_mut(parent).unwrap().as_object_mut();
            parent.unwrap().remove(name).unwrap();
            return body;
        };
        *body.pointer_mut(&self.pointer).unwrap() = value.clone();
        body
    }
}

/// The values that violate one rule of a schema, but not those of its fields or entries.
fn violations_of_rules(schema: &Value, valid: &Value) -> Vec<(&'static str, Value)> {
    let limit = |rule: &str| schema[rule].as_i64().expect(rule);
    let mut found = match valid {
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
        found.push(("minLength", json!("")));
    }
    // Otherwise the types are an array with `null`.
    if schema["type"].is_string() {
        found.push(("type", Value::Null));
    }
    found
}

/// Every way in which one value of a valid body can violate a schema.
fn invalid_values(contract: &Value, schema: &Value, pointer: &str, valid: &Value) -> Vec<Invalid> {
    let schema = resolve(contract, schema);
    let found = violations_of_rules(schema, valid).into_iter();
    let found = found.map(|(rule, value)| Invalid {
        pointer: pointer.to_owned(),
        value: Some(value),
        rule,
        limit: schema[rule].as_i64(),
    });
    let mut found: Vec<_> = found.collect();
    if let Value::Array(entries) = valid {
        let pointer = format!("{pointer}/0");
        let in_entry = invalid_values(contract, &schema["items"], &pointer, &entries[0]);
        found.extend(in_entry);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{name}");
        let value = valid.get(name).expect("a sample has every field");
        found.extend(invalid_values(contract, property, &pointer, value));
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

fn is_required(schema: &Value, name: &str) -> bool {
    let mut required = schema["required"].as_array().unwrap().iter();
    required.any(|other| other == name)
}

/// A body is checked before the team is read, which does not exist here.
#[tokio::test]
async fn a_value_that_violates_a_rule_of_the_contract_is_rejected_with_the_rule_and_its_limit() {
    let contract = contract();
    let rules = &contract["components"]["schemas"]["Violation"]["properties"]["rule"];
    let rules = rules["description"].as_str().unwrap();
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    for operation in Operation::ALL {
        let sample = Sample::of(*operation, &Values::example());
        let schema = body_schema(&contract, *operation);
        for invalid in invalid_values(&contract, schema, "", &sample.body) {
            let body = invalid.replace_in(&sample.body);

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

/// The smallest or the largest value that a schema allows. `number` makes entries different.
fn extreme(contract: &Value, schema: &Value, is_largest: bool, number: usize) -> Value {
    let schema = resolve(contract, schema);
    let limit = |min: &str, max: &str| &schema[if is_largest { max } else { min }];
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().unwrap().iter();
            properties
                .filter(|(name, _)| is_largest || is_required(schema, name))
                .map(|(name, value)| (name, extreme(contract, value, is_largest, number)))
                .collect()
        }
        Some("array") => {
            let length = limit("minItems", "maxItems").as_u64().unwrap() as usize;
            let entries = 0..length;
            entries
                .map(|number| extreme(contract, &schema["items"], is_largest, number))
                .collect()
        }
        Some("integer") => limit("minimum", "maximum").clone(),
        Some("boolean") => json!(is_largest),
        _ => {
            let length = limit("minLength", "maxLength").as_u64().unwrap() as usize;
            // 𝄞 has four bytes, the maximum in UTF-8.
            json!(format!("{number:𝄞>length$}"))
        }
    }
}

/// For example, 100 records with the longest keys that DynamoDB accepts, in one transaction.
#[tokio::test]
async fn the_smallest_and_the_largest_request_of_each_operation_are_stored() {
    let contract = contract();
    for is_largest in [false, true] {
        let app = TestApp::new().await;
        let length = |schema: &Value| {
            let limit = if is_largest { "maxLength" } else { "minLength" };
            schema[limit].as_u64().unwrap() as usize
        };
        let id = "x".repeat(length(&contract["components"]["schemas"]["Identifier"]));
        app.register(&id).await;
        app.insert(Table::TEAMS, fixtures::team(&id, &id, &id, "X"))
            .await;
        let client = app.client_with_new_key(&id).await;
        for operation in Operation::ALL {
            let (path, description) = find(&contract, *operation);
            let parameters = path_parameters(&contract, description);
            let path = parameters.fold(path.to_owned(), |path, parameter| {
                let value = "x".repeat(length(resolve(&contract, &parameter["schema"])));
                let placeholder = format!("{{{}}}", parameter["name"].as_str().unwrap());
                path.replace(&placeholder, &value)
            });
            let schema = body_schema(&contract, *operation);
            let body = extreme(&contract, schema, is_largest, 0);
            let count = async || app.all_records().await.values().flatten().count();
            let before = count().await;

            client.post(&path, body.clone()).await.assert_success();

            let entries = body.as_object().unwrap().values().find_map(Value::as_array);
            let expected = entries.map_or(1, Vec::len);
            assert_eq!(count().await, before + expected, "{operation:?}");
        }
    }
}

#[test]
fn the_table_of_fields_has_the_limits_of_the_contract() {
    let documentation = include_str!("../../docs/api.md");
    let contract = contract();
    let mut checked = 0;

    for operation in Operation::ALL {
        let body = Sample::of(*operation, &Values::example()).body;
        let schema = body_schema(&contract, *operation);
        for invalid in invalid_values(&contract, schema, "", &body) {
            if !["maxLength", "maxItems"].contains(&invalid.rule) {
                continue;
            }
            let field = invalid.pointer.rsplit('/').next().unwrap();
            let (field, limit) = (format!("`{field}`"), invalid.limit.unwrap());
            let mut rows = documentation.lines().filter(|line| line.starts_with("| `"));
            let has_row =
                rows.any(|row| row.contains(&field) && row.contains(&format!("–{limit} ")));
            assert!(
                has_row,
                "docs/api.md has no row for the field {field} with the limit {limit}"
            );
            checked += 1;
        }
    }
    assert!(checked > Operation::ALL.len());
}
