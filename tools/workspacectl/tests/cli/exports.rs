//! The files of `orgs export`, `orgs erase` and `remove --export`. `kills` tests interruptions.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Command,
    sync::Arc,
    thread::{self, sleep},
    time::Duration,
};

use clap::CommandFactory as _;
use serde_json::json;
use test_support::{faults::DENIED, fixtures};
use workspace_management::records::Table;
use workspacectl::Cli;

use crate::{
    assert_fails, assert_usage_error, json_lines, network::Network, new_file, server::Server,
    terminals::Terminal, text, unused_url, workspacectl,
};

#[test]
fn an_interrupted_erasure_blocks_its_file_and_the_organization() {
    let network = Network::with_team(&["ada"]);
    let mut acme = fixtures::disabled_organization("acme");
    acme["erasing_id"] = json!(fixtures::RANDOM_ID);
    network.dynamodb.put(Table::ORGANIZATIONS, acme);
    let (_folder, file) = new_file();
    fs::write(format!("{file}.partial"), "").unwrap();

    let enable = network.output("orgs enable acme");
    assert_fails(
        &enable,
        "is being erased: to stop that, run `workspacectl orgs erase acme --cancel`",
    );
    let again = network.output(&format!("orgs erase acme --yes --wait 0 --export {file}"));
    assert_usage_error(
        &again,
        "export.jsonl.partial exists: choose a different file, or delete this one if no",
    );
    assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 1);
}

/// The run that finished may have deleted records before the second run could export them.
#[test]
fn an_erasure_that_another_run_has_finished_fails_and_keeps_no_export() {
    let network = Network::with_team(&["ada"]);
    network.disable_acme();
    let (folder, file) = new_file();
    let (dynamodb, acme) = (network.dynamodb.clone(), fixtures::organization("acme"));
    let output = network.hooked_output(
        &format!("orgs erase acme --yes --wait 0 --export {file}"),
        move |request| {
            if request.body["TableName"] == "LoggingInstancesTable" {
                dynamodb.delete(Table::ORGANIZATIONS, &acme);
            }
            None
        },
    );

    assert_fails(&output, "another run has deleted the organization acme");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 1);
}

/// The run without an export begins to delete when the other one has exported.
#[test]
fn an_export_fails_if_a_run_without_one_has_begun_to_delete() {
    let network = Network::with_team(&["ada"]);
    let twin = Arc::new(network.twin());
    let (folder, file) = new_file();
    let remove = "remove team --org acme --project apollo docs --yes --wait 0";
    let output = network.hooked_output(&format!("{remove} --export {file}"), move |request| {
        if request.body.to_string().contains("removing_deleting_at") {
            let twin = twin.clone();
            let run = move || {
                twin.hooked_output(remove, |request| request.writes("Delete").then_some(DENIED))
            };
            let other = thread::spawn(run).join().unwrap();
            assert_fails(&other, "cannot write");
        }
        None
    });
    assert_fails(&output, "is deleting the team docs without an export");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_export_has_what_was_edited_while_the_operator_confirmed() {
    let network = Network::with_team(&["ada"]);
    let (_folder, file) = new_file();
    let dynamodb = network.dynamodb.clone();
    let remove = "remove team --org acme --project apollo docs --yes --wait 0 --export";
    let output = network.hooked_output(&format!("{remove} {file}"), move |request| {
        // The command has read the team, and marks it.
        if request.number == 1 {
            let edited = fixtures::team("acme", "apollo", "docs", "Manuals");
            dynamodb.put(Table::TEAMS, edited);
        }
        None
    });
    assert!(output.status.success(), "{output:?}");
    let exported = json_lines(&fs::read_to_string(file).unwrap());
    assert_eq!(exported[0]["record"]["team_name"], "Manuals");
    assert_eq!(exported.len(), 2);
}

/// The arguments of each kind of removal. Each removes one record.
const REMOVALS: [&str; 7] = [
    "remove member --project apollo --team research-team ada",
    "remove member --all-teams grace --yes",
    "remove model --type chat gpt-4o",
    "remove data-store papers",
    "remove voice bot-7",
    "remove logging-instance --project apollo",
    "remove team --project apollo research-team --wait 0 --yes",
];

#[test]
fn the_list_has_every_removal() {
    let mut cli = Cli::command();
    let remove = cli.find_subcommand_mut("remove").unwrap();
    for command in remove.get_subcommands() {
        let line = format!("remove {} ", command.get_name());
        assert!(
            REMOVALS.iter().any(|removal| removal.starts_with(&line)),
            "{line}"
        );
    }
}

#[test]
fn each_removal_is_undone_from_its_file() {
    let server = Server::with_records();
    let all = || -> BTreeSet<String> {
        let export = server.run("orgs export acme");
        export.lines().map(str::to_owned).collect()
    };
    let before = all();
    let (folder, _) = new_file();
    let mut files = Vec::new();
    for (number, removal) in REMOVALS.into_iter().enumerate() {
        let file = folder.path().join(number.to_string());
        let file = file.to_str().unwrap().to_owned();
        let line = format!("{removal} --org acme --export {file}");
        let mut removed = server.json(&line);
        if removed.is_array() {
            removed = removed[0].take();
        }
        assert_eq!(removed["removed_by"], server.operator(), "{removed}");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(before.contains(text.trim_end()), "{text}");
        // The file of a later removal must not restore this record too.
        assert_usage_error(&server.output(&line), "exists: choose a different file");
        files.push(file);
    }
    assert_eq!(all().len() + files.len(), before.len());
    // The team comes before its members.
    for file in files.iter().rev() {
        server.run(&format!("restore --from {file}"));
    }
    assert_eq!(all().len(), before.len());
}

#[test]
fn a_second_undo_revives_no_one_who_left_after_the_first() {
    let server = Server::with_records();
    let (folder, _) = new_file();
    for name in ["first", "second"] {
        let file = folder.path().join(name);
        let team = "--org acme --project apollo research-team --wait 0 --yes";
        server.run(&format!("remove team {team} --export {}", file.display()));
        server.run(&format!("restore --from {}", file.display()));
        let leaver = "--org acme --project apollo --team research-team ada";
        if name == "first" {
            server.run(&format!("remove member {leaver}"));
        }
    }
    let members = server.records("list members --org acme");
    assert!(members.iter().all(|member| member["user_id"] != "ada"));
    assert!(!members.is_empty());
}

#[test]
fn nothing_changes_if_the_record_to_remove_is_not_found() {
    let server = Server::with_records();
    let (folder, file) = new_file();
    let before = server.valid_records();
    let missing = format!("remove voice --org acme nobody --export {file}");
    assert_fails(&server.output(&missing), "does not exist");
    assert_eq!(server.valid_records(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A mark cannot be taken back, so these fail before it. Each kind of `remove` checks the same.
#[test]
fn a_place_where_no_file_can_be_written_is_named_before_anything_is_contacted() {
    let (folder, file) = new_file();
    fs::write(&file, "").unwrap();
    let unreachable = unused_url();
    let long = "x".repeat(250);
    for (path, error) in [
        (
            "exports/",
            "exports/ is a folder: add the name of a new file",
        ),
        ("missing/.", "missing/. is a folder"),
        ("..", ".. is a folder"),
        (".", ". is a folder"),
        (
            "missing/a.jsonl",
            "cannot write missing/a.jsonl: there is no folder missing",
        ),
        ("export.jsonl/a", "Not a directory"),
        (
            "/proc/a.jsonl",
            "cannot write /proc/a.jsonl.partial: No such file",
        ),
        (&long, "File name too long"),
        (
            "export.jsonl",
            "export.jsonl exists: choose a different file",
        ),
    ] {
        for line in [
            "orgs erase acme --yes --export",
            "orgs export acme --out",
            "remove voice --org acme bot-7 --export",
        ] {
            let mut command = workspacectl(&format!("{line} {path}"));
            command.env("AWS_ENDPOINT_URL_DYNAMODB", &unreachable);
            let output = command.current_dir(folder.path()).output().unwrap();
            let message = text(&output.stderr);
            assert!(
                !output.status.success() && message.contains(error),
                "{message}"
            );
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_interrupted_question_leaves_nothing_behind() {
    let server = Server::with_records();
    server.run("orgs disable acme --wait 0");
    let before = server.valid_records();
    let (folder, file) = new_file();
    for line in [
        "remove team --org acme --project apollo research-team",
        "remove member --org acme --all-teams ada",
        "orgs erase acme",
    ] {
        for signal in ["INT", "TERM", "HUP"] {
            let terminal = Terminal::new(80);
            let command = server.command(&format!("{line} --export {file}"));
            let mut process = terminal.start(command);
            terminal.read_until(" to confirm: ");
            let mut kill = Command::new("kill");
            kill.args(["-s", signal, &process.id().to_string()]);
            assert!(kill.status().unwrap().success());
            // A process that runs in the background of a script ignores INT.
            for _ in 0..30 {
                if process.try_wait().unwrap().is_some() {
                    break;
                }
                sleep(Duration::from_millis(100));
            }
            process.kill().unwrap();
            assert!(!process.wait().unwrap().success());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
        }
    }
    assert_eq!(server.valid_records(), before);
}

#[test]
fn an_answer_that_is_not_utf_8_changes_nothing() {
    let server = Server::with_records();
    let before = server.valid_records();
    let terminal = Terminal::new(80);
    let mut process = terminal.start(server.command("remove member --org acme --all-teams ada"));
    terminal.read_until(" to confirm: ");
    terminal.write(b"ada\xff\n");
    terminal.read_until("not confirmed: nothing was changed");
    assert!(!process.wait().unwrap().success());
    assert_eq!(server.valid_records(), before);
}

/// The export is complete before anything is deleted.
#[test]
fn an_export_to_standard_output_can_be_restored() {
    let server = Server::with_records();
    let before = server.valid_records();
    let is_exported = |line: &str, redirection: &str| {
        let script = format!("exec \"$0\" {line} {redirection}");
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", &script, env!("CARGO_BIN_EXE_workspacectl")]);
        sh.env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb_url);
        sh.output().unwrap().status.success()
    };
    for removal in &REMOVALS[..6] {
        let removal = format!("{removal} --org acme --export -");
        for redirection in [">/dev/full", ">/dev/null", ">&-"] {
            assert!(!is_exported(&removal, redirection), "{removal}");
        }
    }
    for (redirection, expected) in [(">/dev/full", false), (">/dev/null", true), (">&-", false)] {
        let actual = is_exported("orgs export acme", redirection);
        assert_eq!(actual, expected, "{redirection}");
    }
    assert_eq!(server.valid_records().len(), before.len());
    let removal = REMOVALS[0];
    let export = server.run(&format!("{removal} --org acme --export -"));
    assert_eq!(json_lines(&export).len(), 1, "{export}");
    let restored = server.output_with_input("restore --from -", &export);
    assert!(restored.status.success(), "{restored:?}");
    assert_eq!(server.valid_records().len(), before.len());
    assert!(!Path::new("-").exists());
}

/// A pipe can be read only once, and has no size.
#[test]
fn an_export_is_restored_from_a_pipe() {
    let server = Server::with_records();
    let export = server.run("orgs export acme");
    let planned = server.output_with_input("restore --from - --dry-run", &export);
    let copy = text(&planned.stdout);
    // Exports lack the hashes of keys, of which there is one.
    let restorable = export.lines().count() - 1;
    assert_eq!(copy.lines().count(), restorable, "{planned:?}");
    for from in ["/dev/stdin", "/dev/stdin --to teams --org acme"] {
        let line = format!("restore --from {from} --dry-run");
        let output = server.output_with_input(&line, &export);
        let is_part = |line: &str| copy.contains(line);
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stdout).lines().all(is_part), "{output:?}");
    }
    let script = "exec \"$0\" restore --from <(printf %s \"$EXPORT\") --dry-run";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_workspacectl")]);
    bash.env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb_url);
    let output = bash.env("EXPORT", &export).output().unwrap();
    assert_eq!(text(&output.stdout), copy, "{output:?}");
    let invalid = server.output_with_input("restore --from -", "{}");
    assert_fails(&invalid, "line 1 of standard input has an unknown kind");
}
