//! An HTTP API that records the configuration of an AI workspace in DynamoDB. An organization has
//! projects, chat models, data stores and bots. A project has teams, whose members are users, and a
//! logging instance. A bot has a voice (its audio settings).
//!
//! The API runs as one AWS Lambda function. `openapi.yaml` is the contract with its clients.
//!
//! # Components
//!
//! | module | responsibility |
//! |---|---|
//! | [`config`] | reads the environment variables |
//! | [`service`] | handles an event, with a timeout |
//! | `event` | parses AWS's event into a request |
//! | `response` | builds AWS's response from an outcome |
//! | `log` | writes one line for each request |
//! | `router` | matches the path, authorizes the caller and runs the operation |
//! | [`operations`] | names the operations and the parameters of their paths, and implements each in a module |
//! | [`auth`], [`api_key`] | decide who the caller is and what the caller may do |
//! | `body`, [`values`] | turn JSON into a valid request, or into a list of violations |
//! | [`store`] | reads and writes records in DynamoDB, with caches and retries |
//! | `error` | lists the errors, with their status, code and title |
//!
//! # One request
//!
//! `POST /api/v1/project/acme/apollo/createNewTeamOnProject` with the body
//! `{"teamName": "Research Team", "teamDescription": "Reads papers"}` takes these steps:
//!
//! 1. API Gateway invokes the function with an event. `Service::handle` parses it and starts the
//!    timeout.
//! 2. `router` matches the path to `create_team`, with the organization `acme` and the project
//!    `apollo`.
//! 3. `auth` finds the record of the API key in the cache or in DynamoDB. It checks the secret, the
//!    expiry, that the key belongs to `acme` as it is registered now, that `acme` is enabled, and
//!    that the key may call `create_team`. The result is a `Caller`.
//! 4. `body` parses the JSON. Invalid JSON is a 400, and an invalid value is a 422.
//! 5. `create_team` writes the team `research-team` unless it exists. An existing team with the
//!    same name and description is a success, because a client may repeat its request. An existing
//!    team with this id but another name, such as `Research team`, or another description is a 409.
//! 6. `response` turns the outcome into a 204 without a body, or into a problem document.

pub mod api_key;
pub mod auth;
mod body;
pub mod config;
mod error;
mod event;
mod log;
pub mod operations;
mod response;
mod router;
pub mod service;
pub mod store;
pub mod values;
