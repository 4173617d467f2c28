//! The log: one line for each request.

use std::time::Duration;

use crate::{
    error::{Error, Result},
    operation::{Operation, Success, parameter},
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
    /// The valid parameters of the path, with their names.
    pub(crate) parameters: Vec<(&'static str, &'a str)>,
    /// The organization of the API key or of the anonymous caller.
    pub(crate) organization: Option<String>,
    /// The id of the API key that was sent, whether it is accepted or not, or `anonymous`.
    pub(crate) key_id: Option<&'a str>,
    /// The number of entries in the body, without duplicates, if it is a list.
    pub(crate) entries: Option<usize>,
}

impl RequestLog<'_> {
    /// Writes the line. The level of a 5xx is ERROR, of all others INFO.
    pub(crate) fn write(&self, outcome: &Result<Success>, duration: Duration) {
        let error = outcome.as_ref().err();
        let facts = error.map(Error::facts);
        let status = facts.as_ref().map_or(204, |facts| facts.status);
        // `tracing` requires a constant level.
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    operation = self.operation.map(Operation::name),
                    status,
                    code = facts.as_ref().map(|facts| facts.code),
                    reason = error.and_then(Error::reason),
                    organization = self.organization,
                    key_id = self.key_id,
                    org_id = self.parameter(parameter::ORG_ID),
                    project_id = self.parameter(parameter::PROJECT_ID),
                    team_id = self.parameter(parameter::TEAM_ID),
                    bot_id = self.parameter(parameter::BOT_ID),
                    model_type = self.parameter(parameter::MODEL_TYPE),
                    entries = self.entries,
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

    fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        parameters.find_map(|(other, value)| (*other == name).then_some(*value))
    }
}
