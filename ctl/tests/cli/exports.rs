//! The files of `orgs export`, `orgs erase` and `remove --export`.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::Path,
    process::{Child, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;
use workspace_local::fixtures;
use workspace_management::store::Table;

use crate::{
    assert_exits_with, assert_fails, assert_usage_error, kill, network::Network, server::Server,
};

/// A folder, and a file in it that does not exist yet.
fn new_file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

fn erasure<'a>(file: &'a str, wait: &'a str) -> [&'a str; 8] {
    [
        "orgs", "erase", "acme", "--yes", "--wait", wait, "--export", file,
    ]
}

/// A service with a disabled organization, whose erasure waits after it has created its file.
fn start_erasure(server: &Server, file: &str) -> Child {
    server.run(&["orgs", "disable", "acme", "--wait", "0"]);
    let erase = server.start_until_marked(&erasure(file, "90"), "erasing_id");
    assert!(Path::new(&format!("{file}.partial")).is_file());
    erase
}

/// The names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_erasure_that_was_killed_is_continued_and_its_incomplete_export_is_named() {
    let server = Server::with_records();
    let export = server.run(&["orgs", "export", "acme"]);
    let (folder, file) = new_file();
    let mut process = start_erasure(&server, &file);
    process.kill().unwrap();
    process.wait().unwrap();
    let partial = format!("{file}.partial");
    let left = format!("an interrupted run left {partial}, which is incomplete");

    let enable = server.output(&["orgs", "enable", "acme"]);
    assert_fails(&enable, "is being erased: it cannot be enabled again");
    assert_fails(&server.output(&erasure(&file, "0")), &left);
    assert!(!server.records(&["list", "models"]).is_empty());
    // As if the run had been killed while it wrote.
    fs::write(&partial, &export[..export.len() / 2]).unwrap();
    let other = folder.path().join("other.jsonl");
    let other = other.to_str().unwrap();
    assert_fails(&server.output(&erasure(other, "0")), &left);

    for table in Table::ALL {
        assert_eq!(server.count(table.logical_id), 0, "{}", table.noun);
    }
    assert!(fs::read_to_string(other).unwrap().lines().count() > 5);
}

/// The second run fails before it marks or deletes anything. Then the first one is interrupted, and
/// one of several others completes.
#[test]
fn two_erasures_with_the_same_file_do_not_lose_the_export() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let server = Server::with_records();
        let (folder, file) = new_file();
        let first = start_erasure(&server, &file);
        let erase = erasure(&file, "0");
        let second = server.output(&erase);
        assert_fails(&second, &format!("another run is writing {file}.partial"));
        kill(signal, first.id());
        let first = first.wait_with_output().unwrap();
        assert_eq!(first.status.code(), Some(code), "{first:?}");
        let message = String::from_utf8(first.stderr).unwrap();
        assert!(message.contains(".partial was removed"), "{message}");
        assert_eq!(names(folder.path()), [""; 0]);

        let start = || server.command(&erase).stderr(Stdio::null()).spawn();
        let runs = [0; 4].map(|_| start().unwrap());
        let completed = runs.map(|mut run| run.wait().unwrap().success());
        let completed = completed.into_iter().filter(|is_completed| *is_completed);
        assert_eq!(completed.count(), 1);
        assert_eq!(names(folder.path()), ["export.jsonl"]);
        server.run(&["restore", "--from", &file]);
        assert_eq!(server.records(&["list", "members"]).len(), 2);
        assert_usage_error(&server.output(&erase), "exists: choose another file");
    }
}

/// The arguments of each kind of removal. Each removes one record.
fn removals(file: &str) -> Vec<Vec<&str>> {
    let removals = [
        "remove member --project apollo --team research-team ada",
        "remove member --all-teams grace --yes",
        "remove model --type chat gpt-4o",
        "remove data-store papers",
        "remove voice bot-7",
        "remove logging-instance --project apollo",
        "remove team --project apollo research-team --wait 0 --yes",
    ];
    let options = ["--org", "acme", "--export", file];
    let arguments = |removal: &'static str| removal.split(' ').chain(options).collect();
    removals.into_iter().map(arguments).collect()
}

#[test]
fn what_was_removed_is_restored_from_one_file() {
    let server = Server::with_records();
    let all = || -> BTreeSet<String> {
        let export = server.run(&["orgs", "export", "acme"]);
        export.lines().map(str::to_owned).collect()
    };
    let before = all();
    let (_folder, file) = new_file();
    for removal in removals(&file) {
        let removed = server.json(&removal);
        assert_eq!(removed["removed_by"], server.operator(), "{removed}");
    }
    let text = fs::read_to_string(&file).unwrap();
    let exported: BTreeSet<_> = text.lines().map(str::to_owned).collect();

    assert_eq!(exported.len(), removals(&file).len(), "{text}");
    assert_eq!(exported.len(), text.lines().count(), "{text}");
    assert!(exported.is_subset(&before), "{text}");
    assert_eq!(&all() | &exported, before);
    assert!(!text.contains("removing_"), "{text}");
    assert_eq!(all().len() + exported.len(), before.len());
    let mut single = removals(&file);
    single.retain(|removal| !removal.contains(&"--all-teams"));
    for removal in single {
        assert_fails(&server.output(&removal), "of it");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    server.run(&["restore", "--from", &file]);
    assert_eq!(all().len(), before.len());
}

#[test]
fn a_file_that_removals_cannot_extend_is_rejected_before_anything_is_marked() {
    let server = Server::with_records();
    let (folder, file) = new_file();
    let before = server.valid_records();
    for (content, error) in [
        ("a letter", "line 1 of"),
        (
            "{\"record\":{},\"table\":\"teams\"}\n{\"record\":{},\"table\":\"tea\"}\n",
            "line 2 of",
        ),
    ] {
        fs::write(&file, content).unwrap();
        for removal in removals(&file) {
            assert_usage_error(&server.output(&removal), error);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
    fs::write(&file, "").unwrap();
    let locked = File::open(&file).unwrap();
    locked.lock().unwrap();
    for (file, code, error) in [
        (&*file, 1, "another command is writing"),
        (folder.path().to_str().unwrap(), 2, "is not a file"),
        ("missing/export.jsonl", 1, "cannot write missing/export"),
    ] {
        for removal in removals(file) {
            assert_exits_with(code, &server.output(&removal), error);
        }
    }
    assert_eq!(server.valid_records(), before);
}

#[test]
fn an_incomplete_last_line_is_removed() {
    let server = Server::with_records();
    let (_folder, file) = new_file();
    let removals = removals(&file);
    server.run(&removals[0]);
    let line = fs::read_to_string(&file).unwrap();
    for length in [1, 20, line.len() - 2] {
        fs::write(&file, format!("{line}{}", &line[..length])).unwrap();
        assert_fails(&server.output(&removals[0]), "1 record of it");
        assert_eq!(fs::read_to_string(&file).unwrap(), line);
    }
    // Without its line feed, the last line is complete.
    fs::write(&file, line.trim_end()).unwrap();
    server.run(&removals[2]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(&line), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

const USERS: [&str; 3] = ["ada", "grace", "zoe"];

fn remove_team(file: &str) -> String {
    format!("remove team --org acme --project apollo docs --wait 0 --yes --export {file}")
}

/// The values of an attribute in an export.
fn exported(file: &str, attribute: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["record"][attribute].as_str().map(str::to_owned)
    });
    lines.flatten().collect()
}

#[test]
fn members_that_are_added_late_are_exported_before_they_are_deleted() {
    let network = Network::with_team(&USERS);
    let (_folder, file) = new_file();
    let (dynamodb, count) = (network.dynamodb.clone(), AtomicUsize::new(0));
    let output = network.run(&remove_team(&file), move |_, _| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        if number < 20 {
            let user = format!("late-{number}");
            let member = fixtures::member("acme", "apollo", "docs", &user);
            dynamodb.put(Table::TEAM_MEMBERS, member);
        }
        true
    });

    assert!(output.status.success(), "{output:?}");
    assert!(network.dynamodb.records(Table::TEAM_MEMBERS).is_empty());
    let users: BTreeSet<_> = exported(&file, "user_id").into_iter().collect();
    assert_eq!(users.len(), 20 + USERS.len(), "{users:?}");
}

/// Every request is the last one of a run that is killed, and DynamoDB handles it or not.
#[test]
fn a_removal_that_is_killed_at_any_request_loses_no_record() {
    let mut kills = 0;
    while [true, false].map(|is_handled| kill_removal(kills, is_handled)) == [true, true] {
        kills += 1;
    }
    assert!(kills > 7, "{kills}");
}

/// Kills a removal at a request, and repeats it. Returns false if there were fewer requests.
fn kill_removal(at: usize, is_handled: bool) -> bool {
    let network = Network::with_team(&USERS);
    let (_folder, file) = new_file();
    let line = remove_team(&file);
    let is_killed = !network.kill_at(at, is_handled, &line).status.success();
    let users = exported(&file, "user_id");
    let left = network.dynamodb.records(Table::TEAM_MEMBERS);
    for user in USERS {
        let is_left = left.iter().any(|member| member["user_id"] == user);
        assert!(is_left || users.contains(&user.to_owned()), "{at}: {user}");
    }

    let output = network.run(&line, |_, _| true);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("4 records of it"), "{at}: {message}");
    let mut users = exported(&file, "user_id");
    users.sort();
    assert_eq!(users, USERS, "{at}");
    assert_eq!(exported(&file, "team_name"), ["Docs"], "{at}");
    assert!(network.dynamodb.records(Table::TEAMS).is_empty(), "{at}");
    is_killed
}

/// What happens to the file before a record is marked, and what the error then says.
#[test]
fn nothing_is_deleted_if_the_export_fails() {
    fn create(file: &str) {
        fs::write(file, "other").unwrap();
    }
    fn replace(file: &str) {
        fs::remove_file(file).unwrap();
        create(file);
    }
    fn replace_partial(file: &str) {
        replace(&format!("{file}.partial"));
    }
    fn erase(file: &str) -> String {
        erasure(file, "0").join(" ")
    }
    type Case = (fn(&str) -> String, fn(&str), &'static str);
    let cases: [Case; 3] = [
        (erase, create, "another program has created"),
        (erase, replace_partial, "was moved or deleted"),
        (remove_team, replace, "was moved or deleted"),
    ];
    for (line, interfere, error) in cases {
        let network = Network::with_team(&USERS);
        let acme = fixtures::disabled_organization("acme");
        network.dynamodb.put(Table::ORGANIZATIONS, acme);
        let (folder, file) = new_file();
        let path = file.clone();
        let output = network.run(&line(&file), move |action, _| {
            if action == "dynamodb:UpdateItem" {
                interfere(&path);
            }
            true
        });

        assert_fails(&output, error);
        let members = network.dynamodb.records(Table::TEAM_MEMBERS);
        assert_eq!(members.len(), USERS.len());
        let names = names(folder.path());
        assert_eq!(names.len(), 1, "{names:?}");
        let text = fs::read_to_string(folder.path().join(&names[0])).unwrap();
        assert_eq!(text, "other");
    }
}

/// Another operator removes the team without an export, and a client creates it again.
#[test]
fn a_removal_says_that_another_run_was_first() {
    let network = Network::with_team(&USERS);
    let (_folder, file) = new_file();
    let (dynamodb, count) = (network.dynamodb.clone(), AtomicUsize::new(0));
    let output = network.run(&remove_team(&file), move |action, _| {
        // The first read after the mark.
        if action == "dynamodb:Query" && count.fetch_add(1, Ordering::SeqCst) == 0 {
            let team = fixtures::team("acme", "apollo", "docs", "New");
            dynamodb.put(Table::TEAMS, team);
        }
        true
    });
    assert_fails(&output, "another run has removed the team docs too, and");
    assert_eq!(exported(&file, "team_name"), ["Docs"]);
    assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 3);
}
