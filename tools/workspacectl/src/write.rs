//! Writes to records, as data: what changes, and on which condition. Only [`history`] sends them, so
//! that no change lacks its entry.

mod history;
mod send;

use std::{collections::HashMap, time::SystemTime};

use anyhow::{Result, anyhow};
use aws_sdk_dynamodb::types::AttributeValue;
use workspace_management::store::{Item, timestamp};
use workspace_records::kinds::PrimaryKey;

pub(crate) use self::{
    history::{Ending, LongChange, change},
    send::MAX_WRITES,
};
use crate::{context::Run, expressions::Expressions, record::Record};

/// A write to one record.
pub(crate) struct Write {
    /// The record before the write. Of a check or a put, only the primary key.
    record: Record,
    change: Change,
    conditions: Vec<Condition>,
    /// What to say if a condition fails.
    refusal: String,
}

enum Change {
    /// Only checks the conditions. Makes sense in a transaction.
    Check,
    /// Stores a record. A record with this primary key must not exist.
    Put(Item),
    /// Changes attributes. The record must exist, because DynamoDB would otherwise create it.
    Update(Vec<Assignment>),
    Delete,
}

/// What an update does with an attribute.
pub(crate) enum Assignment {
    Set(&'static str, AttributeValue),
    /// Keeps an existing value.
    SetOnce(&'static str, AttributeValue),
    Remove(&'static str),
}

pub(crate) fn set(attribute: &'static str, text: impl Into<String>) -> Assignment {
    Assignment::Set(attribute, AttributeValue::S(text.into()))
}

pub(crate) fn set_once(attribute: &'static str, text: impl Into<String>) -> Assignment {
    Assignment::SetOnce(attribute, AttributeValue::S(text.into()))
}

pub(crate) fn remove(attribute: &'static str) -> Assignment {
    Assignment::Remove(attribute)
}

/// What an update stores about itself.
pub(crate) fn set_updated(run: &Run) -> [Assignment; 3] {
    [
        set("updated_at", timestamp(SystemTime::now())),
        set("updated_by", &run.operator),
        set("updated_request_id", &run.id),
    ]
}

impl Assignment {
    fn apply(&self, item: &mut Item) {
        match self {
            Self::Set(name, value) => {
                item.insert((*name).to_owned(), value.clone());
            }
            Self::SetOnce(name, value) => {
                item.entry((*name).to_owned())
                    .or_insert_with(|| value.clone());
            }
            Self::Remove(name) => {
                item.remove(*name);
            }
        }
    }
}

/// A condition on an attribute.
enum Condition {
    Equals(&'static str, AttributeValue),
    Missing(&'static str),
}

impl Write {
    fn new(record: Record, change: Change) -> Self {
        let key = &record.key;
        Self {
            refusal: format!("{key} has changed since it was read: run the command again"),
            record,
            change,
            conditions: Vec::new(),
        }
    }

    pub(crate) fn check(key: &PrimaryKey) -> Self {
        Self::new(Record::empty(key), Change::Check)
    }

    pub(crate) fn put(record: Record) -> Self {
        Self::new(Record::empty(&record.key), Change::Put(record.item))
    }

    pub(crate) fn update(
        record: &Record,
        assignments: impl IntoIterator<Item = Assignment>,
    ) -> Self {
        let change = Change::Update(assignments.into_iter().collect());
        Self::new(record.clone(), change)
    }

    pub(crate) fn delete(record: &Record) -> Self {
        Self::new(record.clone(), Change::Delete)
    }

    /// The record after the write, if no other command changes it at the same time. Empty after a
    /// delete.
    pub(crate) fn result(&self) -> Record {
        let mut record = self.record.clone();
        match &self.change {
            Change::Check => {}
            Change::Put(item) => record.item = item.clone(),
            Change::Delete => record.item.clear(),
            Change::Update(assignments) => {
                for assignment in assignments {
                    assignment.apply(&mut record.item);
                }
            }
        }
        record
    }

    /// Requires that an attribute has this value.
    pub(crate) fn if_equal(mut self, attribute: &'static str, text: &str) -> Self {
        let value = AttributeValue::S(text.to_owned());
        self.conditions.push(Condition::Equals(attribute, value));
        self
    }

    /// Requires that the record lacks an attribute.
    pub(crate) fn if_missing(mut self, attribute: &'static str) -> Self {
        self.conditions.push(Condition::Missing(attribute));
        self
    }

    /// Requires that each of these attributes is the same as in `record`, or still missing.
    pub(crate) fn if_unchanged(mut self, record: &Record, attributes: &[&'static str]) -> Self {
        for attribute in attributes {
            self.conditions.push(match record.item.get(*attribute) {
                Some(value) => Condition::Equals(attribute, value.clone()),
                None => Condition::Missing(attribute),
            });
        }
        self
    }

    /// Replaces what to say if a condition fails.
    pub(crate) fn or_say(mut self, refusal: impl Into<String>) -> Self {
        self.refusal = refusal.into();
        self
    }
}

/// The outcome of a write or a transaction.
pub(crate) enum Outcome {
    /// Everything was written.
    Done,
    /// A condition failed, and nothing was written.
    Refused(Refusal),
}

pub(crate) struct Refusal {
    /// What to say.
    reason: String,
    /// The existing record. `None` if there is none.
    pub(crate) existing: Option<Record>,
}

impl Refusal {
    pub(crate) fn into_error(self) -> anyhow::Error {
        anyhow!(self.reason)
    }
}

impl Outcome {
    /// Fails if the write was refused.
    pub(crate) fn done(self) -> Result<()> {
        match self {
            Self::Done => Ok(()),
            Self::Refused(refusal) => Err(refusal.into_error()),
        }
    }
}

/// A write in the syntax of DynamoDB. `None` where a request must not have the field.
struct Rendered {
    condition: Option<String>,
    update: Option<String>,
    names: Option<HashMap<String, String>>,
    values: Option<Item>,
}

impl Write {
    /// Renders the write. The new value of the attribute `x` is `:x`, and its value in a condition is
    /// `:if_x`.
    fn render(&self) -> Rendered {
        let mut expressions = Expressions::default();
        let key_attribute = self.record.key.table().primary_key_attributes[0];
        let mut conditions = Vec::new();
        let mut update = None;
        match &self.change {
            Change::Put(_) => {
                let name = expressions.name(key_attribute);
                conditions.push(format!("attribute_not_exists({name})"));
            }
            Change::Update(assignments) => {
                let name = expressions.name(key_attribute);
                conditions.push(format!("attribute_exists({name})"));
                update = Some(render_update(assignments, &mut expressions));
            }
            Change::Check | Change::Delete => {}
        }
        for condition in &self.conditions {
            conditions.push(condition.render(&mut expressions));
        }
        Rendered {
            condition: (!conditions.is_empty()).then(|| conditions.join(" AND ")),
            update,
            names: expressions.names,
            values: expressions.values,
        }
    }
}

impl Condition {
    fn render(&self, expressions: &mut Expressions) -> String {
        match self {
            Self::Equals(attribute, value) => {
                let name = expressions.name(attribute);
                let value = expressions.value(&format!("if_{attribute}"), value.clone());
                format!("{name} = {value}")
            }
            Self::Missing(attribute) => {
                format!("attribute_not_exists({})", expressions.name(attribute))
            }
        }
    }
}

fn render_update(assignments: &[Assignment], expressions: &mut Expressions) -> String {
    let mut set = Vec::new();
    let mut remove = Vec::new();
    for assignment in assignments {
        match assignment {
            Assignment::Set(attribute, value) => {
                let name = expressions.name(attribute);
                let value = expressions.value(attribute, value.clone());
                set.push(format!("{name} = {value}"));
            }
            Assignment::SetOnce(attribute, value) => {
                let name = expressions.name(attribute);
                let value = expressions.value(attribute, value.clone());
                set.push(format!("{name} = if_not_exists({name}, {value})"));
            }
            Assignment::Remove(attribute) => remove.push(expressions.name(attribute)),
        }
    }
    let mut clauses = Vec::new();
    for (keyword, parts) in [("SET", set), ("REMOVE", remove)] {
        if !parts.is_empty() {
            clauses.push(format!("{keyword} {}", parts.join(", ")));
        }
    }
    clauses.join(" ")
}
