//! Tests of `add_team_users`, which adds users to a team.

use serde_json::{Value, json};
use workspace_management::{operation::Operation, store::Table};

use super::{Sample, Samples, Stored, Values, Write};
use crate::support::{TestApp, TestClient, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/project/acme/apollo/research/addUsersToTheTeam";

/// A body that adds these users.
fn users<T: AsRef<str>>(users: &[T]) -> Value {
    let users: Vec<_> = users
        .iter()
        .map(|userid| json!({ "userid": userid.as_ref() }))
        .collect();
    json!({ "usersAddingToTeam": users })
}

/// Creates the team that [`PATH`] names.
async fn create_team(acme: &TestClient<'_>) {
    let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let response = acme.post(path, json!({ "teamName": "Research" })).await;
    response.assert_success();
}

inventory::submit!(Samples(Operation::AddTeamUsers, sample, Vec::new));

/// A sample for the tests that cover every operation.
fn sample(values: &Values) -> Sample {
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
async fn stores_a_record_for_each_user() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.with_key(&key);
    create_team(&acme).await;

    let response = acme.post(PATH, users(&["grace", "ada lovelace"])).await;

    response.assert_success();
    let members = app.records(Table::TEAM_MEMBERS).await;
    assert_eq!(members.len(), 2);
    for (member, user) in members.iter().zip(["ada lovelace", "grace"]) {
        assert_eq!(member["team"], "acme#apollo#research");
        assert_eq!(member["user_id"], user);
        assert_created_by(member, &key_id(&key));
    }
}

#[tokio::test]
async fn adds_new_users_and_leaves_existing_members_unchanged() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let other_client = app.client_with_new_key("acme").await;
    create_team(&acme).await;
    acme.post(PATH, users(&["ada"])).await.assert_success();
    let existing = app.only_record(Table::TEAM_MEMBERS).await;

    acme.post(PATH, users(&["ada"])).await.assert_success();
    let response = other_client.post(PATH, users(&["grace", "ada"])).await;
    response.assert_success();

    let members = app.records(Table::TEAM_MEMBERS).await;
    assert_eq!(members.len(), 2);
    assert_eq!(members[0], existing);
}

#[tokio::test]
async fn accepts_100_users_with_ids_of_the_maximum_length() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    create_team(&acme).await;
    // 256 characters. 𝄞 has four bytes, the maximum in UTF-8.
    let userids: Vec<_> = (0..100)
        .map(|number| format!("{number:03}{}", "𝄞".repeat(253)))
        .collect();

    acme.post(PATH, users(&userids)).await.assert_success();

    assert_eq!(app.records(Table::TEAM_MEMBERS).await.len(), 100);
}

#[tokio::test]
async fn returns_404_when_the_team_does_not_exist() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    create_team(&acme).await;

    for path in [
        "/api/v1/project/acme/apollo/Research/addUsersToTheTeam",
        "/api/v1/project/acme/gemini/research/addUsersToTheTeam",
    ] {
        let response = acme.post(path, users(&["ada"])).await;
        response.assert_problem(404, "no_such_team");
    }

    assert!(app.records(Table::TEAM_MEMBERS).await.is_empty());
}

#[tokio::test]
async fn finds_a_team_that_is_created_after_a_404() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let response = acme.post(PATH, users(&["ada"])).await;
    response.assert_problem(404, "no_such_team");

    create_team(&acme).await;

    acme.post(PATH, users(&["ada"])).await.assert_success();
}

#[tokio::test]
async fn does_not_read_the_team_when_the_key_is_malformed() {
    let app = TestApp::new().await;
    let client = app.with_key("wsk_nonsense");

    let response = client.post(PATH, users(&["ada"])).await;

    response.assert_problem(401, "unauthenticated");
    assert!(app.dynamodb_requests.take().is_empty());
}

#[tokio::test]
async fn returns_422_for_an_invalid_array() {
    let array = |entries: Value| json!({ "usersAddingToTeam": entries });
    let too_many: Vec<_> = (0..101).map(|number| number.to_string()).collect();
    assert_rejected(
        PATH,
        Table::TEAM_MEMBERS,
        &[
            (
                "an empty object",
                json!({}),
                &["#/usersAddingToTeam is required"],
            ),
            (
                "a string instead of an array",
                array(json!("ada")),
                &["#/usersAddingToTeam must be an array, but is a string"],
            ),
            (
                "an empty array",
                array(json!([])),
                &["#/usersAddingToTeam must have at least 1 entry"],
            ),
            (
                "101 entries",
                users(&too_many),
                &["#/usersAddingToTeam must have at most 100 entries, but has 101"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn returns_422_for_an_invalid_user() {
    let array = |entries: Value| json!({ "usersAddingToTeam": entries });
    assert_rejected(
        PATH,
        Table::TEAM_MEMBERS,
        &[
            (
                "a string instead of an object",
                array(json!(["ada"])),
                &["#/usersAddingToTeam/0 must be an object, but is a string"],
            ),
            (
                "an integer after three valid users",
                array(json!([
                    { "userid": "a" },
                    { "userid": "b" },
                    { "userid": "c" },
                    { "userid": 4 },
                ])),
                &["#/usersAddingToTeam/3/userid must be a string, but is an integer"],
            ),
            (
                "four users with a violation each",
                array(json!([
                    {},
                    { "userid": "" },
                    { "userid": "x".repeat(257) },
                    { "userid": "\u{1b}" },
                ])),
                &[
                    "#/usersAddingToTeam/0/userid is required",
                    "#/usersAddingToTeam/1/userid must not be empty",
                    "#/usersAddingToTeam/2/userid must have at most 256 characters, but has 257",
                    "#/usersAddingToTeam/3/userid must not contain control characters or line separators",
                ],
            ),
        ],
    )
    .await;
}
