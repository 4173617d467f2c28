//! The log: one line per request, and lines of the SDK and of panics, which have the same ids.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::json;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Format, Json, Writer},
    },
    registry::LookupSpan,
};

use crate::{
    api_key::API_KEY_PREFIX,
    error::{Error, Result, Violation},
    operations::{Operation, Success, parameter},
    text::escape,
};

tokio::task_local! {
    /// The request id and Lambda's request id, while a request is handled.
    pub(crate) static REQUEST_IDS: (String, String);
}

/// The format of the log: a JSON object per line. While a request is handled, other lines than its
/// own begin with its ids.
pub struct LogFormat(Format<Json>);

impl Default for LogFormat {
    fn default() -> Self {
        let json = tracing_subscriber::fmt::format().json();
        let without_spans = json.with_current_span(false).with_span_list(false);
        Self(without_spans.flatten_event(true).with_target(false))
    }
}

impl<S, N> FormatEvent<S, N> for LogFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0
            .format_event(context, Writer::new(&mut line), event)?;
        match (REQUEST_IDS.try_with(Clone::clone), line.strip_prefix('{')) {
            (Ok((request_id, lambda_request_id)), Some(fields)) => {
                let ids =
                    json!({ "request_id": request_id, "lambda_request_id": lambda_request_id });
                let ids = ids.to_string();
                write!(writer, "{},{fields}", ids.trim_end_matches('}'))
            }
            _ => writer.write_str(&line),
        }
    }
}

/// What the log shows about a request. Each field is set as soon as it is known, so that the line
/// of a rejected request has as many fields as possible.
#[derive(Default)]
pub(crate) struct RequestLog<'a> {
    pub(crate) request_id: &'a str,
    /// The id in the lines that Lambda itself logs about the invocation.
    pub(crate) lambda_request_id: &'a str,
    /// The X-Ray trace id of the invocation.
    pub(crate) trace_id: Option<&'a str>,
    /// Whether this is the first request of the process.
    pub(crate) is_cold_start: bool,
    /// The operation, once the path is matched and its parameters are valid.
    pub(crate) operation: Option<Operation>,
    /// The path if it matches no operation: at most 100 escaped characters, without an API key.
    pub(crate) unknown_path: Option<String>,
    /// The valid path parameters, by name.
    pub(crate) parameters: BTreeMap<&'static str, &'a str>,
    /// The organization that the caller acts for.
    pub(crate) caller_org_id: Option<String>,
    /// The id of the well-formed API key that was sent, accepted or not. `anonymous` for an
    /// anonymous caller.
    pub(crate) caller_id: Option<&'a str>,
    /// When the accepted API key expires. Only for the response.
    pub(crate) key_expires_at: Option<String>,
    /// The number of distinct entries, if the body has a list.
    pub(crate) distinct_entry_count: Option<usize>,
}

impl RequestLog<'_> {
    /// Sets the path of a request that matches no operation. Cuts the path off where an API key may
    /// begin.
    pub(crate) fn set_unknown_path(&mut self, segments: &[&str]) {
        const MAX_LENGTH: usize = 100;
        let path = format!("/{}", segments.join("/"));
        // A `%` can begin a part of a key that was encoded twice.
        let before_encoded = path.split('%').next().unwrap_or_default();
        let before_key = before_encoded
            .split(API_KEY_PREFIX)
            .next()
            .unwrap_or_default();
        self.unknown_path = Some(escape(before_key).chars().take(MAX_LENGTH).collect());
    }

    /// Writes the line, at level ERROR for a 5xx and otherwise at INFO. Do not rename the fields in
    /// the log, because operators query by them. `org_id` is the organization in the path.
    pub(crate) fn write(&self, outcome: &Result<Success>, duration: Duration) {
        let error = outcome.as_ref().err();
        let owned_report = error.map(Error::report);
        let report = owned_report.as_ref();
        let status = report.map_or(204, |report| report.status);
        // `tracing` requires a constant level.
        macro_rules! log_line {
            ($level:ident) => {
                tracing::$level!(
                    operation = self.operation.map(Operation::name),
                    status,
                    code = report.map(|report| report.code),
                    reason =
                        report.and_then(|report| report.conflict_reason.or(report.log_only_reason)),
                    resource_id = report.and_then(|report| report.resource_id),
                    caller_org_id = self.caller_org_id,
                    key_id = self.caller_id,
                    key_rejection = report.and_then(|report| report.key_rejection),
                    path = self.unknown_path,
                    parameter = report.and_then(|report| report.parameter_name),
                    errors = report.and_then(|report| format_violations(report.violations)),
                    org_id = self.parameters.get(parameter::ORG_ID),
                    project_id = self.parameters.get(parameter::PROJECT_ID),
                    team_id = self.parameters.get(parameter::TEAM_ID),
                    bot_id = self.parameters.get(parameter::BOT_ID),
                    model_type = self.parameters.get(parameter::MODEL_TYPE),
                    entries = self.distinct_entry_count,
                    request_id = self.request_id,
                    lambda_request_id = self.lambda_request_id,
                    trace_id = self.trace_id,
                    duration_ms = duration.as_micros() as f64 / 1000.0,
                    cold_start = self.is_cold_start,
                    cause = error.and_then(Error::cause),
                    "request"
                )
            };
        }
        if status >= 500 {
            log_line!(error);
        } else {
            log_line!(info);
        }
    }
}

/// The pointers and rules of the first violations. `None` if there are no violations.
fn format_violations(violations: &[Violation]) -> Option<String> {
    const MAX_LISTED: usize = 5;
    if violations.is_empty() {
        return None;
    }
    let mut texts = Vec::new();
    for Violation { pointer, rule, .. } in violations.iter().take(MAX_LISTED) {
        texts.push(format!("{pointer} {}", rule.keyword()));
    }
    Some(texts.join(", "))
}
