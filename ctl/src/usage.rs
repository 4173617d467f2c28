//! Usage errors, and parsers of arguments that several commands share.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use workspace_management::{store::Table, values::Identifier};

/// An invalid argument. The process exits with 2, like after other usage errors.
///
/// clap's own errors repeat the argument, which must not happen if it is an API key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Parses an id that is part of a path of the API.
pub(crate) fn identifier(text: &str) -> Result<String, &'static str> {
    match Identifier::new(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("use 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, but not `.`, `..` or `wsk_…`"),
    }
}

/// Parses the noun of one of these tables.
pub(crate) fn kind_parser(
    tables: impl Iterator<Item = Table>,
) -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(tables.map(|table| table.noun))
        .try_map(|noun| table_of(&noun).ok_or("unknown kind"))
}

/// The table whose records are called like this.
pub(crate) fn table_of(noun: &str) -> Option<Table> {
    let mut tables = Table::ALL.iter().copied();
    tables.find(|table| table.noun == noun)
}
