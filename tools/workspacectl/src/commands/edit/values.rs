//! The new values of `edit`, by the rules of the API.

use clap::{
    builder::{BoolValueParser, TypedValueParser},
    value_parser,
};
use serde_json::{Value, json};
use workspace_management::values::{Description, DisplayName, ModelNumber, NameWithId, VoiceType};

use crate::arguments::parse_as_api;

/// A new value for a stored attribute.
#[derive(Debug, Clone)]
pub(crate) struct NewValue {
    pub(super) json: Value,
    /// The id that a new record with this value would get. `None` if no id is derived from it.
    pub(super) derived_id: Option<String>,
}

impl NewValue {
    /// A value from which no id is derived.
    fn plain(value: impl Into<Value>) -> Self {
        Self {
            json: value.into(),
            derived_id: None,
        }
    }
}

fn parse_name(text: &str) -> Result<NewValue, String> {
    let (name, id) = parse_as_api(text, NameWithId::parse)?.into_name_and_id();
    Ok(NewValue {
        json: json!(name),
        derived_id: Some(id),
    })
}

pub(super) fn parse_project_name(text: &str) -> Result<NewValue, String> {
    parse_as_api(text, DisplayName::parse).map(|name| NewValue::plain(name.into_string()))
}

fn parse_description(text: &str) -> Result<NewValue, String> {
    parse_as_api(text, Description::parse).map(|text| NewValue::plain(text.into_string()))
}

fn parse_voice_type(text: &str) -> Result<NewValue, String> {
    parse_as_api(text, VoiceType::parse).map(|text| NewValue::plain(text.into_string()))
}

/// A parser of the number of a model.
pub(super) fn number_parser() -> impl TypedValueParser<Value = NewValue> {
    let range = -ModelNumber::MAX..=ModelNumber::MAX;
    value_parser!(i64).range(range).map(NewValue::plain)
}

/// The new name and description. Data stores have the same rules as teams.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct NewValueArgs {
    /// The new name
    #[arg(long, value_parser = parse_name)]
    name: Option<NewValue>,
    /// The new description, which can be empty
    #[arg(long, value_parser = parse_description)]
    description: Option<NewValue>,
}

/// The new type and state of a voice.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct NewVoiceArgs {
    /// The new type
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_voice_type)]
    voice_type: Option<NewValue>,
    /// Whether the voice is enabled
    #[arg(long, value_name = "BOOL", value_parser = BoolValueParser::new().map(NewValue::plain))]
    enabled: Option<NewValue>,
}

/// The new value of an attribute.
pub(crate) struct NewAttribute {
    pub(super) name: &'static str,
    pub(super) value: NewValue,
}

impl NewValueArgs {
    /// The new attributes of a record, given the names of those for the name and the description.
    pub(super) fn into_attributes(self, names: [&'static str; 2]) -> Vec<NewAttribute> {
        given(names, [self.name, self.description])
    }
}

impl NewVoiceArgs {
    pub(super) fn into_attributes(self) -> Vec<NewAttribute> {
        given(["type", "enabled"], [self.voice_type, self.enabled])
    }
}

/// The attributes with these names whose values are given.
fn given(names: [&'static str; 2], values: [Option<NewValue>; 2]) -> Vec<NewAttribute> {
    let mut attributes = Vec::new();
    for (name, value) in names.into_iter().zip(values) {
        attributes.extend(value.map(|value| NewAttribute { name, value }));
    }
    attributes
}
