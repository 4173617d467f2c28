//! The documentation: its command blocks, links and headings.

use std::{collections::HashMap, fs, path::Path};

use pulldown_cmark::{
    BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd,
};

use crate::{TOOLS, root};

/// A Markdown file of the repository.
pub(crate) struct Document {
    /// The path from the root of the repository.
    pub(crate) name: String,
    text: String,
}

/// A fenced code block.
pub(crate) struct Block {
    /// The line of the document that contains the first command, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) kind: Kind,
}

/// What the info string of a block says about its commands.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    /// `sh`: they run on this machine.
    Run,
    /// `sh needs=TOOL[,TOOL...]`: they need something that the test does not have.
    Check,
    /// They are marked as commands in another way, which the contained text explains.
    Invalid(String),
    /// The block contains no commands.
    Other,
}

impl Kind {
    fn of(info: &str) -> Self {
        let known = |tool: &str| TOOLS.iter().any(|(name, _)| *name == tool);
        if info == "sh" {
            return Self::Run;
        }
        if let Some(tools) = info.strip_prefix("sh needs=") {
            return match tools.split(',').find(|tool| !known(tool)) {
                None => Self::Check,
                Some(tool) => Self::Invalid(format!("`{tool}` is not in the list TOOLS")),
            };
        }
        let shells = ["sh", "bash", "shell", "console"];
        let lower = info.to_lowercase();
        if shells.iter().any(|shell| lower.starts_with(shell)) {
            return Self::Invalid(format!(
                "replace `{info}` by `sh` if the test can run the block, \
                 or else by `sh needs=TOOL[,TOOL...]`"
            ));
        }
        Self::Other
    }
}

impl Document {
    /// Reads a file, whose path is relative to the root of the repository.
    pub(crate) fn read(name: &str) -> Self {
        let text = fs::read_to_string(root().join(name));
        Self {
            name: name.to_owned(),
            text: text.unwrap_or_else(|error| panic!("{name}: {error}")),
        }
    }

    /// All documents that the tests check.
    pub(crate) fn all() -> Vec<Self> {
        let folder = fs::read_dir(root().join("docs")).expect("the folder docs");
        let mut names: Vec<_> = folder
            .map(|entry| format!("docs/{}", entry.unwrap().file_name().display()))
            .filter(|name| name.ends_with(".md"))
            .collect();
        assert!(!names.is_empty(), "docs contains no Markdown files");
        names.sort();
        let others = [
            "README.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "SECURITY.md",
        ];
        names.extend(others.map(str::to_owned));
        names.iter().map(|name| Self::read(name)).collect()
    }

    /// The fenced code blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut is_in_block = false;
        for (event, range) in Parser::new_ext(&self.text, options()).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    is_in_block = true;
                    blocks.push(Block {
                        line: self.line(range.start) + 1,
                        text: String::new(),
                        kind: Kind::of(info.trim()),
                    });
                }
                Event::Start(_) | Event::End(_) => is_in_block = false,
                Event::Text(text) if is_in_block => {
                    blocks.last_mut().expect("a block").text += &text;
                }
                _ => {}
            }
        }
        blocks
    }

    /// Describes every link and image that leads nowhere.
    pub(crate) fn broken_links(&self) -> Vec<String> {
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
                Event::Start(Tag::Link {
                    link_type: LinkType::Email,
                    ..
                }) => vec![],
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    vec![dest_url.into_string()]
                }
                Event::Html(html) | Event::InlineHtml(html) => html_destinations(&html),
                _ => vec![],
            };
            let problems = destinations.iter().filter_map(|to| self.problem(to));
            let line = self.line(range.start);
            broken.extend(problems.map(|problem| format!("{}:{line}: {problem}", self.name)));
        }
        broken
    }

    /// Why a destination leads nowhere, or `None` if it exists or is on another site.
    fn problem(&self, destination: &str) -> Option<String> {
        let is_absolute = |scheme| destination.starts_with(scheme);
        if ["http:", "https:", "mailto:"].into_iter().any(is_absolute) {
            return None;
        }
        let (path, fragment) = destination.split_once('#').unwrap_or((destination, ""));
        let anchors = if path.is_empty() {
            anchors(&self.text)
        } else {
            match self.target(path) {
                Err(reason) => return Some(format!("{destination} {reason}")),
                Ok(name) if fragment.is_empty() || !name.ends_with(".md") => return None,
                Ok(name) => anchors(&Self::read(&name).text),
            }
        };
        let exists = fragment.is_empty() || anchors.iter().any(|anchor| anchor == fragment);
        (!exists).then(|| format!("{destination} has no such heading"))
    }

    /// The path of the file or folder to which a link leads, from the root of the repository.
    fn target(&self, path: &str) -> Result<String, &'static str> {
        let target = match path.strip_prefix('/') {
            Some(path) => root().join(path),
            None => root().join(&self.name).with_file_name("").join(path),
        };
        let target = target.canonicalize().map_err(|_| "does not exist")?;
        let name = target.strip_prefix(root());
        let name = name.map_err(|_| "is outside the repository")?;
        Ok(name.to_string_lossy().into_owned())
    }

    /// The number of the line that contains a byte, from 1.
    fn line(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_GFM | Options::ENABLE_TASKLISTS
}

/// The destinations of links and images in HTML.
fn html_destinations(html: &str) -> Vec<String> {
    ["href=\"", "src=\"", "srcset=\""]
        .iter()
        .flat_map(|attribute| html.split(attribute).skip(1))
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect()
}

/// The anchors of the headings, as GitHub generates them.
fn anchors(markdown: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut counts = HashMap::new();
    let mut heading = None;
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                heading.iter_mut().for_each(|heading| *heading += &text);
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().expect("a heading"));
                let count = counts.entry(slug.clone()).or_insert(0);
                anchors.push(match *count {
                    0 => slug,
                    number => format!("{slug}-{number}"),
                });
                *count += 1;
            }
            _ => {}
        }
    }
    anchors
}

/// The anchor of the first heading with this text.
fn slug(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    let lower = heading.trim().to_lowercase();
    lower
        .chars()
        .filter(is_kept)
        .collect::<String>()
        .replace(' ', "-")
}

/// Whether a file has an executable bit.
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[test]
fn anchors_are_those_of_github() {
    let rows = [
        ("## How fast it is", vec!["how-fast-it-is"]),
        ("# `cargo serve`: the *page*", vec!["cargo-serve-the-page"]),
        ("# 413, 422 & snake_case", vec!["413-422--snake_case"]),
        ("# A [link](x.md)-ed Über", vec!["a-link-ed-über"]),
        ("# A\n## B\n# A\n# A", vec!["a", "b", "a-1", "a-2"]),
        ("Text\n\n```sh\n# comment\n```", vec![]),
    ];
    for (markdown, expected) in rows {
        assert_eq!(anchors(markdown), expected, "{markdown}");
    }
}

#[test]
fn links_of_every_form_are_checked() {
    let document = |text: &str| Document {
        name: "docs/a.md".to_owned(),
        text: text.to_owned(),
    };
    let valid = "[a](../README.md) <https://example.com> <a@example.com> [text] [b][b] \
                 ![c](/README.md) [d](#title)\n\n# Title\n\n[b]: ../ctl\n";
    let rows = [
        ("[a](no.md)", "no.md does not exist"),
        ("![a](no.png)", "no.png does not exist"),
        ("<img src=\"no.png\">", "no.png does not exist"),
        ("[a](//example.com)", "//example.com does not exist"),
        ("[a](../../..)", "../../.. is outside the repository"),
        (
            "[a](../README.md#none)",
            "../README.md#none has no such heading",
        ),
        ("[a][label]", "[label] does not exist"),
    ];

    assert_eq!(document(valid).broken_links(), Vec::<String>::new());
    for (text, problem) in rows {
        let expected = format!("docs/a.md:2: {problem}");
        assert_eq!(document(&format!("\n{text}")).broken_links(), [expected]);
    }
}

#[test]
fn an_info_string_says_whether_the_commands_run() {
    let is_invalid = |info| matches!(Kind::of(info), Kind::Invalid(_));
    assert_eq!(Kind::of("sh"), Kind::Run);
    assert_eq!(Kind::of("sh needs=docker,sam"), Kind::Check);
    for info in ["json", "", "rust"] {
        assert_eq!(Kind::of(info), Kind::Other, "{info}");
    }
    for info in [
        "bash",
        "Shell",
        "console",
        "sh foo",
        "sh needs=",
        "sh needs=a,docker",
    ] {
        assert!(is_invalid(info), "{info}");
    }
}
