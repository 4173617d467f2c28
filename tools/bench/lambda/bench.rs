//! The programs, the DynamoDB that they share, and the events that they receive.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, ensure};
use aws_sdk_dynamodb::{Client, types::StreamSpecification};
use serde_json::json;
use workspace_local::{demo::store_demo, events};
use workspace_management::{operations::Operation, records::Table};
use workspace_records::{contract, local::table_names, tables::TableDeclaration};

use crate::{cpu_group::CpuGroup, endpoint::Endpoint, function::Function};

/// The name of the function's package and program.
pub(crate) const OURS: &str = "workspace-management";

/// The baseline without the SDK.
const HELLO: &str = "baseline-hello";

/// The baselines with the SDK's default settings.
pub(crate) const TYPICAL: &str = "baseline-typical";
pub(crate) const CAREFUL: &str = "baseline-careful";

/// The programs. A `+` adds one lever to the previous program: see `baseline-sdk`.
const PROGRAMS: [&str; 9] = [
    HELLO,
    TYPICAL,
    "+cache",
    CAREFUL, // adds the connection before the first event
    "+ring",
    "+five-roots",
    "+no-credential-chain",
    "+one-thread",
    OURS,
];

/// The programs that trust the root certificates of the system, and not only Amazon's.
const PROGRAMS_WITH_SYSTEM_ROOTS: [&str; 4] = [TYPICAL, "+cache", CAREFUL, "+ring"];

/// The compiled programs, and a DynamoDB with the demo organization.
pub(crate) struct Bench {
    pub(crate) programs: Vec<Program>,
    pub(crate) endpoint: Endpoint,
    /// How often each program is started.
    pub(crate) starts: usize,
    /// How many warm calls each program gets.
    pub(crate) calls: usize,
}

/// A program that is measured.
pub(crate) struct Program {
    /// The row of the program in the report.
    pub(crate) name: String,
    pub(crate) file: PathBuf,
}

impl Bench {
    /// Builds the programs and starts DynamoDB. Stores the certificates of DynamoDB in `folder`.
    /// `more_builds` are more builds of the function.
    pub(crate) async fn new(root: &Path, folder: &Path, more_builds: Vec<Program>) -> Result<Self> {
        let mut programs = Vec::new();
        for name in PROGRAMS {
            programs.push(build(root, name)?);
        }
        programs.extend(more_builds);
        let endpoint = Endpoint::start(folder).await?;
        let client = endpoint.dynamodb.client();
        disable_streams(&client).await?;
        store_demo(&client, &table_names()).await?;
        Ok(Self {
            programs,
            endpoint,
            starts: 32,
            calls: 400,
        })
    }

    /// Starts a program, in this control group if there is one. Returns the program and how long it
    /// took until the program was ready.
    pub(crate) async fn start(
        &self,
        program: &Program,
        group: Option<&CpuGroup>,
    ) -> Result<(Function, Duration)> {
        let name = &*program.name;
        let roots = if PROGRAMS_WITH_SYSTEM_ROOTS.contains(&name) {
            &self.endpoint.system_roots
        } else {
            &self.endpoint.amazon_roots
        };
        let roots = roots.to_string_lossy();
        let variables = [
            ("AWS_ENDPOINT_URL_DYNAMODB", &*self.endpoint.url),
            ("SSL_CERT_FILE", &*roots),
            ("LEVER", name.trim_start_matches('+')),
        ];
        Function::start(&program.file, &variables, group).await
    }
}

/// Disables the streams of the tables. With a stream, the embedded DynamoDB reads all earlier
/// changes for each write, so each write would take longer than the previous one.
pub(crate) async fn disable_streams(client: &Client) -> Result<()> {
    for table in Table::ALL {
        if TableDeclaration::of(*table)?.stream_specification.is_some() {
            let disabled = StreamSpecification::builder().stream_enabled(false);
            client
                .update_table()
                .table_name(table.logical_id)
                .stream_specification(disabled.build()?)
                .send()
                .await?;
        }
    }
    Ok(())
}

/// Builds a program. Each is built separately, because Cargo would otherwise unify their features.
pub(crate) fn build(root: &Path, name: &str) -> Result<Program> {
    let package = match name {
        OURS | HELLO => name,
        _ => "baseline-sdk",
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => root.join("target"),
    };
    eprintln!("building {name}");
    let status = Command::new(&cargo)
        .args(["build", "--quiet", "--release"])
        .args(["--package", package, "--bin", package])
        .current_dir(root)
        .status()?;
    ensure!(status.success(), "cannot build {name}");
    Ok(Program {
        name: name.to_owned(),
        file: target.join("release").join(package),
    })
}

/// The event that every program gets: `create_logging_instance`. Each program has its own project,
/// so that no program finds the record of a different program.
pub(crate) fn comparison_event(program: &str) -> Arc<str> {
    let operation = Operation::CreateLoggingInstance;
    let request = contract::example(operation, |name| (name == "project_id").then_some(program));
    let mut event = events::event(operation);
    event["rawPath"] = json!(request.path);
    event.to_string().into()
}
