//! The test kit. A test sends events to the service and checks what DynamoDB contains afterwards.
//!
//! - [`TestApp`] is the service with a DynamoDB of its own, in which the organization `acme` is
//!   registered. It issues API keys, reads records, and moves its clock instead of waiting. A test
//!   fails if a record does not validate against its schema, when it is read or at the end.
//! - [`TestClient`] sends requests to a `TestApp` as one caller, with one set of headers.
//! - [`TestResponse`] is a response as a client sees it. Reading one checks what all responses have
//!   in common.
//! - [`RequestRecorder`] lists the requests that the service sends to DynamoDB, and rejects reads that
//!   are only eventually consistent.
//! - [`handle_checking_log`] makes a test fail if the log of one of its requests contains an API key, a body
//!   or a name.
//! - [`server::Server`] is the service of `cargo serve`.
//! - [`fixtures`] are records for tests that do not create them with a request.
//!
//! Faults, from the smallest to the largest:
//!
//! - [`faults::FaultInjector`] makes chosen requests to DynamoDB fail, as DynamoDB or the network would.
//! - [`proxy::ChaosProxy`] closes or stalls the connections of a process.
//! - [`simulation`] runs many processes at once, in an order that a seed determines.
//!
//! ```ignore
//! let app = TestApp::new().await;
//! let acme = app.client_with_new_key("acme").await;
//!
//! let response = acme.post("/api/v1/org/acme/dataStores/create", json!({ "dataStoreName": "a" })).await;
//!
//! response.assert_success();
//! assert_eq!(app.only_record(Table::DATA_STORES).await["data_store_name"], "a");
//! ```
//!
//! `TEST_DYNAMODB_ENDPOINT` runs the tests on another DynamoDB than the embedded one, with the
//! region and credentials of the environment. `STRESS=full` runs the long version of the tests that
//! have one.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a panic fails the test"
)]

mod app;
mod client;
pub mod faults;
pub mod fixtures;
mod log_guard;
pub mod proxy;
mod recorder;
pub mod server;
pub mod simulation;

pub use self::{
    app::*,
    client::{TestClient, TestResponse},
    log_guard::{handle_checking_log, secrets},
    recorder::RequestRecorder,
};
