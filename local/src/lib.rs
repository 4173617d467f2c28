//! The environment of the service on one machine. `cargo serve` is this package's program. The tests
//! and the benchmark use the library; the function does not depend on it.
//!
//! | module | contains |
//! |---|---|
//! | [`serve`] | `cargo serve`: the whole service, with a page that shows what it stores |
//! | [`tables`] | creates the tables of `template.yaml` |
//! | [`dynamodb`] | an embedded DynamoDB, on a port or in the same process |
//! | [`gateway`] | API Gateway: the event of an HTTP request, and routes that call the service |
//! | [`server`] | the HTTP server of the API and of DynamoDB |
//! | [`runtime_api`] | the Lambda Runtime API, for a compiled function |
//! | [`events`] | the events in `events/`, and the `curl` command of each |
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
//!     auth::AnonymousOperations,
//!     operations::Operation,
//!     service::Service,
//!     store::{Store, Table},
//! };
//! use workspace_records::local::{sdk_config, table_names};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! // 1. A DynamoDB with all tables and an organization.
//! let dynamodb = DynamoDb::with_tables().await?;
//! dynamodb.put(Table::ORGANIZATIONS, json!({ "org_id": DEMO_ORGANIZATION }));
//!
//! // 2. The service, with the DynamoDB as the SDK's HTTP client.
//! let config = sdk_config("http://dynamodb").http_client(http_client(dynamodb.clone()));
//! let store = Store::new(config, table_names(), Duration::from_secs(60));
//! let service = Service::new(store, AnonymousOperations::Allowed);
//!
//! // 3. An event, and the record that it stores.
//! let event = serde_json::from_str(&events::get(Operation::CreateDataStore)?)?;
//! service.handle(LambdaEvent::new(event, Context::default()), SystemTime::now()).await;
//! assert_eq!(dynamodb.records(Table::DATA_STORES).len(), 1);
//! # anyhow::Ok(())
//! # })?;
//! # anyhow::Ok(())
//! ```

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
