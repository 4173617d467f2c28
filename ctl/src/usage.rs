//! Usage errors, and parsers of arguments that several commands share.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use workspace_management::{store::Table, values::Identifier};

/// A usage error that clap does not report. The process exits with 2, as after clap's own errors.
/// The message must never repeat an argument that may be an API key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

impl UsageError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// The help of arguments with the id of an organization.
pub(crate) const ORG_HELP: &str = "The id of the organization";

/// Parses an id that the paths of the API contain.
pub(crate) fn parse_identifier(text: &str) -> Result<String, &'static str> {
    match Identifier::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(
            "use 1 to 128 characters of A-Z a-z 0-9 . _ ~ : @ -. An id must not be `.` or `..`, and must not begin with `wsk_`",
        ),
    }
}

/// A parser that accepts the kinds of these tables, such as `teams`.
pub(crate) fn kind_parser(
    tables: impl Iterator<Item = Table>,
) -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(tables.map(|table| table.kind))
        .try_map(|kind| table_of(&kind).ok_or("unknown kind"))
}

/// The table with this kind of records.
pub(crate) fn table_of(kind: &str) -> Option<Table> {
    let mut tables = Table::ALL.iter().copied();
    tables.find(|table| table.kind == kind)
}
