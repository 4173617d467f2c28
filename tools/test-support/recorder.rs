//! Records the requests that the service sends to DynamoDB.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents, interceptors::BeforeTransmitInterceptorContextRef,
    },
    error::BoxError,
};
use serde_json::Value;
use workspace_local::dynamodb::{action, is_read};

use crate::faults::{is_consistent, json_body};

#[derive(Debug)]
pub struct RecordedRequest {
    pub action: String,
    pub body: Value,
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
            body: json_body(request),
        });
        Ok(())
    }
}
