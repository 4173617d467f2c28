//! `create_team`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::support::{World, assert_made_by, key_id, refuses};

const PATH: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

#[tokio::test]
async fn create_team_writes_the_record_under_the_slug_of_its_name() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;

    let answer = world
        .holder(&key)
        .post(
            PATH,
            json!({ "teamName": "  My TEam Näme ", "teamDescription": "One\nline\tmore" }),
        )
        .await;

    answer.is_success();
    assert_eq!(answer.headers["x-request-id"], "gateway-request");
    let team = world.record(Table::TEAMS).await;
    assert_eq!(team["project"], "acme#apollo");
    assert_eq!(team["team_id"], "my-team-name");
    assert_eq!(team["team_name"], "My TEam Näme");
    assert_eq!(team["team_description"], "One\nline\tmore");
    assert_made_by(&team, &key_id(&key));
}

#[tokio::test]
async fn create_team_takes_an_absent_and_a_null_description_as_empty() {
    let world = World::new().await;
    let acme = world.acme().await;

    acme.post(PATH, json!({ "teamName": "Absent" }))
        .await
        .is_success();
    acme.post(PATH, json!({ "teamName": "Null", "teamDescription": null }))
        .await
        .is_success();

    let teams = world.records(Table::TEAMS).await;
    assert_eq!(teams.len(), 2);
    assert!(
        teams.iter().all(|team| team["team_description"] == ""),
        "{teams:?}"
    );
}

#[tokio::test]
async fn create_team_changes_nothing_when_it_is_repeated() {
    let world = World::new().await;
    let acme = world.acme().await;
    let body = json!({ "teamName": "Research", "teamDescription": "Reads" });
    acme.post(PATH, body.clone()).await.is_success();
    let first = world.record(Table::TEAMS).await;

    acme.post(PATH, body).await.is_success();

    assert_eq!(world.record(Table::TEAMS).await, first);
}

#[tokio::test]
async fn create_team_refuses_a_name_that_is_taken() {
    let world = World::new().await;
    let acme = world.acme().await;
    acme.post(
        PATH,
        json!({ "teamName": "Research", "teamDescription": "Reads" }),
    )
    .await
    .is_success();
    let first = world.record(Table::TEAMS).await;

    let another_description = json!({ "teamName": "Research", "teamDescription": "Writes" });
    acme.post(PATH, another_description)
        .await
        .is(409, "name_taken");
    let another_name_of_the_same_slug =
        json!({ "teamName": "research!", "teamDescription": "Reads" });
    acme.post(PATH, another_name_of_the_same_slug)
        .await
        .is(409, "name_taken");
    let another_caller = world.acme().await;
    let the_same = json!({ "teamName": "Research", "teamDescription": "Reads" });
    another_caller
        .post(PATH, the_same)
        .await
        .is(409, "name_taken");

    assert_eq!(world.record(Table::TEAMS).await, first);
}

#[tokio::test]
async fn create_team_keeps_projects_and_organizations_apart() {
    let world = World::new().await;
    world.register("globex").await;
    let acme = world.acme().await;
    let globex = world.holder(&world.issue("globex", |_| {}).await);
    let body = json!({ "teamName": "Research" });

    acme.post(PATH, body.clone()).await.is_success();
    acme.post(
        "/api/v1/project/acme/gemini/createNewTeamOnProject",
        body.clone(),
    )
    .await
    .is_success();
    globex
        .post("/api/v1/project/globex/apollo/createNewTeamOnProject", body)
        .await
        .is_success();

    let projects: Vec<Value> = world
        .records(Table::TEAMS)
        .await
        .into_iter()
        .map(|team| team["project"].clone())
        .collect();
    assert_eq!(projects, ["acme#apollo", "acme#gemini", "globex#apollo"]);
}

#[tokio::test]
async fn create_team_ignores_fields_it_does_not_know() {
    let world = World::new().await;

    let answer = world
        .acme()
        .await
        .post(
            PATH,
            json!({ "teamName": "Research", "colour": { "red": 1 } }),
        )
        .await;

    answer.is_success();
    assert_eq!(world.record(Table::TEAMS).await["colour"], Value::Null);
}

#[tokio::test]
async fn create_team_refuses_every_bad_body() {
    let long = |length: usize| "x".repeat(length);
    refuses(
        PATH,
        Table::TEAMS,
        &[
            ("nothing", json!({}), &["#/teamName is required"]),
            ("an array", json!(["Research", ""]), &["# must be an object, but is an array"]),
            ("a string", json!("Research"), &["# must be an object, but is a string"]),
            ("a null name", json!({ "teamName": null }), &["#/teamName must be a string, but is null"]),
            ("a number as name", json!({ "teamName": 1 }), &["#/teamName must be a string, but is an integer"]),
            ("an empty name", json!({ "teamName": "" }), &["#/teamName must not be empty"]),
            ("a blank name", json!({ "teamName": " \t " }), &["#/teamName must not be empty"]),
            (
                "a name of 101 characters",
                json!({ "teamName": long(101) }),
                &["#/teamName must have at most 100 characters, but has 101"],
            ),
            (
                "a control character in the name",
                json!({ "teamName": "a\u{7}b" }),
                &["#/teamName must not hold control characters"],
            ),
            ("a line break in the name", json!({ "teamName": "a\nb" }), &["#/teamName must not hold control characters"]),
            ("a name without letter or digit", json!({ "teamName": "---" }), &["#/teamName must hold a letter or a digit"]),
            ("an emoji as name", json!({ "teamName": "🎉" }), &["#/teamName must hold a letter or a digit"]),
            (
                "a long name with a control character",
                json!({ "teamName": format!("{}\u{7}x", long(100)) }),
                &[
                    "#/teamName must have at most 100 characters, but has 102",
                    "#/teamName must not hold control characters",
                ],
            ),
            (
                "a name whose slug is too long",
                json!({ "teamName": "語".repeat(100) }),
                &["#/teamName becomes an id of 299 characters, more than 128"],
            ),
            (
                "a description of 1001 characters",
                json!({ "teamName": "a", "teamDescription": long(1001) }),
                &["#/teamDescription must have at most 1000 characters, but has 1001"],
            ),
            (
                "a control character in the description",
                json!({ "teamName": "a", "teamDescription": "\u{0}" }),
                &["#/teamDescription must not hold control characters other than line breaks and tabs"],
            ),
            (
                "both fields wrong",
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
async fn create_team_takes_the_longest_that_it_may() {
    let world = World::new().await;
    let body = json!({ "teamName": "é".repeat(100), "teamDescription": "𝄞".repeat(1000) });

    world
        .acme()
        .await
        .post(PATH, body.clone())
        .await
        .is_success();

    let team = world.record(Table::TEAMS).await;
    assert_eq!(team["team_name"], body["teamName"]);
    assert_eq!(team["team_description"], body["teamDescription"]);
    assert_eq!(team["team_id"], "e".repeat(100));
}

#[tokio::test]
async fn create_team_reports_members_that_are_repeated() {
    let world = World::new().await;
    let body = r#"{"teamName": "a", "teamName": "b", "x": {"a/b~c d": 1, "a/b~c d": 2}}"#;

    let answer = world.acme().await.post_text(PATH, body).await;

    answer.is(422, "invalid_body");
    let repeated = "must stand only once in its object";
    assert_eq!(
        answer.violations(),
        [
            format!("#/teamName {repeated}"),
            format!("#/x/a~1b~0c%20d {repeated}")
        ]
    );
    assert!(world.records(Table::TEAMS).await.is_empty());
}

#[tokio::test]
async fn create_team_answers_a_body_made_of_repeated_members_in_few_bytes() {
    let world = World::new().await;
    let members: Vec<_> = (0..9000)
        .map(|number| format!(r#""{number}":0,"{number}":0"#))
        .collect();
    let name = " ".repeat(100_000);
    let deep = format!(r#"{{"{name}": {{{}}}}}"#, members.join(","));
    let flat = format!("{{{}}}", members.join(","));

    for body in [deep, flat] {
        let answer = world.acme().await.post_text(PATH, &body).await;

        answer.is(422, "invalid_body");
        assert!(answer.violations().len() > 1);
        let size = answer.body.unwrap().to_string().len();
        assert!(size < 1_000_000, "{size}");
    }
}

/// Found by fuzzing: a pointer as long as the name was formed for each of the repetitions, which took minutes.
#[tokio::test]
async fn create_team_answers_one_member_that_is_repeated_without_end_at_once() {
    let world = World::new().await;
    let name = "~/".repeat(15_000);
    let flat = vec![r#""a":0"#; 38_000].join(",");
    let deep = vec![r#""b":{"a":0,"a":0}"#; 12_000].join(",");

    for members in [flat, deep] {
        let started = Instant::now();
        let body = format!(r#"{{"{name}": {{{members}}}}}"#);
        let answer = world.acme().await.post_text(PATH, &body).await;

        answer.is(422, "invalid_body");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
