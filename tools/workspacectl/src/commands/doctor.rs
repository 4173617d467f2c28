//! `doctor`: checks a deployment. With an API key, also writes a fixed set of test records.

mod api;
mod indexes;
mod keys;
mod log_groups;
mod stack;
mod tables;

use std::{fs, io, path::PathBuf, time::Duration};

use anyhow::{Context as _, Error, Result, anyhow, ensure};
use serde_json::json;
use workspace_management::{
    api_key::ApiKey, config::read_variable, operations::Operation, records::ApiKeyRecord,
    values::trim,
};
use workspace_records::{kinds::HISTORY, local};

use self::api::Api;
use crate::{
    arguments::{is_dash, stdin},
    context::{Context, GlobalOptions},
    deployment::{Deployment, Place},
    errors::{UsageError, lacks_credentials},
    key_record,
    message::print_message,
    output::print_rows,
    read,
    record::Stored,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl doctor
  workspacectl --stack workspace-management-prod doctor --strict --key-file doctor.key
  workspacectl doctor --url https://api.example.com --json";

/// The environment variable that can contain the API key.
const KEY_VARIABLE: &str = "WORKSPACECTL_DOCTOR_KEY";

/// The organization of the requests. `SilenceAlarm` in template.yaml counts them.
const ORGANIZATION: &str = "doctor";

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
    /// or in WORKSPACECTL_DOCTOR_KEY. This stores a few records in the organization of the key, which
    /// must be `doctor` on a stack
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// How long to retry requests to the API after a 429 or no response [default: 60, or 0 if
    /// DynamoDB is not on AWS]. After a 5xx, only one request is retried, because more raise alarms
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
    fn required(name: impl Into<String>, result: Result<Status>) -> Self {
        let (name, status) = (name.into(), result.unwrap_or_else(Status::Failed));
        Self { name, status }
    }

    /// A check that was skipped if the result is an error.
    fn optional(name: impl Into<String>, result: Result<Status>) -> Self {
        let (name, status) = (name.into(), result.unwrap_or_else(Status::Skipped));
        Self { name, status }
    }
}

/// Checks the tables, the stack, the API and the API keys.
pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let key = read_api_key(args.key_file)?;
    let Context {
        deployment,
        options,
    } = options.connect().await?;
    let deployment = &deployment;
    let mut api_url = match (args.url, &deployment.place) {
        (None, Place::LocalService { dynamodb_url }) => Some(local_api_url(dynamodb_url)?),
        (url, _) => url,
    };
    print_message(&format!("checking {deployment}"));
    let mut results = Vec::new();
    for (table, table_name) in deployment.tables() {
        let mut name = table.logical_id.to_owned();
        if table_name != name {
            name += &format!(" {table_name}");
        }
        let result = tables::check(table, table_name, deployment).await;
        if result.as_ref().is_err_and(lacks_credentials) {
            return result.map(drop);
        }
        results.push(CheckResult::required(name, result));
    }
    if let Err(error) = deployment.require_history() {
        let is_stack = matches!(deployment.place, Place::Stack(_));
        let new = if is_stack {
            CheckResult::required
        } else {
            CheckResult::optional
        };
        results.push(new(HISTORY.logical_id, Err(error)));
    }
    if let Place::Stack(stack) = &deployment.place {
        let (stack_results, api_url_of_stack) = stack::check(stack, &deployment.table_names).await;
        results.extend(stack_results);
        api_url = api_url.or(api_url_of_stack);
    }
    let index_result = indexes::check(deployment).await;
    results.push(CheckResult::optional("Indexes", index_result));
    if let Some(url) = api_url {
        results.extend(check_api(&url, key.as_deref(), args.retry, deployment).await?);
    } else {
        let error = anyhow!("the URL of the API is unknown: pass it with --url");
        results.push(match deployment.place {
            // Every stack has the output ApiUrl.
            Place::Stack(_) => CheckResult::required("API", Err(error)),
            _ => CheckResult::optional("API", Err(error)),
        });
    }
    print_what_was_not_checked(key.is_some(), deployment);
    let keys_result = keys::check(deployment).await;
    results.push(CheckResult::optional("API keys", keys_result));
    print_and_conclude(results, args.strict, &options)
}

/// Prints what the checks leave out. Not as skipped checks, because `--strict` would always fail.
fn print_what_was_not_checked(has_key: bool, deployment: &Deployment) {
    if !has_key {
        print_message(&format!(
            "note: writes through the API were not checked: to check them, pass an API key with --key-file or {KEY_VARIABLE}"
        ));
    }
    if matches!(deployment.place, Place::NamedTables { .. }) {
        print_message(
            "note: without --stack, the function (its variables and timeout), its logs, and the alarms and their recipients were not checked: compare them with docs/stack.md",
        );
    }
}

/// Prints a row per check. Fails with the first failure. With `strict`, a skipped check is a
/// failure too, and warnings alone cause [`OnlyWarningsError`].
fn print_and_conclude(
    results: Vec<CheckResult>,
    strict: bool,
    options: &GlobalOptions,
) -> Result<()> {
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
    let printed = print_rows(&rows, &["status", "check", "detail"], options);
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
    let result = api.check_rejects_unknown_key().await;
    let is_usable = result.is_ok();
    let mut results = vec![CheckResult::required(format!("API {url}"), result)];
    if key.is_some() && !is_usable {
        // They would fail too, and raise alarms.
        let result = Err(anyhow!("not sent, because the API failed the check before"));
        results.push(CheckResult::optional("API writes", result));
    } else if let Some(key) = key {
        match check_writes(&api, key, deployment).await {
            Ok(write_results) => results.extend(write_results),
            Err(error) => results.push(CheckResult::required("API writes", Err(error))),
        }
    }
    Ok(results)
}

/// Checks that each operation writes to the organization of an API key.
async fn check_writes(api: &Api, key: &str, deployment: &Deployment) -> Result<Vec<CheckResult>> {
    let id = ApiKey::parse(key)
        .context("the API key is malformed: use the one that `keys create` printed")?
        .id;
    let record = read::find(deployment, &key_record::key(id)).await?;
    let record: Stored<ApiKeyRecord> = record
        .with_context(|| format!("there is no key {id}"))?
        .parse()?;
    let org = &record.fields.org_id;
    if matches!(deployment.place, Place::Stack(_)) {
        // The requests would change records of a customer.
        ensure!(
            org == ORGANIZATION,
            "the API key is of the organization {org}: on a stack, use a key of the organization {ORGANIZATION}"
        );
    }
    let mut results = Vec::new();
    for operation in Operation::ALL {
        let result = api.check_operation(*operation, org, key).await;
        results.push(CheckResult::required(
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
