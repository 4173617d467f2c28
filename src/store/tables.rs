//! Primary keys, and the names of the tables in a deployment.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Item;
use crate::records::Table;

impl Table {
    /// Builds a primary key from the values of its attributes, in the order of
    /// `primary_key_attributes`.
    pub fn primary_key(self, values: &[&str]) -> Item {
        let mut primary_key = Item::with_capacity(2);
        for (name, value) in self.primary_key_attributes.iter().zip(values) {
            primary_key.insert((*name).to_owned(), AttributeValue::S((*value).to_owned()));
        }
        primary_key
    }
}

/// The names of the tables in a deployment.
#[derive(Debug, Clone)]
pub struct TableNames(HashMap<&'static str, String>);

impl TableNames {
    /// Takes the name of each table from `name_of`.
    ///
    /// # Errors
    /// The first error of `name_of`.
    pub fn new<E>(name_of: impl Fn(Table) -> Result<String, E>) -> Result<Self, E> {
        let mut names = HashMap::new();
        for table in Table::ALL {
            names.insert(table.logical_id, name_of(*table)?);
        }
        Ok(Self(names))
    }

    /// The name of a table in this deployment.
    pub fn get(&self, table: Table) -> &str {
        &self.0[table.logical_id]
    }
}
