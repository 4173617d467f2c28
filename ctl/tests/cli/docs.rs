//! The documentation: its commands run, and its links lead somewhere.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use clap::Parser as _;
use pulldown_cmark::{
    BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options as Markdown, Parser, Tag, TagEnd,
};
use workspace_local::serve::Options;

use crate::{server::Server, text, words};

/// A Markdown file.
struct Document {
    /// The path from the root of the repository.
    name: String,
    text: String,
}

/// A fenced code block.
struct Block {
    /// The document and the line.
    place: String,
    /// `sh` if the test can run the commands, or `sh needs=TOOL` if they need something that it does
    /// not have, such as an AWS account.
    info: String,
    text: String,
}

/// The root of the repository.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap().canonicalize().unwrap()
}

fn documents() -> Vec<Document> {
    let mut documents = Vec::new();
    for folder in ["", "docs"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
                let (name, text) = (name.to_owned(), fs::read_to_string(&path).unwrap());
                documents.push(Document { name, text });
            }
        }
    }
    documents
}

fn options() -> Markdown {
    Markdown::ENABLE_TABLES | Markdown::ENABLE_GFM | Markdown::ENABLE_TASKLISTS
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
    fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut is_in_block = false;
        for (event, range) in Parser::new_ext(&self.text, options()).into_offset_iter() {
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

    /// Describes every link and image that leads nowhere.
    fn broken_links(&self) -> Vec<String> {
        // Text in brackets is a link only if it has a definition, but `[text][label]` is meant as
        // one.
        let undefined = |link: BrokenLink| -> Option<(CowStr, CowStr)> {
            let label = format!("[{}]", link.reference);
            (link.link_type != LinkType::Shortcut).then(|| (label.into(), "".into()))
        };
        let parser = Parser::new_with_broken_link_callback(&self.text, options(), Some(undefined));
        let mut broken = Vec::new();
        for (event, range) in parser.into_offset_iter() {
            let destinations = match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    vec![dest_url.into_string()]
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    let attributes = ["href=\"", "src=\"", "srcset=\""];
                    let values = attributes.iter().flat_map(|name| html.split(name).skip(1));
                    let values = values.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
                    values.collect()
                }
                _ => vec![],
            };
            let wrong = destinations.iter().filter(|to| !self.leads_somewhere(to));
            broken.extend(wrong.map(|to| format!("{}: {to}", self.place(range.start))));
        }
        broken
    }

    /// Whether a destination is on another site, or a file or a heading in this repository.
    fn leads_somewhere(&self, destination: &str) -> bool {
        let is_absolute = |scheme| destination.starts_with(scheme);
        if ["http:", "https:", "mailto:"].into_iter().any(is_absolute) {
            return true;
        }
        let (path, anchor) = destination.split_once('#').unwrap_or((destination, ""));
        let this = root().join(&self.name);
        let target = match path {
            "" => this,
            path => this.with_file_name("").join(path),
        };
        let Ok(target) = target.canonicalize() else {
            return false;
        };
        let has_anchor = || anchors(&fs::read_to_string(&target).unwrap()).contains(&anchor.into());
        target.starts_with(root()) && (anchor.is_empty() || has_anchor())
    }
}

/// The anchors of the headings, as GitHub generates them.
fn anchors(markdown: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut heading = None;
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                heading.iter_mut().for_each(|heading| *heading += &text);
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = heading.take().unwrap().to_lowercase().replace(' ', "-");
                let is_kept = |c: &char| c.is_alphanumeric() || ['-', '_'].contains(c);
                anchors.push(heading.chars().filter(is_kept).collect());
            }
            _ => {}
        }
    }
    anchors
}

/// Runs commands in bash, after those of `docs.sh`, in a folder with links to everything in the root
/// of the repository. Describes the failure if there is one.
fn bash(mode: &str, commands: &str, dynamodb: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let [work, failures, serves] =
        ["work", "failures", "serves"].map(|name| folder.path().join(name));
    fs::create_dir_all(work.join("target")).unwrap();
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name();
        if name != "target" && name != ".git" {
            symlink(root().join(&name), work.join(&name)).unwrap();
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
        .env("AWS_ENDPOINT_URL_DYNAMODB", dynamodb)
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
fn relative_links_and_anchors_exist() {
    let documents = documents();
    let broken: Vec<_> = documents.iter().flat_map(Document::broken_links).collect();
    assert_none(&broken);
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
            format!("echo '# {place}'\nset -euo pipefail\n{text}\n[ ! -s \"$FAILURES\" ]\n")
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
            let scripts = text
                .split_whitespace()
                .filter(|word| word.starts_with("ci/"));
            let missing = scripts.filter(|script| !root().join(script).exists());
            failures.extend(missing.map(|script| format!("{place}: {script} does not exist")));
        } else if info != "sh" && (info.contains("sh") || info == "console") {
            failures.push(format!(
                "{place}: use `sh` or `sh needs=TOOL`, not `{info}`"
            ));
        }
    }
    assert_none(&failures);
}
