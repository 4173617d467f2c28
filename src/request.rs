//! A request, as the operations see it.

use std::{borrow::Cow, time::SystemTime};

/// A request that an event contains.
pub(crate) struct Request<'a> {
    /// The id that the response, the log and the records show.
    pub(crate) id: &'a str,
    /// When the function received it. Cache entries and records use this time.
    pub(crate) received_at: SystemTime,
    pub(crate) method: &'a str,
    /// The decoded segments of the path.
    pub(crate) path: Vec<Cow<'a, str>>,
    /// Every value of the `Authorization` header.
    pub(crate) authorization: Vec<&'a str>,
    pub(crate) body: Cow<'a, [u8]>,
}
