//! The commands in the documentation run.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use clap::Parser as _;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use test_support::server::Server;
use workspace_local::serve::Options;

use crate::{text, words};

/// A Markdown file.
pub(crate) struct Document {
    /// The path from the root of the repository.
    pub(crate) name: String,
    text: String,
}

/// A fenced code block.
pub(crate) struct Block {
    /// The document and the line.
    place: String,
    /// `sh` if the test can run the commands, or `sh needs=TOOL` if they need something that it
    /// does not have, such as an AWS account.
    info: String,
    pub(crate) text: String,
}

/// The root of the repository.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.join("../..").canonicalize().unwrap()
}

pub(crate) fn documents() -> Vec<Document> {
    let mut documents = Vec::new();
    for folder in ["", ".github/", "docs/"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = format!("{folder}{}", entry.unwrap().file_name().display());
            if name.ends_with(".md") {
                let text = fs::read_to_string(root().join(&name)).unwrap();
                documents.push(Document { name, text });
            }
        }
    }
    documents
}

#[track_caller]
fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}

impl Document {
    /// The document and the line of a byte.
    fn place(&self, offset: usize) -> String {
        let line = self.text[..offset].matches('\n').count() + 1;
        format!("{}:{line}", self.name)
    }

    /// The fenced code blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut is_in_block = false;
        for (event, range) in Parser::new(&self.text).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    is_in_block = true;
                    blocks.push(Block {
                        place: self.place(range.start),
                        info: info.into_string(),
                        text: String::new(),
                    });
                }
                Event::End(TagEnd::CodeBlock) => is_in_block = false,
                Event::Text(text) if is_in_block => blocks.last_mut().unwrap().text += &text,
                _ => {}
            }
        }
        blocks
    }
}

/// Runs commands in bash, after those of `docs.sh`, in a folder with links to the folders and YAML
/// files in the root of the repository. What a reader has exported there stays out of the way.
/// Describes the failure if there is one.
pub(crate) fn bash(mode: &str, commands: &str, dynamodb_url: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let [work, failures, serves] =
        ["work", "failures", "serves"].map(|name| folder.path().join(name));
    fs::create_dir_all(work.join("target")).unwrap();
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        let is_used = path.is_dir() || path.extension().is_some_and(|it| it == "yaml");
        if is_used && name != "target" && name != ".git" {
            symlink(&path, work.join(name)).unwrap();
        }
    }
    let script = include_str!("docs.sh").to_owned() + commands;
    let output = Command::new("timeout")
        .args(["60", "bash", "-c", &script])
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", folder.path())
        .env("MODE", mode)
        .env("WORKSPACECTL", env!("CARGO_BIN_EXE_workspacectl"))
        .env("FAILURES", &failures)
        .env("SERVES", &serves)
        .env("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_url)
        .current_dir(work)
        .output()
        .unwrap();
    for line in fs::read_to_string(serves).unwrap_or_default().lines() {
        let parsed = Options::try_parse_from(words(line));
        assert!(parsed.is_ok(), "cargo {line}: {:?}", parsed.err());
    }
    let failures = fs::read_to_string(failures).unwrap_or_default();
    let printed = [output.stdout, output.stderr].concat();
    let is_successful = output.status.success() && failures.is_empty();
    (!is_successful).then(|| format!("{}: {failures}{}", output.status, text(&printed)))
}

#[test]
fn commands_run() {
    // A machine with only Rust may lack it.
    let has_jq = Command::new("jq").arg("--version").output().is_ok();
    let run = |document: &Document| {
        let mut blocks = document.blocks();
        blocks.retain(|block| block.info == "sh" && (has_jq || !block.text.contains("jq ")));
        if blocks.is_empty() {
            return None;
        }
        let server = Server::start(&[]);
        let script = blocks.iter().map(|Block { place, text, .. }| {
            // As pasted: without `set -e`.
            format!("echo '# {place}'\n{text}\n[ ! -s \"$FAILURES\" ] || exit 1\n")
        });
        let mut script: String = script.collect();
        for (port, url) in [("3000", &server.url), ("8000", &server.dynamodb_url)] {
            script = script.replace(&format!("http://127.0.0.1:{port}"), url);
        }
        let failure = bash("run", &script, &server.dynamodb_url);
        failure.map(|failure| format!("{}: {failure}", document.name))
    };
    let documents = documents();
    thread::scope(|scope| {
        for document in &documents {
            scope.spawn(|| assert_none(run(document).as_slice()));
        }
    });
}

#[test]
fn commands_that_need_other_tools_have_valid_arguments() {
    let mut failures = Vec::new();
    for Block { place, info, text } in documents().iter().flat_map(Document::blocks) {
        if info.starts_with("sh needs=") {
            // The commands do nothing, so their exit codes mean nothing.
            let failure = bash("check", &format!("{text}\ntrue"), "");
            failures.extend(failure.map(|failure| format!("{place}: {failure}\n{text}")));
            let is_script = |word: &&str| word.starts_with("ci/");
            let scripts = text.split_whitespace().filter(is_script);
            let missing = scripts.filter(|script| !root().join(script).exists());
            failures.extend(missing.map(|script| format!("{place}: {script} does not exist")));
        } else if info != "sh" && (info.contains("sh") || info == "console") {
            failures.push(format!(
                "{place}: mark it `sh` or `sh needs=TOOL`, not `{info}`"
            ));
        }
    }
    assert_none(&failures);
}

/// A block without its here document, whose words are separated by spaces. A line break is `;`.
/// Quoted text is `TEXT`, or `$TEXT` if it contains a variable, or `$(TEXT)` if it contains a command.
fn unquoted(block: &str) -> String {
    let mut block = block.to_owned();
    if let Some((before, document)) = block.split_once("<<'END'") {
        let (line, document) = document.split_once('\n').unwrap();
        let (_, after) = document.split_once("\nEND\n").unwrap();
        block = format!("{before}{line}\n{after}");
    }
    let mut unquoted = String::new();
    let mut rest = &*block;
    while let Some(start) = rest.find(['"', '\'']) {
        let (before, quoted) = rest.split_at(start);
        let text = quoted[1..].split(&quoted[..1]).next().unwrap();
        unquoted += before;
        unquoted += match text {
            text if text.contains("$(") => "$(TEXT)",
            text if text.contains('$') => "$TEXT",
            _ => "TEXT",
        };
        rest = &quoted[text.len() + 2..];
    }
    unquoted += rest;
    unquoted.replace("\\\n", " ").replace('\n', " ; ")
}

fn ends_command(word: &&str) -> bool {
    ["&&", ";", "|", "||"].contains(word)
}

/// Whether the block goes on after a failure of the command.
fn can_hide_a_failure(command: &[&str], next: &str) -> bool {
    let has_command = |words: &[&str]| words.iter().any(|word| word.contains("$("));
    let is_list = |pair: &[&str]| pair[0].ends_with(';') && pair[1] != "do";
    let only_sets_variables = ["export", "unset"].contains(&command[0]) || command[0].contains('=');
    // The exit code of `$(…)` counts only in `name=$(…)`.
    if has_command(&command[1..]) || command.windows(2).any(is_list) {
        return true;
    }
    match command {
        [.., "||"] => next != "break",
        [";"] | [.., "&" | "do" | "break", ";"] => false,
        [.., ";"] if next.is_empty() || next == "kill" => false,
        [.., ";"] => !only_sets_variables || has_command(command),
        _ => false,
    }
}

#[test]
fn blocks_stop_at_a_failure_and_can_be_pasted_again_and_into_zsh() {
    const SOURCES: &[&str] = &["aws", "cargo", "python3", "workspacectl"];
    let mut failures = Vec::new();
    for Block { place, info, text } in documents().iter().flat_map(Document::blocks) {
        if !info.starts_with("sh") {
            continue;
        }
        // These two never fail.
        let text = text.replace("$(date +%s)", "$TIME").replace("$(echo", "(");
        let unquoted = unquoted(&text);
        let words: Vec<_> = unquoted.split_whitespace().collect();
        let mut fail = |failure: &str| failures.push(format!("{place}: {failure}"));
        if words.iter().any(|word| word.starts_with('#')) {
            fail("zsh runs comments");
        }
        if words.iter().any(|word| ["exit", "-e"].contains(word)) {
            fail("it can end the reader's shell");
        }
        for pair in words.windows(2).filter(|pair| pair[0] == ">") {
            let is_kept = text.contains("set -C") || pair[1].contains('$');
            if !is_kept && !pair[1].starts_with("target/") {
                fail(&format!("it overwrites {}", pair[1]));
            }
        }
        let mut commands = words.split_inclusive(ends_command).peekable();
        while let Some(command) = commands.next() {
            let next = commands.peek().map_or("", |next| next[0]);
            let line = command.join(" ");
            if can_hide_a_failure(command, next) {
                fail(&format!("join commands with `&&`: {line}"));
            }
            let is_source = command.iter().any(|word| SOURCES.contains(word));
            if is_source && command.ends_with(&["|"]) && !text.contains("set -o pipefail") {
                fail(&format!("`{line}` hides a failure"));
            }
        }
    }
    assert_none(&failures);
}
