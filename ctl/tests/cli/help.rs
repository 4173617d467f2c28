//! Help texts and completions.

use std::process::Command;

use clap::{CommandFactory as _, Parser as _};
use workspacectl::Cli;

use crate::{text, words, workspacectl};

/// Checks that a command and its subcommands have examples, which are valid.
fn check_examples(command: &clap::Command, names: &str) {
    let help = command.get_after_help().expect(names).to_string();
    let of_command = |line: &&str| {
        let mut names = names.split(' ');
        line.starts_with("workspacectl ") && names.all(|name| line.contains(name))
    };
    let lines = help.lines().map(str::trim);
    let examples: Vec<_> = lines.filter(of_command).collect();
    assert!(!examples.is_empty(), "{names}: {help}");
    for example in examples {
        let line = example.replace(" --after CURSOR", "");
        let arguments = line.split(['|', '<', '>', '#']).next().unwrap();
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
fn no_suggestion_for_a_mistyped_command_deletes() {
    for (line, suggestion) in [
        ("remov acme", ""),
        ("orgs eraze acme", "'enable'"),
        ("org list", "'orgs'"),
        ("remove teem docs", "'team'"),
    ] {
        let output = workspacectl(line).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        let tip = error.split_once("tip: ").map_or("", |(_, tip)| tip);
        let is_silent = suggestion.is_empty() == tip.is_empty();
        assert!(is_silent && tip.contains(suggestion), "{line}: {error}");
        let deletes = tip.contains("'remove'") || tip.contains("'erase'");
        assert!(!deletes, "{line}: {error}");
    }
}

#[test]
fn bash_accepts_the_completions() {
    let script = "eval \"$($0 completions bash)\" && complete -p workspacectl";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_workspacectl")]);
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
