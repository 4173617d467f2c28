//! Expressions in the syntax of DynamoDB.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use workspace_management::store::Item;

/// The placeholders of an expression. `None` if there are none, because DynamoDB rejects empty maps.
#[derive(Debug, Default)]
pub(crate) struct Expressions {
    pub(crate) names: Option<HashMap<String, String>>,
    pub(crate) values: Option<Item>,
}

impl Expressions {
    /// Adds the name of an attribute and returns its placeholder: `#x` for `x`. Some names are
    /// reserved words.
    pub(crate) fn name(&mut self, attribute: &str) -> String {
        let placeholder = format!("#{attribute}");
        let names = self.names.get_or_insert_default();
        names.insert(placeholder.clone(), attribute.to_owned());
        placeholder
    }

    /// Adds a value and returns its placeholder: `:x` for `x`.
    pub(crate) fn value(&mut self, name: &str, value: AttributeValue) -> String {
        let placeholder = format!(":{name}");
        let values = self.values.get_or_insert_default();
        values.insert(placeholder.clone(), value);
        placeholder
    }
}
