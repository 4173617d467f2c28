//! Builds the response: a 204, or the problem document of an error.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Serialize;

use crate::{
    error::{Error, ErrorReport, Result, Violation},
    event::{Event, Request},
    operations::Success,
};

/// The response, in the form that HTTP APIs, function URLs and REST APIs accept.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The HTTP status.
    pub status_code: u16,
    /// The headers, by their names in lower case.
    pub headers: BTreeMap<&'static str, Cow<'static, str>>,
    /// The problem document of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    is_base64_encoded: bool,
    /// Always empty. Programs that read payload 2.0, such as `cargo lambda watch`, can require this
    /// field, and REST APIs reject it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cookies: Option<[String; 0]>,
}

/// Builds the response to an event. `request` is the HTTP request in the event, if there is one.
/// `key_expires_at` is when the API key expires, if one was accepted that expires.
pub(crate) fn build(
    event: &Event,
    request: Option<&Request<'_>>,
    outcome: &Result<Success>,
    request_id: &str,
    key_expires_at: Option<String>,
) -> Response {
    let mut headers = BTreeMap::from([
        ("x-content-type-options", "nosniff".into()),
        ("x-request-id", request_id.to_owned().into()),
    ]);
    if let Some(time) = key_expires_at {
        headers.insert("x-api-key-expires", time.into());
    }
    let mut applied = Vec::new();
    let (status_code, body) = match outcome {
        Ok(success) => {
            if let Success::CreatedOrFound { id, is_new } = success
                && request.is_some_and(|request| request.wants_record_headers)
            {
                applied.push("return=headers-only");
                let state = if *is_new { "created" } else { "existing" };
                headers.insert("x-resource-state", state.into());
                if let Some(id) = id {
                    headers.insert("x-resource-id", id.clone().into());
                }
            }
            (204, None)
        }
        Err(error) => {
            let report = error.report();
            headers.insert("content-type", "application/problem+json".into());
            if let Some((name, value)) = report.header {
                headers.insert(name, value.into());
            }
            (report.status, problem_document(error, &report, request_id))
        }
    };
    // The other statuses do not depend on the fields of the body.
    if request.is_some_and(|request| request.is_strict) && [204, 409, 422].contains(&status_code) {
        applied.push("handling=strict");
    }
    if !applied.is_empty() {
        headers.insert("preference-applied", applied.join(", ").into());
    }
    Response {
        status_code,
        headers,
        body,
        is_base64_encoded: false,
        cookies: event.is_payload_2().then_some([]),
    }
}

/// The problem document of an error (RFC 9457).
#[derive(Serialize)]
struct Problem<'a> {
    r#type: String,
    #[serde(flatten)]
    report: &'a ErrorReport<'a>,
    detail: String,
    request_id: &'a str,
    /// `report` does not serialize the violations, so that they come last.
    #[serde(rename = "errors", skip_serializing_if = "<[_]>::is_empty")]
    violations: &'a [Violation],
}

fn problem_document(error: &Error, report: &ErrorReport<'_>, request_id: &str) -> Option<String> {
    let problem = Problem {
        r#type: format!("urn:workspace-management:problem:{}", report.code),
        report,
        detail: error.to_string(),
        request_id,
        violations: report.violations,
    };
    // Serializing strings and numbers does not fail.
    serde_json::to_string(&problem).ok()
}
