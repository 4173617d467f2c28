//! Messages that cannot be written.

use std::{
    fs::{self, OpenOptions},
    io,
    process::Command,
};

use workspace_local::demo::DEMO_KEY;

use crate::{new_file, on_stack, server::Server, text, unused_url, words, workspacectl};

/// Replaces standard error of a command.
type Replace = fn(&mut Command);

/// A full device and a pipe without a reader.
const UNWRITABLE: [Replace; 2] = [
    |command| {
        let full = OpenOptions::new().write(true).open("/dev/full");
        command.stderr(full.unwrap());
    },
    |command| {
        command.stderr(io::pipe().unwrap().1);
    },
];

#[test]
fn a_message_that_cannot_be_written_changes_no_outcome_and_hides_no_key() {
    for replace in UNWRITABLE {
        let server = Server::with_records();
        let (_folder, file) = new_file();
        let doctor = format!("doctor --url {}", server.url);
        let new_keys = ["keys create --org acme", "keys rotate acmeDemoKey1"];
        let lines = [
            new_keys[0],
            new_keys[1],
            "orgs create globex --verbose",
            "list teams --org globex --verbose",
            "list members --limit 1",
            "orgs show acme",
            &format!("orgs export acme --out {file}"),
            &format!("restore --from {file} --org acme --dry-run"),
            "edit team --org acme --project apollo research-team --name Manuals --yes",
            "remove voice --org acme bot-7",
            "remove member --org acme --all-teams ada --yes",
            "remove team --org acme --project apollo research-team --wait 0 --yes",
            "env",
            &doctor,
            "keys list",
            "orgs disable acme --wait 1",
            "orgs erase acme --without-export --wait 0 --yes",
            "completions bash",
            "help keys create",
        ];
        for line in lines {
            let mut command = server.command(line);
            replace(&mut command);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
            let is_key = text(&output.stdout).trim().len() == DEMO_KEY.len();
            assert_eq!(is_key, new_keys.contains(&line), "{line}: {output:?}");
        }
        let failures = [
            ("orgs show nobody", 1),
            ("keys check acmeDemoKey1 --verbose", 1),
            ("orgs erase globex --without-export", 2),
            ("keys revoke wsk_mistyped", 2),
            ("list nothing", 2),
        ];
        for (line, code) in failures {
            let mut command = server.command(line);
            replace(&mut command);
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        }
        let mut unreachable = workspacectl("orgs list --verbose");
        unreachable.env("AWS_ENDPOINT_URL_DYNAMODB", unused_url());
        replace(&mut unreachable);
        assert_eq!(unreachable.output().unwrap().status.code(), Some(1));

        // The SDK warns about this setting.
        let (_folder, config) = new_file();
        fs::write(&config, "[default]\n$ = 1\n").unwrap();
        let mut warned = on_stack(&unused_url(), "orgs list --verbose");
        warned.env("AWS_CONFIG_FILE", config);
        let output = warned.output().unwrap();
        assert!(text(&output.stderr).contains("WARN"), "{output:?}");
        replace(&mut warned);
        assert_eq!(warned.output().unwrap().status.code(), Some(1));
    }
}

/// A shell closes it with `2>&-`. Rust opens `/dev/null` instead.
#[test]
fn standard_error_may_be_closed() {
    let server = Server::start();
    let output = Command::new("/bin/sh")
        .args(["-c", "exec \"$0\" \"$@\" 2>&-"])
        .arg(env!("CARGO_BIN_EXE_workspacectl"))
        .args(words("keys create --org acme"))
        .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb_url)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout).trim().len(), DEMO_KEY.len());
}
