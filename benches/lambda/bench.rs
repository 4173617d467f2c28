//! The programs, the DynamoDB that they share, and the events that they receive.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, ensure};
use aws_sdk_dynamodb::Client;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use workspace_local::{
    demo::store_demo,
    events,
    tables::{create_missing, sdk_config, table_names},
};
use workspace_management::{operation::Operation, store::Table};

use crate::{endpoint::Endpoint, function::Function};

/// The function in reports.
pub(crate) const OURS: &str = "ours";

/// The baseline that trusts the certificates of the system, as the SDK does by default.
const TYPICAL: &str = "baseline-typical";

/// The programs, and the package of each.
pub(crate) const PROGRAMS: [(&str, &str); 4] = [
    ("baseline-hello", "baseline-hello"),
    (TYPICAL, "baseline-typical"),
    ("baseline-sdk", "baseline-sdk"),
    (OURS, "workspace-management"),
];

/// The number of calls of a figure.
pub(crate) const CALLS: usize = 400;

/// The compiled programs, and a DynamoDB with the demo organization.
pub(crate) struct Bench {
    /// The executables, by program.
    pub(crate) programs: BTreeMap<&'static str, PathBuf>,
    pub(crate) endpoint: Endpoint,
}

impl Bench {
    /// Builds the programs and starts DynamoDB, whose certificates are stored in `folder`.
    pub(crate) async fn new(root: &Path, folder: &Path) -> Result<Self> {
        let programs = build(root)?;
        let endpoint = Endpoint::start(folder).await?;
        let client = Client::from_conf(sdk_config(&endpoint.plain).build());
        let tables = table_names();
        create_missing(&client, &tables).await?;
        store_demo(&client, &tables).await?;
        Ok(Self { programs, endpoint })
    }

    /// Starts a program with additional environment variables. Returns how long it takes until the
    /// program is ready.
    pub(crate) async fn start(
        &self,
        program: &str,
        variables: &[(&str, &str)],
    ) -> Result<(Function, Duration)> {
        let roots = match program {
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
        Function::start(&self.programs[program], &variables).await
    }
}

/// Builds each program separately, because Cargo would otherwise unify their features.
fn build(root: &Path) -> Result<BTreeMap<&'static str, PathBuf>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut programs = BTreeMap::new();
    for (program, package) in PROGRAMS {
        eprintln!("building {package}");
        let status = Command::new(&cargo)
            .args(["build", "--quiet", "--release", "--package", package])
            .current_dir(root)
            .status()?;
        ensure!(status.success(), "cannot build {package}");
        programs.insert(program, target.join("release").join(package));
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
