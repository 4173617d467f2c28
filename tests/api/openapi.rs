//! The service has the paths, path parameters, credentials and headers that `openapi.yaml`
//! describes. `bodies.rs` compares the bodies, and `problems.rs` the problem examples.

use std::collections::BTreeSet;

use serde_json::json;
use workspace_local::demo::DEMO_KEY;
use workspace_management::{operations::Operation, records::ApiKeyRecord};
use workspace_records::{
    contract::{Description, contract, resolve},
    tables::template,
};
use yaml_serde::Mapping;

use test_support::{TestApp, event};

/// `tests/agreement.rs` compares the paths with the template. `credential_matrix.rs` tests that the
/// service accepts anonymous callers only where a key is optional.
#[tokio::test]
async fn the_service_has_the_paths_and_optional_keys_of_the_contract() {
    let app = TestApp::new().await;
    let paths = contract()["paths"].as_mapping().unwrap();
    assert_eq!(paths.len(), Operation::ALL.len());

    for operation in Operation::ALL {
        let description = Description::of(*operation);
        let security = description.object["security"].as_sequence().unwrap();
        let allows_anonymous = security.contains(&Mapping::new().into());
        assert_eq!(allows_anonymous, operation.is_key_optional());
        let path = description
            .path
            .replace("{org_id}", "acme")
            .replace(['{', '}'], "");
        for method in ["GET", "PUT", "OPTIONS", "BREW"] {
            let event = event(method, &path, &Default::default(), None);
            let response = app.send(event).await;
            response.assert_problem(405, "method_not_allowed");
            assert_eq!(response.headers["allow"], "POST");
        }
        // With a key that may call only this operation, the path must be that of this operation.
        let name = operation.name().to_owned();
        let only_this = |key: &mut ApiKeyRecord| key.operations = Some(vec![name]);
        let key = app.issue_key("acme", only_this).await;
        let response = app.client(&key).post(&path, json!({})).await;
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
        let problem = (response.status, response.code());
        assert_eq!(problem, (404, "no_such_path"), "{path}: {response:?}");
        assert_eq!(response.headers.len(), 3, "{response:?}");
    }

    assert!(app.take_requests().is_empty());
}

#[tokio::test]
async fn path_parameters_are_accepted_and_rejected_as_the_contract_describes() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    for operation in Operation::ALL {
        let description = Description::of(*operation);
        for parameter in description.path_parameters() {
            assert_eq!(parameter["required"], true, "{parameter:?}");
            let schema = resolve(&parameter["schema"]);
            let max = schema["maxLength"].as_u64().unwrap() as usize;
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
                (format!("a{DEMO_KEY}"), false),
                (format!("awsk_{DEMO_KEY}"), false),
                // An encoded character has the same meaning as the character.
                ("%41%30.%5F%7e%3A%40-".to_owned(), true),
                ("a%20b".to_owned(), false),
                ("a%2Fb".to_owned(), false),
                ("a%23b".to_owned(), false),
                ("%2541".to_owned(), false),
                ("%C3%A9".to_owned(), false),
                ("%FF".to_owned(), false),
                ("%00".to_owned(), false),
                ("a%0A".to_owned(), false),
                ("a+b".to_owned(), false),
            ] {
                let path = description.path_with(|other| match other == parameter {
                    true => value.clone(),
                    false => other["example"].as_str().unwrap().to_owned(),
                });
                let response = acme.post(&path, json!({})).await;
                let malformed = &response.body.unwrap()["parameter"];
                let expected = parameter["name"].as_str().filter(|_| !is_valid);
                assert_eq!(malformed.as_str(), expected, "{operation:?} {path}");
            }
        }
    }
}

#[test]
fn pages_of_allowed_origins_can_use_every_header_of_the_contract() {
    let cors =
        &template().unwrap()["Resources"]["Api"]["Properties"]["CorsConfiguration"]["Fn::If"][1];
    let is_listed = |list: &str, name: &str| {
        let names = cors[list].as_sequence().unwrap();
        names.contains(&name.to_lowercase().into())
    };
    let components = &contract()["components"];
    let mut response_headers = BTreeSet::new();
    for response in components["responses"].as_mapping().unwrap().values() {
        let headers = response["headers"].as_mapping().into_iter().flatten();
        response_headers.extend(headers.map(|(name, _)| name.as_str().unwrap()));
    }
    assert!(response_headers.len() >= 5, "{response_headers:?}");
    for name in response_headers {
        assert!(is_listed("exposeHeaders", name), "{name} is not exposed");
    }
    for parameter in components["parameters"].as_mapping().unwrap().values() {
        let name = parameter["name"].as_str().unwrap();
        if parameter["in"] == "header" {
            assert!(is_listed("allowHeaders", name), "{name} is not allowed");
        }
    }
}
