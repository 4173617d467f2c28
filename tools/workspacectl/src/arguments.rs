//! Arguments shared by several commands.

use std::{
    io::{self, IsTerminal as _, Stdin},
    path::Path,
};

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use workspace_management::{
    api_key::ApiKey,
    records::Table,
    values::{Identifier, Violation},
};
use workspace_records::kinds::{Kind, PrimaryKey};

use crate::message::print_message;

/// The help text of arguments that take the id of an organization.
pub(crate) const ORG_HELP: &str = "The id of the organization";

/// The arguments that name a project.
#[derive(Debug, clap::Args)]
pub(crate) struct ProjectArgs {
    #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
    pub(crate) org: String,
    /// The id of the project
    #[arg(long, value_parser = parse_identifier)]
    pub(crate) project: String,
}

impl ProjectArgs {
    pub(crate) fn into_logging_instance_key(self) -> PrimaryKey {
        let Self { org, project } = self;
        PrimaryKey::LoggingInstance { org, project }
    }
}

/// The arguments that name a data store.
#[derive(Debug, clap::Args)]
pub(crate) struct DataStoreArgs {
    #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
    org: String,
    /// The id of the data store
    #[arg(value_name = "ID", value_parser = parse_identifier)]
    data_store: String,
}

impl DataStoreArgs {
    pub(crate) fn into_key(self) -> PrimaryKey {
        let Self { org, data_store } = self;
        PrimaryKey::DataStore { org, data_store }
    }
}

/// The arguments that name a model.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
    org: String,
    /// The type of the model, as in the path of the request that added it
    #[arg(long = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
    model_type: String,
    /// The `modelid` of the model
    #[arg(value_name = "MODELID", value_parser = NonEmptyStringValueParser::new())]
    model_id: String,
}

impl ModelArgs {
    pub(crate) fn into_key(self) -> PrimaryKey {
        PrimaryKey::Model {
            org: self.org,
            model_type: self.model_type,
            model_id: self.model_id,
        }
    }
}

/// The arguments that name the voice of a bot.
#[derive(Debug, clap::Args)]
pub(crate) struct VoiceArgs {
    #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
    org: String,
    /// The id of the bot
    #[arg(value_parser = parse_identifier)]
    bot: String,
}

impl VoiceArgs {
    pub(crate) fn into_key(self) -> PrimaryKey {
        let Self { org, bot } = self;
        PrimaryKey::BotVoice { org, bot }
    }
}

/// Parses an id that can be part of an API path.
pub(crate) fn parse_identifier(text: &str) -> Result<String, &'static str> {
    let id = Identifier::parse(text).map(|_| text.to_owned());
    id.ok_or(
        "an id has 1 to 128 characters: ASCII letters, digits and `-._~:@`. It must not be `.` or `..`, or start with `wsk_`",
    )
}

/// Parses a value by the rules of the API. The error is the first violation, because a value rarely
/// has several.
pub(crate) fn parse_as_api<T>(
    text: &str,
    parse: fn(&str) -> Result<T, Vec<Violation>>,
) -> Result<T, String> {
    if ApiKey::is_in(text) {
        return Err("must not contain an API key".to_owned());
    }
    parse(text).map_err(|mut violations| violations.remove(0).detail)
}

/// Whether a file in an option is standard input or output.
pub(crate) fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Standard input. On a terminal, first says what to enter.
pub(crate) fn stdin(what: &str) -> Stdin {
    if io::stdin().is_terminal() {
        print_message(&format!("enter {what}, then press Ctrl-D"));
    }
    io::stdin()
}

/// A parser that turns a kind of record, such as `teams`, into its table.
pub(crate) fn table_parser(
    tables: impl Iterator<Item = Table>,
) -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(tables.map(|table| Kind::of(table).plural)).try_map(|kind| {
        Kind::named(&kind)
            .map(|kind| kind.table)
            .ok_or("unknown kind")
    })
}
