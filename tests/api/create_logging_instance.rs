//! `create_logging_instance`.

use serde_json::json;
use workspace_management::store::Table;

use crate::support::{World, assert_made_by, key_id, refuses};

const PATH: &str = "/api/v1/project/acme/apollo/createLoggingInstance";

#[tokio::test]
async fn create_logging_instance_writes_the_record_of_the_project() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;

    world
        .holder(&key)
        .post(PATH, json!({ "projectName": " Apollo … " }))
        .await
        .is_success();

    let logging_instance = world.record(Table::LOGGING_INSTANCES).await;
    assert_eq!(logging_instance["org_id"], "acme");
    assert_eq!(logging_instance["project_id"], "apollo");
    assert_eq!(logging_instance["project_name"], "Apollo …");
    assert_made_by(&logging_instance, &key_id(&key));
}

#[tokio::test]
async fn create_logging_instance_changes_nothing_when_it_is_repeated() {
    let world = World::new().await;
    let acme = world.acme().await;
    acme.post(PATH, json!({ "projectName": "Apollo" }))
        .await
        .is_success();
    let first = world.record(Table::LOGGING_INSTANCES).await;

    acme.post(PATH, json!({ "projectName": "Apollo" }))
        .await
        .is_success();

    assert_eq!(world.record(Table::LOGGING_INSTANCES).await, first);
}

#[tokio::test]
async fn create_logging_instance_refuses_another_name_for_the_project() {
    let world = World::new().await;
    let acme = world.acme().await;
    acme.post(PATH, json!({ "projectName": "Apollo" }))
        .await
        .is_success();
    let first = world.record(Table::LOGGING_INSTANCES).await;

    acme.post(PATH, json!({ "projectName": "Gemini" }))
        .await
        .is(409, "name_taken");

    assert_eq!(world.record(Table::LOGGING_INSTANCES).await, first);
}

#[tokio::test]
async fn create_logging_instance_takes_a_name_that_makes_no_slug() {
    let world = World::new().await;

    world
        .acme()
        .await
        .post(PATH, json!({ "projectName": "🚀" }))
        .await
        .is_success();

    assert_eq!(
        world.record(Table::LOGGING_INSTANCES).await["project_name"],
        "🚀"
    );
}

#[tokio::test]
async fn create_logging_instance_refuses_every_bad_body() {
    refuses(
        PATH,
        Table::LOGGING_INSTANCES,
        &[
            ("nothing", json!({}), &["#/projectName is required"]),
            (
                "a boolean",
                json!({ "projectName": false }),
                &["#/projectName must be a string, but is a boolean"],
            ),
            (
                "an object",
                json!({ "projectName": {} }),
                &["#/projectName must be a string, but is an object"],
            ),
            (
                "a blank name",
                json!({ "projectName": " " }),
                &["#/projectName must not be empty"],
            ),
            (
                "a name of 101 characters",
                json!({ "projectName": "x".repeat(101) }),
                &["#/projectName must have at most 100 characters, but has 101"],
            ),
        ],
    )
    .await;
}
