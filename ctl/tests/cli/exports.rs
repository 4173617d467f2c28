//! The files of `orgs export`, `orgs erase` and `remove --export`.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use workspace_local::fixtures;
use workspace_management::store::Table;

use crate::{assert_fails, assert_usage_error, network::Network, server::Server, workspacectl};

/// A folder, and a file in it that does not exist yet.
fn new_file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

fn erasure(file: &str) -> [&str; 6] {
    ["orgs", "erase", "acme", "--yes", "--export", file]
}

/// A service with a disabled organization, whose erasure waits after it has created its file.
fn start_erasure(server: &Server, file: &str) -> Child {
    server.run(&["orgs", "disable", "acme", "--wait", "0"]);
    let mut erase = server.command(&erasure(file));
    let erase = erase.stderr(Stdio::piped()).spawn().unwrap();
    while server.records(&["orgs", "show", "acme"])[0]["state"] != "being erased" {}
    assert!(Path::new(&format!("{file}.partial")).is_file());
    erase
}

fn kill(signal: &str, id: u32) {
    let mut kill = Command::new("kill");
    assert!(
        kill.args([signal, &id.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// Asserts that a command that was confirmed failed with exit code 1 and this text.
#[track_caller]
fn assert_stops(output: &Output, text: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("error: ") && error.contains(text), "{error}");
    assert!(output.stdout.is_empty(), "{output:?}");
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
fn an_interrupted_run_removes_its_incomplete_export() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let server = Server::with_records();
        let (folder, file) = new_file();
        let process = start_erasure(&server, &file);
        kill(signal, process.id());
        let output = process.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(
            message.contains("export.jsonl.partial was removed"),
            "{message}"
        );
        assert_eq!(names(folder.path()), [""; 0]);
    }
}

#[test]
fn an_erasure_names_the_incomplete_export_of_a_killed_run() {
    let server = Server::with_records();
    let export = server.run(&["orgs", "export", "acme"]);
    let (folder, file) = new_file();
    let mut process = start_erasure(&server, &file);
    process.kill().unwrap();
    process.wait().unwrap();
    let partial = format!("{file}.partial");

    let again = server.output(&[&erasure(&file)[..], &["--wait", "0"]].concat());
    assert_fails(
        &again,
        &format!("an interrupted run left {partial}, which is incomplete"),
    );
    assert!(!server.records(&["list", "models"]).is_empty());
    // As if the run had been killed while it wrote.
    fs::write(&partial, &export[..export.len() / 2]).unwrap();
    let other = folder.path().join("other.jsonl");
    let other = other.to_str().unwrap();
    let erased = server.output(&[&erasure(other)[..], &["--wait", "0"]].concat());

    assert_stops(&erased, &format!("an interrupted run left {partial}"));
    assert_eq!(server.run(&["orgs", "list", "--json"]), "[]\n");
    assert!(fs::read_to_string(other).unwrap().lines().count() > 5);
}

/// The second run fails before it marks or deletes anything, and the first one completes.
#[test]
fn two_erasures_with_the_same_file_do_not_lose_the_export() {
    let server = Server::with_records();
    let (folder, file) = new_file();
    let mut first = start_erasure(&server, &file);
    let erase = [&erasure(&file)[..], &["--wait", "0"]].concat();
    let second = server.output(&erase);
    assert_fails(&second, &format!("another run is writing {file}.partial"));
    kill("-INT", first.id());
    first.wait().unwrap();

    let runs: Vec<_> = (0..4)
        .map(|_| {
            server
                .command(&erase)
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let completed = runs
        .into_iter()
        .map(|mut run| run.wait().unwrap().success());
    assert_eq!(completed.filter(|is_completed| *is_completed).count(), 1);
    assert_eq!(names(folder.path()), ["export.jsonl"]);
    server.run(&["restore", "--from", &file]);
    assert_eq!(server.records(&["list", "members"]).len(), 2);
    assert_usage_error(&server.output(&erase), "exists: choose another file");
}

/// What happens to the files of an erasure while it waits, and what the error then says.
#[test]
fn an_erasure_whose_export_fails_deletes_nothing() {
    type Interfere = fn(&str);
    let cases: [(Interfere, &str); 2] = [
        (
            |file| fs::write(file, "other").unwrap(),
            "another program has created",
        ),
        (
            |file| {
                fs::remove_file(format!("{file}.partial")).unwrap();
                fs::write(format!("{file}.partial"), "other").unwrap();
            },
            "was moved or deleted",
        ),
    ];
    for (interfere, error) in cases {
        let network = Network::new();
        let acme = fixtures::disabled_organization("acme");
        network.dynamodb.put(Table::ORGANIZATIONS, acme);
        let model = fixtures::model("acme", "chat", "gpt-4o");
        network.dynamodb.put(Table::MODELS, model);
        let (folder, file) = new_file();
        let path = file.clone();
        let url = network.listen(move |action, _| {
            if action == "dynamodb:UpdateItem" {
                interfere(&path);
            }
            true
        });
        let mut erase = workspacectl(&[&erasure(&file)[..], &["--wait", "0"]].concat());
        let output = erase
            .env("AWS_ENDPOINT_URL_DYNAMODB", url)
            .output()
            .unwrap();

        assert_stops(&output, error);
        assert_eq!(network.dynamodb.records(Table::MODELS).len(), 1);
        let names = names(folder.path());
        assert_eq!(names.len(), 1, "{names:?}");
        let text = fs::read_to_string(folder.path().join(&names[0])).unwrap();
        assert_eq!(text, "other");
    }
}

/// The arguments of each kind of removal.
fn removals(file: &str) -> Vec<Vec<&str>> {
    let removals = [
        "member --project apollo --team research-team ada",
        "member --all-teams grace --yes",
        "model --type chat gpt-4o",
        "data-store papers",
        "voice bot-7",
        "logging-instance --project apollo",
        "team --project apollo research-team --wait 0 --yes",
    ];
    let removal = |removal: &'static str| {
        let words = removal.split(' ');
        let mut arguments = vec!["remove", "--org", "acme", "--export", file];
        arguments.splice(1..1, words);
        arguments
    };
    removals.map(removal).into()
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
        server.run(&removal);
    }
    let text = fs::read_to_string(&file).unwrap();
    let exported: BTreeSet<_> = text.lines().map(str::to_owned).collect();

    assert_eq!(exported.len(), text.lines().count(), "{text}");
    assert!(exported.is_subset(&before), "{text}");
    assert_eq!(&all() | &exported, before);
    assert!(!text.contains("removing_"), "{text}");
    assert_eq!(all().len() + exported.len(), before.len());
    for removal in removals(&file) {
        let again = server.output(&removal);
        match removal.contains(&"--all-teams") {
            true => assert!(again.status.success(), "{again:?}"),
            false => assert_fails(&again, "of it"),
        }
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
        ("a letter\n", "line 1 of"),
        ("{\"record\":{},\"table\":\"teams\"}\n[]\n", "line 2 of"),
        ("{\"record\":{},\"table\":\"tea\"}\n", "line 1 of"),
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
    for removal in removals(&file) {
        assert_fails(&server.output(&removal), "another command is writing");
    }
    for removal in removals(folder.path().to_str().unwrap()) {
        assert_usage_error(&server.output(&removal), "is not a file");
    }
    for removal in removals("missing/export.jsonl") {
        assert_fails(
            &server.output(&removal),
            "cannot write missing/export.jsonl",
        );
    }
    assert_eq!(server.valid_records(), before);
}

#[test]
fn an_incomplete_last_line_is_removed() {
    let server = Server::with_records();
    let removals = |file| removals(file).into_iter();
    let (_folder, file) = new_file();
    server.run(&removals(&file).next().unwrap());
    let line = fs::read_to_string(&file).unwrap();
    for length in [1, 20, line.len() - 2] {
        fs::write(&file, format!("{line}{}", &line[..length])).unwrap();
        assert_stops(
            &server.output(&removals(&file).next().unwrap()),
            "1 record of it",
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), line);
    }
    // Without its line feed, the last line is complete.
    fs::write(&file, line.trim_end()).unwrap();
    server.run(&removals(&file).nth(2).unwrap());
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with(&line) && text.lines().count() == 2,
        "{text}"
    );
}

const USERS: [&str; 3] = ["ada", "grace", "zoe"];

/// A DynamoDB with a team of three members.
fn team_of_three() -> Network {
    let network = Network::new();
    let put = |table, record| network.dynamodb.put(table, record);
    put(Table::ORGANIZATIONS, fixtures::organization("acme"));
    put(
        Table::TEAMS,
        fixtures::team("acme", "apollo", "docs", "Docs"),
    );
    for user in USERS {
        put(
            Table::TEAM_MEMBERS,
            fixtures::member("acme", "apollo", "docs", user),
        );
    }
    network
}

fn remove_team(url: &str, file: &str) -> Command {
    let remove = "remove team --org acme --project apollo docs --wait 0 --yes --export";
    let mut command = workspacectl(&remove.split(' ').collect::<Vec<_>>());
    command.arg(file).env("AWS_ENDPOINT_URL_DYNAMODB", url);
    command
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

/// Runs the removal of a team. The test sees the number and the action of each request first.
fn removal_with(
    network: &Network,
    file: &str,
    before: impl Fn(usize, &str) + Send + Sync + 'static,
) -> Output {
    let count = AtomicUsize::new(0);
    let url = network.listen(move |action, _| {
        before(count.fetch_add(1, Ordering::Relaxed), action);
        true
    });
    remove_team(&url, file).output().unwrap()
}

#[test]
fn members_that_are_added_late_are_exported_before_they_are_deleted() {
    let network = team_of_three();
    let (_folder, file) = new_file();
    let added = Arc::new(Mutex::new(Vec::new()));
    let (dynamodb, late) = (network.dynamodb.clone(), Arc::clone(&added));
    let output = removal_with(&network, &file, move |number, _| {
        let user = format!("late-{number}");
        let is_left = !dynamodb.records(Table::TEAM_MEMBERS).is_empty();
        if is_left && number < 20 {
            let member = fixtures::member("acme", "apollo", "docs", &user);
            dynamodb.put(Table::TEAM_MEMBERS, member);
            late.lock().unwrap().push(user);
        }
    });

    assert!(output.status.success(), "{output:?}");
    assert!(network.dynamodb.records(Table::TEAM_MEMBERS).is_empty());
    let users = exported(&file, "user_id");
    let added = added.lock().unwrap();
    assert!(added.iter().all(|user| users.contains(user)), "{users:?}");
    assert_eq!(users.len(), added.len() + USERS.len());
    let message = String::from_utf8(output.stderr).unwrap();
    let count = format!("{} records of it", users.len() + 1);
    assert!(message.contains(&count), "{message}");
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
    let network = team_of_three();
    let (_folder, file) = new_file();
    let id = Arc::new(AtomicU32::new(0));
    let (killed, count) = (Arc::clone(&id), AtomicUsize::new(0));
    let url = network.listen(move |_, _| {
        let is_last = count.fetch_add(1, Ordering::SeqCst) == at;
        if is_last {
            while killed.load(Ordering::SeqCst) == 0 {}
            kill("-KILL", killed.load(Ordering::SeqCst));
        }
        !is_last || is_handled
    });
    let mut process = remove_team(&url, &file);
    let process = process.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = process.spawn().unwrap();
    id.store(process.id(), Ordering::SeqCst);
    let is_killed = !process.wait().unwrap().success();
    let users = exported(&file, "user_id");
    let left = network.dynamodb.records(Table::TEAM_MEMBERS);
    for user in USERS {
        let is_left = left.iter().any(|member| member["user_id"] == user);
        assert!(is_left || users.contains(&user.to_owned()), "{at}: {user}");
    }

    let output = removal_with(&network, &file, |_, _| {});
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("4 records of it"), "{at}: {message}");
    let mut users = exported(&file, "user_id");
    users.sort();
    assert_eq!(users, USERS, "{at}");
    assert_eq!(exported(&file, "team_name"), ["Docs"], "{at}");
    assert!(network.dynamodb.records(Table::TEAMS).is_empty(), "{at}");
    is_killed
}

#[test]
fn a_removal_deletes_nothing_if_its_export_is_gone() {
    let network = team_of_three();
    let (_folder, file) = new_file();
    let path = file.clone();
    let output = removal_with(&network, &file, move |_, action| {
        if action == "dynamodb:UpdateItem" {
            fs::remove_file(&path).unwrap();
        }
    });
    assert_stops(&output, "export.jsonl was moved or deleted");
    assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 3);
}

/// Another operator removes the team without an export, and a client creates it again.
#[test]
fn a_removal_says_that_another_run_was_first() {
    let network = team_of_three();
    let (_folder, file) = new_file();
    let (dynamodb, count) = (network.dynamodb.clone(), AtomicUsize::new(0));
    let output = removal_with(&network, &file, move |_, action| {
        // The first read after the mark.
        if action == "dynamodb:Query" && count.fetch_add(1, Ordering::SeqCst) == 0 {
            dynamodb.put(
                Table::TEAMS,
                fixtures::team("acme", "apollo", "docs", "New"),
            );
        }
    });
    assert_stops(&output, "another run has removed the team docs too, and");
    assert_eq!(exported(&file, "team_name"), ["Docs"]);
    assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 3);
}
