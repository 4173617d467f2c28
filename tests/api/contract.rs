//! `openapi.yaml` says what the service does: routes, keys, bodies and their limits, failures.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use workspace_management::{
    error::{Error, Violation},
    operations::NAMES,
    store::Table,
};

use crate::{
    agreement::declared_routes,
    support::{Answer, World},
};

fn contract() -> Value {
    yaml_serde::from_str(include_str!("../../openapi.yaml")).unwrap()
}

/// What a `$ref` refers to; anything else is itself.
fn resolved<'a>(contract: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let pointer = reference.strip_prefix('#').unwrap();
            resolved(contract, contract.pointer(pointer).expect(reference))
        }
        None => value,
    }
}

/// The operation of that name, with its path.
fn operation<'a>(contract: &'a Value, name: &str) -> (&'a str, &'a Value) {
    let paths = contract["paths"].as_object().unwrap();
    let mut operations = paths
        .iter()
        .map(|(path, item)| (path.as_str(), &item["post"]));
    operations
        .find(|(_, operation)| operation["operationId"] == name)
        .expect(name)
}

#[test]
fn the_contract_has_the_routes_of_the_template() {
    let contract = contract();
    let routes = declared_routes();
    assert_eq!(contract["paths"].as_object().unwrap().len(), routes.len());

    for (name, (method, path)) in routes {
        let (of_contract, operation) = operation(&contract, &name);
        assert_eq!((of_contract, "POST"), (&*path, &*method), "{name}");
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let parameters: Vec<_> = parameters
            .map(|parameter| resolved(&contract, parameter))
            .inspect(|parameter| {
                assert_eq!(
                    (&parameter["in"], &parameter["required"]),
                    (&json!("path"), &json!(true))
                )
            })
            .map(|parameter| format!("{{{}}}", parameter["name"].as_str().unwrap()))
            .collect();
        let of_path: Vec<_> = path
            .split('/')
            .filter(|segment| segment.starts_with('{'))
            .collect();
        assert_eq!(parameters, of_path, "{name}");
    }
}

#[tokio::test]
async fn the_contract_says_which_operations_are_open() {
    let contract = contract();
    let world = World::new().await;

    for name in NAMES {
        let (path, operation) = operation(&contract, name);
        let is_open = operation["security"]
            .as_array()
            .unwrap()
            .contains(&json!({}));
        let answer = world.anonymous().post(&filled(path), json!({})).await;
        assert_eq!(answer.status, if is_open { 422 } else { 401 }, "{name}");
    }
}

/// The path with the values of the contract's examples.
fn filled(path: &str) -> String {
    let contract = contract();
    let parameters = contract["components"]["parameters"].as_object().unwrap();
    parameters
        .values()
        .fold(path.to_owned(), |path, parameter| {
            let name = format!("{{{}}}", parameter["name"].as_str().unwrap());
            path.replace(&name, parameter["example"].as_str().unwrap())
        })
}

/// Bodies at a limit that the contract sets and just beyond it: where, the value, and whether it is within.
fn at_the_limits(
    contract: &Value,
    schema: &Value,
    at: &str,
    example: &Value,
) -> Vec<(String, Value, bool)> {
    let mut schema = resolved(contract, schema).clone();
    for part in schema["allOf"].clone().as_array().into_iter().flatten() {
        let part = resolved(contract, part).as_object().unwrap().clone();
        schema.as_object_mut().unwrap().extend(part);
    }
    let is_a = |kind: &str| {
        schema["type"] == kind
            || schema["type"]
                .as_array()
                .is_some_and(|kinds| kinds.contains(&json!(kind)))
    };
    let mut rows = vec![(Value::Null, is_a("null")), (json!({ "other": [] }), false)];
    if is_a("string") {
        let longest = schema["maxLength"].as_u64().unwrap() as usize;
        let shortest = schema["minLength"].as_u64().unwrap_or(0);
        rows.extend([
            (json!("x".repeat(longest)), true),
            (json!("x".repeat(longest + 1)), false),
            (json!("é".repeat(longest - 1) + "x"), true),
            (json!(""), shortest == 0),
            (json!("x\u{0}"), false),
            (json!("x\u{9f}"), false),
            (json!("x\ny"), schema["default"] == ""),
            (json!(1), false),
        ]);
        if at.ends_with("Name") {
            rows.push((json!(" \u{3000} "), false));
            rows.push((json!("!?"), at == "/projectName"));
        }
    } else if is_a("integer") {
        let (least, most) = (
            schema["minimum"].as_i64().unwrap(),
            schema["maximum"].as_i64().unwrap(),
        );
        rows.extend([least, most].map(|within| (json!(within), true)));
        rows.extend([least - 1, most + 1].map(|beyond| (json!(beyond), false)));
        rows.extend([json!(1.5), json!("1"), json!(true)].map(|other| (other, false)));
    } else if is_a("boolean") {
        rows.extend([json!(true), json!(false)].map(|within| (within, true)));
        rows.extend([json!("true"), json!(0)].map(|other| (other, false)));
    }
    let mut found: Vec<_> = rows
        .into_iter()
        .map(|(value, within)| (at.to_owned(), value, within))
        .collect();
    if is_a("object") {
        found.clear();
        for (name, property) in schema["properties"].as_object().unwrap() {
            found.extend(at_the_limits(
                contract,
                property,
                &format!("{at}/{name}"),
                &example[name],
            ));
        }
    } else if is_a("array") {
        let most = schema["maxItems"].as_u64().unwrap() as usize;
        let entries = |count: usize| {
            let entry = |number: usize| {
                let mut entry = example[0].clone();
                let name = if entry["userid"].is_null() {
                    "modelid"
                } else {
                    "userid"
                };
                entry[name] = json!(format!("entry-{number}"));
                entry
            };
            Value::from_iter((0..count).map(entry))
        };
        found.extend(
            [(0, false), (1, true), (most, true), (most + 1, false)]
                .map(|(count, within)| (at.to_owned(), entries(count), within)),
        );
        found.extend(at_the_limits(
            contract,
            &schema["items"],
            &format!("{at}/0"),
            &example[0],
        ));
    }
    found
}

#[tokio::test]
async fn bodies_are_accepted_and_refused_as_the_contract_says() {
    let contract = contract();
    let world = World::new().await;
    let acme = world.acme().await;
    let team = json!({ "project": "acme#apollo", "team_id": "research-team" });
    world.put(Table::TEAMS, team).await;
    let mut count = 0;

    for name in NAMES {
        let (path, operation) = operation(&contract, name);
        let content =
            &resolved(&contract, &operation["requestBody"])["content"]["application/json"];
        let schema = resolved(&contract, &content["schema"]);
        let mut rows = at_the_limits(&contract, schema, "", &content["example"]);
        rows.push((String::new(), content["example"].clone(), true));
        for property in schema["properties"].as_object().unwrap().keys() {
            let mut without = content["example"].clone();
            without.as_object_mut().unwrap().remove(property);
            let is_required = schema["required"]
                .as_array()
                .unwrap()
                .contains(&json!(property));
            rows.push((String::new(), without, !is_required));
        }
        for (at, value, within) in rows {
            let mut body = content["example"].clone();
            *body.pointer_mut(&at).unwrap() = value;
            let answer = acme.post(&filled(path), body.clone()).await;
            // What another row created is another's name: it was read, and is no bad body.
            let is_read = [204, 409].contains(&answer.status);
            assert_eq!(
                (is_read, answer.status == 422),
                (within, !within),
                "{name} {at} {body}: {answer:?}"
            );
            assert!(
                operation["responses"][answer.status.to_string()].is_object(),
                "{name}: {answer:?}"
            );
            if !within && !at.is_empty() {
                let violations = answer.violations();
                assert!(
                    violations
                        .iter()
                        .all(|violation| violation.starts_with(&format!("#{at}"))),
                    "{violations:?}"
                );
            }
            count += 1;
        }
    }

    println!("{count} bodies");
}

#[tokio::test]
async fn ids_in_paths_are_accepted_and_refused_as_the_contract_says() {
    let contract = contract();
    let world = World::new().await;
    let acme = world.acme().await;

    for name in NAMES {
        let (path, operation) = operation(&contract, name);
        for parameter in operation["parameters"].as_array().unwrap() {
            let parameter = resolved(&contract, parameter);
            let schema = resolved(&contract, &parameter["schema"]);
            let longest = schema["maxLength"].as_u64().unwrap() as usize;
            let placed = |value: &str| {
                let name = format!("{{{}}}", parameter["name"].as_str().unwrap());
                filled(&path.replace(&name, value))
            };
            for (value, within) in [
                ("x".repeat(longest), true),
                ("x".repeat(longest + 1), false),
                ("A0._~:@-".to_owned(), true),
                (String::new(), false),
                ("a%20b".to_owned(), false),
                ("%C3%A9".to_owned(), false),
            ] {
                let answer: Answer = acme.post(&placed(&value), json!({})).await;
                let is_malformed = answer.code() == "malformed_path";
                assert_eq!(is_malformed, !within, "{name} {value}: {answer:?}");
            }
        }
    }
}

#[test]
fn the_contract_shows_the_problems_that_the_service_sends() {
    let contract = contract();
    let violation = Violation {
        pointer: "#/usersAddingToTeam/3/userid".to_owned(),
        detail: "must be a string, but is an integer".to_owned(),
    };
    let cause = || "cause".into();
    let sent = [
        Error::MalformedPath {
            parameter: "org_id",
            longest: 128,
        },
        Error::NotJson("it is empty".to_owned()),
        Error::Unauthenticated { sent: true },
        Error::OtherOrganization,
        Error::OperationNotAllowed,
        Error::NoSuchOrganization,
        Error::NoSuchTeam,
        Error::NameTaken,
        Error::ModelTaken,
        Error::BodyTooLarge { limit: 262_144 },
        Error::InvalidBody(vec![violation]),
        Error::Internal(cause()),
        Error::Unavailable(cause()),
    ];
    let mut shown = BTreeSet::new();

    for (name, response) in contract["components"]["responses"].as_object().unwrap() {
        let examples = &response["content"]["application/problem+json"]["examples"];
        for (code, example) in examples.as_object().into_iter().flatten() {
            let problem = &example["value"];
            let error = sent
                .iter()
                .find(|error| error.kind().1 == code)
                .expect(code);
            let (status, _, title) = error.kind();
            assert_eq!(problem["code"], *code, "{name}");
            assert_eq!(
                problem["type"],
                format!("urn:workspace-management:problem:{code}")
            );
            assert_eq!(problem["status"], status.as_u16(), "{name}");
            assert_eq!(problem["title"], title, "{name}");
            assert_eq!(problem["detail"], error.to_string(), "{name}");
            shown.insert(code.as_str());
        }
    }

    assert_eq!(shown, sent.iter().map(|error| error.kind().1).collect());
}
