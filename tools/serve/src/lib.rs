//! What the service needs to run on one machine. The program is `cargo serve`. Tests and the
//! benchmark use this library. The function does not depend on it.
//!
//! | module | contains |
//! |---|---|
//! | [`serve`] | `cargo serve`: the whole service, with the local page |
//! | [`tables`] | creates the tables of `template.yaml` |
//! | [`dynamodb`] | an embedded DynamoDB, on a port or in the same process |
//! | [`gateway`] | an emulator of API Gateway: turns HTTP requests into events for the service |
//! | [`server`] | the HTTP server of the API and of DynamoDB |
//! | [`log`] | the last lines of the log, for `workspacectl logs` |
//! | [`runtime_api`] | an emulator of the Lambda Runtime API, for a compiled function |
//! | [`events`] | the requests in the examples of `openapi.yaml`, as events and as `curl` commands |
//! | [`demo`] | the demo organization and its API key |

#![deny(clippy::print_stderr, clippy::print_stdout)]

mod data_file;
pub mod demo;
pub mod dynamodb;
pub mod events;
pub mod gateway;
pub mod log;
mod options;
mod page;
pub mod runtime_api;
pub mod serve;
pub mod server;
pub mod tables;

/// A random id for a request.
fn random_request_id() -> String {
    getrandom::u64().map_or_else(|_| "local".to_owned(), |random| format!("{random:016x}"))
}
