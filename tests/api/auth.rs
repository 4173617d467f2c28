//! Who may call, and who is refused with which answer.

use std::time::{Duration, SystemTime};

use serde_json::json;
use workspace_management::{
    api_key::{ApiKey, mint},
    auth::AnonymousOperations,
    store::Table,
};

use crate::support::{Sender, Setting, World, rand8};

const TEAM: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";
const DATA_STORE: &str = "/api/v1/org/acme/dataStores/create";

async fn create_team(sender: &Sender<'_>) -> crate::support::Answer {
    sender.post(TEAM, json!({ "teamName": "Research" })).await
}

#[tokio::test]
async fn a_key_is_taken_with_the_scheme_in_any_case_and_bare() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;

    for credential in [
        format!("Bearer {key}"),
        format!("bearer {key}"),
        format!("BEARER   {key} "),
        key.clone(),
    ] {
        let sender = world.anonymous().with("Authorization", &credential);
        create_team(&sender).await.is_success();
    }
}

#[tokio::test]
async fn a_missing_credential_is_asked_for() {
    let world = World::new().await;

    let answer = create_team(&world.anonymous()).await;

    answer.is(401, "unauthenticated");
    assert_eq!(answer.headers["www-authenticate"], "Bearer");
    assert!(world.sent.take().is_empty());
}

#[tokio::test]
async fn every_bad_credential_gets_the_same_answer() {
    let world = World::new().await;
    let valid = world.issue("acme", |_| {}).await;
    let expired = world
        .issue("acme", |key| {
            key.expires_at = Some("2026-01-02T00:00:00Z".to_owned())
        })
        .await;
    let unreadable = world
        .issue("acme", |key| key.expires_at = Some("tomorrow".to_owned()))
        .await;
    let revoked = world
        .issue("acme", |key| {
            key.revoked_at = Some("2026-01-02T00:00:00Z".to_owned())
        })
        .await;
    let unknown = mint(rand8(), [7; 32]);
    let other_secret = with_secret(&valid, "x");
    let rows = [
        ("an empty header", String::new()),
        ("another scheme", format!("Basic {valid}")),
        ("the scheme alone", "Bearer".to_owned()),
        ("the scheme and a space", "Bearer ".to_owned()),
        ("two keys", format!("Bearer {valid} {valid}")),
        (
            "two keys joined by a comma",
            format!("Bearer {valid},Bearer {valid}"),
        ),
        ("no key at all", "Bearer secret".to_owned()),
        (
            "a key without its last character",
            format!("Bearer {}", &valid[..valid.len() - 1]),
        ),
        ("a key with one character more", format!("Bearer {valid}0")),
        (
            "a key with a wrong checksum",
            format!("Bearer {}", misspelt(&valid)),
        ),
        (
            "a key in capitals",
            format!("Bearer {}", valid.to_uppercase()),
        ),
        ("characters beyond ASCII", format!("Bearer {valid}é")),
        ("10 KB", format!("Bearer wsk_{}", "x".repeat(10_240))),
        ("an unknown key", format!("Bearer {unknown}")),
        (
            "a known id with another secret",
            format!("Bearer {other_secret}"),
        ),
        ("an expired key", format!("Bearer {expired}")),
        (
            "a key with an unreadable date",
            format!("Bearer {unreadable}"),
        ),
        ("a revoked key", format!("Bearer {revoked}")),
    ];
    let mut answers = Vec::new();

    for (description, credential) in rows {
        for path in [TEAM, DATA_STORE] {
            let body = json!({ "teamName": "Research", "dataStoreName": "Papers" });
            let answer = world
                .anonymous()
                .with("authorization", &credential)
                .post(path, body)
                .await;
            assert_eq!(answer.status, 401, "{description}: {answer:?}");
            assert_eq!(
                answer.headers["www-authenticate"], "Bearer error=\"invalid_token\"",
                "{description}"
            );
            answers.push(answer.body);
        }
    }

    answers.dedup();
    assert_eq!(answers.len(), 1);
    assert!(world.records(Table::TEAMS).await.is_empty());
    assert!(world.records(Table::DATA_STORES).await.is_empty());
}

/// The key with another last character, and so a wrong checksum.
pub fn misspelt(key: &str) -> String {
    let (rest, last) = key.split_at(key.len() - 1);
    format!("{rest}{}", if last == "A" { "B" } else { "A" })
}

/// The key with another secret, and the checksum that belongs to it.
pub fn with_secret(key: &str, first: &str) -> String {
    let id = ApiKey::parse(key).unwrap().id().to_owned();
    let secret = format!("{first}{}", &key[18..key.len() - 6]);
    let text = format!("wsk_{id}_{secret}");
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut sum = crc32fast::hash(text.as_bytes()) as usize;
    let mut checksum = [0; 6];
    for digit in checksum.iter_mut().rev() {
        *digit = digits[sum % 62];
        sum /= 62;
    }
    let key = text + std::str::from_utf8(&checksum).unwrap();
    assert!(ApiKey::parse(&key).is_some());
    key
}

#[tokio::test]
async fn a_malformed_key_costs_no_read() {
    let world = World::new().await;
    let valid = world.issue("acme", |_| {}).await;

    create_team(&world.holder(&misspelt(&valid)))
        .await
        .is(401, "unauthenticated");

    assert!(world.sent.take().is_empty());
}

#[tokio::test]
async fn two_authorization_headers_are_refused() {
    let world = World::new().await;
    let credential = format!("Bearer {}", world.issue("acme", |_| {}).await);
    let rest = json!({ "requestId": "gateway-request", "stage": "prod" });
    let load_balancer = json!({ "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:us-east-1:1:targetgroup/a/b" } });

    for context in [rest, load_balancer] {
        let event = json!({
            "requestContext": context,
            "httpMethod": "POST",
            "path": TEAM,
            "headers": { "Authorization": credential },
            "multiValueHeaders": { "Authorization": [credential, credential] },
            "body": r#"{"teamName": "Research"}"#,
            "isBase64Encoded": false,
        });
        world.send(event).await.is(401, "unauthenticated");
    }
    let mut event = crate::support::event("POST", TEAM, &Default::default(), Some("{}"));
    event["headers"] = json!({ "Authorization": credential, "authorization": credential });
    world.send(event).await.is(401, "unauthenticated");
}

#[tokio::test]
async fn a_key_in_the_query_is_not_looked_at() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;
    let mut event = crate::support::event(
        "POST",
        TEAM,
        &Default::default(),
        Some(r#"{"teamName": "a"}"#),
    );
    event["rawQueryString"] = json!(format!("authorization=Bearer%20{key}"));

    world.send(event).await.is(401, "unauthenticated");
}

#[tokio::test]
async fn a_key_of_another_organization_is_refused() {
    let world = World::new().await;
    world.register("globex").await;
    let globex = world.holder(&world.issue("globex", |_| {}).await);

    create_team(&globex).await.is(403, "other_organization");
    globex
        .post(DATA_STORE, json!({ "dataStoreName": "Papers" }))
        .await
        .is(403, "other_organization");

    assert!(world.records(Table::TEAMS).await.is_empty());
    assert!(world.records(Table::DATA_STORES).await.is_empty());
}

#[tokio::test]
async fn a_key_calls_the_operations_it_is_allowed_and_no_other() {
    let world = World::new().await;
    let allowed = Some(vec!["create_team".to_owned(), "set_bot_voice".to_owned()]);
    let holder = world.holder(&world.issue("acme", |key| key.operations = allowed).await);

    create_team(&holder).await.is_success();
    let voice = json!({ "type": "alloy", "enabled": true });
    holder
        .post("/api/v1/bot/playground/bot-7/voice", voice)
        .await
        .is_success();

    let logging = "/api/v1/project/acme/apollo/createLoggingInstance";
    holder
        .post(logging, json!({ "projectName": "Apollo" }))
        .await
        .is(403, "operation_not_allowed");
    holder
        .post(DATA_STORE, json!({ "dataStoreName": "Papers" }))
        .await
        .is(403, "operation_not_allowed");
    assert!(world.records(Table::LOGGING_INSTANCES).await.is_empty());
    assert!(world.records(Table::DATA_STORES).await.is_empty());
}

#[tokio::test]
async fn a_key_expires_at_its_second_though_it_is_remembered() {
    let world = World::new().await;
    let soon = SystemTime::now() + Duration::from_secs(3);
    let expires_at = humantime::format_rfc3339_seconds(soon).to_string();
    let holder = world.holder(
        &world
            .issue("acme", |key| key.expires_at = Some(expires_at))
            .await,
    );
    create_team(&holder).await.is_success();

    tokio::time::sleep(Duration::from_millis(3100)).await;

    create_team(&holder).await.is(401, "unauthenticated");
}

#[tokio::test]
async fn a_key_is_read_once_and_then_remembered() {
    let world = World::new().await;
    let acme = world.acme().await;

    create_team(&acme).await.is_success();
    create_team(&acme).await.is_success();

    let actions = world.sent.take_actions();
    assert_eq!(actions, ["GetItem", "PutItem", "PutItem"]);
}

#[tokio::test]
async fn a_revoked_key_works_until_it_is_forgotten() {
    let key_cache = Duration::from_secs(2);
    let world = World::with(Setting {
        key_cache,
        ..Setting::default()
    })
    .await;
    let key = world.issue("acme", |_| {}).await;
    let holder = world.holder(&key);
    create_team(&holder).await.is_success();

    world.revoke(&key).await;

    create_team(&holder).await.is_success();
    tokio::time::sleep(key_cache).await;
    create_team(&holder).await.is(401, "unauthenticated");
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_when_no_key_is_remembered() {
    let world = World::with(Setting {
        key_cache: Duration::ZERO,
        ..Setting::default()
    })
    .await;
    let key = world.issue("acme", |_| {}).await;
    create_team(&world.holder(&key)).await.is_success();

    world.revoke(&key).await;

    create_team(&world.holder(&key))
        .await
        .is(401, "unauthenticated");
}

#[tokio::test]
async fn a_remembered_id_opens_nothing_to_another_secret() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;
    create_team(&world.holder(&key)).await.is_success();

    create_team(&world.holder(&with_secret(&key, "x")))
        .await
        .is(401, "unauthenticated");
    create_team(&world.holder(&key)).await.is_success();
}

#[tokio::test]
async fn a_wrong_secret_costs_what_an_unknown_id_costs() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;
    let unknown = mint(rand8(), [7; 32]);

    for is_remembered in [false, true] {
        if is_remembered {
            create_team(&world.holder(&key)).await.is_success();
            world.sent.take();
        }
        for refused in [&with_secret(&key, "x"), &unknown] {
            create_team(&world.holder(refused))
                .await
                .is(401, "unauthenticated");
            assert_eq!(world.sent.take_actions(), ["GetItem"], "{is_remembered}");
        }
    }
}

#[tokio::test]
async fn anonymous_callers_may_use_the_two_open_operations_of_registered_organizations() {
    let world = World::new().await;
    let anonymous = world.anonymous();
    let models = json!({ "aIModelsSelectedToAddToOrg": [{ "id": 1, "modelid": "a" }] });
    let data_store = json!({ "dataStoreName": "Papers" });

    anonymous
        .post("/api/v1/org/acme/addModelsToOrg/chat", models.clone())
        .await
        .is_success();
    anonymous
        .post(DATA_STORE, data_store.clone())
        .await
        .is_success();

    anonymous
        .post("/api/v1/org/nobody/addModelsToOrg/chat", models)
        .await
        .is(404, "no_such_organization");
    anonymous
        .post("/api/v1/org/nobody/dataStores/create", data_store)
        .await
        .is(404, "no_such_organization");
    assert_eq!(world.records(Table::MODELS).await.len(), 1);
    assert_eq!(world.records(Table::DATA_STORES).await.len(), 1);
}

#[tokio::test]
async fn anonymous_callers_need_a_key_for_the_other_four() {
    let world = World::new().await;

    for path in [
        TEAM,
        "/api/v1/project/acme/apollo/createLoggingInstance",
        "/api/v1/project/acme/apollo/research/addUsersToTheTeam",
        "/api/v1/bot/playground/bot-7/voice",
    ] {
        world
            .anonymous()
            .post(path, json!({}))
            .await
            .is(401, "unauthenticated");
    }
}

#[tokio::test]
async fn anonymous_callers_need_a_key_for_everything_where_the_deployment_says_so() {
    let denied = Setting {
        anonymous_operations: AnonymousOperations::Denied,
        ..Setting::default()
    };
    let world = World::with(denied).await;
    let body = json!({ "dataStoreName": "Papers" });

    let refused = world.anonymous().post(DATA_STORE, body.clone()).await;
    let accepted = world.acme().await.post(DATA_STORE, body).await;

    refused.is(401, "unauthenticated");
    assert_eq!(refused.headers["www-authenticate"], "Bearer");
    accepted.is_success();
}

#[tokio::test]
async fn an_organization_is_read_once_and_then_remembered() {
    let world = World::new().await;

    world
        .anonymous()
        .post(DATA_STORE, json!({ "dataStoreName": "a" }))
        .await
        .is_success();
    world
        .anonymous()
        .post(DATA_STORE, json!({ "dataStoreName": "b" }))
        .await
        .is_success();

    let actions = world.sent.take_actions();
    assert_eq!(actions, ["GetItem", "PutItem", "PutItem"]);
}
