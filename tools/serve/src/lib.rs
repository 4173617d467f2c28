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
//! | [`runtime_api`] | an emulator of the Lambda Runtime API, for a compiled function |
//! | [`events`] | the events in `events/`, and a `curl` command for each event |
//! | [`demo`] | the demo organization and its API key |
//!
//! A test of the whole service takes three steps:
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use lambda_runtime::{Context, LambdaEvent};
//! use serde_json::json;
//! use workspace_local::{
//!     demo::DEMO_ORGANIZATION,
//!     dynamodb::{DynamoDb, http_client},
//!     events,
//! };
//! use workspace_management::{
//!     auth::AnonymousAccess,
//!     operations::Operation,
//!     service::Service,
//!     store::{Store, Table},
//! };
//! use workspace_records::local::{sdk_config, table_names};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! // 1. Start a DynamoDB with all tables, and store an organization.
//! let dynamodb = DynamoDb::with_tables().await?;
//! dynamodb.put(Table::ORGANIZATIONS, json!({ "org_id": DEMO_ORGANIZATION }));
//!
//! // 2. Create the service. Its SDK sends requests to this DynamoDB in the same process.
//! let config = sdk_config("http://dynamodb").http_client(http_client(dynamodb.clone()));
//! let store = Store::new(config, table_names(), Duration::from_secs(60));
//! let service = Service::new(store, AnonymousAccess::Allowed);
//!
//! // 3. Handle an event, and check that a record is stored.
//! let event = serde_json::from_str(&events::get(Operation::CreateDataStore)?)?;
//! service.handle(LambdaEvent::new(event, Context::default()), SystemTime::now()).await;
//! assert_eq!(dynamodb.records(Table::DATA_STORES).len(), 1);
//! # anyhow::Ok(())
//! # })?;
//! # anyhow::Ok(())
//! ```

#![deny(clippy::print_stderr, clippy::print_stdout)]

mod data_file;
pub mod demo;
pub mod dynamodb;
pub mod events;
pub mod gateway;
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
