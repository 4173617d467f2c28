//! The subcommands. Tests call functions of the public modules.

pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod env;
pub(crate) mod history;
pub mod keys;
pub(crate) mod list;
pub(crate) mod logs;
pub mod orgs;
pub mod remove;
pub(crate) mod restore;
