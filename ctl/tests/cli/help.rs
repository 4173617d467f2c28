//! Help texts and completions.

use std::process::Command;

use clap::{CommandFactory as _, Parser as _};
use workspacectl::Cli;

use crate::words;

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
fn bash_accepts_the_completions() {
    let script = "eval \"$($0 completions bash)\" && complete -p workspacectl";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_workspacectl")]);
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
