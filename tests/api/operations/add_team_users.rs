//! Tests of `add_team_users`, which adds users to a team.

use serde_json::{Value, json};
use workspace_management::{operation::Operation, store::Table};

use super::{Sample, Samples, Stored, Values, Write};
use crate::support::TestApp;

/// A body that adds these users.
fn users<T: AsRef<str>>(users: &[T]) -> Value {
    let users: Vec<_> = users
        .iter()
        .map(|userid| json!({ "userid": userid.as_ref() }))
        .collect();
    json!({ "usersAddingToTeam": users })
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
async fn returns_404_when_the_team_does_not_exist() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    app.insert_demo_team().await;

    for path in [
        "/api/v1/project/acme/apollo/Research-Team/addUsersToTheTeam",
        "/api/v1/project/acme/gemini/research-team/addUsersToTheTeam",
    ] {
        let response = acme.post(path, users(&["ada"])).await;
        response.assert_problem(404, "no_such_team");
    }

    assert!(app.records(Table::TEAM_MEMBERS).await.is_empty());
}
