//! The new values of `edit`, by the rules of the API.

use anyhow::Result;
use workspace_management::{
    api_key::ApiKey,
    values::{Description, DisplayName, NameWithId, Violation},
};

/// A new value for a stored attribute.
#[derive(Debug, Clone)]
pub(crate) struct NewValue {
    pub(super) text: String,
    /// The id that a new record with this value would get. `None` if no id is derived from it.
    pub(super) derived_id: Option<String>,
}

fn parse_name(text: &str) -> Result<NewValue, String> {
    let (text, id) = parse_as_api(text, NameWithId::parse)?.into_name_and_id();
    Ok(NewValue {
        text,
        derived_id: Some(id),
    })
}

pub(super) fn parse_project_name(text: &str) -> Result<NewValue, String> {
    Ok(NewValue {
        text: parse_as_api(text, DisplayName::parse)?.into_string(),
        derived_id: None,
    })
}

fn parse_description(text: &str) -> Result<NewValue, String> {
    Ok(NewValue {
        text: parse_as_api(text, Description::parse)?.into_string(),
        derived_id: None,
    })
}

/// Parses a value by the rules of the API. The error is the first violation, because a value rarely
/// has several.
fn parse_as_api<T>(text: &str, parse: fn(&str) -> Result<T, Vec<Violation>>) -> Result<T, String> {
    if ApiKey::is_in(text) {
        return Err("must not contain an API key".to_owned());
    }
    parse(text).map_err(|mut violations| violations.remove(0).detail)
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

/// The new value of an attribute.
pub(crate) struct NewAttribute {
    pub(super) name: &'static str,
    pub(super) value: NewValue,
}

impl NewValueArgs {
    /// The new attributes of a record, given the names of those for the name and the description.
    pub(super) fn into_attributes(
        self,
        name_attribute: &'static str,
        description_attribute: &'static str,
    ) -> Vec<NewAttribute> {
        let names = [name_attribute, description_attribute];
        let values = names.into_iter().zip([self.name, self.description]);
        let attributes = values.filter_map(|(name, value)| {
            Some(NewAttribute {
                name,
                value: value?,
            })
        });
        attributes.collect()
    }
}
