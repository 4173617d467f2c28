//! Tests of `create_team`, which creates a team in a project.

use serde_json::{Value, json};
use workspace_management::{operation::Operation, store::Table};

use super::{Problems, Sample, Samples, Stored, Values, Write, trimmed};
use crate::support::{TestApp, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

inventory::submit!(Samples(Operation::CreateTeam, sample, problems));

/// A sample for the tests that cover every operation.
fn sample(values: &Values) -> Sample {
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

fn problems() -> Problems {
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
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.with_key(&key);
    let description = " One\r\nline\tmore\n";
    let body = json!({ "teamName": "  My TEam Näme ", "teamDescription": description });

    let response = acme.post(PATH, body).await;

    response.assert_success();
    assert_eq!(response.headers["x-request-id"], "gateway-request");
    let team = app.only_record(Table::TEAMS).await;
    assert_eq!(team["project"], "acme#apollo");
    assert_eq!(team["team_id"], "my-team-name");
    assert_eq!(team["team_name"], "My TEam Näme");
    assert_eq!(team["team_description"], "One\nline\tmore");
    assert_created_by(&team, &key_id(&key));
}

#[tokio::test]
async fn stores_an_absent_or_null_description_as_an_empty_string() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;

    for body in [
        json!({ "teamName": "Absent" }),
        json!({ "teamName": "Null", "teamDescription": null }),
    ] {
        acme.post(PATH, body).await.assert_success();
    }

    let teams = app.records(Table::TEAMS).await;
    assert_eq!(teams.len(), 2);
    for team in teams {
        assert_eq!(team["team_description"], "", "{team}");
    }
}

#[tokio::test]
async fn returns_409_when_the_name_is_taken() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let team = json!({ "teamName": "Research", "teamDescription": "Reads" });
    acme.post(PATH, team).await.assert_success();
    let existing = app.only_record(Table::TEAMS).await;
    let other_description = json!({ "teamName": "Research", "teamDescription": "Writes" });
    let same_slug = json!({ "teamName": "research!", "teamDescription": "Reads" });

    for body in [other_description, same_slug] {
        let response = acme.post(PATH, body).await;
        response.assert_problem(409, "name_taken");
    }

    assert_eq!(app.only_record(Table::TEAMS).await, existing);
}

#[tokio::test]
async fn stores_the_teams_of_different_projects_and_organizations_separately() {
    let app = TestApp::new().await;
    app.register("globex").await;
    let acme = app.client_with_new_key("acme").await;
    let globex = app.client_with_new_key("globex").await;

    for (client, project) in [
        (&acme, "acme/apollo"),
        (&acme, "acme/gemini"),
        (&globex, "globex/apollo"),
    ] {
        let path = format!("/api/v1/project/{project}/createNewTeamOnProject");
        let response = client.post(&path, json!({ "teamName": "Research" })).await;
        response.assert_success();
    }

    let teams = app.records(Table::TEAMS).await;
    let projects: Vec<_> = teams.iter().map(|team| &team["project"]).collect();
    assert_eq!(projects, ["acme#apollo", "acme#gemini", "globex#apollo"]);
}

#[tokio::test]
async fn ignores_unknown_fields() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let body = json!({ "teamName": "Research", "colour": { "red": 1 } });

    acme.post(PATH, body).await.assert_success();

    assert_eq!(app.only_record(Table::TEAMS).await["colour"], Value::Null);
}

#[tokio::test]
async fn accepts_a_name_and_a_description_of_the_maximum_length() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let body = json!({ "teamName": "é".repeat(100), "teamDescription": "𝄞".repeat(1000) });

    acme.post(PATH, body.clone()).await.assert_success();

    let team = app.only_record(Table::TEAMS).await;
    assert_eq!(team["team_name"], body["teamName"]);
    assert_eq!(team["team_description"], body["teamDescription"]);
    assert_eq!(team["team_id"], "e".repeat(100));
}

#[tokio::test]
async fn returns_422_for_a_value_of_the_wrong_type() {
    assert_rejected(
        PATH,
        Table::TEAMS,
        &[
            ("an empty object", json!({}), &["#/teamName is required"]),
            (
                "an array",
                json!(["Research", ""]),
                &["# must be an object, but is an array"],
            ),
            (
                "a string",
                json!("Research"),
                &["# must be an object, but is a string"],
            ),
            (
                "null instead of a name",
                json!({ "teamName": null }),
                &["#/teamName must be a string, but is null"],
            ),
            (
                "a number instead of a name",
                json!({ "teamName": 1 }),
                &["#/teamName must be a string, but is an integer"],
            ),
            (
                "two fields of the wrong type",
                json!({ "teamDescription": true, "teamName": [] }),
                &[
                    "#/teamDescription must be a string, but is a boolean",
                    "#/teamName must be a string, but is an array",
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn returns_422_for_a_name_that_is_not_one_line_of_1_to_100_characters() {
    let name = |name: &str| json!({ "teamName": name });
    assert_rejected(
        PATH,
        Table::TEAMS,
        &[
            ("empty", name(""), &["#/teamName must not be empty"]),
            (
                "only white space",
                name(" \t "),
                &["#/teamName must not be empty"],
            ),
            (
                "101 characters",
                name(&"x".repeat(101)),
                &["#/teamName must have at most 100 characters, but has 101"],
            ),
            (
                "a control character",
                name("a\u{7}b"),
                &["#/teamName must not contain control characters or line separators"],
            ),
            (
                "a line break",
                name("a\nb"),
                &["#/teamName must not contain control characters or line separators"],
            ),
            (
                "102 characters, one of them a control character",
                name(&format!("{}\u{7}x", "x".repeat(100))),
                &[
                    "#/teamName must have at most 100 characters, but has 102",
                    "#/teamName must not contain control characters or line separators",
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn returns_422_for_a_name_without_a_letter_or_a_digit() {
    let name = |name: &str| json!({ "teamName": name });
    assert_rejected(
        PATH,
        Table::TEAMS,
        &[
            (
                "only hyphens",
                name("---"),
                &["#/teamName must contain a letter or a digit"],
            ),
            (
                "an emoji",
                name("🎉"),
                &["#/teamName must contain a letter or a digit"],
            ),
            (
                "an invisible letter and a visible character",
                name("\u{3164}!"),
                &["#/teamName must contain a letter or a digit"],
            ),
            (
                "invisible characters",
                name("\u{200b}\u{3164}"),
                &["#/teamName must contain a visible character"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn returns_422_for_an_invalid_description() {
    let description = |text: &str| json!({ "teamName": "a", "teamDescription": text });
    assert_rejected(
        PATH,
        Table::TEAMS,
        &[
            (
                "1001 characters",
                description(&"x".repeat(1001)),
                &["#/teamDescription must have at most 1000 characters, but has 1001"],
            ),
            (
                "a control character",
                description("\u{0}"),
                &["#/teamDescription must not contain control characters \
                    other than line breaks and tabs"],
            ),
        ],
    )
    .await;
}
