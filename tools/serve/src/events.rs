//! The requests in the examples of `openapi.yaml`, for the demo organization: as events, which
//! `events/` contains, and as `curl` commands.

use std::collections::BTreeMap;

use serde_json::Value;
use workspace_management::operations::Operation;
use workspace_records::contract::{self, Request};

use crate::{demo::DEMO_KEY, gateway::http_event};

/// The event of an operation. It has the demo key if the operation requires an API key.
pub fn event(operation: Operation) -> Value {
    let request = contract::example(operation, |_| None);
    let mut headers = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
    if !operation.is_key_optional() {
        headers.insert("authorization".to_owned(), format!("Bearer {DEMO_KEY}"));
    }
    let body = request.body.as_bytes();
    http_event(
        Some(request.route),
        "POST",
        &request.path,
        &headers,
        Some(body),
    )
}

/// A `curl` command for a POSIX shell that sends a request to a service, with the demo key if
/// `has_key`. The service ignores the content type. With this one, an HTTP API encodes the body in
/// Base64.
pub(crate) fn curl(request: &Request, base_url: &str, has_key: bool) -> String {
    let mut command = format!("curl -i {base_url}{}", request.path);
    if has_key {
        command += &format!(" -H 'Authorization: Bearer {DEMO_KEY}'");
    }
    let body = request.body.replace('\'', r"'\''");
    format!("{command} -H 'Content-Type: */*' -d '{body}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curl_quotes_the_body() {
        let request = Request {
            route: "/path",
            path: "/path".to_owned(),
            body: "it's".to_owned(),
        };
        assert_eq!(
            curl(&request, "http://localhost", false),
            r"curl -i http://localhost/path -H 'Content-Type: */*' -d 'it'\''s'"
        );
    }
}
