//! `openapi.yaml` describes what the service does: its paths, credentials and headers. `bodies.rs`
//! compares the bodies, and `problems.rs` the examples of problems.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use workspace_management::{api_key::KeyRecord, operations::Operation};
use workspace_records::tables::template;

use test_support::{TestApp, event};

pub fn contract() -> Value {
    yaml_serde::from_str(include_str!("../../openapi.yaml")).unwrap()
}

/// The target of a `$ref`, or the value itself.
pub fn resolve<'a>(contract: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let pointer = reference.strip_prefix('#').unwrap();
            resolve(contract, contract.pointer(pointer).expect(reference))
        }
        None => value,
    }
}

/// The path of an operation and its description.
pub fn find(contract: &Value, operation: Operation) -> (&str, &Value) {
    let mut paths = contract["paths"].as_object().unwrap().iter();
    let found = paths.find(|(_, item)| item["post"]["operationId"] == operation.name());
    let (path, item) =
        found.unwrap_or_else(|| panic!("openapi.yaml has no operationId {}", operation.name()));
    (path, &item["post"])
}

/// The parameters of an operation that are in its path.
pub fn path_parameters<'a>(
    contract: &'a Value,
    description: &'a Value,
) -> impl Iterator<Item = &'a Value> {
    let parameters = description["parameters"].as_array().unwrap().iter();
    parameters
        .map(|parameter| resolve(contract, parameter))
        .filter(|parameter| parameter["in"] == "path")
        .inspect(|parameter| assert_eq!(parameter["required"], true, "{parameter}"))
}

/// The path with the example of each parameter.
fn with_examples(contract: &Value, path: &str) -> String {
    let parameters = contract["components"]["parameters"].as_object().unwrap();
    parameters
        .values()
        .fold(path.to_owned(), |path, parameter| {
            let placeholder = format!("{{{}}}", parameter["name"].as_str().unwrap());
            path.replace(&placeholder, parameter["example"].as_str().unwrap())
        })
}

/// `tests/agreement.rs` compares them with the template.
#[tokio::test]
async fn the_service_has_the_paths_of_the_contract() {
    let contract = contract();
    let app = TestApp::new().await;
    let paths = contract["paths"].as_object().unwrap();
    assert_eq!(paths.len(), Operation::ALL.len());

    for operation in Operation::ALL {
        let (path, description) = find(&contract, *operation);
        let parameters: Vec<_> = path_parameters(&contract, description)
            .map(|parameter| format!("{{{}}}", parameter["name"].as_str().unwrap()))
            .collect();
        let segments = path.split('/');
        let in_path: Vec<_> = segments
            .filter(|segment| segment.starts_with('{'))
            .collect();
        assert_eq!(parameters, in_path, "{operation:?}");

        let path = path.replace("{org_id}", "acme").replace(['{', '}'], "");
        for method in ["GET", "PUT", "OPTIONS", "BREW"] {
            let event = event(method, &path, &Default::default(), None);
            let response = app.send(event).await;
            response.assert_problem(405, "method_not_allowed");
        }
        // A key that is allowed to call only this operation identifies it.
        let name = operation.name().to_owned();
        let only_this = |key: &mut KeyRecord| key.operations = Some(vec![name]);
        let key = app.issue_key("acme", only_this).await;
        let response = app.with_key(&key).post(&path, json!({})).await;
        response.assert_problem(422, "invalid_body");
    }
}

#[tokio::test]
async fn an_unknown_path_returns_404_without_a_request_to_dynamodb() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    for path in [
        "",
        "/",
        "/api/v1",
        "/api/v1/org/acme/dataStores",
        "/api/v1/org/acme/dataStores/create/",
        "/api/v1/org/acme/dataStores/create/more",
        "/api/v1/org/acme/datastores/create",
        "//api/v1/org/acme/dataStores/create",
        "/api/v2/org/acme/dataStores/create",
        "/prod/api/v1/org/acme/dataStores/create",
        "/api/v1/project/acme/apollo",
        "/api/v1/bot/playground/bot-7",
        "/api/v1/org/acme%2FdataStores%2Fcreate",
    ] {
        let response = acme.post(path, json!({ "dataStoreName": "a" })).await;
        let found = (response.status, response.code());
        assert_eq!(found, (404, "no_such_path"), "{path}: {response:?}");
    }

    assert!(app.dynamodb_requests.take().is_empty());
}

/// `credential_matrix.rs` tests that the service keeps to it.
#[test]
fn the_contract_shows_which_operations_allow_anonymous_callers() {
    let contract = contract();
    for operation in Operation::ALL {
        let (_, description) = find(&contract, *operation);
        let security = description["security"].as_array().unwrap();
        let allows_anonymous = security.contains(&json!({}));
        assert_eq!(
            allows_anonymous,
            operation.allows_anonymous(),
            "{operation:?}"
        );
    }
}

#[tokio::test]
async fn path_parameters_are_accepted_and_rejected_as_the_contract_describes() {
    let contract = contract();
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    for operation in Operation::ALL {
        let (path, description) = find(&contract, *operation);
        for parameter in path_parameters(&contract, description) {
            let schema = resolve(&contract, &parameter["schema"]);
            let max = schema["maxLength"].as_u64().unwrap() as usize;
            let placeholder = format!("{{{}}}", parameter["name"].as_str().unwrap());
            for (value, is_valid) in [
                ("x".repeat(max), true),
                ("x".repeat(max + 1), false),
                ("A0._~:@-".to_owned(), true),
                ("...".to_owned(), true),
                (".".to_owned(), false),
                ("..".to_owned(), false),
                (String::new(), false),
                ("wsk_a".to_owned(), false),
                ("Wsk_a".to_owned(), true),
                // An encoded character is the same as the character.
                ("%41%30.%5F%7e%3A%40-".to_owned(), true),
                ("a%20b".to_owned(), false),
                ("a%2Fb".to_owned(), false),
                ("a%23b".to_owned(), false),
                ("%2541".to_owned(), false),
                ("%C3%A9".to_owned(), false),
                ("%FF".to_owned(), false),
                ("%00".to_owned(), false),
                ("a+b".to_owned(), false),
            ] {
                let path = with_examples(&contract, &path.replace(&placeholder, &value));
                let response = acme.post(&path, json!({})).await;
                let malformed = response.body.unwrap()["parameter"].take();
                let expected = if is_valid {
                    &Value::Null
                } else {
                    &parameter["name"]
                };
                assert_eq!(malformed, *expected, "{operation:?} {path}");
            }
        }
    }
}

#[test]
fn pages_of_allowed_origins_can_use_every_header_of_the_contract() {
    let contract = contract();
    let cors =
        &template().unwrap()["Resources"]["Api"]["Properties"]["CorsConfiguration"]["Fn::If"][1];
    let has = |list: &str, name: &str| {
        let mut names = cors[list].as_sequence().unwrap().iter();
        names.any(|other| other.as_str() == Some(&name.to_lowercase()))
    };
    let responses = contract["components"]["responses"].as_object().unwrap();
    let headers = responses.values().map(|response| &response["headers"]);
    let headers = headers.filter_map(Value::as_object);
    let exposed: BTreeSet<_> = headers.flat_map(|headers| headers.keys()).collect();
    assert!(exposed.len() >= 5, "{exposed:?}");
    for name in exposed {
        assert!(has("exposeHeaders", name), "{name} is not exposed");
    }
    let parameters = contract["components"]["parameters"].as_object().unwrap();
    for parameter in parameters.values() {
        let name = parameter["name"].as_str().unwrap();
        let is_allowed = parameter["in"] != "header" || has("allowHeaders", name);
        assert!(is_allowed, "{name} is not allowed");
    }
}
