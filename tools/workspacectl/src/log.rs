//! Reads the log of a stack or of the local service: a line for each request. On AWS, lines can
//! arrive late or twice, and only the API's own log has addresses.

mod cloudwatch;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_smithy_runtime_api::client::http::HttpConnector as _;
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::{Value, json};
use workspace_records::local::LOG_PATH;

use self::cloudwatch::{CloudWatch, MAX_IDS};
use crate::{
    deployment::{Deployment, Place},
    errors::UsageError,
};

/// How long a line can wait for its address, which the API can log a little later.
const MAX_ADDRESS_WAIT: Duration = Duration::from_secs(10);

/// The maximum length of a request id: that of a UUID. The ids of an HTTP API have 16 characters.
const MAX_REQUEST_ID: usize = 36;

/// Which requests to read.
pub(crate) struct Filter {
    pub(crate) subject: Subject,
    /// The first digit of the status.
    pub(crate) status_class: Option<u64>,
}

pub(crate) enum Subject {
    Request(String),
    Key(String),
    Organization {
        org: String,
        /// The ids of its API keys. The line of a `set_bot_voice` whose key is not accepted names
        /// only the key.
        key_ids: BTreeSet<String>,
    },
}

impl Filter {
    fn matches(&self, line: &Line) -> bool {
        let text = |name: &str| line.fields[name].as_str();
        let is_about_subject = match &self.subject {
            Subject::Request(id) => text("request_id") == Some(id),
            Subject::Key(id) => text("key_id") == Some(id),
            Subject::Organization { org, key_ids } => {
                text("caller_org_id") == Some(org)
                    || text("org_id") == Some(org)
                    || text("key_id").is_some_and(|id| key_ids.contains(id))
            }
        };
        let class = line.fields["status"].as_u64().map(|status| status / 100);
        is_about_subject && (self.status_class.is_none() || self.status_class == class)
    }
}

/// What the log has about a request.
#[derive(Debug)]
pub(crate) struct Line {
    time: SystemTime,
    /// The fields, with `time` in RFC 3339.
    pub(crate) fields: Value,
}

impl Line {
    fn new(time: SystemTime, mut fields: Value) -> Self {
        fields["time"] = json!(humantime::format_rfc3339_millis(time).to_string());
        Self { time, fields }
    }

    /// Parses a line of the function's log. `None` if the line is not that of a request.
    fn parse(text: &str) -> Option<Self> {
        let mut fields: Value = serde_json::from_str(text).ok()?;
        if fields["message"] != "request" {
            return None;
        }
        let time = humantime::parse_rfc3339(fields["timestamp"].as_str()?).ok()?;
        let unused = ["level", "message", "timestamp"];
        let fields_map = fields.as_object_mut()?;
        fields_map.retain(|name, _| !unused.contains(&&**name));
        Some(Self::new(time, fields))
    }

    /// What no other request has.
    fn id(&self) -> String {
        let id = |name: &str| self.fields[name].as_str();
        let id = id("lambda_request_id").or_else(|| id("request_id"));
        id.unwrap_or_default().to_owned()
    }
}

/// Reads the lines that match a filter, each once.
pub(crate) struct LogReader<'a> {
    pub(crate) deployment: &'a Deployment,
    pub(crate) filter: Filter,
    /// Whether a new line waits for its address.
    pub(crate) waits_for_addresses: bool,
    /// The lines that were printed, and their times.
    pub(crate) printed: BTreeMap<String, SystemTime>,
}

impl LogReader<'_> {
    /// Passes the new lines since a time to `print`, those of a page before the next page is read.
    pub(crate) async fn read(
        &mut self,
        since: SystemTime,
        print: &mut impl FnMut(&Line) -> Result<()>,
    ) -> Result<()> {
        self.printed.retain(|_, time| *time >= since);
        let Place::Stack(stack) = &self.deployment.place else {
            let lines = local_lines(self.deployment, since).await?;
            return self.print_new(&lines, print);
        };
        let cloudwatch = CloudWatch::of(stack)?;
        let mut pages = cloudwatch.pages(&self.filter, since);
        while let Some(mut lines) = pages.next().await? {
            lines.retain(|line| self.is_new(line));
            for lines in lines.chunks_mut(MAX_IDS) {
                cloudwatch.add_api_fields(lines).await?;
                self.print_new(lines, print)?;
            }
            if matches!(self.filter.subject, Subject::Request(_)) && !self.printed.is_empty() {
                return Ok(());
            }
        }
        if let Subject::Request(id) = &self.filter.subject {
            // A request that did not reach the function, or that the function did not end.
            let line = cloudwatch.api_line(id, since).await?;
            self.print_new(line.as_slice(), print)?;
        }
        Ok(())
    }

    /// Whether a line matches and was not printed yet. CloudWatch also returns other lines.
    fn is_new(&self, line: &Line) -> bool {
        self.filter.matches(line) && !self.printed.contains_key(&line.id())
    }

    /// Prints the new lines, except those whose address can still come.
    fn print_new(
        &mut self,
        lines: &[Line],
        print: &mut impl FnMut(&Line) -> Result<()>,
    ) -> Result<()> {
        for line in lines {
            let is_recent = line.time.elapsed().unwrap_or_default() < MAX_ADDRESS_WAIT;
            let waits = self.waits_for_addresses && is_recent && line.fields["ip"].is_null();
            if self.is_new(line) && !waits {
                self.printed.insert(line.id(), line.time);
                print(line)?;
            }
        }
        Ok(())
    }
}

/// Reads the lines that the local service has kept, at the URL of its DynamoDB.
async fn local_lines(deployment: &Deployment, since: SystemTime) -> Result<Vec<Line>> {
    let Place::LocalService { dynamodb_url } = &deployment.place else {
        let message = "only a stack and the local service have a known log: pass --stack, or unset the variables that name tables";
        return Err(UsageError(message.to_owned()).into());
    };
    let mut request = HttpRequest::new(SdkBody::empty());
    request.set_uri(format!("{}{LOG_PATH}", dynamodb_url.trim_end_matches('/')))?;
    let connector = deployment.http.connector(dynamodb_url)?;
    let response = connector.call(request).await.map_err(|error| {
        let error = anyhow!(error);
        let cause = error.root_cause();
        anyhow!(
            "{deployment}: cannot read the log: {cause}: run `cargo serve` first, or pass --stack"
        )
    })?;
    ensure!(
        response.status().is_success(),
        "{deployment}: there is no log, because this is not the DynamoDB of `cargo serve`"
    );
    let body = ByteStream::new(response.into_body()).collect().await?;
    let text = String::from_utf8(body.to_vec())?;
    let mut lines: Vec<Line> = text.lines().filter_map(Line::parse).collect();
    lines.retain(|line| line.time >= since);
    Ok(lines)
}

/// The requests with an API key.
#[derive(Debug, Default)]
pub(crate) struct KeyUse {
    pub(crate) requests: u64,
    /// The requests that got a 4xx or a 5xx.
    pub(crate) errors: u64,
    pub(crate) last_request_at: Option<SystemTime>,
    pub(crate) addresses: BTreeSet<String>,
}

impl KeyUse {
    /// Adds requests from an address, which is empty if the log has none.
    fn add(&mut self, requests: u64, errors: u64, last_request_at: SystemTime, address: &str) {
        self.requests += requests;
        self.errors += errors;
        self.last_request_at = self.last_request_at.max(Some(last_request_at));
        if !address.is_empty() {
            self.addresses.insert(address.to_owned());
        }
    }
}

/// The use of API keys, by key id, since a time.
pub(crate) async fn key_uses(
    deployment: &Deployment,
    since: SystemTime,
) -> Result<BTreeMap<String, KeyUse>> {
    if let Place::Stack(stack) = &deployment.place {
        return CloudWatch::of(stack)?.key_uses(since).await;
    }
    let mut uses = BTreeMap::<_, KeyUse>::new();
    for line in local_lines(deployment, since).await? {
        let text = |name: &str| line.fields[name].as_str().unwrap_or_default();
        let is_error = line.fields["status"].as_u64() >= Some(400);
        let key_use = uses.entry(text("key_id").to_owned()).or_default();
        key_use.add(1, u64::from(is_error), line.time, text("ip"));
    }
    Ok(uses)
}

/// The time at a duration before now.
pub(crate) fn time_before_now(duration: Duration) -> Result<SystemTime> {
    let time = SystemTime::now().checked_sub(duration);
    time.context("the log does not go back that far")
}

/// Whether a text can be an id of API Gateway, of Lambda or of the local service.
pub(crate) fn is_request_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+/".contains(&byte);
    !text.is_empty() && text.len() <= MAX_REQUEST_ID && text.bytes().all(is_allowed)
}
