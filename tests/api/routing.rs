//! Which paths and methods the API has, and how it reads the identifiers in a path.

use serde_json::json;
use workspace_management::store::Table;

use crate::support::{TestApp, event};

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

#[tokio::test]
async fn every_method_except_post_returns_405() {
    let app = TestApp::new().await;

    for method in ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW"] {
        for path in [
            "/api/v1/org/acme/dataStores/create",
            "/api/v1/bot/playground/bot-7/voice",
        ] {
            let event = event(method, path, &Default::default(), None);
            let response = app.send(event).await;
            response.assert_problem(405, "method_not_allowed");
            assert_eq!(response.headers["allow"], "POST", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_malformed_identifier_returns_400_with_the_name_of_its_parameter() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let long_org = format!("/api/v1/org/{}/dataStores/create", "x".repeat(129));
    let long_type = format!("/api/v1/org/acme/addModelsToOrg/{}", "x".repeat(65));
    let rows = [
        ("org_id", "/api/v1/org//dataStores/create"),
        ("org_id", "/api/v1/org/a%20b/dataStores/create"),
        ("org_id", "/api/v1/org/a%2Fb/dataStores/create"),
        ("org_id", "/api/v1/org/%2541/dataStores/create"),
        ("org_id", "/api/v1/org/%FF/dataStores/create"),
        ("org_id", "/api/v1/org/ä/dataStores/create"),
        ("org_id", "/api/v1/org/a%23b/dataStores/create"),
        ("org_id", &long_org),
        ("modelType", "/api/v1/org/acme/addModelsToOrg/a+b"),
        ("modelType", &long_type),
        (
            "project_id",
            "/api/v1/project/acme/a,b/createNewTeamOnProject",
        ),
        (
            "project_id",
            "/api/v1/project/acme/%00/createLoggingInstance",
        ),
        (
            "team_id",
            "/api/v1/project/acme/apollo/a;b/addUsersToTheTeam",
        ),
        ("id", "/api/v1/bot/playground/a=b/voice"),
    ];

    for (parameter, path) in rows {
        let response = acme.post(path, json!({})).await;
        let found = (response.status, response.code());
        assert_eq!(found, (400, "malformed_path"), "{path}: {response:?}");
        let detail = response.body.unwrap()["detail"].to_string();
        let parameter = format!("`{parameter}`");
        assert!(detail.contains(&parameter), "{path}: {detail}");
    }
}

#[tokio::test]
async fn percent_encoding_does_not_change_the_meaning_of_a_path() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    app.register("a~b:c@d.e_f-G").await;
    let body = json!({ "dataStoreName": "Papers" });

    for path in [
        "/api/v1/org/a~b:c@d.e_f-G/dataStores/create",
        "/api/v1/org/a%7Eb%3Ac%40d%2Ee%5Ff%2DG/dataStores/create",
        "/%61pi/v1/org/a%7eb%3ac%40d.e_f-G/dataStores/create",
    ] {
        anonymous.post(path, body.clone()).await.assert_success();
    }

    let data_store = app.only_record(Table::DATA_STORES).await;
    assert_eq!(data_store["org_id"], "a~b:c@d.e_f-G");
}

#[tokio::test]
async fn identifiers_are_case_sensitive() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    let path = "/api/v1/org/Acme/dataStores/create";

    let response = anonymous
        .post(path, json!({ "dataStoreName": "Papers" }))
        .await;

    response.assert_problem(404, "no_such_organization");
}
