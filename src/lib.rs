//! An HTTP API that records the configuration of an AI workspace, as one AWS Lambda function that
//! writes to DynamoDB.
//!
//! # Components
//!
//! | module | task |
//! |---|---|
//! | [`config`] | reads the environment variables |
//! | [`service`] | turns an event into a response, with a timeout, a line in the log and metrics |
//! | [`lambda`] | reads the events and writes the responses of API Gateway, load balancers and function URLs |
//! | `router` | finds the operation for a path |
//! | [`operation`] | lists the operations |
//! | `operations` | implements them, one file each |
//! | [`auth`], [`api_key`] | verify the API key and decide what the caller may do |
//! | `body`, [`values`], `unique_list` | turn JSON into a valid request, or into a list of violations |
//! | [`store`] | reads and writes records in DynamoDB, with retries and caches |
//! | `error` | lists the reasons for which a request fails |
//! | [`metrics`] | writes CloudWatch metrics |
//!
//! # One request
//!
//! `POST /api/v1/project/acme/apollo/createNewTeamOnProject` with the body
//! `{"teamName": "Research Team"}` passes through these steps:
//!
//! 1. API Gateway invokes the function with an event. [`service::Service::handle`] parses it
//!    (`lambda/event.rs`) and starts the timeout.
//! 2. `route` matches the path with `create_team` and parses `acme` and `apollo`.
//! 3. `auth` reads the record of the API key, from the cache if possible, and compares the hash of
//!    the secret. The key belongs to `acme` and is allowed to call `create_team`, so the result is
//!    a `Caller`.
//! 4. `body` parses the JSON. A violation would end the request here with a 422.
//! 5. `create_team` writes the team `research-team` if no record has its key. If one has, the
//!    operation compares the two: a repeated request succeeds, any other fails with a 409.
//! 6. `lambda/response.rs` turns the outcome into a 204 without a body, or into a problem document
//!    with the status of the error.

pub mod api_key;
pub mod auth;
mod body;
pub mod config;
mod error;
pub mod lambda;
pub mod metrics;
pub mod operation;
mod operations;
mod request;
mod router;
pub mod service;
pub mod store;
mod unique_list;
pub mod values;
