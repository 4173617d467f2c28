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
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use workspace_local::{
    demo::store_demo,
    events,
    tables::{Declaration, create_missing, sdk_config, table_names},
};
use workspace_management::{
    operation::Operation,
    store::{Table, TableNames},
};

use crate::{cpu_group::CpuGroup, endpoint::Endpoint, function::Function};

/// The function in reports.
pub(crate) const OURS: &str = "ours";

/// The baseline without the AWS SDK.
pub(crate) const HELLO: &str = "baseline-hello";

/// The baseline that trusts the certificates of the system, as the SDK does by default.
pub(crate) const TYPICAL: &str = "baseline-typical";

/// The baseline with the SDK client of the function.
pub(crate) const SDK: &str = "baseline-sdk";

/// The programs, and the package of each.
const PACKAGES: [(&str, &str); 4] = [
    (HELLO, HELLO),
    (TYPICAL, TYPICAL),
    (SDK, SDK),
    (OURS, "workspace-management"),
];

/// The number of calls of a figure.
pub(crate) const CALLS: usize = 400;

/// The compiled programs, and a DynamoDB with the demo organization.
pub(crate) struct Bench {
    pub(crate) programs: Vec<Program>,
    pub(crate) endpoint: Endpoint,
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
        let client = Client::from_conf(sdk_config(&endpoint.plain).build());
        let tables = table_names();
        create_missing(&client, &tables).await?;
        disable_streams(&client, &tables).await?;
        store_demo(&client, &tables).await?;
        Ok(Self { programs, endpoint })
    }

    /// Starts the function with additional environment variables.
    pub(crate) async fn start_ours(&self, variables: &[(&str, &str)]) -> Result<Function> {
        let mut programs = self.programs.iter();
        let ours = programs.find(|program| program.name == OURS);
        let ours = ours.expect("the function is one of the programs");
        Ok(self.launch(ours, variables, None).await?.0)
    }

    /// Starts a program. Returns how long it takes until the program is ready.
    pub(crate) async fn start(&self, program: &Program) -> Result<(Function, Duration)> {
        self.launch(program, &[], None).await
    }

    /// Starts a program in a control group. Returns how long it takes until the program is ready.
    pub(crate) async fn start_in_group(
        &self,
        program: &Program,
        group: &CpuGroup,
    ) -> Result<(Function, Duration)> {
        self.launch(program, &[], Some(group)).await
    }

    async fn launch(
        &self,
        program: &Program,
        variables: &[(&str, &str)],
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
                ("AWS_ENDPOINT_URL_DYNAMODB", &*self.endpoint.secure),
                ("SSL_CERT_FILE", &*roots),
            ])
            .chain(variables.iter().copied())
            .collect();
        Function::start(&program.file, &variables, group).await
    }
}

/// Disables the change streams. With one, the embedded DynamoDB reads all earlier changes for each
/// write, so that later figures would be larger than earlier ones.
async fn disable_streams(client: &Client, tables: &TableNames) -> Result<()> {
    for table in Table::ALL {
        if Declaration::of(*table)?.stream_specification.is_some() {
            let disabled = StreamSpecification::builder().stream_enabled(false);
            client
                .update_table()
                .table_name(tables.name(*table))
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
    for (name, package) in PACKAGES {
        eprintln!("building {package}");
        let status = Command::new(&cargo)
            .args(["build", "--quiet", "--release", "--package", package])
            .current_dir(root)
            .status()?;
        ensure!(status.success(), "cannot build {package}");
        programs.push(Program {
            name: name.to_owned(),
            file: target.join("release").join(package),
        });
    }
    Ok(programs)
}

/// The event of an operation in `events/`.
pub(crate) fn event(operation: Operation) -> Result<Value> {
    Ok(serde_json::from_str(events::get(operation))?)
}

/// The event of an operation with another body.
pub(crate) fn event_with_body(operation: Operation, body: &Value) -> Result<Arc<str>> {
    let mut event = event(operation)?;
    event["body"] = json!(STANDARD.encode(body.to_string()));
    Ok(event.to_string().into())
}

/// The event of `create_logging_instance` for a project. All programs except `baseline-hello`
/// handle it by writing a record.
pub(crate) fn logging_instance_event(project: &str) -> Result<Value> {
    let mut event = event(Operation::CreateLoggingInstance)?;
    event["rawPath"] = json!(format!(
        "/api/v1/project/acme/{project}/createLoggingInstance"
    ));
    Ok(event)
}

/// The event that compares programs. Each program has its own project, because the function would
/// respond to the record of another one with a conflict.
pub(crate) fn comparison_event(program: &str) -> Result<Arc<str>> {
    Ok(logging_instance_event(program)?.to_string().into())
}
