//! Notices that the response to a write may have been lost.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents, interceptors::FinalizerInterceptorContextRef,
    },
    error::BoxError,
};

/// Whether an attempt of a request may have been executed although it failed.
#[derive(Debug, Clone, Default)]
pub(super) struct LostResponse(Arc<AtomicBool>);

impl LostResponse {
    pub(super) fn is_possible(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Intercept for LostResponse {
    fn name(&self) -> &'static str {
        "lost response"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // With such a status, DynamoDB has rejected the request.
        let response = context.response();
        let is_known = response.is_some_and(|response| response.status().is_client_error());
        if !is_known {
            self.0.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
