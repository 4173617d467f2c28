//! The operator's tool: the whole service on this machine, and what a deployment of it needs besides: organizations,
//! keys, and a look at what is stored.
//!
//! A library too, so that the service's tests stand on the same tables and the same gateway as `workspacectl serve`.

pub mod deployment;
pub mod doctor;
pub mod keys;
pub mod list;
pub mod orgs;
pub mod page;
mod progress;
pub mod serve;
pub mod terminal;
