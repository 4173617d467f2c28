//! Tests of `create_team`, which creates a team in a project.

use serde_json::json;
use test_support::TestApp;
use workspace_management::store::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues, WriteKind, id_of, trimmed};
use crate::bodies::violations;

const PATH: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

pub(super) fn sample(values: &SampleValues) -> Sample {
    let name = &values.name;
    let description = &values.description;
    let key = json!({ "project": "acme#apollo", "team_id": id_of(name) });
    let content = json!({ "team_name": trimmed(name), "team_description": trimmed(description) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "teamName": name, "teamDescription": description }),
        records: vec![ExpectedRecord::new(Table::TEAMS, key, content)],
        write: WriteKind::Create,
        requires: None,
    }
}

pub(super) fn problems() -> ProblemExamples {
    let names = ["Data Team", "Data-Team"].map(|name| json!({ "teamName": name }));
    let descriptions = ["Reads papers", "x"]
        .map(|text| json!({ "teamName": "Research Team", "teamDescription": text }));
    vec![
        ("TeamTaken/other_name", names.to_vec()),
        ("TeamTaken/other_description", descriptions.to_vec()),
    ]
}

/// Each row has a name and its id in backticks.
#[tokio::test]
async fn the_ids_in_the_documentation_are_right() {
    let documentation = include_str!("../../../docs/api.md");
    let (_, table) = documentation.split_once("| name | id | note |\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = rows.skip(1).collect();
    assert!(rows.len() > 10, "{rows:?}");
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let acme = acme.header("prefer", "return=headers-only");
    for (index, row) in rows.into_iter().enumerate() {
        let parts: Vec<_> = row.split('`').collect();
        let path = PATH.replace("apollo", &format!("project-{index}"));
        let response = acme.post(&path, json!({ "teamName": parts[1] })).await;
        response.assert_success();
        assert_eq!(response.headers["x-resource-id"], parts[3], "{row}");
    }
}

#[tokio::test]
async fn a_name_needs_a_letter_or_a_digit() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    for name in ["---", "…", "🎉", "\u{3164}!", "\u{fe0f}☃"] {
        let response = acme.post(PATH, json!({ "teamName": name })).await;
        let expected = ["#/teamName must contain a letter or a digit"];
        assert_eq!(violations(&response), expected, "{name:?}");
    }
}

#[tokio::test]
async fn a_description_may_contain_line_breaks_and_tabs() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let team = |description| json!({ "teamName": "Docs", "teamDescription": description });
    for (sent, stored) in [
        ("", ""),
        (" \u{feff}\r\n", ""),
        (" one\r\n\ttwo\nthree\r ", "one\n\ttwo\nthree"),
    ] {
        let response = acme.post(PATH, team(sent)).await;
        response.assert_success();
        let record = app.only_record(Table::TEAMS).await;
        assert_eq!(record["team_description"], stored, "{sent:?}");
        let key = json!({ "project": "acme#apollo", "team_id": "docs" });
        app.remove(Table::TEAMS, key).await;
    }
    for control in ["\u{0}", "x\u{b}x", "\u{7f}", "\u{9f}"] {
        let response = acme.post(PATH, team(control)).await;
        let expected = "must not contain control characters other than line breaks and tabs";
        let expected = [format!("#/teamDescription {expected}")];
        assert_eq!(violations(&response), expected, "{control:?}");
    }
}

#[tokio::test]
async fn a_name_that_spells_the_id_of_a_different_team_gets_a_409() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    for (name, spelled) in [
        ("C++", ["C f1deb75fa2", "c-F1DEB75FA2"]),
        ("市场", ["9C1E8BD224", "9C1E8BD224."]),
    ] {
        let response = acme.post(PATH, json!({ "teamName": name })).await;
        response.assert_success();
        for spelled in spelled {
            let response = acme.post(PATH, json!({ "teamName": spelled })).await;
            response.assert_problem(409, "name_taken");
            let problem = response.body.unwrap();
            assert_eq!(problem["reason"], "other_name");
            assert_eq!(problem["resource_id"], id_of(name), "{spelled}");
        }
    }
    assert_eq!(app.records(Table::TEAMS).await.len(), 2);
}

#[tokio::test]
async fn the_longest_ids_can_be_used_to_add_users() {
    let app = TestApp::new().await;
    let id = "x".repeat(128);
    app.register(&id).await;
    let client = app.client_with_new_key(&id).await;
    let client = client.header("prefer", "return=headers-only");
    let project = format!("/api/v1/project/{id}/{id}");
    let [before, after] = [50, 49].map(|count| "x".repeat(count));
    for (name, length) in [
        ("X".repeat(100), 100),
        (format!("{before}+{after}"), 111),
        ("語".repeat(100), 10),
    ] {
        let path = format!("{project}/createNewTeamOnProject");
        let response = client.post(&path, json!({ "teamName": name })).await;
        response.assert_success();
        let team = &response.headers["x-resource-id"];
        assert_eq!(team.len(), length, "{team}");
        let path = format!("{project}/{team}/addUsersToTheTeam");
        let users = json!({ "usersAddingToTeam": [{ "userid": "𝄞".repeat(256) }] });
        client.post(&path, users).await.assert_success();
    }
    assert_eq!(app.records(Table::TEAM_MEMBERS).await.len(), 3);
}
