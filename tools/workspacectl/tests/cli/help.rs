//! Help texts and what they say about all commands, and completions.

use std::process::{Command, Output};

use clap::{CommandFactory as _, Parser as _};
use serde_json::Value;
use workspace_local::demo::DEMO_KEY;
use workspacectl::Cli;

use crate::{keys, new_file, server::Server, text, words};

/// Checks that a command and its subcommands have examples, which are valid.
fn check_examples(command: &clap::Command, names: &str) {
    let help = command.get_after_help().expect(names).to_string();
    let of_command = |line: &&str| {
        let mut names = names.split(' ');
        names.all(|name| line.contains(name))
    };
    let lines = help.lines().map(str::trim);
    let examples: Vec<_> = lines
        .filter(|line| line.contains("workspacectl "))
        .collect();
    let all_own = examples.iter().all(of_command) || command.has_subcommands();
    assert!(!examples.is_empty() && all_own, "{names}: {help}");
    for example in examples {
        let start = example.find("workspacectl ").unwrap();
        let mut parts = example[start..].split(['|', '<', '>', '#', ')']);
        let arguments = parts.next().unwrap();
        let parsed = Cli::try_parse_from(words(arguments));
        assert!(parsed.is_ok(), "{example}: {:?}", parsed.err());
    }
    for command in command.get_subcommands() {
        check_examples(command, &format!("{names} {}", command.get_name()));
    }
}

#[test]
fn every_command_has_a_valid_example() {
    check_examples(&Cli::command(), "workspacectl");
}

#[test]
fn bash_accepts_the_completions() {
    let script = "eval \"$($0 completions bash)\" && complete -p workspacectl";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_workspacectl")]);
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// `--help` and the runbook describe the rules.
#[test]
fn a_result_is_one_json_document_with_one_shape_and_names_the_deployment() {
    let server = Server::with_records();
    server.create_demo_store("Other");
    for name in ["Docs", "Ops", "Lab"] {
        assert_eq!(server.create_team("acme", DEMO_KEY, name), 204);
    }
    let (_folder, file) = new_file();
    server.run(&format!("orgs export acme --out {file}"));
    let ids = ["", "", "", ""].map(|options| keys::create(&server, options)[4..16].to_owned());
    let [a, b, c, d] = &ids;
    let teams = "--org acme --project apollo --wait 0 --yes";
    let arrays = [
        ("orgs list", 1),
        ("orgs list --limit 1", 1),
        ("keys list --org acme --limit 2", 2),
        ("keys list --state revoked", 0),
        ("list data-stores", 2),
        ("list data-stores --limit 1", 1),
        ("list voices --limit 5", 1),
        (&format!("keys check {a}"), 1),
        (&format!("keys check {a} {b}"), 2),
        (&format!("keys rotate {a}"), 1),
        (&format!("keys rotate {b} {c}"), 2),
        (&format!("keys revoke {a}"), 1),
        (&format!("keys revoke {a} {b} {c}"), 3),
        (&format!("keys revoke {d}"), 1),
        (&format!("remove team {teams} docs"), 1),
        (&format!("remove team {teams} ops lab"), 2),
        (&format!("restore --from {file}"), 0),
        (&format!("restore --from {file} --dry-run --to voices"), 1),
        ("keys revoke --all --org acme --yes", 4),
        ("keys revoke --all --org acme --yes", 0),
    ];
    let name = format!("local DynamoDB at {}", server.dynamodb_url);
    let names_deployment = |output: &Output| {
        let last_line = text(&output.stderr).lines().last();
        last_line.unwrap().starts_with(&format!("{name}: "))
    };
    for (line, count) in arrays {
        let output = server.output(&format!("{line} --json"));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let array = document.as_array();
        assert_eq!(array.unwrap().len(), count, "{line}: {document}");
        let is_object = Value::is_object;
        assert!(array.unwrap().iter().all(is_object), "{line}: {document}");
        let is_read = line.contains("list") || line.contains("check");
        assert!(is_read || names_deployment(&output), "{output:?}");
    }
    for line in ["orgs show acme", "orgs disable acme --no-wait", "env"] {
        assert!(server.json(line).is_object(), "{line}");
    }
    let lines = [
        &format!("orgs export acme --out {file}-2"),
        "orgs enable acme",
        "keys create --org acme",
        "keys create --org acme --json",
        "edit data-store --org acme papers --name Maps --yes",
    ];
    for line in lines {
        assert!(names_deployment(&server.output(line)), "{line}");
    }
    server.run("orgs disable acme --no-wait");
    let erased = server.json("orgs erase acme --without-export --wait 0 --yes");
    assert_eq!(erased["deployment"], name);
}
