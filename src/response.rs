//! Builds the response: a 204, or the problem document of an error.

use lambda_http::{
    Body,
    aws_lambda_events::apigw::ApiGatewayProxyResponse,
    http::{HeaderValue, header::CONTENT_TYPE},
};
use serde::Serialize;

use crate::{
    error::{Error, ErrorReport, Result, Violation},
    event::Event,
    operations::Success,
};

/// Builds the response to a request. HTTP APIs, function URLs and REST APIs accept its format.
pub(crate) fn build(
    event: &Event,
    outcome: &Result<Success>,
    request_id: &str,
) -> ApiGatewayProxyResponse {
    let mut response = ApiGatewayProxyResponse::default();
    let headers = &mut response.headers;
    if let Ok(request_id) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", request_id);
    }
    match outcome {
        Ok(success) => {
            response.status_code = 204;
            if let Success::CreatedOrFound { id, is_new } = success
                && event.wants_record_headers()
            {
                let state = if *is_new { "created" } else { "existing" };
                let applied = HeaderValue::from_static("return=headers-only");
                headers.insert("x-resource-state", HeaderValue::from_static(state));
                headers.insert("preference-applied", applied);
                if let Some(id) = id
                    && let Ok(id) = HeaderValue::from_str(id)
                {
                    headers.insert("x-resource-id", id);
                }
            }
        }
        Err(error) => {
            let report = error.report();
            response.status_code = report.status.into();
            let problem_json = HeaderValue::from_static("application/problem+json");
            headers.insert(CONTENT_TYPE, problem_json);
            if let Some((name, value)) = &report.header {
                headers.insert(name, HeaderValue::from_static(value));
            }
            response.body = problem_document(error, &report, request_id);
        }
    }
    response
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

fn problem_document(error: &Error, report: &ErrorReport<'_>, request_id: &str) -> Option<Body> {
    let problem = Problem {
        r#type: format!("urn:workspace-management:problem:{}", report.code),
        report,
        detail: error.to_string(),
        request_id,
        violations: report.violations,
    };
    // Serializing strings and numbers does not fail.
    serde_json::to_string(&problem).ok().map(Body::Text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_id_that_cannot_be_a_header_is_omitted_from_the_headers() {
        let response = build(&Event::default(), &Ok(Success::Written), "line\nbreak");
        let response = serde_json::to_value(response).unwrap();
        assert_eq!(response["statusCode"], 204);
        assert_eq!(response["headers"], json!({}));
    }
}
