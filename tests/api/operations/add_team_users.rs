//! Tests of `add_team_users`, which adds users to a team.

use serde_json::{Value, json};
use test_support::TestApp;
use workspace_management::records::Table;

use super::{ExpectedRecord, Sample, SampleValues};

fn users<T: AsRef<str>>(ids: &[T]) -> Value {
    let entries: Vec<_> = ids
        .iter()
        .map(|id| json!({ "userid": id.as_ref() }))
        .collect();
    json!({ "usersAddingToTeam": entries })
}

pub(super) fn sample(values: &SampleValues) -> Sample {
    let team = &values.team;
    let mut ids = Vec::new();
    let mut records = Vec::new();
    for (id, _) in &values.entries {
        ids.push(id);
        let key = json!({ "team": format!("acme#apollo#{team}"), "user_id": id });
        records.push(ExpectedRecord::new(Table::TEAM_MEMBERS, key, json!({})));
    }
    let team_key = json!({ "project": "acme#apollo", "team_id": team });
    let path = format!("/api/v1/project/acme/apollo/{team}/addUsersToTheTeam");
    Sample {
        requires: Some(ExpectedRecord::new(Table::TEAMS, team_key, json!({}))),
        ..Sample::new(&path, users(&ids), records)
    }
}

#[tokio::test]
async fn returns_404_when_the_team_does_not_exist_and_400_when_its_id_is_a_name() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    app.register("globex").await;
    let globex = app.client_with_new_key("globex").await;
    app.insert_demo_team().await;
    // A success, after which the team is cached.
    let path = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    acme.post(path, users(&["grace"])).await.assert_success();

    for (client, team) in [
        (&acme, "acme/apollo/Research-Team"),
        (&acme, "acme/gemini/research-team"),
        (&globex, "globex/apollo/research-team"),
    ] {
        let path = format!("/api/v1/project/{team}/addUsersToTheTeam");
        let response = client.post(&path, users(&["ada"])).await;
        response.assert_problem(404, "no_such_team");
    }

    let path = path.replace("research-team", "Research%20Team");
    let response = acme.post(&path, users(&["ada"])).await;
    response.assert_problem(400, "malformed_path");
    let detail = response.body.unwrap()["detail"].to_string();
    assert!(detail.contains("`create_team` returns"), "{detail}");

    assert_eq!(app.records(Table::TEAM_MEMBERS).await.len(), 1);
}
