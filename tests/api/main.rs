//! Tests of the service at its entry point. They send events, check the responses, and then check
//! what DynamoDB contains.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a panic fails the test, and no other crate uses the modules"
)]

mod operations;

mod bodies;
mod credential_matrix;
mod events;
mod fault_matrix;
mod iam_policy;
mod key_expiry;
mod lifecycle;
mod load;
mod openapi;
mod prefer;
mod problems;
mod properties;
mod records;
mod registrations;
mod request_count;
mod retries;
mod simulation;
