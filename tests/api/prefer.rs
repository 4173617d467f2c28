//! `Prefer: return=headers-only`, with which a client gets the id of what it creates. `events.rs`
//! tests that every source of events passes it on.

use serde_json::json;
use workspace_management::{operation::Operation, store::Table};

use crate::{
    openapi::{contract, find, resolve},
    operations::{Sample, Values},
    support::{TestApp, TestResponse},
};

const PREFER: &str = "return=headers-only";

/// Whether the contract says that an operation accepts the preference.
fn derives_id(operation: &Operation) -> bool {
    let contract = contract();
    let (_, description) = find(&contract, *operation);
    let mut parameters = description["parameters"].as_array().unwrap().iter();
    parameters.any(|parameter| resolve(&contract, parameter)["name"] == "Prefer")
}

#[track_caller]
fn assert_id(response: &TestResponse, id: &str) {
    response.assert_success();
    assert_eq!(response.headers["x-resource-id"], id, "{response:?}");
    assert_eq!(response.headers["preference-applied"], PREFER);
}

#[tokio::test]
async fn the_id_is_that_of_the_stored_record_also_when_it_existed_before() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let preferring = acme.clone().header("Prefer", PREFER);

    let deriving: Vec<_> = Operation::ALL.iter().filter(|op| derives_id(op)).collect();
    assert!(deriving.len() >= 2, "{deriving:?}");
    for operation in deriving {
        let sample = Sample::of(*operation, &Values::example());
        let table = sample.records[0].table;
        for _ in 0..2 {
            let response = preferring.post(&sample.path, sample.body.clone()).await;
            let record = app.only_record(table).await;
            assert_id(&response, record[table.primary_key[1]].as_str().unwrap());
        }
    }

    let path = "/api/v1/project/acme/apollo/papers/addUsersToTheTeam";
    let users = json!({ "usersAddingToTeam": [{ "userid": "ada" }] });
    preferring.post(path, users).await.assert_success();
    assert_eq!(
        app.only_record(Table::TEAM_MEMBERS).await["team"],
        "acme#apollo#papers"
    );
}

#[tokio::test]
async fn the_response_has_no_id_without_the_preference() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let acme = app.client_with_new_key("acme").await;

    for operation in Operation::ALL {
        let sample = Sample::of(*operation, &Values::example());
        for client in [
            acme.clone(),
            acme.clone().header("prefer", "return=minimal, wait=1"),
        ] {
            let response = client.post(&sample.path, sample.body.clone()).await;
            response.assert_success();
            assert!(
                !response.headers.contains_key("x-resource-id"),
                "{operation:?}"
            );
            assert!(
                !response.headers.contains_key("preference-applied"),
                "{operation:?}"
            );
        }
    }
}

#[tokio::test]
async fn operations_that_derive_no_id_ignore_the_preference() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let acme = app.client_with_new_key("acme").await;
    let preferring = acme.header("prefer", PREFER);

    for operation in Operation::ALL {
        let sample = Sample::of(*operation, &Values::example());
        let response = preferring.post(&sample.path, sample.body).await;
        response.assert_success();
        let has_id = response.headers.contains_key("x-resource-id");
        assert_eq!(has_id, derives_id(operation), "{operation:?}");
    }
}

/// `TestResponse` checks that no failure has the header.
#[tokio::test]
async fn a_failure_has_no_id_header() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let preferring = acme.header("prefer", PREFER);
    let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let team = |description: &str| json!({ "teamName": "A", "teamDescription": description });
    preferring.post(path, team("x")).await.assert_success();

    let response = preferring.post(path, team("y")).await;

    response.assert_problem(409, "name_taken");
    assert_eq!(response.body.unwrap()["resource_id"], "a");
    let response = preferring.post(path, json!({})).await;
    response.assert_problem(422, "invalid_body");
}
