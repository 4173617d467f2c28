//! The test kit. A test sends events to the service and checks what DynamoDB contains afterwards.
//!
//! - [`TestApp`] is the service with its own DynamoDB, in which the organization `acme` is
//!   registered and has the demo key. It issues API keys, reads records, and moves its clock instead of waiting. It
//!   lists the requests to DynamoDB, and rejects eventually consistent reads.
//! - [`TestClient`] sends requests to a `TestApp`, always with the same headers.
//! - [`TestResponse`] is a response as a client sees it. `TestResponse::read` checks what all
//!   responses have in common.
//! - [`handle_checking_log`] fails if the log of a request contains an API key, a body or a name.
//! - [`iam`] says which permissions policies grant, and which of them requests need.
//! - [`server::Server`] is `cargo serve`, in the process of the test or in its own process.
//! - [`fixtures`] are records for tests that do not create them with a request.
//!
//! Ways to inject faults, from the smallest to the largest:
//!
//! - A [`hook`] sees the requests of a service or of a process, and chooses the [`faults`] of some.
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
//! With `TEST_DYNAMODB_ENDPOINT`, the tests use that DynamoDB instead of the embedded one, and the
//! region and credentials from the environment variables. With `STRESS=full`, tests that have a
//! long version run it.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a panic fails the test"
)]

mod app;
mod client;
pub mod faults;
pub mod fixtures;
pub mod hook;
pub mod iam;
mod log_guard;
pub mod server;
pub mod simulation;

pub use self::{
    app::*,
    client::{TestClient, TestResponse},
    log_guard::{handle_checking_log, secrets},
};
