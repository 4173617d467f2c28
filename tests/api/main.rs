//! The service from its entry point: an event in, a response out, then what DynamoDB contains.

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
mod lifecycle;
mod openapi;
mod outages;
mod prefer;
mod problems;
mod properties;
mod records;
mod registrations;
mod repeats;
mod request_count;
mod simulation;
