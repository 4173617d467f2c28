//! The service through its front door: an event in, a response out, then what DynamoDB holds.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails where it stands"
)]

mod access;
mod agreement;
mod auth;
mod contention;
mod contract;
mod cost;
mod engine;
mod events;
mod failures;
mod faults;
mod injector;
mod input;
mod routing;
mod simulation;
mod support;

mod add_models;
mod add_team_users;
mod create_data_store;
mod create_logging_instance;
mod create_team;
mod set_bot_voice;
