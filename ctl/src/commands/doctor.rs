//! `doctor`: checks a deployment. It writes only with an API key, and then always the same records.

mod api;
mod stack;

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Error, Result, anyhow, bail};
use aws_sdk_dynamodb::types::{BillingMode, StreamSpecification, TableDescription, TableStatus};
use serde_json::{Value, json};
use workspace_management::{
    api_key::ApiKey, config::variable, operations::Operation, store::Table,
};
use workspace_records::{item::text, local, tables::Declaration};

use self::api::Api;
use crate::{
    commands::{
        keys::{expires_within, to_display},
        orgs::organization::{Organization, State},
    },
    deployment::Deployment,
    errors::{self, Response as _},
    output::print_records,
    query::{Query, Scope, get},
    session::Session,
    text::{counted, humanize},
    usage::UsageError,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl doctor
  workspacectl --stack workspace-management doctor
  workspacectl --stack workspace-management-prod doctor --strict --key-file doctor.key
  workspacectl doctor --url https://api.example.com --json";

/// The environment variable with the API key.
const KEY_VARIABLE: &str = "WORKSPACECTL_DOCTOR_KEY";

/// The time before the end of a key at which its replacement becomes urgent.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Which API to check, and what is a failure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The URL of the API [default: the stack's output ApiUrl, or that of `cargo serve` if DynamoDB is at
    /// its default address]
    #[arg(long)]
    url: Option<String>,
    /// Fail for skipped checks too, and exit with 3 for warnings
    #[arg(long)]
    strict: bool,
    /// Also send a request for each operation with the API key in this file or in
    /// WORKSPACECTL_DOCTOR_KEY. The organization of the key gets a few records
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// How long to repeat requests to the API after a 429, a 5xx or no response [default: 60, and 0 on a
    /// local service]
    #[arg(long, value_name = "SECONDS")]
    retry: Option<u64>,
}

/// With `--strict`, only warnings remain. The process exits with 3.
#[derive(Debug, thiserror::Error)]
#[error("no check failed, but there are warnings")]
pub(crate) struct OnlyWarnings;

/// The result of a check, with what to show.
enum Outcome {
    Ok(String),
    Warning(String),
    /// The check was not possible.
    Skipped(Error),
    Failed(Error),
}

impl From<Result<String>> for Outcome {
    fn from(result: Result<String>) -> Self {
        match result {
            Ok(detail) => Self::Ok(detail),
            Err(error) => Self::Failed(error),
        }
    }
}

impl Outcome {
    /// The row that is printed.
    fn row(&self, check: &str) -> Value {
        let (status, detail) = match self {
            Self::Ok(detail) => ("ok", detail.clone()),
            Self::Warning(detail) => ("warning", detail.clone()),
            Self::Skipped(error) => ("skipped", errors::describe(error, false)),
            Self::Failed(error) => ("failed", errors::describe(error, false)),
        };
        json!({ "status": status, "check": check, "detail": detail })
    }

    /// Why `doctor` fails, if it does. With `--strict`, it also fails if it could not check.
    fn failure(self, strict: bool) -> Option<Error> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Skipped(error) if strict => Some(error.context("was skipped")),
            Self::Ok(_) | Self::Warning(_) | Self::Skipped(_) => None,
        }
    }
}

/// Checks the tables and the API, and prints a line for each.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let key = api_key(options.key_file)?;
    let deployment = session.deployment().await?;
    let mut url = options.url;
    if let (None, Some(endpoint)) = (&url, &deployment.local_endpoint) {
        url = Some(local_api(endpoint)?);
    }
    eprintln!("checking {}", deployment.name);
    let mut checks: Vec<(String, Outcome)> = Vec::new();
    for table in Table::ALL {
        let mut check = table.logical_id.to_owned();
        let name = deployment.tables.name(*table);
        if name != check {
            check += &format!(" {name}");
        }
        checks.push((check, check_table(*table, deployment).await.into()));
    }
    if let Some(stack) = &deployment.stack {
        let checked = stack::check_function(stack, &deployment.tables).await;
        checks.push(("Function".to_owned(), checked.into()));
        match stack.describe().await {
            Ok(description) => {
                url = url.or_else(|| stack::output(&description, "ApiUrl"));
                let protection = stack::check_protection(&description);
                checks.push(("Termination protection".to_owned(), protection));
                let recipients = stack::check_recipients(stack, &description).await;
                checks.push(("Recipients of alarms".to_owned(), recipients));
            }
            Err(error) => checks.push(("stack".to_owned(), Outcome::Failed(error))),
        }
    }
    match url {
        Some(url) => {
            let default = if deployment.is_on_aws() { 60 } else { 0 };
            let retries = Duration::from_secs(options.retry.unwrap_or(default));
            let api = Api::new(&url, retries);
            checks.push((format!("API {url}"), api.check_reads().await.into()));
            if let Some(key) = &key {
                checks.extend(check_writes(&api, key, deployment).await);
            }
        }
        None => {
            let error = anyhow!("its URL is unknown: name it with --url");
            let outcome = match deployment.stack {
                Some(_) => Outcome::Failed(error),
                None => Outcome::Skipped(error),
            };
            checks.push(("API".to_owned(), outcome));
        }
    }
    if key.is_none() {
        eprintln!(
            "the API was not asked to write: for that, give an API key with --key-file or {KEY_VARIABLE}"
        );
    }
    checks.push(("API keys".to_owned(), check_keys(deployment).await));
    let rows: Vec<_> = checks
        .iter()
        .map(|(check, outcome)| outcome.row(check))
        .collect();
    print_records(&rows, &["status", "check", "detail"], session)?;
    let has_warnings = rows.iter().any(|row| row["status"] == "warning");
    let failures = checks.into_iter().filter_map(|(check, outcome)| {
        let error = outcome.failure(options.strict)?;
        Some(error.context(check))
    });
    let failures: Vec<_> = failures.collect();
    let count = failures.len();
    match failures.into_iter().next() {
        Some(first) => Err(first.context(format!("{count} of {} checks failed", rows.len()))),
        None if options.strict && has_warnings => Err(OnlyWarnings.into()),
        None => Ok(()),
    }
}

/// Reads the API key with which the API is asked to write, if there is one.
fn api_key(file: Option<PathBuf>) -> Result<Option<String>> {
    let Some(file) = file else {
        return Ok(variable(KEY_VARIABLE));
    };
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Some(text.trim().to_owned()))
}

/// Checks that each operation writes, in the organization of an API key.
async fn check_writes(api: &Api, key: &str, deployment: &Deployment) -> Vec<(String, Outcome)> {
    let org = match organization_of(key, deployment).await {
        Ok(org) => org,
        Err(error) => return vec![("API writes".to_owned(), Outcome::Failed(error))],
    };
    let mut checks = Vec::new();
    for operation in Operation::ALL {
        let written = api.check_writes(*operation, &org, key).await;
        checks.push((format!("API {}", operation.name()), written.into()));
    }
    checks
}

async fn organization_of(key: &str, deployment: &Deployment) -> Result<String> {
    let key =
        ApiKey::parse(key).context("the API key is malformed: use what `keys create` printed")?;
    let record = get(deployment, Table::KEYS, &[key.id]).await?;
    let record = record.with_context(|| format!("there is no key {}", key.id))?;
    Ok(text(&record, "org_id").to_owned())
}

/// The URL of the API of a local service, from that of its DynamoDB.
///
/// # Errors
/// If DynamoDB is not at its default address. The API at its default address is then another one's.
fn local_api(endpoint: &str) -> Result<String, UsageError> {
    if endpoint.trim_end_matches('/') == local::DYNAMODB {
        return Ok(local::API.to_owned());
    }
    Err(UsageError(format!(
        "the URL of the API is unknown, because DynamoDB is at {endpoint}: name it with --url. `cargo serve` prints it after `listening on`"
    )))
}

/// Warns about API keys that expire soon and have no replacement. The identity that runs `doctor` may
/// be unable to read keys.
async fn check_keys(deployment: &Deployment) -> Outcome {
    let time = humanize(SOON);
    match expiring_keys(deployment).await {
        Err(error) => Outcome::Skipped(error),
        Ok(0) => Outcome::Ok(format!("none expires within {time} without a replacement")),
        Ok(count) => Outcome::Warning(format!(
            "{count} without a replacement will expire within {time}: run `workspacectl keys list --expiring 14d`"
        )),
    }
}

/// Counts the API keys of enabled organizations that expire soon and have no replacement. Does not count
/// keys that were issued for a shorter time, which are meant to end.
async fn expiring_keys(deployment: &Deployment) -> Result<usize> {
    let keys = Query::new(Table::KEYS, Scope::All).run(deployment).await?;
    let now = SystemTime::now();
    let mut count = 0;
    for key in keys.records.into_iter().map(to_display) {
        let is_short = key["issued_for"]
            .as_u64()
            .is_some_and(|time| time <= SOON.as_secs());
        if is_short || !key["replaced_at"].is_null() || !expires_within(&key, SOON, now) {
            continue;
        }
        let organization = Organization::get(deployment, text(&key, "org_id")).await?;
        count += usize::from(organization.is_some_and(|it| it.state() == State::Enabled));
    }
    Ok(count)
}

/// Checks that a table matches the template.
async fn check_table(table: Table, deployment: &Deployment) -> Result<String> {
    let name = deployment.tables.name(table);
    let response = deployment
        .client
        .describe_table()
        .table_name(name)
        .send()
        .await;
    let response = response.or_fail(|| "cannot describe the table".to_owned())?;
    let description = response.table.context("DynamoDB returned no description")?;
    let mut problems = differences(&Declaration::of(table)?, &description);
    if deployment.is_on_aws() {
        if description.deletion_protection_enabled != Some(true) {
            problems.push("deletion protection is off".to_owned());
        }
        let backups = deployment
            .client
            .describe_continuous_backups()
            .table_name(name)
            .send()
            .await;
        let backups = backups.or_fail(|| "cannot describe the backups".to_owned())?;
        let recovery = backups
            .continuous_backups_description
            .and_then(|backups| backups.point_in_time_recovery_description)
            .and_then(|recovery| recovery.point_in_time_recovery_status);
        if recovery.is_none_or(|status| status.as_str() != "ENABLED") {
            problems.push("point-in-time recovery is off".to_owned());
        }
    }
    if !problems.is_empty() {
        bail!(problems.join("; "));
    }
    let count = description.item_count.unwrap_or_default();
    Ok(format!("about {}", counted(count, "record")))
}

/// How a table differs from its declaration.
fn differences(declared: &Declaration, table: &TableDescription) -> Vec<String> {
    let mut differences = Vec::new();
    let mut check = |is_equal: bool, difference: String| {
        if !is_equal {
            differences.push(difference);
        }
    };
    let status = table.table_status.as_ref();
    let status = status.map_or("unknown", TableStatus::as_str);
    check(status == "ACTIVE", format!("its status is {status}"));
    check(
        table.key_schema() == declared.key_schema,
        "its primary key differs from the template".to_owned(),
    );
    let types = table.attribute_definitions();
    let mut declared_types = declared.attribute_definitions.iter();
    check(
        declared_types.all(|declared| types.contains(declared)),
        "the type of a key differs from the template".to_owned(),
    );
    let billing = table.billing_mode_summary();
    let billing_mode = billing.and_then(|billing| billing.billing_mode.as_ref());
    check(
        billing_mode == Some(&BillingMode::PayPerRequest),
        "its billing mode is not PAY_PER_REQUEST".to_owned(),
    );
    for declared in &declared.global_secondary_indexes {
        let name = declared.index_name();
        let mut indexes = table.global_secondary_indexes().iter();
        let has_index = indexes.any(|index| {
            index.index_name() == Some(name)
                && index.key_schema() == declared.key_schema()
                && index.projection() == declared.projection()
        });
        let difference = format!("its index {name} is missing or differs from the template");
        check(has_index, difference);
    }
    let [actual, declared] = [
        table.stream_specification(),
        declared.stream_specification.as_ref(),
    ]
    .map(|stream| stream.and_then(StreamSpecification::stream_view_type));
    check(
        actual == declared,
        "its change stream differs from the template".to_owned(),
    );
    differences
}
