//! `remove`.

use serde_json::{Value, json};

use crate::{assert_fails, assert_usage_error, server::Server};

/// The arguments of a removal in the organization `acme`.
fn removal<'a>(kind: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["remove", kind, "--org", "acme"], rest].concat()
}

#[test]
fn every_kind_of_record_is_removed_once() {
    let server = Server::with_records();
    let apollo = ["--project", "apollo"];
    for (kind, table, rest) in [
        (
            "member",
            "members",
            [&apollo[..], &["--team", "research-team", "ada"]].concat(),
        ),
        ("model", "models", vec!["--type", "chat", "gpt-4o"]),
        ("data-store", "data-stores", vec!["papers"]),
        ("voice", "voices", vec!["bot-7"]),
        ("logging-instance", "logging-instances", apollo.to_vec()),
    ] {
        let before = server.records(&["list", table]);
        let arguments = removal(kind, &rest);

        let removed = server.json(&arguments);

        let after = server.records(&["list", table]);
        assert_eq!(after.len(), before.len() - 1, "{kind}: {before:?}");
        let gone = before
            .iter()
            .find(|record| !after.contains(record))
            .unwrap();
        assert_eq!(removed["created_at"], gone["created_at"], "{kind}");
        assert_eq!(removed["removed_by"], server.operator(), "{kind}");
        assert!(removed["removed_at"].is_string(), "{kind}: {removed}");

        let again = server.output(&arguments);
        assert_fails(&again, "does not exist");
        assert_eq!(server.records(&["list", table]), after);
    }
}

#[test]
fn a_team_is_removed_with_its_members_and_can_be_created_again() {
    let server = Server::with_records();
    let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let members = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    let users: Vec<Value> = (0..100)
        .map(|id| json!({ "userid": id.to_string() }))
        .collect();
    let add = |users: &[Value]| {
        let body = json!({ "usersAddingToTeam": users }).to_string();
        server.post(members, Some(&server.key), &body).status
    };
    assert_eq!(add(&users), 204);
    let other = json!({ "teamName": "Research Team 2" }).to_string();
    assert_eq!(server.post(path, Some(&server.key), &other).status, 204);
    let remove = removal(
        "team",
        &["--project", "apollo", "research-team", "--wait", "0"],
    );

    assert_usage_error(&server.output(&remove), "confirm it with --yes");
    assert_eq!(server.records(&["list", "teams"]).len(), 2);
    let removed = server.json(&[&remove[..], &["--yes"]].concat());

    assert!(removed["members"].as_u64() > Some(100), "{removed}");
    assert_eq!(removed["removed_by"], server.operator());
    assert!(server.records(&["list", "members"]).is_empty());
    let teams = server.records(&["list", "teams"]);
    assert_eq!(teams.len(), 1, "{teams:?}");
    assert_eq!(add(&users[..1]), 404);
    let again = server.output(&[&remove[..], &["--yes"]].concat());
    assert_fails(
        &again,
        "the team research-team does not exist in this project",
    );

    let body = json!({ "teamName": "Research Team" }).to_string();
    assert_eq!(server.post(path, Some(&server.key), &body).status, 204);
    assert_eq!(add(&users[..1]), 204);
    assert_eq!(server.records(&["list", "members"]).len(), 1);
}

#[test]
fn a_person_is_removed_from_all_teams_of_one_organization() {
    let server = Server::with_records();
    server.run(&["orgs", "create", "globex"]);
    let globex = server.run(&["keys", "create", "--org", "globex"]);
    let add = |org: &str, key: &str, team: &str, users: &[&str]| {
        let path = format!("/api/v1/project/{org}/apollo/createNewTeamOnProject");
        let body = json!({ "teamName": team }).to_string();
        assert_eq!(server.post(&path, Some(key), &body).status, 204);
        let path = format!("/api/v1/project/{org}/apollo/{team}/addUsersToTheTeam");
        let users: Vec<_> = users.iter().map(|user| json!({ "userid": user })).collect();
        let body = json!({ "usersAddingToTeam": users }).to_string();
        assert_eq!(server.post(&path, Some(key), &body).status, 204);
    };
    for team in ["a", "b", "c"] {
        add("acme", &server.key, team, &["zoe", "Zoe", "grace"]);
    }
    add("globex", globex.trim(), "a", &["zoe"]);
    let of =
        |org: &str, user: &str| server.records(&["list", "members", "--org", org, "--user", user]);
    assert_eq!(of("acme", "zoe").len(), 3);
    let remove = removal("member", &["--all-teams", "zoe"]);

    assert_usage_error(&server.output(&remove), "confirm it with --yes");
    let output = server.output(&[&remove[..], &["--yes", "--json"]].concat());

    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("similar users are not removed: Zoe"),
        "{message}"
    );
    let removed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let teams = ["acme#apollo#a", "acme#apollo#b", "acme#apollo#c"];
    assert_eq!(removed["teams"], json!(teams));
    assert!(of("acme", "zoe").is_empty());
    assert_eq!(of("acme", "Zoe").len(), 3);
    assert_eq!(of("acme", "grace").len(), 4);
    assert_eq!(of("globex", "zoe").len(), 1);
    let again = server.json(&[&remove[..], &["--yes"]].concat());
    assert_eq!(again["teams"], json!([]));
}

/// The mark stays if the command is killed while it waits, and the next run continues.
#[test]
fn a_removal_that_was_killed_is_continued() {
    let server = Server::with_records();
    let remove = removal("team", &["--project", "apollo", "research-team", "--yes"]);
    let mut killed = server.command(&remove).spawn().unwrap();
    let marked = || {
        let teams = server.records(&["list", "teams"]);
        teams[0]["removing_id"].as_str().map(str::to_owned)
    };
    while marked().is_none() {}
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mark = marked();

    let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let body = json!({ "teamName": "Research Team" }).to_string();
    let response = server.post(path, Some(&server.key), &body);
    assert_eq!(response.status, 409, "{}", response.body);
    assert!(response.body.contains("being_removed"), "{}", response.body);
    assert_eq!(marked(), mark);
    assert_eq!(server.records(&["list", "members"]).len(), 2);
    server.run(&[&remove[..], &["--wait", "0"]].concat());

    assert!(server.records(&["list", "teams"]).is_empty());
    assert!(server.records(&["list", "members"]).is_empty());
}

#[test]
fn an_invalid_argument_is_reported_before_anything_is_contacted() {
    let unreachable = crate::unused_url();
    // A space at the end adds an empty argument.
    for arguments in [
        "remove team --org no/org --project apollo docs --yes",
        "remove team --org acme --project .. docs --yes",
        "remove team --org acme --project apollo docs",
        "remove member --org acme --project apollo ada",
        "remove member --org acme --project apollo --team docs ",
        "remove model --org acme gpt-4o",
        "remove model --org acme --type chat ",
        "remove voice --org acme a/b",
        "orgs disable acme --wait soon",
        "list teams --org acme --project a#b",
        "orgs erase acme --yes",
        "orgs erase acme --without-export",
        "orgs erase acme --yes --export a --without-export",
        "keys revoke --all --yes",
        "keys revoke --all --org acme",
        "keys revoke acmeDemoKey1 --all --org acme",
        "keys rotate nonsense",
        "keys create --org acme --expires 0d",
        "restore --from no-such-file.jsonl",
        "restore --from Table --to nothing",
        "list voices --org acme --project apollo",
        "list voices --limit 1 --after nonsense",
    ] {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let output = crate::workspacectl(&arguments)
            .env("AWS_ENDPOINT_URL_DYNAMODB", &unreachable)
            .output()
            .unwrap();
        assert_usage_error(&output, "");
    }
}
