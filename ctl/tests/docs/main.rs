//! The documentation: its commands run, and its links lead somewhere.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails with a panic")]

mod builds;
mod markdown;
mod shell;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::markdown::{Block, Document, Kind, is_executable};

/// What a block can need that the test does not have, and the commands that belong to it.
const TOOLS: [(&str, &[&str]); 11] = [
    ("aws", &["aws"]),                         // also an AWS account
    ("docker", &["docker"]),                   // images from the internet
    ("sam", &["sam"]),                         // builds and deploys the stack
    ("cargo-lambda", &["cargo-lambda"]),       // builds the function
    ("node", &["node", "npm", "npx"]),         // programs from npm
    ("java", &["java"]),                       // DynamoDB Local
    ("python", &["pip", "python", "python3"]), // programs from PyPI
    ("valgrind", &["valgrind"]),               // counts instructions
    ("git", &["git"]),                         // reads or changes the clone
    ("cargo", &["cargo", "rustup"]),           // compiles or installs programs
    ("github", &["gh"]),                       // a repository on GitHub
];

/// The root of the repository.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap().canonicalize().unwrap()
}

#[track_caller]
fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}

/// Asserts that no code block of any document has the failure for which `failure` looks.
#[track_caller]
fn assert_every_block(failure: impl Fn(&Document, &Block) -> Option<String>) {
    let mut failures = Vec::new();
    for document in Document::all() {
        let blocks = document.blocks();
        failures.extend(blocks.iter().filter_map(|block| failure(&document, block)));
    }
    assert_none(&failures);
}

#[test]
fn relative_links_and_anchors_exist() {
    let documents = Document::all();
    let broken: Vec<_> = documents.iter().flat_map(Document::broken_links).collect();
    assert_none(&broken);
}

#[test]
fn every_sh_block_says_what_it_needs() {
    assert_every_block(|document, block| match &block.kind {
        Kind::Invalid(reason) => Some(format!("{}:{}: {reason}", document.name, block.line - 1)),
        _ => None,
    });
}

#[test]
fn command_blocks_run() {
    let mut failures = Vec::new();
    let mut count = 0;
    for document in Document::all() {
        let mut blocks = document.blocks();
        blocks.retain(|block| block.kind == Kind::Run);
        if !blocks.is_empty() {
            count += blocks.len();
            failures.extend(shell::run(&document, &blocks));
        }
    }
    assert!(count > 0, "no document contains a `sh` block");
    assert_none(&failures);
}

#[test]
fn command_blocks_that_need_other_tools_are_valid() {
    assert_every_block(|document, block| match block.kind {
        Kind::Check => shell::check(document, block),
        _ => None,
    });
}

/// In an incident, a long section is not read.
#[test]
fn every_section_of_the_runbook_has_at_most_ten_lines() {
    let runbook = fs::read_to_string(root().join("docs/runbook.md")).unwrap();
    let sections: Vec<_> = runbook.split("\n## ").skip(1).collect();
    assert!(sections.len() > 8, "{sections:?}");
    for section in sections {
        let lines = section.lines().skip(1).filter(|line| !line.is_empty());
        assert!(lines.count() <= 10, "{section}");
        assert!(section.contains("```sh"), "{section}");
    }
}

/// `run.sh` and `check.sh` replace these aliases.
#[test]
fn cargo_has_the_aliases_that_the_blocks_use() {
    let config = fs::read_to_string(root().join(".cargo/config.toml")).unwrap();
    for alias in [
        "serve = \"run --package workspacectl -- serve\"\n",
        "ctl = \"run --quiet --package workspacectl --\"\n",
    ] {
        assert!(config.contains(alias), "{alias} is not in:\n{config}");
    }
}

#[test]
fn contributing_lists_every_script_in_ci() {
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md"));
    let contributing = contributing.expect("the file CONTRIBUTING.md");
    let scripts = fs::read_dir(root().join("ci")).expect("the folder ci");
    let mut missing = Vec::new();
    for entry in scripts {
        let path = entry.unwrap().path();
        let name = format!("`ci/{}`", path.file_name().unwrap().display());
        if is_executable(&path) && !contributing.contains(&name) {
            missing.push(format!("CONTRIBUTING.md does not mention {name}"));
        }
    }
    assert_none(&missing);
}
