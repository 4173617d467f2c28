//! `remove`.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use workspace_local::fixtures;
use workspace_management::store::Table;

use crate::{assert_fails, assert_usage_error, network::Network, server::Server, workspacectl};

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
    let of = |org: &str, user: &str| {
        let members = server.records(&["list", "members", "--org", org]);
        let is_user = |member: &Value| member["user_id"] == user;
        members.into_iter().filter(is_user).collect::<Vec<_>>()
    };
    let listed = server.records(&["list", "members", "--org", "acme", "--user", "zoe"]);
    assert_eq!(listed.len(), 3);
    let remove = removal("member", &["--all-teams", "zoe"]);

    assert_usage_error(&server.output(&remove), "confirm it with --yes");
    let output = server.output(&[&remove[..], &["--yes", "--json"]].concat());

    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("3 memberships were removed\n"),
        "{message}"
    );
    let note = "note: there are other members with similar ids: \"Zoe\"";
    assert_eq!(message.lines().last(), Some(note));
    let removed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let teams = ["acme#apollo#a", "acme#apollo#b", "acme#apollo#c"];
    assert_eq!(removed["teams"], json!(teams));
    assert!(of("acme", "zoe").is_empty());
    assert_eq!(of("acme", "Zoe").len(), 3);
    assert_eq!(of("acme", "grace").len(), 4);
    assert_eq!(of("globex", "zoe").len(), 1);
    let removed = server.output(&removal("member", &["--all-teams", "Zoe", "--yes"]));
    assert!(removed.status.success(), "{removed:?}");
    let again = server.json(&[&remove[..], &["--yes"]].concat());
    assert_eq!(again["teams"], json!([]));
}

/// Otherwise a mistyped id looks like that of a person who has left.
#[test]
fn similar_ids_are_named_last_also_if_the_id_is_of_no_member() {
    let server = Server::with_records();
    let path = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    let body = json!({ "usersAddingToTeam": [{ "userid": "eve\u{200b}" }, { "userid": "EVE" }] });
    let response = server.post(path, Some(&server.key), &body.to_string());
    assert_eq!(response.status, 204, "{}", response.body);
    let before = server.records(&["list", "members"]);
    let team = ["--project", "apollo", "--team", "research-team"];
    let list = ["list", "members", "--org", "acme", "--user"];
    let all_teams = removal("member", &["--yes", "--all-teams"]);
    for (command, code) in [
        (&list[..], 0),
        (&all_teams, 0),
        (&removal("member", &team), 1),
    ] {
        for format in [&[][..], &["--json"]] {
            let output = server.output(&[command, &["eve"], format].concat());
            assert_eq!(output.status.code(), Some(code), "{output:?}");
            let message = String::from_utf8(output.stderr).unwrap();
            let warning = "warning: no member has the id \"eve\", \
                but there are members with similar ids: \"EVE\", \"eve\\u{200b}\"";
            let mut lines = message.lines().filter(|line| !line.starts_with("error: "));
            assert_eq!(lines.next_back(), Some(warning));
        }
    }
    assert_eq!(server.records(&["list", "members"]), before);

    let listed = server.output(&[&list[..], &["EVE"]].concat());
    let removed = server.output(&removal("member", &[&team[..], &["EVE"]].concat()));
    for output in [listed, removed] {
        assert!(output.status.success(), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        let note = "note: there are other members with similar ids: \"eve\\u{200b}\"";
        assert_eq!(message.lines().last(), Some(note));
    }
    let nobody = server.output(&[&list[..], &["mallory"]].concat());
    assert!(nobody.status.success(), "{nobody:?}");
}

#[test]
fn ids_are_similar_if_people_can_take_them_for_the_same() {
    let server = Server::with_records();
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
        ("Ada\u{a0}Lovelace", " ada lovelace "),
        ("E\u{34f}\u{301}va", "éva"),
    ];
    let invisible = "\u{ad}\u{200b}\u{200d}\u{202e}\u{2060}\u{2800}\u{3164}\u{fe0f}\u{feff}\
        \u{1bca0}\u{1bca3}\u{1d173}\u{1d17a}\u{e0041}\u{e0100}";
    let hidden = invisible.chars().map(|character| format!("ev{character}e"));
    let others = ["evee", "èva", "zoé"].map(str::to_owned);
    let ids = rows
        .iter()
        .map(|row| row.0.to_owned())
        .chain(hidden)
        .chain(others);
    let users: Vec<_> = ids.map(|id| json!({ "userid": id })).collect();
    let path = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    let body = json!({ "usersAddingToTeam": users }).to_string();
    assert_eq!(server.post(path, Some(&server.key), &body).status, 204);
    let named = |user: &str| {
        let output = server.output(&["list", "members", "--org", "acme", "--user", user]);
        assert_eq!(output.status.code(), Some(0), "{user}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (id, user) in rows {
        let message = named(user);
        assert!(message.contains(&format!("{id:?}")), "{user}: {message}");
        assert!(
            !message.contains("èva") && !message.contains("zoé"),
            "{message}"
        );
    }
    let message = named("eve");
    for character in invisible.chars() {
        let id = format!("\"ev{}e\"", character.escape_unicode());
        assert!(message.contains(&id), "{id}: {message}");
    }
    assert!(!message.contains("evee"), "{message}");
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

/// Nulls, which only other programs write, are replaced by marks, or compared as they are.
#[test]
fn records_with_a_null_are_removed() {
    let network = Network::new();
    let put = |table, mut record: Value, name: &str| {
        record[name] = Value::Null;
        network.dynamodb.put(table, record);
    };
    put(
        Table::ORGANIZATIONS,
        fixtures::disabled_organization("acme"),
        "erasing_id",
    );
    put(
        Table::TEAMS,
        fixtures::team("acme", "apollo", "docs", "Docs"),
        "removing_id",
    );
    put(
        Table::TEAM_MEMBERS,
        fixtures::member("acme", "apollo", "docs", "ada"),
        "created_at",
    );
    let url = network.listen(|_, _| true);
    for command in [
        "remove member --org acme --project apollo --team docs ada",
        "remove team --org acme --project apollo docs --wait 0 --yes",
        "orgs erase acme --without-export --wait 0 --yes",
    ] {
        let words: Vec<_> = command.split(' ').collect();
        let mut command = workspacectl(&words);
        let output = command
            .env("AWS_ENDPOINT_URL_DYNAMODB", &url)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    for table in Table::ALL {
        assert!(
            network.dynamodb.records(*table).is_empty(),
            "{}",
            table.noun
        );
    }
}

/// A client adds the record again while the command removes it.
#[test]
fn a_record_that_exists_again_is_reported() {
    for (command, table, record) in [
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
        let url = network.listen(move |action, _| {
            if action == "dynamodb:DeleteItem" {
                is_deleted.store(true, Ordering::SeqCst);
            } else if is_deleted.load(Ordering::SeqCst) {
                dynamodb.put(table, record.clone());
            }
            true
        });
        let words: Vec<_> = command.split(' ').collect();
        let mut command = workspacectl(&words);
        let output = command
            .env("AWS_ENDPOINT_URL_DYNAMODB", url)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("still exists, or exists again"), "{error}");
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
