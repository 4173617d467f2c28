//! Tests of the compiled function behind an emulated Lambda Runtime API. They check the function's
//! responses, its log and the stored records.
//!
//! By default, the tests run the binary of this build. `WORKSPACE_MANAGEMENT_BINARY` selects a
//! different binary. `WORKSPACE_MANAGEMENT_RUNNER` is a command that runs the binary, such as an
//! emulator of a different architecture.

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
