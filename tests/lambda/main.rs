//! The compiled function behind an emulated Lambda Runtime API: events in, responses out, then its
//! log and the stored records.
//!
//! `WORKSPACE_MANAGEMENT_BINARY` selects another binary than the one that this build compiled.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails with a panic, and shares modules with another test binary"
)]

mod concurrency;
mod credentials;
mod function;
mod logging;
mod metrics;
mod proxy;
mod resilience;
mod startup;

#[allow(dead_code, reason = "the tests in `tests/api` use the rest")]
#[path = "../api/support/mod.rs"]
mod support;
