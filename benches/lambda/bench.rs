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
use serde_json::{Value, json};
use workspace_local::{demo::store_demo, events};
use workspace_management::{operations::Operation, store::Table};
use workspace_records::{local::table_names, tables::Declaration};

use crate::{cpu_group::CpuGroup, endpoint::Endpoint, function::Function};

/// The package and program of the function.
pub(crate) const OURS: &str = "workspace-management";

/// The baseline that trusts the certificates of the system, as the SDK does by default.
pub(crate) const TYPICAL: &str = "baseline-typical";

/// The packages of the programs.
const PACKAGES: [&str; 3] = ["baseline-hello", OURS, TYPICAL];

/// The compiled programs, and a DynamoDB with the demo organization.
pub(crate) struct Bench {
    pub(crate) programs: Vec<Program>,
    pub(crate) endpoint: Endpoint,
    /// How often each program is started.
    pub(crate) starts: usize,
    /// How often each program is called.
    pub(crate) calls: usize,
}

/// A program that is measured.
pub(crate) struct Program {
    /// Its name in reports.
    pub(crate) name: String,
    pub(crate) file: PathBuf,
}

impl Bench {
    /// Builds the programs and starts DynamoDB, whose certificates are stored in `folder`.
    /// `others` are further builds of the function.
    pub(crate) async fn new(root: &Path, folder: &Path, others: Vec<Program>) -> Result<Self> {
        let mut programs = build(root)?;
        programs.extend(others);
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

    /// Starts a program, in a control group if there is one. Returns how long it takes until the
    /// program is ready.
    pub(crate) async fn start(
        &self,
        program: &Program,
        group: Option<&CpuGroup>,
    ) -> Result<(Function, Duration)> {
        let roots = match &*program.name {
            TYPICAL => &self.endpoint.system_roots,
            _ => &self.endpoint.amazon_roots,
        };
        let roots = roots.to_string_lossy();
        let tables = Table::ALL
            .iter()
            .map(|table| (table.variable, table.logical_id));
        let variables: Vec<(&str, &str)> = tables
            .chain([
                ("AWS_ENDPOINT_URL_DYNAMODB", &*self.endpoint.url),
                ("SSL_CERT_FILE", &*roots),
            ])
            .collect();
        Function::start(&program.file, &variables, group).await
    }
}

/// Disables the change streams. With one, the embedded DynamoDB reads all earlier changes for each
/// write, so that later figures would be larger than earlier ones.
async fn disable_streams(client: &Client) -> Result<()> {
    for table in Table::ALL {
        if Declaration::of(*table)?.stream_specification.is_some() {
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

/// Builds each program separately, because Cargo would otherwise unify their features.
fn build(root: &Path) -> Result<Vec<Program>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut programs = Vec::new();
    for package in PACKAGES {
        eprintln!("building {package}");
        let status = Command::new(&cargo)
            .args(["build", "--quiet", "--release", "--package", package])
            .current_dir(root)
            .status()?;
        ensure!(status.success(), "cannot build {package}");
        programs.push(Program {
            name: package.to_owned(),
            file: target.join("release").join(package),
        });
    }
    Ok(programs)
}

/// The event that compares programs: `create_logging_instance`. Each program has its own project,
/// because the function would respond to the record of another one with a conflict.
pub(crate) fn comparison_event(program: &str) -> Result<Arc<str>> {
    let mut event: Value = serde_json::from_str(&events::get(Operation::CreateLoggingInstance)?)?;
    let path = format!("/api/v1/project/acme/{program}/createLoggingInstance");
    event["rawPath"] = json!(path);
    Ok(event.to_string().into())
}
