//! Help texts and completions.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::workspacectl;

fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `--help` for a command and for its subcommands.
fn check_help(command: &[&str]) {
    let help = stdout(&mut workspacectl(&[command, &["--help"]].concat()));
    let (_, examples) = help.split_once("\nExample").expect("examples");
    let is_example = command.iter().all(|word| examples.contains(word));
    assert!(
        examples.contains("workspacectl ") && is_example,
        "{command:?}: {help}"
    );
    let Some((_, commands)) = help.split_once("\nCommands:\n") else {
        return;
    };
    let lines = commands.lines().take_while(|line| !line.is_empty());
    for line in lines.filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        if name != "help" {
            check_help(&[command, &[name]].concat());
        }
    }
}

#[test]
fn the_help_of_every_command_has_an_example() {
    check_help(&[]);
}

#[test]
fn an_unknown_command_exits_with_2() {
    let output = workspacectl(&["delete"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn no_suggestion_for_a_mistyped_command_deletes() {
    for (line, suggestion) in [
        ("rename", ""),
        ("remov acme", ""),
        ("orgs rename acme", "'create'"),
        ("orgs eraze acme", "'enable'"),
        ("org list", "'orgs'"),
        ("remove teem docs", "'team'"),
    ] {
        let arguments: Vec<_> = line.split(' ').collect();
        let output = workspacectl(&arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        let tip = error.split_once("tip: ").map_or("", |(_, tip)| tip);
        let is_silent = suggestion.is_empty() == tip.is_empty();
        assert!(is_silent && tip.contains(suggestion), "{line}: {error}");
        let deletes = tip.contains("'remove'") || tip.contains("'erase'");
        assert!(!deletes, "{line}: {error}");
    }
}

#[test]
fn bash_completes_the_subcommands_of_keys() {
    let script = stdout(&mut workspacectl(&["completions", "bash"]));
    let test = "COMP_WORDS=(workspacectl keys r); COMP_CWORD=2; \
        _workspacectl workspacectl r keys; echo \"${COMPREPLY[@]}\"\n";
    let mut bash = Command::new("bash")
        .args(["--norc", "--noprofile"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = bash.stdin.take().unwrap();
    write!(stdin, "{script}\n{test}").unwrap();
    drop(stdin);
    let output = bash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "rotate revoke\n");
}
