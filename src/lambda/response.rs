//! The response to an event: an outcome as a status, headers and a problem document, in the form that its sender reads.

use lambda_http::{
    Body,
    aws_lambda_events::{
        alb::AlbTargetGroupResponse,
        apigw::{ApiGatewayProxyResponse, ApiGatewayV2httpResponse},
    },
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
};
use serde::Serialize;

use crate::error::{Error, RETRY_AFTER_SECONDS, Violation};

/// A response, ready to be handed to Lambda.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EventResponse {
    /// To an HTTP API, a function URL, or who knows whom.
    HttpApi(ApiGatewayV2httpResponse),
    /// To a REST API.
    RestApi(ApiGatewayProxyResponse),
    /// To a load balancer, which reads one of two kinds of headers, as its target group is set.
    LoadBalancer(AlbTargetGroupResponse),
}

/// Who sent an event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Sender {
    #[default]
    HttpApi,
    RestApi,
    LoadBalancer,
}

impl EventResponse {
    pub(crate) fn new(sender: Sender, outcome: &Result<(), Error>, request_id: &str) -> Self {
        let mut headers = HeaderMap::new();
        if let Ok(request_id) = HeaderValue::from_str(request_id) {
            headers.insert(HeaderName::from_static("x-request-id"), request_id);
        }
        let (status, body) = match outcome {
            Ok(()) => (StatusCode::NO_CONTENT, None),
            Err(error) => {
                let problem_json = HeaderValue::from_static("application/problem+json");
                headers.insert(header::CONTENT_TYPE, problem_json);
                headers.extend(advice(error));
                let problem = serde_json::to_string(&Problem::new(error, request_id));
                (error.kind().0, problem.ok().map(Body::Text))
            }
        };
        let status_code = status.as_u16().into();
        match sender {
            Sender::HttpApi => {
                let mut response = ApiGatewayV2httpResponse::default();
                (response.status_code, response.headers, response.body) =
                    (status_code, headers, body);
                Self::HttpApi(response)
            }
            Sender::RestApi => {
                let mut response = ApiGatewayProxyResponse::default();
                (response.status_code, response.headers, response.body) =
                    (status_code, headers, body);
                Self::RestApi(response)
            }
            Sender::LoadBalancer => {
                let mut response = AlbTargetGroupResponse::default();
                response.multi_value_headers = headers.clone();
                // A load balancer takes no null here.
                response.status_description = Some(status.to_string());
                (response.status_code, response.headers, response.body) =
                    (status_code, headers, body);
                Self::LoadBalancer(response)
            }
        }
    }
}

/// The header that tells a client what to do about a failure, where HTTP has one.
fn advice(error: &Error) -> Option<(HeaderName, HeaderValue)> {
    Some(match error {
        // RFC 6750, section 3.1: no error where no credential was sent.
        Error::Unauthenticated { sent: false } => {
            (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
        }
        Error::Unauthenticated { sent: true } => {
            let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
            (header::WWW_AUTHENTICATE, challenge)
        }
        Error::MethodNotAllowed => (header::ALLOW, HeaderValue::from_static("POST")),
        Error::Unavailable(_) => (header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS)),
        _ => return None,
    })
}

/// A failure's body (RFC 9457), with three members of our own: `code`, `request_id` and `errors`.
#[derive(Serialize)]
struct Problem<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: String,
    code: &'static str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Violation],
}

impl<'a> Problem<'a> {
    fn new(error: &'a Error, request_id: &'a str) -> Self {
        let (status, code, title) = error.kind();
        Self {
            r#type: format!("urn:workspace-management:problem:{code}"),
            title,
            status: status.as_u16(),
            detail: error.to_string(),
            code,
            request_id,
            errors: match error {
                Error::InvalidBody(violations) => violations,
                _ => &[],
            },
        }
    }
}
