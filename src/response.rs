//! The response: the outcome of a request as an HTTP status, headers and a problem document, in
//! the form that the source of the event reads.

use lambda_http::{
    Body,
    aws_lambda_events::{
        alb::AlbTargetGroupResponse,
        apigw::{ApiGatewayProxyResponse, ApiGatewayV2httpResponse},
    },
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
};
use serde::Serialize;

use crate::{
    error::{Error, Result, Violation},
    event::{Event, EventSource},
    operation::Success,
};

/// The `Retry-After` of a 503, in seconds.
const RETRY_AFTER: &str = "1";

/// The `Retry-After` of a request for a team that is being removed, in seconds. A removal waits 90 s
/// before it deletes anything.
const RETRY_AFTER_REMOVAL: &str = "60";

/// A response in the form that the source of its event reads.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EventResponse {
    /// For an HTTP API or a function URL.
    HttpApi(ApiGatewayV2httpResponse),
    /// For a REST API.
    RestApi(ApiGatewayProxyResponse),
    /// For a load balancer. Depending on its target group, it reads one of two members with
    /// headers.
    LoadBalancer(AlbTargetGroupResponse),
}

/// The HTTP status of an outcome.
pub(crate) fn status(outcome: &Result<Success>) -> StatusCode {
    let Err(error) = outcome else {
        return StatusCode::NO_CONTENT;
    };
    match error {
        Error::MalformedEvent | Error::MalformedPath(..) | Error::NotJson(_) => {
            StatusCode::BAD_REQUEST
        }
        Error::NoKey | Error::KeyNotAccepted => StatusCode::UNAUTHORIZED,
        Error::OtherOrganization | Error::OrganizationDisabled | Error::OperationNotAllowed(_) => {
            StatusCode::FORBIDDEN
        }
        Error::NoSuchPath | Error::NoSuchOrganization | Error::NoSuchTeam => StatusCode::NOT_FOUND,
        Error::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Error::BeingRemoved { .. }
        | Error::OtherName { .. }
        | Error::OtherDescription { .. }
        | Error::OtherProjectName(_)
        | Error::ModelTaken { .. } => StatusCode::CONFLICT,
        Error::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        Error::InvalidBody(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Error::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        Error::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl EventResponse {
    pub(crate) fn new(event: &Event, outcome: &Result<Success>, request_id: &str) -> Self {
        let status = status(outcome);
        let mut headers = HeaderMap::new();
        if let Ok(request_id) = HeaderValue::from_str(request_id) {
            headers.insert("x-request-id", request_id);
        }
        if let Ok(Success::Created { id }) = outcome
            && let Ok(id) = HeaderValue::from_str(id)
            && event.prefers_headers_only()
        {
            headers.insert("x-resource-id", id);
            let applied = HeaderValue::from_static("return=headers-only");
            headers.insert("preference-applied", applied);
        }
        let body = outcome.as_ref().err().and_then(|error| {
            let problem_json = HeaderValue::from_static("application/problem+json");
            headers.insert(header::CONTENT_TYPE, problem_json);
            if let Some((name, value)) = error_header(error) {
                headers.insert(name, HeaderValue::from_static(value));
            }
            let problem = Problem::new(error, status, request_id);
            serde_json::to_string(&problem).ok().map(Body::Text)
        });
        // The three types have these members in common, but no trait.
        macro_rules! response {
            ($type:ident) => {{
                let mut response = $type::default();
                response.status_code = status.as_u16().into();
                (response.headers, response.body) = (headers, body);
                response
            }};
        }
        match event.source() {
            EventSource::HttpApi => Self::HttpApi(response!(ApiGatewayV2httpResponse)),
            EventSource::RestApi => Self::RestApi(response!(ApiGatewayProxyResponse)),
            EventSource::LoadBalancer => {
                let multi_value_headers = headers.clone();
                let mut response = response!(AlbTargetGroupResponse);
                response.multi_value_headers = multi_value_headers;
                // A load balancer rejects null here.
                response.status_description = Some(status.to_string());
                Self::LoadBalancer(response)
            }
        }
    }
}

/// The header that HTTP requires or recommends for an error.
fn error_header(error: &Error) -> Option<(HeaderName, &'static str)> {
    let challenge = header::WWW_AUTHENTICATE;
    Some(match error {
        // RFC 6750, section 3.1: no error code if the request has no credential.
        Error::NoKey => (challenge, r#"Bearer realm="workspace-management""#),
        Error::KeyNotAccepted => (
            challenge,
            r#"Bearer realm="workspace-management", error="invalid_token""#,
        ),
        Error::MethodNotAllowed => (header::ALLOW, "POST"),
        Error::Unavailable(_) => (header::RETRY_AFTER, RETRY_AFTER),
        Error::BeingRemoved { .. } => (header::RETRY_AFTER, RETRY_AFTER_REMOVAL),
        _ => return None,
    })
}

/// The problem document (RFC 9457) of an error, with additional members from `code` on.
#[derive(Serialize)]
struct Problem<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: String,
    code: &'static str,
    request_id: &'a str,
    /// How an existing record differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// The id of the existing record.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_id: Option<&'a str>,
    /// The name of a malformed path parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Violation],
}

impl<'a> Problem<'a> {
    fn new(error: &'a Error, status: StatusCode, request_id: &'a str) -> Self {
        let (code, title) = error.code_and_title();
        Self {
            r#type: format!("urn:workspace-management:problem:{code}"),
            title,
            status: status.as_u16(),
            detail: error.to_string(),
            code,
            request_id,
            reason: error.reason(),
            resource_id: error.resource_id(),
            parameter: match error {
                Error::MalformedPath(parameter, _) => Some(parameter),
                _ => None,
            },
            errors: error.violations(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::Rule;

    fn problem(error: Error) -> Value {
        let outcome = Err(error);
        let problem = Problem::new(outcome.as_ref().unwrap_err(), status(&outcome), "request-1");
        serde_json::to_value(problem).unwrap()
    }

    #[test]
    fn the_number_of_violations_is_in_the_detail() {
        let violation = Violation::new(Rule::Required, "is required");
        for (count, detail) in [
            (1, "The request body has 1 validation error."),
            (2, "The request body has 2 validation errors."),
        ] {
            let problem = problem(Error::InvalidBody(vec![violation.clone(); count]));
            assert_eq!(problem["detail"], detail);
            assert_eq!(problem["errors"].as_array().unwrap().len(), count);
        }
    }

    #[test]
    fn errors_have_the_headers_that_clients_act_on() {
        for (error, name, value) in [
            (
                Error::NoKey,
                "www-authenticate",
                r#"Bearer realm="workspace-management""#,
            ),
            (
                Error::KeyNotAccepted,
                "www-authenticate",
                r#"Bearer realm="workspace-management", error="invalid_token""#,
            ),
            (Error::MethodNotAllowed, "allow", "POST"),
            (Error::Unavailable("cause".into()), "retry-after", "1"),
            (
                Error::BeingRemoved {
                    id: "docs".to_owned(),
                },
                "retry-after",
                "60",
            ),
        ] {
            let (found_name, found_value) = error_header(&error).unwrap();
            assert_eq!((found_name.as_str(), found_value), (name, value));
        }
        assert!(error_header(&Error::NoSuchPath).is_none());
    }

    #[test]
    fn a_request_id_that_cannot_be_a_header_is_omitted_from_the_headers() {
        let response = EventResponse::new(&Event::default(), &Ok(Success::Done), "line\nbreak");
        let response = serde_json::to_value(response).unwrap();
        assert_eq!(
            (&response["statusCode"], &response["headers"]),
            (&json!(204), &json!({}))
        );
    }
}
