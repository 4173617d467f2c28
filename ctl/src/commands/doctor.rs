//! `doctor`: checks a deployment without changing it.

mod api;
mod stack;

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Error, Result, anyhow, bail};
use aws_sdk_dynamodb::types::{BillingMode, StreamSpecification, TableDescription, TableStatus};
use serde_json::{Value, json};
use workspace_management::store::Table;
use workspace_records::{local, tables::Declaration};

use crate::{
    commands::keys::{expires_within, to_display},
    deployment::Deployment,
    errors::{self, Response as _},
    output::print_records,
    query::{Query, Scope},
    session::Session,
    text::{counted, humanize},
    usage::UsageError,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl doctor
  workspacectl --stack workspace-management doctor
  workspacectl --stack workspace-management-prod doctor --strict
  workspacectl doctor --url https://api.example.com --json";

/// The time before the end of a key at which its replacement becomes urgent.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Which API to check, and what is a failure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The URL of the API [default: the stack's output ApiUrl, or that of `cargo serve` if DynamoDB is at
    /// its default address]
    #[arg(long)]
    url: Option<String>,
    /// Fail for warnings and skipped checks too
    #[arg(long)]
    strict: bool,
}

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
            Self::Warning(detail) if strict => Some(anyhow!(detail)),
            Self::Ok(_) | Self::Warning(_) | Self::Skipped(_) => None,
        }
    }
}

/// Checks the tables and the API, and prints a line for each.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
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
    checks.push(match url {
        Some(url) => (format!("API {url}"), api::check(&url).await.into()),
        None => {
            let error = anyhow!("its URL is unknown: name it with --url");
            let outcome = match deployment.stack {
                Some(_) => Outcome::Failed(error),
                None => Outcome::Skipped(error),
            };
            ("API".to_owned(), outcome)
        }
    });
    checks.push(("API keys".to_owned(), check_keys(deployment).await));
    let rows: Vec<_> = checks
        .iter()
        .map(|(check, outcome)| outcome.row(check))
        .collect();
    print_records(&rows, &["status", "check", "detail"], session)?;
    let failures = checks.into_iter().filter_map(|(check, outcome)| {
        let error = outcome.failure(options.strict)?;
        Some(error.context(check))
    });
    let failures: Vec<_> = failures.collect();
    let count = failures.len();
    match failures.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(first.context(format!("{count} of {} checks failed", rows.len()))),
    }
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
    let query = Query::new(Table::KEYS, Scope::All);
    let keys = match query.run(deployment).await {
        Ok(keys) => keys.records.into_iter().map(to_display),
        Err(error) => return Outcome::Skipped(error),
    };
    let now = SystemTime::now();
    let is_urgent = |key: &Value| expires_within(key, SOON, now) && key["replaced_at"].is_null();
    let count = keys.filter(is_urgent).count();
    let time = humanize(SOON);
    match count {
        0 => Outcome::Ok(format!("none expires within {time} without a replacement")),
        _ => Outcome::Warning(format!(
            "{count} without a replacement will expire within {time}: run `workspacectl keys list --expiring 14d`"
        )),
    }
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
