//! How fast the function starts and answers, beside the least that answers an HTTP event and beside what is usual.
//!
//! `cargo bench` builds the programs as they are deployed, starts each many times in turn behind a Lambda Runtime API, with
//! an embedded DynamoDB behind TLS, and prints what it saw. Times depend on the machine and its other work; ratios of
//! one run do less. With `-- soak` it sends the function many requests for a long time instead.

mod endpoint;
mod function;
mod report;
mod soak;

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::Client;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use workspace_local::{
    demo::{DEMO_ORGANIZATION, key_record, store_demo},
    events,
    tables::{create_missing, sdk_config, table_names},
};
use workspace_management::{api_key::ApiKey, operation::Operation, store::Table};

use crate::{endpoint::Endpoint, function::Function, report::Report};

/// The programs, and the package that each is built from.
const PROGRAMS: [(&str, &str); 4] = [
    ("baseline-hello", "baseline-hello"),
    ("baseline-typical", "baseline-typical"),
    ("baseline-sdk", "baseline-sdk"),
    ("ours", "workspace-management"),
];

/// How often each program is started; the first two times do not count.
const STARTS: usize = 32;
const WARM_UP: usize = 2;

/// How often an operation is called in a warm program.
const CALLS: usize = 400;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // `cargo test --benches` and the like only want to see that it runs.
    let starts = if env::args().any(|argument| argument == "--test") {
        1
    } else {
        STARTS
    };
    let programs = build(&root)?;
    let folder = tempfile::tempdir()?;
    let endpoint = Endpoint::start(folder.path()).await?;
    let (client, tables) = (
        Client::from_conf(sdk_config(&endpoint.plain).build()),
        table_names(),
    );
    create_missing(&client, &tables).await?;
    store_demo(&client, &tables).await?;

    let bench = Bench {
        programs,
        endpoint,
        events: benchmark_events()?,
    };
    if env::args().any(|argument| argument == "soak") {
        return bench.soak().await;
    }
    let mut report = Report::default();
    bench.starts(starts + WARM_UP, &mut report).await?;
    bench.operations(&mut report).await?;
    bench.throughput(&mut report).await?;
    bench.growth(&mut report).await?;
    bench.sizes(&mut report)?;
    report.print();
    report.write(&root.join("docs"))
}

/// Builds the programs as they are deployed, each by itself, so that none has features of another.
fn build(root: &Path) -> Result<BTreeMap<&'static str, PathBuf>> {
    let mut programs = BTreeMap::new();
    for (name, package) in PROGRAMS {
        eprintln!("building {name}");
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["build", "--quiet", "--release", "--package", package])
            .current_dir(root);
        ensure!(cargo.status()?.success(), "{package} cannot be built");
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        programs.insert(name, target.join("release").join(package));
    }
    Ok(programs)
}

/// The events of `events/`, by the operation's name.
fn benchmark_events() -> Result<BTreeMap<&'static str, Value>> {
    let event =
        |(operation, text): (Operation, _)| Ok((operation.name(), serde_json::from_str(text)?));
    events::all().map(event).collect()
}

struct Bench {
    programs: BTreeMap<&'static str, PathBuf>,
    endpoint: Endpoint,
    events: BTreeMap<&'static str, Value>,
}

impl Bench {
    async fn start(&self, program: &str, more: &[(&str, &str)]) -> Result<(Function, Duration)> {
        let roots = if program == "baseline-typical" {
            &self.endpoint.all_roots
        } else {
            &self.endpoint.few_roots
        };
        let mut variables: Vec<(String, String)> = Table::ALL
            .iter()
            .map(|table| (table.variable.to_owned(), table.logical_id.to_owned()))
            .collect();
        variables.push((
            "AWS_ENDPOINT_URL_DYNAMODB".to_owned(),
            self.endpoint.secure.clone(),
        ));
        variables.push((
            "SSL_CERT_FILE".to_owned(),
            roots.to_string_lossy().into_owned(),
        ));
        variables.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        Function::start(&self.programs[program].to_string_lossy(), &variables).await
    }

    fn event(&self, operation: &str) -> Arc<str> {
        self.events[operation].to_string().into()
    }

    /// The event that a program is compared by, for a project of its own: the others write over what is there.
    fn compared(&self, program: &str) -> Arc<str> {
        let mut event = self.events["create_logging_instance"].clone();
        let path = format!("/api/v1/project/acme/{program}/createLoggingInstance");
        event["rawPath"] = json!(path);
        event.to_string().into()
    }

    /// The event of an operation with another body.
    fn with_body(&self, operation: &str, body: &Value) -> Arc<str> {
        let mut event = self.events[operation].clone();
        event["body"] = json!(STANDARD.encode(body.to_string()));
        event.to_string().into()
    }

    /// Starts the programs in turn, and asks each for one authenticated operation with one write.
    async fn starts(&self, rounds: usize, report: &mut Report) -> Result<()> {
        eprintln!("starting each program {rounds} times");
        for round in 0..rounds {
            for (program, _) in PROGRAMS {
                let (mut function, ready) = self.start(program, &[]).await?;
                let ready_cpu = function.cpu()?;
                let first = function.invoke(&self.compared(program)).await?;
                let first_cpu = function.cpu()?;
                let memory = function.peak_memory()?;
                function.stop().await?;
                if round >= WARM_UP.min(rounds - 1) {
                    report.time("start to ready, wall", program, ready);
                    report.time("start to ready, CPU", program, ready_cpu);
                    report.time("first answer, wall", program, first);
                    report.time("CPU until the first answer", program, first_cpu);
                    report.size("peak memory after the first answer", program, memory * 1024);
                }
            }
        }
        Ok(())
    }

    /// Calls every operation in a warm program, and counts what it asks of DynamoDB.
    async fn operations(&self, report: &mut Report) -> Result<()> {
        eprintln!("calling each operation {CALLS} times");
        let mut programs = Vec::new();
        for (program, _) in PROGRAMS {
            let (function, _) = self.start(program, &[]).await?;
            programs.push((program, function, self.compared(program)));
        }
        for call in 0..CALLS + 50 {
            for (program, function, event) in &mut programs {
                let time = function.invoke(event).await?;
                if call >= 50 {
                    report.time("warm, create_logging_instance", program, time);
                }
            }
        }
        for (program, function, _) in programs {
            report.size(
                "peak memory after 450 calls",
                program,
                function.peak_memory()? * 1024,
            );
            function.stop().await?;
        }
        for operation in Operation::ALL.iter().map(|operation| operation.name()) {
            let (mut function, _) = self.start("ours", &[]).await?;
            // What is opened at the start is no part of the first call.
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.endpoint.traffic();
            let event = self.event(operation);
            function.invoke(&event).await?;
            let first = self.endpoint.traffic();
            report.count("DynamoDB requests, first call", operation, first.requests);
            report.count(
                "DynamoDB round trips, first call",
                operation,
                first.round_trips,
            );
            for _ in 0..CALLS {
                report.time("warm, ours", operation, function.invoke(&event).await?);
                report.count(
                    "DynamoDB requests, warm",
                    operation,
                    self.endpoint.traffic().requests,
                );
            }
            function.stop().await?;
        }
        Ok(())
    }

    /// How many requests one process answers in a second.
    async fn throughput(&self, report: &mut Report) -> Result<()> {
        eprintln!("answering many at once");
        const EVENTS: usize = 4000;
        let event = self.event("create_logging_instance");
        for concurrency in ["1", "8", "64"] {
            let (mut function, _) = self
                .start("ours", &[("AWS_LAMBDA_MAX_CONCURRENCY", concurrency)])
                .await?;
            function.send(0, &event);
            function.answered().await?;
            let began = Instant::now();
            for id in 0..EVENTS {
                function.send(id as u64, &event);
            }
            for _ in 0..EVENTS {
                function.answered().await?;
            }
            let per_second = EVENTS as f64 / began.elapsed().as_secs_f64();
            report.count(
                "requests per second, by concurrency",
                concurrency,
                per_second as usize,
            );
            function.stop().await?;
        }
        Ok(())
    }

    /// How the cost grows with the request, the team and the keys.
    async fn growth(&self, report: &mut Report) -> Result<()> {
        eprintln!("growing");
        let users = |from: usize, count: usize| {
            let user = |number| json!({ "userid": format!("user-{number:06}") });
            json!({ "usersAddingToTeam": (from..from + count).map(user).collect::<Vec<_>>() })
        };
        let (mut function, _) = self.start("ours", &[]).await?;
        // In turn, like the programs: a machine is not equally fast all the time.
        let of_users = [1, 10, 100].map(|count| {
            let event = self.with_body("add_team_users", &users(0, count));
            (format!("{count} users"), event)
        });
        let of_models = [1, 10, 100].map(|count| {
            let model = |id| json!({ "id": id, "modelid": format!("model-{id:06}") });
            let models: Vec<_> = (0..count).map(model).collect();
            let body = json!({ "aIModelsSelectedToAddToOrg": models });
            (
                format!("{count} models"),
                self.with_body("add_models", &body),
            )
        });
        for (_, event) in of_users.iter().chain(&of_models) {
            function.invoke(event).await?;
        }
        // Some calls at a time: the first of them finds the caches full of the calls before.
        const RUN: usize = 8;
        for _ in 0..CALLS / 4 / RUN {
            for (name, event) in &of_users {
                for _ in 0..RUN {
                    self.endpoint.traffic();
                    let time = function.invoke(event).await?;
                    report.time("warm by users of a request", name, time);
                    let own = time.saturating_sub(self.endpoint.traffic().time);
                    report.time("the same, DynamoDB's time taken off", name, own);
                }
            }
            for (name, event) in &of_models {
                for _ in 0..RUN {
                    let time = function.invoke(event).await?;
                    report.time("warm by models of a request", name, time);
                }
            }
        }
        let mut members = 0;
        for size in [10, 1_000, 100_000] {
            self.fill_team(members, size);
            members = size;
            for call in 0..CALLS / 4 {
                let event = self.with_body("add_team_users", &users(900_000 + call, 1));
                let time = function.invoke(&event).await?;
                report.time(
                    "warm by members of the team",
                    &format!("{size} members"),
                    time,
                );
            }
        }
        function.stop().await?;

        let (mut function, _) = self.start("ours", &[("KEY_CACHE_SECONDS", "3600")]).await?;
        let mut keys = Vec::new();
        for count in [1, 100, 10_000] {
            while keys.len() < count {
                let number = keys.len() as u64;
                let key = ApiKey::generate(number.to_be_bytes(), [[7; 16]; 2]);
                let record = key_record(&key, DEMO_ORGANIZATION, "");
                self.endpoint.dynamodb.put(Table::KEYS, record);
                let mut event = self.events["create_logging_instance"].clone();
                event["headers"]["authorization"] = json!(format!("Bearer {key}"));
                let path = format!("/api/v1/project/acme/project-{number}/createLoggingInstance");
                event["rawPath"] = json!(path);
                let event: Arc<str> = event.to_string().into();
                function.invoke(&event).await?;
                keys.push(event);
            }
            for call in 0..CALLS / 4 {
                let time = function.invoke(&keys[call * 7919 % keys.len()]).await?;
                report.time("warm by known keys", &format!("{count} keys"), time);
            }
        }
        report.size(
            "peak memory with 10,000 known keys",
            "ours",
            function.peak_memory()? * 1024,
        );
        function.stop().await
    }

    /// Gives the team of the events that many members, past the engine's HTTP.
    fn fill_team(&self, from: usize, to: usize) {
        for number in from..to {
            let member = json!({
                "team": "acme#apollo#research-team",
                "user_id": format!("member-{number:06}"),
            });
            self.endpoint.dynamodb.put(Table::TEAM_MEMBERS, member);
        }
    }

    /// How large the programs are, and the archives that Lambda gets of them.
    fn sizes(&self, report: &mut Report) -> Result<()> {
        for (program, path) in &self.programs {
            let binary =
                fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
            let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
            archive.start_file("bootstrap", zip::write::SimpleFileOptions::default())?;
            archive.write_all(&binary)?;
            report.size("binary", program, binary.len() as u64);
            report.size("zip", program, archive.finish()?.into_inner().len() as u64);
        }
        Ok(())
    }
}
