//! Requests as a client sends them, and responses as a client sees them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{TestApp, event};

/// A client of a [`TestApp`]. The headers are those of every request.
#[derive(Clone)]
pub struct TestClient<'a> {
    pub app: &'a TestApp,
    pub headers: BTreeMap<String, String>,
}

impl TestClient<'_> {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    pub async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.post_text(path, &body.to_string()).await
    }

    pub async fn post_text(&self, path: &str, body: &str) -> TestResponse {
        self.app
            .send(event("POST", path, &self.headers, Some(body)))
            .await
    }
}

/// A response, as a client sees it.
#[derive(Debug, Clone)]
pub struct TestResponse {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    /// The problem document. `None` if the response has no body.
    pub body: Option<Value>,
}

impl TestResponse {
    /// Reads a response from what the function returns to Lambda, and checks what all responses
    /// have in common.
    pub fn read(response: Value) -> Self {
        let response = Self {
            status: response["statusCode"].as_u64().expect("a status") as u16,
            headers: serde_json::from_value(response["headers"].clone()).expect("headers"),
            body: response["body"]
                .as_str()
                .map(|body| serde_json::from_str(body).expect("a JSON body")),
        };
        let request_id = response.headers.get("x-request-id");
        let request_id = request_id.unwrap_or_else(|| panic!("no request id: {response:?}"));
        assert_eq!(response.headers["x-content-type-options"], "nosniff");
        let resource = ["x-resource-id", "x-resource-state"];
        match &response.body {
            None => {
                assert_eq!(response.status, 204, "{response:?}");
                let common = [
                    "preference-applied",
                    "x-api-key-expires",
                    "x-content-type-options",
                    "x-request-id",
                ];
                let mut names = response.headers.keys().map(String::as_str);
                let is_known = |name: &str| common.contains(&name) || resource.contains(&name);
                assert!(names.all(is_known), "{response:?}");
            }
            Some(problem) => {
                assert_eq!(response.headers["content-type"], "application/problem+json");
                for name in resource {
                    assert!(!response.headers.contains_key(name), "{response:?}");
                }
                assert_eq!(problem["status"], response.status);
                assert_eq!(problem["request_id"], *request_id);
                for field in ["type", "title", "detail", "code"] {
                    assert!(problem[field].is_string(), "{field} of {problem}");
                }
            }
        }
        response
    }

    #[track_caller]
    pub fn assert_success(&self) {
        assert_eq!(self.status, 204, "{self:?}");
    }

    #[track_caller]
    pub fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code()), (status, code), "{self:?}");
    }

    /// The code of the problem. Empty if the response has no body.
    pub fn code(&self) -> &str {
        match &self.body {
            Some(problem) => problem["code"].as_str().unwrap(),
            None => "",
        }
    }
}
