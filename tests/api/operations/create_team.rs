//! Tests of `create_team`, which creates a team in a project.

use serde_json::json;
use test_support::TestApp;
use workspace_management::store::Table;

use super::{Problems, Sample, Stored, Values, Write, trimmed};

const PATH: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

/// A sample for the tests that cover every operation.
pub(super) fn sample(values: &Values) -> Sample {
    let (name, description) = (&values.name, &values.description);
    let key = json!({ "project": "acme#apollo", "team_id": name.to_lowercase() });
    let content = json!({ "team_name": trimmed(name), "team_description": trimmed(description) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "teamName": name, "teamDescription": description }),
        records: vec![Stored::new(Table::TEAMS, key, content)],
        write: Write::Create,
        requires: None,
    }
}

pub(super) fn problems() -> Problems {
    let team = |name: &str, text: &str| json!({ "teamName": name, "teamDescription": text });
    let research = |text: &str| team("Research Team", text);
    vec![
        (
            "TeamTaken/other_name",
            vec![team("C++", ""), team("C#", "")],
        ),
        (
            "TeamTaken/other_description",
            vec![research(""), research("x")],
        ),
    ]
}

#[tokio::test]
async fn stores_the_team_under_the_id_of_its_name() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let description = " One\r\nline\tmore\n";
    let body = json!({ "teamName": "  My TEam Näme ", "teamDescription": description });

    acme.post(PATH, body).await.assert_success();

    let team = app.only_record(Table::TEAMS).await;
    assert_eq!(team["project"], "acme#apollo");
    assert_eq!(team["team_id"], "my-team-name");
    assert_eq!(team["team_name"], "My TEam Näme");
    assert_eq!(team["team_description"], "One\nline\tmore");
}

#[tokio::test]
async fn an_absent_or_null_description_is_empty_and_unknown_members_are_ignored() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    for body in [
        json!({ "teamName": "Absent", "colour": { "red": 1 } }),
        json!({ "teamName": "Null", "teamDescription": null }),
    ] {
        acme.post(PATH, body).await.assert_success();
    }

    let teams = app.records(Table::TEAMS).await;
    assert_eq!(teams.len(), 2);
    for team in teams {
        assert_eq!(team["team_description"], "", "{team}");
        assert!(team.get("colour").is_none(), "{team}");
    }
}
