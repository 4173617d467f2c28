//! Runs blocks in bash, with scripts in the place of some commands.

use std::{
    env,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use workspace_management::store::Table;

use crate::{
    TOOLS,
    markdown::{Block, Document, is_executable},
    root,
};

/// How long the blocks of a document may take.
const TIMEOUT: Duration = Duration::from_secs(60);

const WORKSPACECTL: &str = env!("CARGO_BIN_EXE_workspacectl");

/// Ignores commands that do not exist here. `cd` and the others would fail or end the script.
const PREPARE_CHECK: &str = "\
[ ${BASH_VERSINFO[0]} -ge 4 ] || echo 'The test needs bash 4 or later.'
command_not_found_handle() { echo placeholder; }
cd() { :; }
.() { :; }
source() { :; }
exit() { :; }
exec() { \"$@\"; }
";

/// A folder with everything that commands may use and change.
struct Sandbox {
    folder: TempDir,
    bash: PathBuf,
}

/// How a script ended.
pub(crate) struct Outcome {
    /// `None` if it did not end in time.
    status: Option<ExitStatus>,
    output: String,
    /// The failures that the scripts in the place of commands wrote.
    failures: String,
}

impl Sandbox {
    /// A sandbox with a script under the given names of commands.
    fn new(script: &str, commands: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bash = find("bash");
        for name in ["bin", "blocks", "home", "tmp", "work"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("failures"), "").unwrap();
        let sandbox = Self { folder, bash };
        let script = format!("#!{}\n{script}", sandbox.bash.display());
        for command in commands {
            write_executable(&sandbox.path("bin").join(command), &script);
        }
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a block to a file in which its lines have the numbers that they have in the document,
    /// so that the messages of bash refer to those.
    fn write(&self, document: &Document, block: &Block, text: &str) -> PathBuf {
        let folder = self.path("blocks").join(block.line.to_string());
        let file = folder.join(&document.name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "\n".repeat(block.line - 1) + text).unwrap();
        file
    }

    /// bash in the folder `work`, with no environment variables of the test.
    fn bash(&self) -> Command {
        let mut command = Command::new(&self.bash);
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("DOCS_WORKSPACECTL", WORKSPACECTL)
            .env("DOCS_FAILURES", self.path("failures"))
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command until it ends or has taken too long.
    fn run(&self, mut command: Command) -> Outcome {
        let output = File::create(self.path("output")).unwrap();
        command
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0);
        let mut group = Group(command.spawn().unwrap());
        let started = Instant::now();
        let mut status = None;
        while status.is_none() && started.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(10));
            status = group.0.try_wait().unwrap();
        }
        drop(group);
        let read = |name| String::from_utf8_lossy(&fs::read(self.path(name)).unwrap()).into_owned();
        Outcome {
            status,
            output: read("output"),
            failures: read("failures"),
        }
    }
}

/// A process and those that it has started. They end when the value is dropped.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let mut kill = Command::new("kill");
        let _ = kill
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = self.0.wait();
    }
}

/// `workspacectl serve` on free ports, in memory.
struct Server {
    process: Child,
    url: String,
    dynamodb: String,
}

impl Server {
    fn start() -> Self {
        let mut process = Command::new(WORKSPACECTL)
            .args(["--json", "serve", "--port", "0", "--dynamodb-port", "0"])
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let addresses: Value = serde_json::from_str(&line).expect("serve prints its addresses");
        let url = |name: &str| addresses[name].as_str().unwrap().to_owned();
        Self {
            process,
            url: url("url"),
            dynamodb: url("dynamodb"),
        }
    }

    /// Replaces the default addresses of `serve` by those of this server.
    fn localize(&self, text: &str) -> String {
        let addresses = [("3000", &self.url), ("8000", &self.dynamodb)];
        addresses.iter().fold(text.to_owned(), |text, (port, url)| {
            let address = url.strip_prefix("http://").unwrap();
            text.replace(&format!("127.0.0.1:{port}"), address)
                .replace(&format!("localhost:{port}"), address)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs blocks of a document in one bash, on a server of their own, and describes the failure if
/// there is one.
pub(crate) fn run(document: &Document, blocks: &[Block]) -> Option<String> {
    let tools = TOOLS.iter().flat_map(|(_, commands)| *commands).copied();
    let commands: Vec<_> = tools.chain(["curl", "workspacectl"]).collect();
    let sandbox = Sandbox::new(include_str!("run.sh"), &commands);
    link_repository(&sandbox.path("work"));
    let server = Server::start();
    let done = sandbox.path("done");
    fs::write(&done, "").unwrap();
    let script: String = blocks
        .iter()
        .map(|block| {
            let text = server.localize(&block.text);
            let file = sandbox.write(document, block, &text);
            // If a block exits, even with 0, it leaves no line in `done`.
            format!(
                "set -euo pipefail\n\
                 echo '# {}:{}'\n\
                 . '{}'\n\
                 [ ! -s \"$DOCS_FAILURES\" ]\n\
                 echo >>'{}'\n",
                document.name,
                block.line,
                file.display(),
                done.display()
            )
        })
        .collect();
    let path = env::var("PATH").unwrap();
    let mut command = sandbox.bash();
    command
        .args(["-c", &script])
        .env("PATH", format!("{}:{path}", sandbox.path("bin").display()))
        .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb)
        .env("DOCS_API", &server.url)
        .env("DOCS_CURL", find("curl"));

    let outcome = sandbox.run(command);

    let done = fs::read_to_string(done).unwrap().lines().count();
    let is_successful = done == blocks.len() && outcome.failures.is_empty();
    let failed = blocks.get(done).or(blocks.last()).expect("a block");
    (!is_successful).then(|| outcome.describe(document, failed))
}

/// Checks the syntax of a block and the arguments of `cargo` and `workspacectl` in it, and
/// describes the failure if there is one.
pub(crate) fn check(document: &Document, block: &Block) -> Option<String> {
    let sandbox = Sandbox::new(include_str!("check.sh"), &["cargo", "workspacectl"]);
    imitate_repository(&sandbox.path("work"));
    let file = sandbox.write(document, block, &block.text);
    let file = file.display();
    let mut command = sandbox.bash();
    // The remaining output consists of errors of bash.
    let script =
        format!("\"$BASH\" -n '{file}' || exit\n{PREPARE_CHECK}builtin . '{file}' >/dev/null");
    command
        .args(["-c", &script])
        .env("PATH", sandbox.path("bin"))
        .env("DOCS_TABLE", Table::TEAMS.variable);

    let outcome = sandbox.run(command);

    let is_valid =
        outcome.status.is_some() && outcome.output.is_empty() && outcome.failures.is_empty();
    (!is_valid).then(|| outcome.describe(document, block))
}

impl Outcome {
    fn describe(&self, document: &Document, block: &Block) -> String {
        let status = match self.status {
            Some(status) => status.to_string(),
            None => format!("not finished after {} s", TIMEOUT.as_secs()),
        };
        format!(
            "{}:{}: {status}\n---- commands\n{}---- failed commands\n{}---- output\n{}",
            document.name, block.line, block.text, self.failures, self.output
        )
    }
}

/// Links to everything in the root of the repository, so that commands can read all files, and
/// files that they create in the root are temporary.
fn link_repository(folder: &Path) {
    fs::create_dir(folder.join("target")).unwrap();
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name();
        if name != "target" && name != ".git" {
            symlink(root().join(&name), folder.join(&name)).unwrap();
        }
    }
}

/// Creates the folders in the root of the repository, with empty scripts in the place of those that
/// they contain.
fn imitate_repository(folder: &Path) {
    fs::create_dir(folder.join("target")).unwrap();
    for entry in fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if !entry.file_type().unwrap().is_dir() || name == "target" || name == ".git" {
            continue;
        }
        let folder = folder.join(name);
        fs::create_dir(&folder).unwrap();
        for file in fs::read_dir(entry.path()).unwrap() {
            let file = file.unwrap();
            if is_executable(&file.path()) {
                write_executable(&folder.join(file.file_name()), "#!/bin/sh\n");
            }
        }
    }
}

fn write_executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The path of a program.
fn find(program: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&path).map(|folder| folder.join(program));
    files
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{program} is not installed, and the blocks need it"))
}
