//! Every documented deployment builds first. Otherwise it would deploy an old build, or the build of
//! another environment.

use std::{collections::HashSet, fs, path::Path};

use yaml_serde::Value;

use crate::{assert_none, markdown::Document, root};

/// What a command does to the build.
#[derive(Debug, PartialEq)]
enum Step {
    /// Builds with a tool, for an environment of `samconfig.toml`.
    Build(&'static str, String),
    /// Deploys the build of the same tool and environment.
    Deploy(&'static str, String),
    /// Unpacks a package that contains a build.
    Unpack,
    /// Deploys a template of that package.
    DeployPackage,
    /// Changes the sources, so that earlier builds are of other sources.
    Checkout,
}

impl Step {
    fn of(words: &[&str]) -> Option<Self> {
        let program = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let starts_with = |start: &[&str]| {
            let found = words
                .windows(start.len())
                .find(|window| program(window[0]) == start[0] && window[1..] == start[1..]);
            found.is_some()
        };
        let environment = || {
            let mut options = words.iter().skip_while(|word| **word != "--config-env");
            options.nth(1).unwrap_or(&"default").to_string()
        };
        if starts_with(&["sam", "build"]) {
            Some(Self::Build("sam", environment()))
        } else if starts_with(&["sam", "deploy"]) && words.contains(&"--template-file") {
            Some(Self::DeployPackage)
        } else if starts_with(&["sam", "deploy"]) {
            Some(Self::Deploy("sam", environment()))
        } else if starts_with(&["cargo", "lambda", "build"]) {
            Some(Self::Build("cargo lambda", String::new()))
        } else if starts_with(&["cargo", "lambda", "deploy"]) {
            Some(Self::Deploy("cargo lambda", String::new()))
        } else if starts_with(&["tar", "--extract"]) {
            Some(Self::Unpack)
        } else if starts_with(&["git", "checkout"]) || starts_with(&["git", "switch"]) {
            Some(Self::Checkout)
        } else {
            None
        }
    }
}

/// The steps of a script, in order.
fn steps(script: &str) -> Vec<Step> {
    let script = script.replace("\\\n", " ");
    let lines = script.lines().map(|line| match line.find('#') {
        Some(0) => "",
        Some(start) if line[..start].ends_with(' ') => &line[..start],
        _ => line,
    });
    let commands = lines.flat_map(|line| line.split(['&', '|', ';', '(', ')']));
    let words = commands.map(|command| {
        let words = command.split([' ', '=']);
        let words = words.map(|word| word.trim_matches(['"', '\'']));
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>()
    });
    words.filter_map(|words| Step::of(&words)).collect()
}

/// The first step that deploys something else than what the script has built.
fn unbuilt(script: &str) -> Option<Step> {
    let mut built = HashSet::new();
    let mut is_unpacked = false;
    steps(script).into_iter().find(|step| match step {
        Step::Build(tool, environment) => {
            built.insert((*tool, environment.clone()));
            false
        }
        Step::Deploy(tool, environment) => !built.contains(&(*tool, environment.clone())),
        Step::Unpack => {
            is_unpacked = true;
            false
        }
        Step::DeployPackage => !is_unpacked,
        Step::Checkout => {
            built.clear();
            false
        }
    })
}

/// The Markdown files in a folder, with paths from the root of the repository.
fn markdown_files(folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["target", "node_modules"].contains(&name) && !name.starts_with('.') {
            markdown_files(&path, names);
        } else if name.ends_with(".md") {
            let name = path.strip_prefix(root()).unwrap();
            names.push(name.to_str().unwrap().to_owned());
        }
    }
}

/// The commands of each job of the workflows, with its name.
fn jobs() -> Vec<(String, String)> {
    let mut scripts = Vec::new();
    for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let workflow: Value = yaml_serde::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for (name, job) in workflow["jobs"].as_mapping().unwrap() {
            let steps = job["steps"].as_sequence().unwrap().iter();
            let commands = steps.filter_map(|step| step["run"].as_str());
            let name = format!("{}, job {}", path.display(), name.as_str().unwrap());
            scripts.push((name, commands.collect::<Vec<_>>().join("\n")));
        }
    }
    scripts
}

#[test]
fn every_documented_deployment_builds_first() {
    let mut names = Vec::new();
    markdown_files(&root(), &mut names);
    let mut scripts = jobs();
    for name in names {
        for block in Document::read(&name).blocks() {
            scripts.push((format!("{name}:{}", block.line), block.text));
        }
    }

    let is_deployment = |step| !matches!(step, Step::Build(..) | Step::Unpack | Step::Checkout);
    let deploying = |file: &str| {
        let mut scripts = scripts.iter().filter(|(name, _)| name.contains(file));
        scripts.any(|(_, script)| steps(script).into_iter().any(is_deployment))
    };
    for file in [
        "README.md",
        "docs/deploying.md",
        "docs/operations.md",
        "ci.yml",
    ] {
        assert!(deploying(file), "no deployment was found in {file}");
    }
    let failures = scripts.iter().filter_map(|(name, script)| {
        let step = unbuilt(script)?;
        Some(format!("{name}: {step:?} without its build:\n{script}"))
    });
    assert_none(&failures.collect::<Vec<_>>());
}

#[test]
fn a_deployment_needs_the_build_of_its_environment() {
    for script in [
        "sam build && sam deploy",
        "sam build --config-env prod\nsam deploy --config-env=prod --no-confirm-changeset",
        "git checkout COMMIT && sam build && sam deploy",
        "cargo lambda build --release\ncargo lambda deploy FUNCTION",
        "tar --extract --file A\n\"$TEMP/bin/sam\" deploy --config-env prod \\\n  --template-file sam/template.yaml",
        "sam build # sam deploy",
        "echo sam-deploy",
    ] {
        assert_eq!(unbuilt(script), None, "{script}");
    }
    for script in [
        "sam deploy",
        "sam deploy && sam build",
        "sam build\nsam deploy --config-env prod",
        "sam build --config-env prod\nsam deploy",
        "sam build && git checkout COMMIT && sam deploy",
        "cargo lambda deploy FUNCTION",
        "sam build && cargo lambda deploy FUNCTION",
        "\"$TEMP/bin/sam\" deploy --config-env prod \\\n  --template-file sam/template.yaml",
        "AWS_REGION=us-east-1 sam deploy --parameter-overrides KeyCacheSeconds=0",
    ] {
        assert!(unbuilt(script).is_some(), "{script}");
    }
}
