//! Six operations on an AI workspace, as one AWS Lambda function over DynamoDB.
//!
//! A request flows one way, and no module imports one to its left:
//!
//! `event` → `router` → `auth` → `operations` → `store` → DynamoDB
//!
//! | module | is |
//! |---|---|
//! | [`event`] | Lambda's event in, a response out; deadline, panics, the log line |
//! | [`response`] | an outcome in the form that the event's sender reads |
//! | `router` | the six routes on one screen |
//! | [`auth`] | a credential to a [`caller::Caller`], or refused |
//! | [`operations`] | a file for each of the six: its request, its record, its function |
//! | [`store`] | eight tables, and what may be done to them |
//! | [`metrics`] | a line for CloudWatch of each request |
//! | [`client`] | how DynamoDB is reached |
//! | [`body`] | JSON to a request, or every rule that it breaks |
//! | [`caller`], [`error`], [`key`], [`values`] | the words the others speak in |

pub mod auth;
pub mod body;
pub mod caller;
pub mod client;
pub mod error;
pub mod event;
pub mod key;
pub mod metrics;
pub mod operations;
pub mod response;
mod router;
pub mod store;
pub mod values;
