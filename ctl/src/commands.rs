//! The subcommands.

pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod orgs;
pub(crate) mod remove;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod set;
