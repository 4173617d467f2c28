//! `remove`. The tests of `--export` are in `exports`.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use workspace_local::fixtures;
use workspace_management::store::Table;

use crate::{
    assert_stops, assert_usage_error, network::Network, server::Server, words, workspacectl,
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
    let users: Vec<Value> = (0..100)
        .map(|id| json!({ "userid": id.to_string() }))
        .collect();
    let add = |users: &[Value]| {
        let body = json!({ "usersAddingToTeam": users }).to_string();
        server.post(members, Some(&server.key), &body).status
    };
    assert_eq!(add(&users), 204);
    assert_eq!(create("Research Team 2"), 204);
    let remove = words("remove team --org acme --project apollo research-team --wait 0");

    assert_usage_error(&server.output(&remove), "confirm it with --yes");
    assert_eq!(server.records(&["list", "teams"]).len(), 2);
    let removed = server.json(&[&remove[..], &["--yes"]].concat());

    assert!(removed["members"].as_u64() > Some(100), "{removed}");
    assert!(server.records(&["list", "members"]).is_empty());
    assert_eq!(server.records(&["list", "teams"]).len(), 1);
    assert_eq!(add(&users[..1]), 404);

    assert_eq!(create("Research Team"), 204);
    assert_eq!(add(&users[..1]), 204);
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
    let remove = "remove member --all-teams zoe --org";

    assert_usage_error(&run(&format!("{remove} acme")), "confirm it with --yes");
    for (org, teams, removal) in [
        (
            "acme",
            &["acme#apollo#a", "acme#apollo#b"][..],
            "2 memberships were removed\n",
        ),
        ("acme", &[], "0 memberships were removed\n"),
        ("globex", &["globex#apollo#a"], "1 membership was removed\n"),
    ] {
        let output = run(&format!("{remove} {org} --yes --json"));
        assert!(output.status.success(), "{output:?}");
        let removed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(removed["teams"], json!(teams));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(removal), "{message}");
    }
    let left = network.dynamodb.records(Table::TEAM_MEMBERS);
    assert_eq!(left.len(), 6);
    assert!(left.iter().all(|member| member["user_id"] != "zoe"));
}

/// Otherwise a mistyped id looks like that of a person who has left.
#[test]
fn similar_ids_are_named_last_also_if_the_id_is_of_no_member() {
    let network = Network::with_team(&["eve\u{200b}", "EVE"]);
    let list = "list members --org acme --user";
    let remove = "remove member --org acme --project apollo --team docs";
    let all_teams = "remove member --org acme --yes --all-teams";
    let warning = "warning: no member has the id \"eve\", \
        but there are members with similar ids: \"EVE\", \"eve\\u{200b}\"";
    let note = "note: there are other members with similar ids: \"eve\\u{200b}\"";
    for (command, user, code, expected) in [
        (list, "eve", 0, warning),
        (remove, "eve", 1, warning),
        (all_teams, "eve", 0, warning),
        (list, "EVE", 0, note),
        (remove, "EVE", 0, note),
        (all_teams, "EVE", 0, note),
    ] {
        for format in ["", " --json"] {
            if expected == note {
                let member = fixtures::member("acme", "apollo", "docs", "EVE");
                network.dynamodb.put(Table::TEAM_MEMBERS, member);
            }
            assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 2);
            let output = network.run(&format!("{command} {user}{format}"), |_, _| true);
            assert_eq!(output.status.code(), Some(code), "{output:?}");
            let message = String::from_utf8(output.stderr).unwrap();
            let mut lines = message.lines().filter(|line| !line.starts_with("error: "));
            assert_eq!(lines.next_back(), Some(expected));
        }
    }
}

#[test]
fn ids_are_similar_if_people_can_take_them_for_the_same() {
    let rows = [
        ("MIA@Example.com", "mia@example.com"),
        ("Zoe\u{308}", "zoë"),
        ("Ｌｉｎ", "lin"),
        ("FIONA", "ﬁona"),
        ("STRASSE", "straße"),
        ("STRAẞE", "straße"),
        ("ΣΊΣΥΦΟΣ", "Σίσυφος"),
        ("İSTANBUL", "istanbul"),
        ("ıstanbul", "istanbul"),
        (" Ada Lovelace ", "ada\u{a0}lovelace"),
        ("E\u{34f}\u{301}va", "éva"),
    ];
    let invisible = "\u{ad}\u{200b}\u{200d}\u{202e}\u{2060}\u{2800}\u{3164}\u{fe0f}\u{feff}\
        \u{1bca0}\u{1bca3}\u{1d173}\u{1d17a}\u{e0041}\u{e0100}";
    let hidden = invisible.chars().map(|character| format!("ev{character}e"));
    let hidden: Vec<_> = hidden.collect();
    let others = ["evee", "èva", "zoé"];
    let ids = rows.map(|row| row.0).into_iter().chain(others);
    let ids: Vec<_> = ids.chain(hidden.iter().map(String::as_str)).collect();
    let network = Network::with_team(&ids);
    let named = |user: &str| {
        let list = format!("list members --org acme --user {user}");
        let output = network.run(&list, |_, _| true);
        let message = String::from_utf8(output.stderr).unwrap();
        let is_other = others.iter().any(|other| message.contains(other));
        assert!(!is_other, "{user}: {message}");
        message
    };
    for (id, user) in rows {
        let message = named(user);
        assert!(message.contains(&format!("{id:?}")), "{user}: {message}");
    }
    let message = named("eve");
    for character in invisible.chars() {
        let id = format!("\"ev{}e\"", character.escape_unicode());
        assert!(message.contains(&id), "{id}: {message}");
    }
}

/// Nulls are replaced by marks, or compared as they are. An organization that was disabled with the
/// AWS CLI has no `state_id`.
#[test]
fn records_that_other_programs_have_changed_are_removed() {
    let network = Network::with_team(&[]);
    let put = |table, mut record: Value, name: &str| {
        record[name] = Value::Null;
        network.dynamodb.put(table, record);
    };
    let mut acme = fixtures::organization("acme");
    acme["disabled_at"] = json!(fixtures::CREATED_AT);
    put(Table::ORGANIZATIONS, acme, "erasing_id");
    let team = fixtures::team("acme", "apollo", "docs", "Docs");
    put(Table::TEAMS, team, "removing_id");
    let member = fixtures::member("acme", "apollo", "docs", "ada");
    put(Table::TEAM_MEMBERS, member, "created_at");
    for line in [
        "remove member --org acme --project apollo --team docs ada",
        "remove team --org acme --project apollo docs --wait 0 --yes",
        "orgs erase acme --without-export --wait 0 --yes",
    ] {
        let output = network.run(line, |_, _| true);
        assert!(output.status.success(), "{line}: {output:?}");
    }
    for table in [Table::ORGANIZATIONS, Table::TEAMS, Table::TEAM_MEMBERS] {
        assert!(network.dynamodb.records(table).is_empty());
    }
}

/// A client adds the record again while the command removes it.
#[test]
fn a_record_that_exists_again_is_reported() {
    for (line, table, record) in [
        (
            "remove team --org acme --project apollo docs --wait 0 --yes",
            Table::TEAMS,
            fixtures::team("acme", "apollo", "docs", "Docs"),
        ),
        (
            "remove model --org acme --type chat gpt-4o",
            Table::MODELS,
            fixtures::model("acme", "chat", "gpt-4o"),
        ),
    ] {
        let network = Network::new();
        network.dynamodb.put(table, record.clone());
        let (dynamodb, is_deleted) = (network.dynamodb.clone(), AtomicBool::new(false));
        let output = network.run(line, move |action, _| {
            if action == "dynamodb:DeleteItem" {
                is_deleted.store(true, Ordering::SeqCst);
            } else if is_deleted.load(Ordering::SeqCst) {
                dynamodb.put(table, record.clone());
            }
            true
        });
        assert_stops(&output, "still exists, or exists again");
    }
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
        "orgs create ",
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
        "keys revoke --all --org acme",
        "keys revoke acmeDemoKey1 --all --org acme",
        "keys rotate nonsense",
        "keys create --org acme --expires 0d",
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
