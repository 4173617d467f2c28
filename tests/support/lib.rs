//! The test kit.

pub mod server;
