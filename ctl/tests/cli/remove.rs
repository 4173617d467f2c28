//! `remove`. The tests of `--export` are in `exports`.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use workspace_local::fixtures;
use workspace_management::store::Table;

use crate::{
    assert_fails, assert_usage_error, network::Network, server::Server, text, words, workspacectl,
};

#[test]
fn a_team_is_removed_with_its_members_and_can_be_created_again() {
    let server = Server::with_records();
    let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let create = |name: &str| {
        let body = json!({ "teamName": name }).to_string();
        server.post(path, Some(&server.key), &body).status
    };
    let members = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    let body = r#"{"usersAddingToTeam":[{"userid":"zoe"}]}"#;
    let add = || server.post(members, Some(&server.key), body).status;
    assert_eq!(add(), 204);
    assert_eq!(create("Research Team 2"), 204);
    let remove = words("remove team --org acme --project apollo research-team --wait 0");

    assert_usage_error(&server.output(&remove), "confirm it with --yes");
    assert_eq!(server.records(&["list", "teams"]).len(), 2);
    let removed = server.json(&[&remove[..], &["--yes"]].concat());

    assert_eq!(removed["members"], 3, "{removed}");
    assert!(server.records(&["list", "members"]).is_empty());
    assert_eq!(server.records(&["list", "teams"]).len(), 1);
    assert_eq!(add(), 404);

    assert_eq!(create("Research Team"), 204);
    assert_eq!(add(), 204);
    assert_eq!(server.records(&["list", "members"]).len(), 1);
}

#[test]
fn a_person_is_removed_from_all_teams_of_one_organization() {
    let network = Network::new();
    for (org, team) in [("acme", "a"), ("acme", "b"), ("globex", "a")] {
        let put = |table, record| network.dynamodb.put(table, record);
        put(Table::ORGANIZATIONS, fixtures::organization(org));
        put(Table::TEAMS, fixtures::team(org, "apollo", team, team));
        for user in ["zoe", "Zoe", "grace"] {
            let member = fixtures::member(org, "apollo", team, user);
            put(Table::TEAM_MEMBERS, member);
        }
    }
    let run = |line: &str| network.run(line, |_, _| true);
    let list = run("list members --org acme --user zoe --json");
    let listed: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(listed.len(), 2);
    let remove = "remove member --all-teams zoe --org acme";

    assert_usage_error(&run(remove), "confirm it with --yes");
    for (teams, similar) in [
        (&["acme#apollo#a", "acme#apollo#b"][..], "note: "),
        (&[], "warning: no member has the id \"zoe\""),
    ] {
        let output = run(&format!("{remove} --yes --json"));
        assert!(output.status.success(), "{output:?}");
        let removed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(removed["teams"], json!(teams));
        let message = text(&output.stderr);
        let removal = format!("{} memberships were removed\n", teams.len());
        assert!(message.contains(&removal), "{message}");
        let last = message.lines().last().unwrap();
        assert!(
            last.starts_with(similar) && last.ends_with("similar ids: \"Zoe\""),
            "{message}"
        );
    }
    let left = network.dynamodb.records(Table::TEAM_MEMBERS);
    assert_eq!(left.len(), 7);
    let is_left = |member: &Value| member["user_id"] != "zoe" || member["org_id"] == "globex";
    assert!(left.iter().all(is_left), "{left:?}");
}

/// Otherwise a mistyped id looks like that of a person who has left.
#[test]
fn similar_ids_are_named_last_also_if_the_id_is_of_no_member() {
    let network = Network::with_team(&["eve\u{200b}", "EVE"]);
    let list = "list members --org acme --user";
    let remove = "remove member --org acme --project apollo --team docs";
    let warning = "warning: no member has the id \"eve\", \
        but there are members with similar ids: \"EVE\", \"eve\\u{200b}\"";
    let note = "note: there are other members with similar ids: \"eve\\u{200b}\"";
    for (command, user, code, expected) in [
        (list, "eve", 0, warning),
        (list, "EVE --json", 0, note),
        (remove, "eve", 1, warning),
        (remove, "EVE --json", 0, note),
    ] {
        let output = network.run(&format!("{command} {user}"), |_, _| true);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let mut lines = text(&output.stderr).lines();
        let last = lines.rfind(|line| !line.starts_with("error: "));
        assert_eq!(last, Some(expected));
    }
}

/// Each difference is one that people do not see, or that programs add.
#[test]
fn ids_are_similar_if_people_can_take_them_for_the_same() {
    let user = "zoë\u{a0}fiß.ς";
    let similar = [
        "ZOË\u{a0}FISS.Σ",
        "Zoë\u{a0}Fiß.σ",
        "zoe\u{308}\u{a0}fiß.ς",
        "zoe\u{34f}\u{308}\u{a0}fiß.ς",
        "ｚｏë\u{a0}fiß.ς",
        "zoë\u{a0}ﬁß.ς",
        "zoë\u{a0}fiẞ.ς",
        "zoë\u{a0}fİß.ς",
        "zoë\u{a0}fıß.ς",
        " zoë fiß.ς ",
    ];
    let invisible = "\u{ad}\u{200b}\u{200d}\u{202e}\u{2060}\u{2800}\u{3164}\u{fe0f}\u{feff}\
        \u{1bca0}\u{1bca3}\u{1d173}\u{1d17a}\u{e0041}\u{e0100}";
    let hidden = invisible
        .chars()
        .map(|character| format!("{character}{user}"));
    let hidden: Vec<_> = hidden.collect();
    let others = ["zoe\u{a0}fiß.ς", "zoë\u{a0}fis.ς", "zoë\u{a0}fiß"];
    let ids = similar.into_iter().chain(others);
    let ids: Vec<_> = ids.chain(hidden.iter().map(String::as_str)).collect();
    let network = Network::with_team(&ids);

    let list = format!("list members --org acme --user {user}");
    let output = network.run(&list, |_, _| true);

    let message = text(&output.stderr);
    let is_named = |id: &str| message.contains(&format!("{id:?}"));
    for id in similar {
        assert!(is_named(id), "{id:?}: {message}");
    }
    for id in others {
        assert!(!is_named(id), "{id:?}: {message}");
    }
    for character in invisible.chars() {
        let id = format!("{}{}", character.escape_unicode(), user.escape_debug());
        assert!(message.contains(&id), "{id}: {message}");
    }
}

/// A client adds the record again while the command removes it.
#[test]
fn a_record_that_exists_again_is_reported() {
    let network = Network::new();
    let model = fixtures::model("acme", "chat", "gpt-4o");
    network.dynamodb.put(Table::MODELS, &model);
    let (dynamodb, is_deleted) = (network.dynamodb.clone(), AtomicBool::new(false));
    let remove = "remove model --org acme --type chat gpt-4o";
    let output = network.run(remove, move |action, _| {
        if action == "dynamodb:TransactWriteItems" {
            is_deleted.store(true, Ordering::SeqCst);
        } else if is_deleted.load(Ordering::SeqCst) {
            dynamodb.put(Table::MODELS, &model);
        }
        true
    });
    assert_fails(&output, "still exists, or exists again");
}

#[test]
fn an_invalid_argument_is_reported_before_anything_is_contacted() {
    let unreachable = crate::unused_url();
    // A space at the end adds an empty argument.
    for arguments in [
        "remove team --org no/org --project apollo docs --yes",
        "remove team --org acme --project .. docs --yes",
        "remove member --org acme --project apollo ada",
        "remove member --org acme --project apollo --team docs ",
        "remove model --org acme gpt-4o",
        "remove model --org acme --type chat ",
        "remove voice --org acme a/b",
        "orgs show .",
        "orgs enable ..",
        "orgs export no/org",
        "orgs disable a#b",
        "orgs disable acme --wait soon",
        "list teams --org acme --project a#b",
        "orgs erase acme --yes",
        "orgs erase acme --without-export",
        "orgs erase acme --yes --export a --without-export",
        "keys revoke --all --yes",
        "keys revoke acmeDemoKey1 --all --org acme",
        "restore --from no-such-file.jsonl",
        "restore --from Table --to nothing",
    ] {
        let output = workspacectl(&words(arguments))
            .env("AWS_ENDPOINT_URL_DYNAMODB", &unreachable)
            .output()
            .unwrap();
        assert_usage_error(&output, "");
    }
}
