//! `add_team_users`.

use serde_json::{Value, json};
use workspace_management::store::Table;

use super::{Sample, Stored, Values, Write};
use crate::support::{TestApp, TestClient, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/project/acme/apollo/research/addUsersToTheTeam";

fn users<T: AsRef<str>>(users: &[T]) -> Value {
    let users: Vec<_> = users
        .iter()
        .map(|userid| json!({ "userid": userid.as_ref() }))
        .collect();
    json!({ "usersAddingToTeam": users })
}

/// The team that [`PATH`] names.
async fn create_team(acme: &TestClient<'_>) {
    let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    acme.post(path, json!({ "teamName": "Research" }))
        .await
        .assert_success();
}

/// A sample for the tests that cover every operation.
pub fn sample(values: &Values) -> Sample {
    let names: Vec<_> = values.entries.iter().map(|(name, _)| name).collect();
    let team = &values.team;
    let key = json!({ "project": "acme#apollo", "team_id": team });
    Sample {
        path: format!("/api/v1/project/acme/apollo/{team}/addUsersToTheTeam"),
        body: users(&names),
        records: names
            .iter()
            .map(|name| {
                let key = json!({ "team": format!("acme#apollo#{team}"), "user_id": name });
                Stored::new(Table::TEAM_MEMBERS, key, json!({}))
            })
            .collect(),
        write: Write::Add,
        requires: Some(Stored::new(Table::TEAMS, key, json!({}))),
    }
}

#[tokio::test]
async fn add_team_users_writes_a_record_for_each_member() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.with_key(&key);
    create_team(&acme).await;

    acme.post(PATH, users(&["grace", "ada lovelace"]))
        .await
        .assert_success();

    let members = app.records(Table::TEAM_MEMBERS).await;
    assert_eq!(members.len(), 2);
    for (member, user) in members.iter().zip(["ada lovelace", "grace"]) {
        assert_eq!(member["team"], "acme#apollo#research");
        assert_eq!(member["user_id"], user);
        assert_created_by(member, &key_id(&key));
    }
}

#[tokio::test]
async fn add_team_users_adds_who_is_new_and_keeps_who_is_there() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    create_team(&acme).await;
    acme.post(PATH, users(&["ada"])).await.assert_success();
    let first = app.only_record(Table::TEAM_MEMBERS).await;

    acme.post(PATH, users(&["ada"])).await.assert_success();
    app.key_holder("acme")
        .await
        .post(PATH, users(&["grace", "ada"]))
        .await
        .assert_success();

    let members = app.records(Table::TEAM_MEMBERS).await;
    assert_eq!(members.len(), 2);
    assert_eq!(members[0], first);
}

#[tokio::test]
async fn add_team_users_loses_no_one_when_many_add_at_once() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    create_team(&acme).await;

    let names: Vec<String> = (0..16).map(|number| format!("user-{number:02}")).collect();
    let adding = names.iter().map(|name| {
        let acme = acme.clone();
        async move {
            acme.post(PATH, users(&[name.as_str(), "everyone"]))
                .await
                .assert_success()
        }
    });
    futures_util::future::join_all(adding).await;

    assert_eq!(app.records(Table::TEAM_MEMBERS).await.len(), 17);
}

#[tokio::test]
async fn add_team_users_takes_100_users_of_the_longest_ids() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    create_team(&acme).await;
    let long: Vec<_> = (0..100)
        .map(|number| format!("{number:03}{}", "𝄞".repeat(253)))
        .collect();

    acme.post(PATH, users(&long)).await.assert_success();

    assert_eq!(app.records(Table::TEAM_MEMBERS).await.len(), 100);
}

#[tokio::test]
async fn add_team_users_refuses_a_team_that_is_not_there() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    create_team(&acme).await;

    for path in [
        "/api/v1/project/acme/apollo/Research/addUsersToTheTeam",
        "/api/v1/project/acme/gemini/research/addUsersToTheTeam",
    ] {
        acme.post(path, users(&["ada"]))
            .await
            .assert_problem(404, "no_such_team");
    }

    assert!(app.records(Table::TEAM_MEMBERS).await.is_empty());
}

#[tokio::test]
async fn add_team_users_reads_key_and_team_once_and_then_remembers_them() {
    let app = TestApp::new().await;
    create_team(&app.key_holder("acme").await).await;
    let other = app.key_holder("acme").await;
    app.requests.take();

    other.post(PATH, users(&["ada"])).await.assert_success();
    other.post(PATH, users(&["grace"])).await.assert_success();

    let actions = app.requests.take_actions();
    assert_eq!(actions, ["GetItem", "GetItem", "UpdateItem", "UpdateItem"]);
}

#[tokio::test]
async fn add_team_users_reads_a_team_that_is_created_later() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;

    acme.post(PATH, users(&["ada"]))
        .await
        .assert_problem(404, "no_such_team");
    create_team(&acme).await;

    acme.post(PATH, users(&["ada"])).await.assert_success();
}

#[tokio::test]
async fn add_team_users_reads_no_team_for_a_malformed_key() {
    let app = TestApp::new().await;
    app.requests.take();

    let stranger = app
        .anonymous()
        .header("authorization", "Bearer wsk_nonsense");
    stranger
        .post(PATH, users(&["ada"]))
        .await
        .assert_problem(401, "unauthenticated");

    assert!(app.requests.take().is_empty());
}

#[tokio::test]
async fn add_team_users_refuses_every_bad_body() {
    let field = |entries: Value| json!({ "usersAddingToTeam": entries });
    let many: Vec<_> = (0..101).map(|number| number.to_string()).collect();
    assert_rejected(
        PATH,
        Table::TEAM_MEMBERS,
        &[
            ("nothing", json!({}), &["#/usersAddingToTeam is required"]),
            ("a string", field(json!("ada")), &["#/usersAddingToTeam must be an array, but is a string"]),
            ("no entry", field(json!([])), &["#/usersAddingToTeam must have at least 1 entry"]),
            ("101 entries", users(&many), &["#/usersAddingToTeam must have at most 100 entries, but has 101"]),
            (
                "strings for objects",
                field(json!(["ada"])),
                &["#/usersAddingToTeam/0 must be an object, but is a string"],
            ),
            (
                "the fourth of four users wrong",
                field(json!([{ "userid": "a" }, { "userid": "b" }, { "userid": "c" }, { "userid": 4 }])),
                &["#/usersAddingToTeam/3/userid must be a string, but is an integer"],
            ),
            (
                "every way at once",
                field(json!([{}, { "userid": "" }, { "userid": "x".repeat(257) }, { "userid": "\u{1b}" }])),
                &[
                    "#/usersAddingToTeam/0/userid is required",
                    "#/usersAddingToTeam/1/userid must not be empty",
                    "#/usersAddingToTeam/2/userid must have at most 256 characters, but has 257",
                    "#/usersAddingToTeam/3/userid must not contain control characters",
                ],
            ),
        ],
    )
    .await;
}
