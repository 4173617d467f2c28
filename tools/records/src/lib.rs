//! What the operator's tool and `cargo serve` both know about the contract and stored records.
//!
//! | module | contains |
//! |---|---|
//! | [`contract`] | the operations that `openapi.yaml` describes, and the requests in its examples |
//! | [`tables`] | the tables as `template.yaml` declares them |
//! | [`local`] | how to reach the DynamoDB of `cargo serve` |
//! | [`item`] | items as JSON, their primary keys, and the records of new API keys |
//! | [`stored`] | when records were created and changed |
//! | [`kinds`] | the kinds of records, and their primary keys |
//! | [`columns`] | which attributes a list of records shows, and in which order |
//! | `schemas` | the JSON Schemas of records. Needs the feature `schemas` |

pub mod columns;
pub mod contract;
pub mod item;
pub mod kinds;
pub mod local;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod stored;
pub mod tables;
