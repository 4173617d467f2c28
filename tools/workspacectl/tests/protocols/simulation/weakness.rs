//! Weaknesses: requests that lack a part of a protocol.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use test_support::simulation::Weaken;

/// A part of a protocol that requests lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weakness {
    /// A team is marked even if it is not the confirmed team.
    AnyTeamIsMarked,
    /// Transactions do not check the mark.
    DeletesWithoutCheck,
    /// The record itself is deleted without its condition.
    LastDeleteWithoutCondition,
    /// Queries and scans are eventually consistent: they return an earlier state.
    EventualReads,
    /// A membership is read with eventual consistency before it is deleted.
    EventualGets,
    /// The index lags longer than the command waits between two passes.
    SlowIndex,
    /// Only the first pass finds something in the index.
    OnePass,
    /// A run that continues the work of an earlier run does not wait.
    NoWaitInRerun,
    /// A run with an export does not check whether a run without one has begun to delete.
    UnexportedUnchecked,
    /// A cancel changes no attribute that a mark compares.
    CancelWithoutStamp,
    /// Changes of an organization's state do not check the state that was read.
    StateUnchecked,
    /// A scan for an organization's records looks for the id without the `#`.
    PrefixWithoutSeparator,
    /// New keys do not check the organization.
    KeysWithoutCheck,
    /// New keys do not check that the registration of the organization has not changed.
    KeysOfAnyRegistration,
}

impl Weakness {
    /// Changes requests on their way.
    pub(super) fn into_weaken(self) -> Weaken {
        Arc::new(move |action, body| self.apply(action, body))
    }

    /// Removes the part from a request.
    fn apply(self, action: &str, body: &mut Value) {
        match (self, action) {
            (Self::EventualReads, "Query" | "Scan") => body["ConsistentRead"] = json!(false),
            (Self::EventualGets, "GetItem") if body["TableName"] == "TeamMembersTable" => {
                body["ConsistentRead"] = json!(false);
            }
            (Self::PrefixWithoutSeparator, "Scan") => {
                let values = body["ExpressionAttributeValues"].as_object_mut();
                for value in values.into_iter().flat_map(|values| values.values_mut()) {
                    let prefix = value["S"].as_str().unwrap_or_default();
                    value["S"] = json!(prefix.trim_end_matches('#'));
                }
            }
            (_, "TransactWriteItems") => {
                let actions = body["TransactItems"].as_array_mut().expect("actions");
                let has = |checked: &str| actions.iter().any(|it| !it[checked].is_null());
                if (self == Self::DeletesWithoutCheck && has("Delete"))
                    || (self == Self::KeysWithoutCheck && has("Put"))
                {
                    actions.retain(|action| action["ConditionCheck"].is_null());
                }
                for action in actions {
                    for (name, write) in action.as_object_mut().expect("an action") {
                        self.apply_to_write(name, write);
                    }
                }
            }
            _ => {}
        }
    }

    /// Removes the part from an action of a transaction.
    fn apply_to_write(self, name: &str, write: &mut Value) {
        let condition = write["ConditionExpression"].as_str().unwrap_or_default();
        let update = write["UpdateExpression"].as_str().unwrap_or_default();
        match (self, name) {
            (Self::AnyTeamIsMarked, "Update") if condition.contains(":if_created_at") => {
                let weak = "attribute_exists(#project) AND attribute_not_exists(#removing_id)";
                replace_condition(write, weak);
            }
            (Self::UnexportedUnchecked, "Update")
                if condition.contains("#removing_unexported_by") =>
            {
                let (others, _) = condition.rsplit_once(" AND ").expect("several conditions");
                let others = others.to_owned();
                replace_condition(write, &others);
            }
            (Self::CancelWithoutStamp, "Update") if update.contains("REMOVE #removing_id") => {
                let names = &mut write["ExpressionAttributeNames"];
                names["#removal_cancelled_at"] = json!("a_different_attribute");
            }
            (Self::KeysOfAnyRegistration, "ConditionCheck")
                if condition.contains("#request_id = :if_request_id") =>
            {
                let weak = "attribute_not_exists(#disabled_at) \
                    AND attribute_not_exists(#erasing_id)";
                replace_condition(write, weak);
            }
            (Self::LastDeleteWithoutCondition, "Delete") => replace_condition(write, ""),
            (Self::StateUnchecked, "Update") if condition.contains("#erasing_id") => {
                let weak = "attribute_exists(#org_id) AND attribute_not_exists(#erasing_id)";
                replace_condition(write, weak);
            }
            _ => {}
        }
    }
}

/// Replaces the condition of a request or an action, or removes it if `condition` is empty. Also
/// removes the placeholders that only the old condition used, which DynamoDB would reject.
fn replace_condition(body: &mut Value, condition: &str) {
    let update = body["UpdateExpression"].as_str().unwrap_or_default();
    let expressions = format!("{update} {condition}");
    let is_end = |character: char| !character.is_alphanumeric() && !"#:_".contains(character);
    let words: BTreeSet<&str> = expressions.split(is_end).collect();
    let fields = body.as_object_mut().expect("an object");
    fields.remove("ConditionExpression");
    if !condition.is_empty() {
        fields.insert("ConditionExpression".to_owned(), json!(condition));
    }
    for name in ["ExpressionAttributeNames", "ExpressionAttributeValues"] {
        if let Some(Value::Object(placeholders)) = fields.get_mut(name) {
            placeholders.retain(|placeholder, _| words.contains(placeholder.as_str()));
            if placeholders.is_empty() {
                fields.remove(name);
            }
        }
    }
}
