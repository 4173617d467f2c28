//! Records the requests that the service sends to DynamoDB.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents, http::HttpRequest,
        interceptors::BeforeTransmitInterceptorContextRef,
    },
    error::BoxError,
};
use workspace_local::dynamodb::{action, is_read};

use crate::faults::{is_consistent, json_body};

/// A request that was sent to DynamoDB.
#[derive(Debug)]
pub struct RecordedRequest {
    pub action: String,
    pub table_names: Vec<String>,
}

/// Records each request of an SDK client. Panics if a read is only eventually consistent, because
/// API keys, organizations and teams can be used as soon as they exist.
#[derive(Debug, Clone, Default)]
pub struct RequestRecorder(Arc<Mutex<Vec<RecordedRequest>>>);

impl RequestRecorder {
    /// Returns the requests since the last call.
    pub fn take(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns the actions of the requests since the last call.
    pub fn take_actions(&self) -> Vec<String> {
        let requests = self.take();
        requests.into_iter().map(|it| it.action).collect()
    }
}

impl Intercept for RequestRecorder {
    fn name(&self) -> &'static str {
        "request recorder"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let is_allowed = !is_read(request) || is_consistent(request);
        assert!(is_allowed, "a read is only eventually consistent");
        self.0.lock().unwrap().push(RecordedRequest {
            action: action(request).to_owned(),
            table_names: table_names(request),
        });
        Ok(())
    }
}

/// The names of the tables in a request. A name can occur several times.
fn table_names(request: &HttpRequest) -> Vec<String> {
    let body = json_body(request);
    let mut names = Vec::new();
    if let Some(name) = body["TableName"].as_str() {
        names.push(name.to_owned());
    }
    for action in body["TransactItems"].as_array().into_iter().flatten() {
        for write in action.as_object().unwrap().values() {
            names.push(write["TableName"].as_str().unwrap().to_owned());
        }
    }
    if let Some(reads) = body["RequestItems"].as_object() {
        names.extend(reads.keys().cloned());
    }
    names
}
