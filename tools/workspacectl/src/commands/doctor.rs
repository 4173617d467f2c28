//! `doctor`: checks a deployment. With an API key, also writes a fixed set of test records.

mod api;
mod stack;

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Error, Result, anyhow, ensure};
use aws_sdk_dynamodb::types::{BillingMode, StreamSpecification, TableDescription, TableStatus};
use serde::Deserialize as _;
use serde_json::json;
use workspace_management::{
    api_key::ApiKey,
    config::read_variable,
    operations::Operation,
    records::{ApiKeyRecord, ApiKeyState},
    store::Table,
    values::trim,
};
use workspace_records::{item::string_attribute, local, tables::TableDeclaration};

use self::api::Api;
use crate::{
    arguments::{is_dash, stdin},
    deployment::Deployment,
    errors::{RequestResultExt as _, UsageError, lacks_credentials},
    key_record,
    message::print_message,
    organization,
    output::print_rows,
    read::{self, Reader},
    session::Session,
    text::{humanize, pluralize},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl doctor
  workspacectl --stack workspace-management-prod doctor --strict --key-file doctor.key
  workspacectl doctor --url https://api.example.com --json";

/// The environment variable that can contain the API key.
const KEY_VARIABLE: &str = "WORKSPACECTL_DOCTOR_KEY";

/// `doctor` warns about keys that expire within this time.
const EXPIRY_NOTICE: Duration = Duration::from_secs(NOTICE_DAYS * 86_400);
const NOTICE_DAYS: u64 = 14;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The URL of the API [default: the output ApiUrl of the stack or, for the default local
    /// service, http://127.0.0.1:3000]
    #[arg(long)]
    url: Option<String>,
    /// Also fail if a check was skipped. If there are only warnings, exit with 3
    #[arg(long)]
    strict: bool,
    /// Also send a request for each operation, with the API key in this file (`-` is standard input)
    /// or in WORKSPACECTL_DOCTOR_KEY. This stores a few records in the organization of the key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// How long to retry requests to the API after a 429, a 5xx or no response [default: 60, or 0
    /// if DynamoDB is not on AWS]
    #[arg(long, value_name = "SECONDS")]
    retry: Option<u64>,
}

/// The error if `--strict` was given and there are only warnings. The process exits with 3.
#[derive(Debug, thiserror::Error)]
#[error("no check failed, but there are warnings")]
pub(crate) struct OnlyWarningsError;

/// The result of a check.
struct CheckResult {
    name: String,
    status: Status,
}

/// The status of a check: what to show, or an error.
enum Status {
    Passed(String),
    Warning(String),
    /// The check was not possible, for example because the operator lacks a permission.
    Skipped(Error),
    Failed(Error),
}

impl CheckResult {
    /// A check that has failed if the result is an error.
    fn new(name: impl Into<String>, result: Result<Status>) -> Self {
        Self {
            name: name.into(),
            status: result.unwrap_or_else(Status::Failed),
        }
    }

    /// A check that was skipped if the result is an error.
    fn optional(name: &str, result: Result<Status>) -> Self {
        Self {
            name: name.to_owned(),
            status: result.unwrap_or_else(Status::Skipped),
        }
    }
}

/// Checks the tables, the stack, the API and the API keys.
pub(crate) async fn execute(args: Args, session: &Session) -> Result<()> {
    let key = read_api_key(args.key_file)?;
    let deployment = session.deployment().await?;
    let mut api_url = match (args.url, &deployment.local_service_dynamodb_url) {
        (None, Some(dynamodb_url)) => Some(local_api_url(dynamodb_url)?),
        (url, _) => url,
    };
    print_message(&format!("checking {}", deployment.display_name));
    let mut results = Vec::new();
    for table in Table::ALL {
        let mut name = table.logical_id.to_owned();
        let table_name = deployment.table_name(*table);
        if table_name != name {
            name += &format!(" {table_name}");
        }
        let result = check_table(*table, deployment).await;
        if result.as_ref().is_err_and(lacks_credentials) {
            return result.map(drop);
        }
        results.push(CheckResult::new(name, result));
    }
    if let Some(stack) = &deployment.stack {
        let (stack_results, api_url_of_stack) = stack::check(stack, &deployment.table_names).await;
        results.extend(stack_results);
        api_url = api_url.or(api_url_of_stack);
    }
    if let Some(url) = api_url {
        results.extend(check_api(&url, key.as_deref(), args.retry, deployment).await?);
    } else {
        let error = anyhow!("the URL of the API is unknown: pass it with --url");
        results.push(match deployment.stack {
            // Every stack has the output ApiUrl.
            Some(_) => CheckResult::new("API", Err(error)),
            None => CheckResult::optional("API", Err(error)),
        });
    }
    if key.is_none() {
        print_message(&format!(
            "note: writes through the API were not checked: to check them, pass an API key with --key-file or {KEY_VARIABLE}"
        ));
    }
    let expiry_result = check_key_expiry(deployment).await;
    results.push(CheckResult::optional("API keys", expiry_result));
    print_and_conclude(results, args.strict, session)
}

/// Prints a row per check. Fails with the first failure. With `strict`, a skipped check is a
/// failure too, and warnings alone cause [`OnlyWarningsError`].
fn print_and_conclude(results: Vec<CheckResult>, strict: bool, session: &Session) -> Result<()> {
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    let mut has_warnings = false;
    for CheckResult { name, status } in results {
        let (status_name, detail) = match &status {
            Status::Passed(detail) => ("ok", detail.clone()),
            Status::Warning(detail) => ("warning", detail.clone()),
            Status::Skipped(error) => ("skipped", format!("{error:#}")),
            Status::Failed(error) => ("failed", format!("{error:#}")),
        };
        rows.push(json!({ "status": status_name, "check": name, "detail": detail }));
        match status {
            Status::Failed(error) => failures.push(error.context(name)),
            Status::Skipped(error) if strict => {
                failures.push(error.context("skipped").context(name));
            }
            Status::Warning(_) => has_warnings = true,
            Status::Passed(_) | Status::Skipped(_) => {}
        }
    }
    // A failed check matters more than a failed print.
    let printed = print_rows(&rows, &["status", "check", "detail"], session);
    let count = failures.len();
    match failures.into_iter().next() {
        Some(first) => Err(first.context(format!("{count} of {} checks did not pass", rows.len()))),
        None if strict && has_warnings => Err(OnlyWarningsError.into()),
        None => printed,
    }
}

/// Reads the API key for the write checks, if there is one.
fn read_api_key(file: Option<PathBuf>) -> Result<Option<String>> {
    let text = match file {
        None => read_variable(KEY_VARIABLE),
        Some(file) => {
            let text = if is_dash(&file) {
                io::read_to_string(stdin("the API key"))
            } else {
                fs::read_to_string(&file)
            };
            Some(text.with_context(|| format!("cannot read {}", file.display()))?)
        }
    };
    Ok(text.map(|text| trim(&text).to_owned()))
}

/// Checks that the API reads its tables and, with an API key, that each operation writes.
async fn check_api(
    url: &str,
    key: Option<&str>,
    retry_seconds: Option<u64>,
    deployment: &Deployment,
) -> Result<Vec<CheckResult>> {
    let default_seconds = if deployment.is_on_aws() { 60 } else { 0 };
    let retry_time = Duration::from_secs(retry_seconds.unwrap_or(default_seconds));
    let api = Api::new(url, retry_time, &deployment.http)?;
    let mut results = vec![CheckResult::new(
        format!("API {url}"),
        api.check_rejects_unknown_key().await,
    )];
    if let Some(key) = key {
        match check_writes(&api, key, deployment).await {
            Ok(write_results) => results.extend(write_results),
            Err(error) => results.push(CheckResult::new("API writes", Err(error))),
        }
    }
    Ok(results)
}

/// Checks that each operation writes to the organization of an API key.
async fn check_writes(api: &Api, key: &str, deployment: &Deployment) -> Result<Vec<CheckResult>> {
    let id = ApiKey::parse(key)
        .context("the API key is malformed: use the one that `keys create` printed")?
        .id;
    let record = read::find(deployment, Table::API_KEYS, &[id])
        .await?
        .with_context(|| format!("there is no key {id}"))?;
    let org = string_attribute(&record, "org_id");
    let mut results = Vec::new();
    for operation in Operation::ALL {
        let result = api.check_operation(*operation, org, key).await;
        results.push(CheckResult::new(
            format!("API {}", operation.name()),
            result,
        ));
    }
    Ok(results)
}

/// The URL of the local API. Fails unless DynamoDB is at its default URL, because the API at the
/// default URL may use a different DynamoDB.
fn local_api_url(dynamodb_url: &str) -> Result<String, UsageError> {
    if dynamodb_url.trim_end_matches('/') == local::DYNAMODB_URL {
        return Ok(local::API_URL.to_owned());
    }
    Err(UsageError(format!(
        "the URL of the API is unknown, because DynamoDB is not at its default URL but at {dynamodb_url}: pass the URL with --url. `cargo serve` prints it after `listening on`"
    )))
}

/// Warns about API keys that expire soon, have no active replacement, and belong to an enabled
/// organization. Ignores keys that were issued for at most [`EXPIRY_NOTICE`], because they are
/// meant to expire. Fails if the keys or their organizations cannot be read.
async fn check_key_expiry(deployment: &Deployment) -> Result<Status> {
    let records = Reader::all(Table::API_KEYS).read(deployment).await?.records;
    // No key with a malformed record is accepted, so none can expire.
    let keys = records.iter().flat_map(ApiKeyRecord::deserialize);
    let keys: Vec<ApiKeyRecord> = keys.collect();
    // A rotation sets `replaced_at` when it lets the old key expire. The id of the new key is not
    // enough, because the rotation may have been interrupted before.
    let is_replaced = |key: &ApiKeyRecord| {
        let is_active_successor = |other: &ApiKeyRecord| {
            key.successor_id.as_ref() == Some(&other.key_id)
                && other.state(SystemTime::now()) == ApiKeyState::Active
        };
        key.replaced_at.is_some() && keys.iter().any(is_active_successor)
    };
    let mut expiring: BTreeMap<_, usize> = BTreeMap::new();
    for key in &keys {
        if key.lifetime_seconds.unwrap_or(u64::MAX) > EXPIRY_NOTICE.as_secs()
            && key_record::is_active_and_expires_within(key, EXPIRY_NOTICE)
            && !is_replaced(key)
        {
            *expiring.entry(&key.org_id).or_default() += 1;
        }
    }
    let mut count = 0;
    for (org, count_of_org) in expiring {
        let organization = organization::find(deployment, org).await?;
        if organization.is_some_and(|organization| organization.record.is_enabled()) {
            count += count_of_org;
        }
    }
    let days = humanize(EXPIRY_NOTICE);
    Ok(match count {
        0 => Status::Passed(format!(
            "no key of an enabled organization will expire within {days} without a replacement. Keys issued for {days} or less are not checked"
        )),
        _ => Status::Warning(format!(
            "{} without a replacement will expire within {days}: run `workspacectl keys list --expiring {NOTICE_DAYS}d`",
            pluralize(count, "key")
        )),
    })
}

/// Checks that a table matches the template.
async fn check_table(table: Table, deployment: &Deployment) -> Result<Status> {
    let table_name = deployment.table_name(table);
    let response = deployment
        .dynamodb
        .describe_table()
        .table_name(table_name)
        .send()
        .await
        .request_context("cannot describe the table")?;
    let description = response.table.context("DynamoDB returned no description")?;
    let mut problems = differences(&TableDeclaration::of(table)?, &description);
    if deployment.is_on_aws() {
        if description.deletion_protection_enabled != Some(true) {
            problems.push("deletion protection is off".to_owned());
        }
        let backups = deployment
            .dynamodb
            .describe_continuous_backups()
            .table_name(table_name)
            .send()
            .await
            .request_context("cannot describe the backups")?;
        let recovery = backups
            .continuous_backups_description
            .and_then(|backups| backups.point_in_time_recovery_description)
            .and_then(|recovery| recovery.point_in_time_recovery_status);
        if recovery.is_none_or(|status| status.as_str() != "ENABLED") {
            problems.push("point-in-time recovery is off".to_owned());
        }
    }
    ensure!(problems.is_empty(), problems.join("; "));
    let count = description.item_count.unwrap_or_default();
    let detail = format!("about {}", pluralize(count, "record"));
    Ok(Status::Passed(detail))
}

/// How a table differs from its declaration.
fn differences(declared: &TableDeclaration, actual: &TableDescription) -> Vec<String> {
    let mut differences = Vec::new();
    let status = actual.table_status().map_or("unknown", TableStatus::as_str);
    if status != "ACTIVE" {
        differences.push(format!("its status is {status}"));
    }
    if actual.key_schema() != declared.key_schema {
        differences.push("its primary key differs from the template".to_owned());
    }
    let definitions = actual.attribute_definitions();
    let mut declared_definitions = declared.attribute_definitions.iter();
    if declared_definitions.any(|definition| !definitions.contains(definition)) {
        differences.push("the type of a key attribute differs from the template".to_owned());
    }
    let billing = actual.billing_mode_summary();
    let billing_mode = billing.and_then(|billing| billing.billing_mode.as_ref());
    if billing_mode != Some(&BillingMode::PayPerRequest) {
        differences.push("its billing mode is not PAY_PER_REQUEST".to_owned());
    }
    for declared_index in &declared.global_secondary_indexes {
        let name = declared_index.index_name();
        let mut indexes = actual.global_secondary_indexes().iter();
        let has_index = indexes.any(|index| {
            index.index_name() == Some(name)
                && index.key_schema() == declared_index.key_schema()
                && index.projection() == declared_index.projection()
        });
        if !has_index {
            differences.push(format!(
                "its index {name} is missing or differs from the template"
            ));
        }
    }
    let stream = actual.stream_specification();
    let declared_stream = declared.stream_specification.as_ref();
    if stream.and_then(StreamSpecification::stream_view_type)
        != declared_stream.and_then(StreamSpecification::stream_view_type)
    {
        differences.push("its change stream differs from the template".to_owned());
    }
    differences
}
