//! The JSON that Lambda passes to the function and gets back.

pub mod response;
