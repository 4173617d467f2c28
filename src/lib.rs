//! Six operations on an AI workspace, as one AWS Lambda function over DynamoDB.
//!
//! A request flows one way, and no module imports one to its left:
//!
//! `service` → `router` → `auth` → `operations` → `store` → DynamoDB
//!
//! | module | is |
//! |---|---|
//! | [`service`] | Lambda's event in, a response out; deadline, panics, the log line |
//! | [`lambda::response`] | an outcome in the form that the event's sender reads |
//! | `router` | the six routes on one screen |
//! | [`auth`] | a credential to a [`caller::Caller`], or refused |
//! | [`operations`] | a file for each of the six: its request, its record, its function |
//! | [`store`] | eight tables, and what may be done to them |
//! | [`metrics`] | a line for CloudWatch of each request |
//! | [`store::client`] | how DynamoDB is reached |
//! | [`body`] | JSON to a request, or every rule that it breaks |
//! | [`caller`], [`error`], [`api_key`], [`values`] | the words the others speak in |

pub mod api_key;
pub mod auth;
pub mod body;
pub mod caller;
pub mod error;
pub mod lambda;
pub mod metrics;
pub mod operations;
mod router;
pub mod service;
pub mod store;
pub mod values;
