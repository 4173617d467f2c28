//! Tests of `create_team`, which creates a team in a project.

use serde_json::json;
use test_support::TestApp;
use workspace_management::records::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues, id_of, trimmed};
use crate::bodies::violations;

const PATH: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

pub(super) fn sample(values: &SampleValues) -> Sample {
    let name = &values.name;
    let description = &values.description;
    let key = json!({ "project": "acme#apollo", "team_id": id_of(name) });
    let content = json!({ "team_name": trimmed(name), "team_description": trimmed(description) });
    let body = json!({ "teamName": name, "teamDescription": description });
    let record = ExpectedRecord::new(Table::TEAMS, key, content);
    Sample::new(PATH, body, vec![record])
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
        app.remove(Table::TEAMS, &record).await;
    }
    for control in ["\u{0}", "x\u{b}x", "\u{7f}", "\u{9f}"] {
        let response = acme.post(PATH, team(control)).await;
        let expected = "must not contain control characters other than line breaks and tabs";
        let expected = [format!("#/teamDescription {expected}")];
        assert_eq!(violations(&response), expected, "{control:?}");
    }
}
