//! The JSON that Lambda passes to the function and gets back.

pub(crate) mod event;
mod prefer;
pub mod response;
