//! Paths and methods.

use serde_json::json;
use workspace_management::store::Table;

use crate::support::{TestApp, event};

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;

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
        let answer = acme.post(path, json!({ "dataStoreName": "a" })).await;
        assert_eq!(
            (answer.status, answer.code()),
            (404, "no_such_path"),
            "{path}"
        );
    }
    assert!(app.requests.take().is_empty());
}

#[tokio::test]
async fn a_known_path_takes_post_alone() {
    let app = TestApp::new().await;

    for method in ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW"] {
        for path in [
            "/api/v1/org/acme/dataStores/create",
            "/api/v1/bot/playground/bot-7/voice",
        ] {
            let answer = app
                .send(event(method, path, &Default::default(), None))
                .await;
            answer.assert_problem(405, "method_not_allowed");
            assert_eq!(answer.headers["allow"], "POST");
        }
    }
}

#[tokio::test]
async fn a_malformed_identifier_is_named() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    let long = "x".repeat(129);
    let long_type = "x".repeat(65);
    let rows = [
        ("/api/v1/org//dataStores/create", "org_id"),
        ("/api/v1/org/a%20b/dataStores/create", "org_id"),
        ("/api/v1/org/a%2Fb/dataStores/create", "org_id"),
        ("/api/v1/org/%2541/dataStores/create", "org_id"),
        ("/api/v1/org/%FF/dataStores/create", "org_id"),
        ("/api/v1/org/ä/dataStores/create", "org_id"),
        ("/api/v1/org/a%23b/dataStores/create", "org_id"),
        (&format!("/api/v1/org/{long}/dataStores/create"), "org_id"),
        ("/api/v1/org/acme/addModelsToOrg/a+b", "modelType"),
        (
            &format!("/api/v1/org/acme/addModelsToOrg/{long_type}"),
            "modelType",
        ),
        (
            "/api/v1/project/acme/a,b/createNewTeamOnProject",
            "project_id",
        ),
        (
            "/api/v1/project/acme/%00/createLoggingInstance",
            "project_id",
        ),
        (
            "/api/v1/project/acme/apollo/a;b/addUsersToTheTeam",
            "team_id",
        ),
        ("/api/v1/bot/playground/a=b/voice", "id"),
    ];

    for (path, parameter) in rows {
        let answer = acme.post(path, json!({})).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, "malformed_path"),
            "{path}: {answer:?}"
        );
        let detail = answer.body.unwrap()["detail"].to_string();
        assert!(
            detail.contains(&format!("`{parameter}`")),
            "{path}: {detail}"
        );
    }
}

#[tokio::test]
async fn an_encoded_path_and_a_decoded_one_mean_the_same() {
    let app = TestApp::new().await;
    app.register("a~b:c@d.e_f-G").await;
    let body = json!({ "dataStoreName": "Papers" });

    for path in [
        "/api/v1/org/a~b:c@d.e_f-G/dataStores/create",
        "/api/v1/org/a%7Eb%3Ac%40d%2Ee%5Ff%2DG/dataStores/create",
        "/%61pi/v1/org/a%7eb%3ac%40d.e_f-G/dataStores/create",
    ] {
        app.anonymous()
            .post(path, body.clone())
            .await
            .assert_success();
    }

    assert_eq!(
        app.only_record(Table::DATA_STORES).await["org_id"],
        "a~b:c@d.e_f-G"
    );
}

#[tokio::test]
async fn identifiers_are_case_sensitive() {
    let app = TestApp::new().await;

    let body = json!({ "dataStoreName": "Papers" });
    app.anonymous()
        .post("/api/v1/org/Acme/dataStores/create", body)
        .await
        .assert_problem(404, "no_such_organization");
}
