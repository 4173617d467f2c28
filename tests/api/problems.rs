//! The problem examples in `openapi.yaml` are the problems that the service sends.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use test_support::{TestApp, TestClient, event, fixtures, send};
use workspace_management::{operations::Operation, records::Table};
use workspace_records::contract::{Description, resolve};

use crate::{
    load::shed_response,
    operations::{Sample, problems},
};

const TEAM: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

/// The problem examples of the operations in the contract. A name such as `TeamTaken/other_name` is
/// the name of the response and the name of the example.
fn problem_examples() -> BTreeMap<String, Value> {
    let mut examples = BTreeMap::new();
    for operation in Operation::ALL {
        let responses = &Description::of(*operation).object["responses"];
        for response in responses.as_mapping().unwrap().values() {
            let (_, response_name) = response["$ref"].as_str().unwrap().rsplit_once('/').unwrap();
            let content = &resolve(response)["content"]["application/problem+json"];
            for (name, example) in content["examples"].as_mapping().into_iter().flatten() {
                let name = format!("{response_name}/{}", name.as_str().unwrap());
                examples.insert(name, json!(example["value"]));
            }
        }
    }
    examples
}

/// The name of a problem example, and the client, path and body of a request that gets this
/// problem. If several requests have the same name, the last one gets the problem.
type Request<'a> = (&'static str, TestClient<'a>, String, Value);

async fn requests_with_problems<'a>(app: &'a TestApp) -> Vec<Request<'a>> {
    const USERS: &str = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    const DISABLED_ORGANIZATION: &str = "/api/v1/org/initech/dataStores/create";
    let acme = app.client_with_new_key("acme").await;
    let anonymous = app.anonymous_client();
    let restricted_key = app
        .issue_key("acme", |key| key.operations = Some(vec![]))
        .await;
    let restricted = app.client(&restricted_key);
    let projects = ["zeus", "hermes"].map(str::to_owned).to_vec();
    let elsewhere_key = app
        .issue_key("acme", |key| key.projects = Some(projects))
        .await;
    let elsewhere = app.client(&elsewhere_key);
    let initech = fixtures::disabled_organization("initech");
    app.insert(Table::ORGANIZATIONS, initech).await;
    let disabled = app.client_with_new_key("initech").await;
    let mut marked = fixtures::team("acme", "apollo", "docs", "Docs");
    marked["removing_id"] = json!(fixtures::RANDOM_ID);
    app.insert(Table::TEAMS, marked).await;
    let rejected = app.client("wsk_mistyped");
    let absent = "/api/v1/org/absent/dataStores/create";
    let malformed = absent.replace("absent", "..");
    let globex = absent.replace("absent", "globex");
    let user = json!({ "usersAddingToTeam": [{ "userid": "ada" }] });
    let long = json!({ "teamName": "x".repeat(262_144) });
    let marked = json!({ "teamName": "Docs" });
    let empty = json!({});
    #[rustfmt::skip] // keeps a table short
    let requests = [
        ("MalformedRequest/malformed_path", &acme, &*malformed, &empty),
        ("MalformedRequest/not_json", &acme, TEAM, &Value::Null),
        ("Unauthenticated/no_key", &anonymous, TEAM, &empty),
        ("Unauthenticated/rejected_key", &rejected, TEAM, &empty),
        ("Forbidden/other_organization", &acme, &globex, &empty),
        ("Forbidden/operation_not_allowed", &restricted, TEAM, &empty),
        ("Forbidden/project_not_allowed", &elsewhere, TEAM, &empty),
        ("Forbidden/organization_disabled", &disabled, DISABLED_ORGANIZATION, &empty),
        ("NoSuchOrganization/no_such_organization", &anonymous, absent, &empty),
        ("NoSuchTeam/no_such_team", &acme, USERS, &user),
        ("TeamTaken/being_removed", &acme, TEAM, &marked),
        ("BodyTooLarge/body_too_large", &acme, TEAM, &long),
    ];
    let mut requests = requests
        .map(|(name, client, path, body)| (name, client.clone(), path.to_owned(), body.clone()))
        .to_vec();
    for operation in Operation::ALL {
        let path = Sample::example(*operation).path;
        for (name, bodies) in problems(*operation) {
            for body in bodies {
                requests.push((name, acme.clone(), path.clone(), body));
            }
        }
    }
    requests
}

#[tokio::test]
async fn the_service_sends_every_problem_example() {
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
    app.take_requests();
    let response = send(&app.service, &event, Duration::from_millis(400)).await;
    assert!(app.take_requests().is_empty());
    sent.insert("Unavailable/unavailable".to_owned(), response.body.unwrap());

    let response = shed_response().await;
    sent.insert("Unavailable/shed".to_owned(), response.body.unwrap());

    let examples = problem_examples();
    for (name, example) in &examples {
        let problem = sent.get_mut(name);
        let problem = problem.unwrap_or_else(|| panic!("no request gets {name}"));
        problem["request_id"] = example["request_id"].clone();
        assert_eq!(example, problem, "{name}");
    }
    let names: Vec<_> = examples.keys().collect();
    assert_eq!(names, sent.keys().collect::<Vec<_>>());
}
