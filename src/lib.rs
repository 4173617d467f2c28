//! An HTTP API that records the configuration of an AI workspace in DynamoDB: an organization's chat
//! models, teams and members, bot voices, data stores and logging instances. It runs as one AWS
//! Lambda function. `openapi.yaml` is the contract with its clients.
//!
//! # Components
//!
//! | module | responsibility |
//! |---|---|
//! | [`config`] | reads the environment variables |
//! | [`service`] | handles an event, with a timeout |
//! | `log` | logs one line for each request |
//! | `event`, `response` | parse events from API Gateway and function URLs, and build responses for them |
//! | `router` | routes a path to its operation |
//! | [`operation`] | lists the operations and the parameters of their paths |
//! | `operations` | implements them, one file each |
//! | [`auth`], [`api_key`] | verify the API key and decide what the caller may do |
//! | `body`, [`values`] | turn JSON into a valid request, or into a list of violations |
//! | [`store`] | reads and writes records in DynamoDB, with retries and caches |
//! | `error` | lists the reasons why a request can fail |
//!
//! # One request
//!
//! `POST /api/v1/project/acme/apollo/createNewTeamOnProject` with the body
//! `{"teamName": "Research Team"}` passes through these steps:
//!
//! 1. API Gateway invokes the function with an event. [`service::Service::handle`] parses it
//!    (`event.rs`) and starts the timeout.
//! 2. `route` matches the path to `create_team`, with the organization `acme` and the project
//!    `apollo`.
//! 3. `auth` reads the record of the API key, from the cache if possible. It checks the hash of the
//!    secret and the expiry, that the key belongs to `acme`, and that it may call `create_team`. The
//!    result is a `Caller`.
//! 4. `body` parses the JSON. Invalid JSON ends the request with a 400, and violations with a 422.
//! 5. `create_team` writes the team `research-team`, unless it exists. If the existing team has the
//!    same name and description, the request counts as a repeated one and succeeds. If one of them
//!    differs, it gets a 409.
//! 6. `response.rs` turns the outcome into a 204 without a body, or into a problem document
//!    with the status of the error.

pub mod api_key;
pub mod auth;
mod body;
pub mod config;
mod error;
mod event;
mod log;
pub mod operation;
mod response;
mod router;
pub mod service;
pub mod store;
pub mod values;

/// Implements the operations: one file each, without HTTP and without DynamoDB's attribute values.
mod operations {
    pub(crate) mod add_models;
    pub(crate) mod add_team_users;
    pub(crate) mod create_data_store;
    pub(crate) mod create_logging_instance;
    pub(crate) mod create_team;
    pub(crate) mod set_bot_voice;
}
