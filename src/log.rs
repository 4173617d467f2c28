//! The log: one line for each request.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;

use crate::{
    api_key::PREFIX,
    error::{Error, Facts, Result, Violation},
    operations::{Operation, Success, parameter},
    values::escape,
};

/// What the log shows of a request. Each part is set as soon as it is known, so that the line of a
/// rejected request includes it.
#[derive(Default)]
pub(crate) struct RequestLog<'a> {
    pub(crate) request_id: &'a str,
    /// The X-Ray trace id of the invocation.
    pub(crate) trace_id: Option<&'a str>,
    /// Whether this is the first request of the process.
    pub(crate) cold_start: bool,
    /// The operation that the path names.
    pub(crate) operation: Option<Operation>,
    /// The path that no operation has: at most 100 characters, escaped, and without an API key.
    pub(crate) path: Option<String>,
    /// The valid parameters of the path, with their names.
    pub(crate) parameters: BTreeMap<&'static str, &'a str>,
    /// The organization of the API key or of the anonymous caller.
    pub(crate) organization: Option<String>,
    /// The id of the API key that was sent, whether it is accepted or not, or `anonymous`.
    pub(crate) key_id: Option<&'a str>,
    /// The number of entries in the body, without duplicates, if it is a list.
    pub(crate) body_entries: Option<usize>,
}

/// The first of the values in the body that cause an error, with the rules that they violate.
fn first_violations(facts: &Facts<'_>) -> Option<String> {
    const MAX: usize = 5;
    let violations = facts.violations.iter().take(MAX);
    let text = |it: &Violation| Some(format!("{} {}", it.pointer, json!(it.rule).as_str()?));
    let texts: Vec<_> = violations.filter_map(text).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

impl RequestLog<'_> {
    pub(crate) fn set_path(&mut self, segments: &[&str]) {
        const MAX: usize = 100;
        let path = format!("/{}", segments.join("/"));
        let (without_key, _) = path.split_once(PREFIX).unwrap_or((&path, ""));
        self.path = Some(escape(without_key).chars().take(MAX).collect());
    }

    /// Writes the line. The level of a 5xx is ERROR, of all others INFO.
    pub(crate) fn write(&self, outcome: &Result<Success>, duration: Duration) {
        let error = outcome.as_ref().err();
        let facts = error.map(Error::facts);
        let facts = facts.as_ref();
        let status = facts.map_or(204, |facts| facts.status);
        // `tracing` requires a constant level.
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    operation = self.operation.map(Operation::name),
                    status,
                    code = facts.map(|facts| facts.code),
                    reason = facts.and_then(|facts| facts.reason.or(facts.log_reason)),
                    resource_id = facts.and_then(|facts| facts.resource_id),
                    organization = self.organization,
                    key_id = self.key_id,
                    credential = facts.and_then(|facts| facts.credential),
                    path = self.path,
                    parameter = facts.and_then(|facts| facts.parameter),
                    errors = facts.and_then(first_violations),
                    org_id = self.parameters.get(parameter::ORG_ID),
                    project_id = self.parameters.get(parameter::PROJECT_ID),
                    team_id = self.parameters.get(parameter::TEAM_ID),
                    bot_id = self.parameters.get(parameter::BOT_ID),
                    model_type = self.parameters.get(parameter::MODEL_TYPE),
                    entries = self.body_entries,
                    request_id = self.request_id,
                    trace_id = self.trace_id,
                    duration_ms = duration.as_micros() as f64 / 1000.0,
                    cold_start = self.cold_start,
                    cause = error.and_then(Error::cause),
                    "request"
                )
            };
        }
        if status >= 500 {
            line!(error);
        } else {
            line!(info);
        }
    }
}
