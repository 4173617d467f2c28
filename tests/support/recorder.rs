//! The requests that the service sends to DynamoDB.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents, interceptors::BeforeTransmitInterceptorContextRef,
    },
    error::BoxError,
};
use workspace_local::dynamodb::{action, is_read};

use crate::faults::{is_consistent, tables};

/// The action of a request, and the names of its tables.
pub type RecordedRequest = (String, Vec<String>);

/// Records each request of an SDK client. Panics at a read without strong consistency, because a key,
/// an organization and a team can be used as soon as they exist.
#[derive(Debug, Clone, Default)]
pub struct RequestRecorder(Arc<Mutex<Vec<RecordedRequest>>>);

impl RequestRecorder {
    /// Returns the requests since the last call.
    pub fn take(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns the actions of the requests since the last call.
    pub fn take_actions(&self) -> Vec<String> {
        let requests = self.take().into_iter();
        requests.map(|(action, _)| action).collect()
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
        let recorded = (action(request).to_owned(), tables(request));
        self.0.lock().unwrap().push(recorded);
        Ok(())
    }
}
