//! The service on one machine: the tables of `template.yaml` on an embedded DynamoDB, API Gateway, the events of `events/`.

pub mod demo;
pub mod dynamodb;
pub mod events;
pub mod gateway;
pub mod instant;
pub mod runtime_api;
pub mod tables;
