//! Problem documents: the examples in `openapi.yaml` are what the service sends.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};
use test_support::fixtures;
use workspace_management::{operations::Operation, store::Table};

use crate::{
    openapi::{contract, find, resolve},
    operations::{Sample, Values, problems},
};
use test_support::{TestApp, TestClient, event, send};

const TEAM: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

/// The examples of problems in the contract: the operation, the name of its response and the
/// example.
fn example_problems(contract: &Value) -> Vec<(String, &str, &Value)> {
    let mut examples = Vec::new();
    for operation in Operation::ALL {
        let (_, description) = find(contract, *operation);
        for response in description["responses"].as_object().unwrap().values() {
            let name = response["$ref"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap();
            let content = &resolve(contract, response)["content"]["application/problem+json"];
            for (example, value) in content["examples"].as_object().into_iter().flatten() {
                examples.push((
                    format!("{name}/{example}"),
                    operation.name(),
                    &value["value"],
                ));
            }
        }
    }
    examples
}

/// A name of an example of a problem, and a client, path and body whose response is the example. Of
/// several requests with the same name, it is that to the last one.
type Request<'a> = (&'static str, TestClient<'a>, String, Value);

async fn requests_with_problems<'a>(app: &'a TestApp) -> Vec<Request<'a>> {
    const USERS: &str = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    const VOICE: &str = "/api/v1/bot/playground/bot-7/voice";
    const DISABLED_ORGANIZATION: &str = "/api/v1/org/initech/dataStores/create";
    let acme = app.client_with_new_key("acme").await;
    let restricted = app
        .issue_key("acme", |key| key.operations = Some(vec![]))
        .await;
    let (anonymous, restricted) = (app.anonymous(), app.with_key(&restricted));
    let initech = fixtures::disabled_organization("initech");
    app.insert(Table::ORGANIZATIONS, initech).await;
    let disabled = app.client_with_new_key("initech").await;
    let mut marked = fixtures::team("acme", "apollo", "docs", "Docs");
    marked["removing_id"] = json!(fixtures::RANDOM_ID);
    app.insert(Table::TEAMS, marked).await;
    let rejected = app.with_key("wsk_mistyped");
    let absent = "/api/v1/org/absent/dataStores/create";
    let (parent, globex) = (
        absent.replace("absent", ".."),
        absent.replace("absent", "globex"),
    );
    let user = json!({ "usersAddingToTeam": [{ "userid": "ada" }] });
    let long = json!({ "teamName": "x".repeat(262_144) });
    let marked = json!({ "teamName": "Docs" });
    let empty = json!({});
    #[rustfmt::skip] // keeps a table short
    let requests = [
        ("MalformedRequest/malformed_path", &acme, &*parent, &empty),
        ("MalformedRequest/not_json", &acme, TEAM, &Value::Null),
        ("Unauthenticated/no_key", &anonymous, TEAM, &empty),
        ("Unauthenticated/rejected_key", &rejected, TEAM, &empty),
        ("Forbidden/other_organization", &acme, &globex, &empty),
        ("Forbidden/operation_not_allowed", &restricted, TEAM, &empty),
        ("KeyForbidden/operation_not_allowed", &restricted, VOICE, &empty),
        ("Forbidden/organization_disabled", &disabled, DISABLED_ORGANIZATION, &empty),
        ("KeyForbidden/organization_disabled", &disabled, VOICE, &empty),
        ("NoSuchOrganization/no_such_organization", &anonymous, absent, &empty),
        ("NoSuchTeam/no_such_team", &acme, USERS, &user),
        ("TeamTaken/being_removed", &acme, TEAM, &marked),
        ("BodyTooLarge/body_too_large", &acme, TEAM, &long),
    ];
    let requests = requests
        .map(|(name, client, path, body)| (name, client.clone(), path.to_owned(), body.clone()));
    let mut requests = requests.to_vec();
    for operation in Operation::ALL {
        let path = Sample::of(*operation, &Values::example()).path;
        for (name, bodies) in problems(*operation) {
            let bodies = bodies.into_iter();
            requests.extend(bodies.map(|body| (name, acme.clone(), path.clone(), body)));
        }
    }
    requests
}

#[tokio::test]
async fn the_examples_of_problems_are_what_the_service_sends() {
    let contract = contract();
    let app = TestApp::new().await;
    let mut sent = BTreeMap::new();
    for (name, client, path, body) in requests_with_problems(&app).await {
        let response = match body {
            Value::Null => client.post_text(&path, "").await,
            body => client.post(&path, body).await,
        };
        sent.insert(name.to_owned(), response.body.unwrap_or_default());
    }
    app.delete_table(Table::TEAMS).await;
    let acme = app.client_with_new_key("acme").await;
    let response = acme.post(TEAM, json!({ "teamName": "A" })).await;
    sent.insert("Internal/internal".to_owned(), response.body.unwrap());
    let body = json!({ "teamName": "A" }).to_string();
    let event = event("POST", TEAM, &acme.headers, Some(&body));
    app.dynamodb_requests.take();
    let response = send(&app.service, &event, Duration::from_millis(400)).await;
    assert!(app.dynamodb_requests.take().is_empty());
    sent.insert("Unavailable/unavailable".to_owned(), response.body.unwrap());

    let mut documented = BTreeSet::new();
    for (name, operation, example) in example_problems(&contract) {
        let problem = sent.get_mut(&name);
        let problem = problem.unwrap_or_else(|| panic!("no request gets {name}"));
        problem["request_id"] = example["request_id"].clone();
        assert_eq!(example, problem, "{name} of {operation}");
        documented.insert(name);
    }
    assert_eq!(documented, sent.into_keys().collect());
}

#[test]
fn the_table_of_errors_has_the_codes_of_the_contract() {
    let documentation = include_str!("../../docs/api.md");
    for (name, _, problem) in example_problems(&contract()) {
        let (code, status) = (problem["code"].as_str().unwrap(), &problem["status"]);
        let row = format!("| `{code}` | {status} |");
        assert!(
            documentation.contains(&row),
            "{name}: docs/api.md has no row {row}"
        );
        if let Some(reason) = problem["reason"].as_str() {
            let row = format!("| `{reason}` |");
            assert!(
                documentation.contains(&row),
                "{name}: docs/api.md has no row {row}"
            );
        }
    }
}
