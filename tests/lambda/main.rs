//! Tests of the compiled function behind an emulated Lambda Runtime API. They check its responses,
//! its log and the stored records.
//!
//! By default they run the binary of this build. `WORKSPACE_MANAGEMENT_BINARY` selects another one.
//! `WORKSPACE_MANAGEMENT_RUNNER` is a command that runs it, such as an emulator of its architecture.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a panic fails the test, and no other crate uses the modules"
)]

mod function;
mod instructions;
mod logging;
mod resilience;
mod startup;
