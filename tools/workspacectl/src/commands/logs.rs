//! `logs`: prints a line for each request of a caller, from the log.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, ErrorKind},
    slice,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Error, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;
use tokio::time::sleep;
use workspace_management::records::Table;

use crate::{
    arguments::parse_identifier,
    commands::keys::read_key_ids,
    context::{Context, GlobalOptions},
    deployment::Deployment,
    errors::UsageError,
    key_record,
    log::{Filter, Line, LogReader, Subject, is_request_id, time_before_now},
    message::print_message,
    organization,
    output::print_or_fail_on_closed_pipe,
    read::Scope,
    text::{escape, escape_json, humanize},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl logs --request JKJaXmPLvHcESHA=
  workspacectl logs --org acme --status 4xx --since 2d
  workspacectl logs --key acmeDemoKey1 --follow --json";

/// The fields that say why a request has failed. `error` is the API's own.
#[rustfmt::skip] // one line
const DETAILS: [&str; 7] = ["reason", "key_rejection", "parameter", "path", "errors", "cause", "error"];

/// How far back a request is searched by default, which is as far as the log goes by default.
const REQUEST_PERIOD: Duration = Duration::from_secs(30 * 86_400);
const DEFAULT_PERIOD: Duration = Duration::from_secs(3_600);

/// The pause of `--follow` before the log is read again, and how late a new line can be.
const PAUSE: Duration = Duration::from_secs(2);
const MAX_LATENESS: Duration = Duration::from_secs(120);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Only requests that got an error of this class
    #[arg(long, value_name = "CLASS", value_parser = status_parser())]
    status: Option<u64>,
    /// How far back to begin, such as 15m, 2h or 7d [default: 1h, or 30d with --request]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    since: Option<Duration>,
    /// Print new requests too, until Ctrl-C
    #[arg(long, conflicts_with = "request")]
    follow: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct SubjectArgs {
    /// The request with this id, which is in its response and in the records that it wrote
    #[arg(long, value_name = "ID", value_parser = parse_request_id)]
    request: Option<String>,
    /// The requests with this API key or its id, or `-` to read it from standard input
    #[arg(long, value_name = "KEY|ID|-")]
    key: Option<String>,
    /// The requests to this organization, and with its API keys
    #[arg(long, value_parser = parse_identifier)]
    org: Option<String>,
}

fn parse_request_id(text: &str) -> Result<String, &'static str> {
    let id = is_request_id(text).then(|| text.to_owned());
    id.ok_or("give an id as in the header `x-request-id`")
}

fn status_parser() -> impl TypedValueParser<Value = u64> {
    PossibleValuesParser::new(["4xx", "5xx"]).map(|class| if class == "4xx" { 4 } else { 5 })
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let SubjectArgs { request, key, org } = args.subject;
    let key_ids = read_key_ids(key.as_slice())?;
    if key_ids.len() > 1 {
        return Err(UsageError("give one API key".to_owned()).into());
    }
    let default = if request.is_some() {
        REQUEST_PERIOD
    } else {
        DEFAULT_PERIOD
    };
    let period = args.since.unwrap_or(default);
    let mut since = time_before_now(period)?;
    let Context {
        deployment,
        options,
    } = options.connect().await?;
    let filter = Filter {
        subject: match (request, key_ids.into_iter().next(), org) {
            (Some(id), ..) => Subject::Request(id),
            (_, Some(id), _) => Subject::Key(id),
            (.., org) => subject_of(&deployment, org.context("no subject")?).await?,
        },
        status_class: args.status,
    };
    let mut reader = LogReader {
        deployment: &deployment,
        filter,
        waits_for_addresses: args.follow,
        printed: BTreeMap::new(),
    };
    let mut print = |line: &Line| {
        let text = if options.json {
            escape_json(&line.fields.to_string())
        } else {
            text_of(&line.fields)
        };
        Ok(print_or_fail_on_closed_pipe(&text)?)
    };
    loop {
        match reader.read(since, &mut print).await {
            Err(error) if is_closed_pipe(&error) => return Ok(()),
            result => result?,
        }
        if !args.follow {
            break;
        }
        sleep(PAUSE).await;
        since = since.max(SystemTime::now() - MAX_LATENESS);
    }
    if reader.printed.is_empty() {
        explain_nothing(&deployment, &reader.filter.subject, period).await?;
    }
    Ok(())
}

/// The subject of the requests of an organization.
async fn subject_of(deployment: &Deployment, org: String) -> Result<Subject> {
    let keys = Scope::organization_in_index(Table::API_KEYS, &org);
    let keys = keys.read(deployment).await?;
    let ids = keys.iter().filter_map(|key| key.text("key_id"));
    let key_ids = BTreeSet::from_iter(ids.map(str::to_owned));
    Ok(Subject::Organization { org, key_ids })
}

/// Says that there are no lines. Fails if the request, the key or the organization may be mistyped.
async fn explain_nothing(
    deployment: &Deployment,
    subject: &Subject,
    period: Duration,
) -> Result<()> {
    let period = humanize(period);
    match subject {
        Subject::Request(id) => bail!(
            "{deployment}: the log of the last {period} has no such request {id}. A line can take a minute to arrive"
        ),
        Subject::Key(id) => {
            key_record::require(deployment, slice::from_ref(id)).await?;
        }
        Subject::Organization { org, .. } => {
            organization::require(deployment, org).await?;
        }
    }
    print_message(&format!(
        "no requests in the last {period} match the options"
    ));
    Ok(())
}

/// Whether the reader of standard output is gone.
fn is_closed_pipe(error: &Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// The line that is printed for a request. Only the last column can contain spaces.
fn text_of(fields: &Value) -> String {
    let text = |name: &str| match &fields[name] {
        Value::Null => None,
        Value::String(text) => Some(escape(text)),
        other => Some(other.to_string()),
    };
    let cell = |name| text(name).unwrap_or_else(|| "-".to_owned());
    let [time, status, operation] = ["time", "status", "operation"].map(cell);
    let [code, org, key] = ["code", "caller_org_id", "key_id"].map(cell);
    let [address, request] = ["ip", "request_id"].map(cell);
    let caller = format!("{org}/{key}");
    let details = Vec::from_iter(DETAILS.into_iter().filter_map(text)).join("; ");
    let line = format!(
        "{time} {status} {operation:<23} {code:<21} {caller:<20} {address:<15} {request:<16} {details}"
    );
    line.trim_end().to_owned()
}
