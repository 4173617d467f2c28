//! Weaknesses: requests that lack a part of a protocol.

use std::sync::Arc;

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
        let condition = body["ConditionExpression"].as_str().unwrap_or_default();
        match (self, action) {
            (Self::EventualReads, "Query" | "Scan") => body["ConsistentRead"] = json!(false),
            (Self::EventualGets, "GetItem") if body["TableName"] == "TeamMembersTable" => {
                body["ConsistentRead"] = json!(false);
            }
            (Self::AnyTeamIsMarked, "UpdateItem") if condition.contains(":created_at") => {
                body["ConditionExpression"] = json!("attribute_exists(team_id)");
                remove_values(body, &[":created_at", ":request_id"]);
            }
            (Self::DeletesWithoutCheck | Self::KeysWithoutCheck, "TransactWriteItems") => {
                let is_of_key = self == Self::KeysWithoutCheck;
                let checked = if is_of_key { "Put" } else { "Delete" };
                let actions = body["TransactItems"].as_array_mut().expect("actions");
                if actions.iter().any(|action| !action[checked].is_null()) {
                    actions.retain(|action| action["ConditionCheck"].is_null());
                }
            }
            (Self::KeysOfAnyRegistration, "TransactWriteItems") => {
                let actions = body["TransactItems"].as_array_mut().expect("actions");
                let checks = actions
                    .iter_mut()
                    .filter_map(|action| action.get_mut("ConditionCheck"));
                for check in checks {
                    let condition = check["ConditionExpression"].as_str().unwrap_or_default();
                    let (part, weak) = ("request_id = :registration", "attribute_exists(org_id)");
                    if condition.contains(part) {
                        check["ConditionExpression"] = json!(condition.replace(part, weak));
                        let members = check.as_object_mut().expect("an object");
                        members.remove("ExpressionAttributeValues");
                    }
                }
            }
            (Self::LastDeleteWithoutCondition, "DeleteItem") => {
                let fields = body.as_object_mut().expect("an object");
                fields.remove("ConditionExpression");
                fields.remove("ExpressionAttributeValues");
            }
            (Self::StateUnchecked, "UpdateItem") if condition.contains("erasing_id") => {
                body["ConditionExpression"] =
                    json!("attribute_exists(org_id) AND attribute_not_exists(erasing_id)");
                remove_values(body, &[":disabled_at", ":enabled_at"]);
            }
            (Self::PrefixWithoutSeparator, "Scan") => {
                let value = body.pointer_mut("/ExpressionAttributeValues/:prefix/S");
                if let Some(Value::String(value)) = value {
                    *value = value.trim_end_matches('#').to_owned();
                }
            }
            _ => {}
        }
    }
}

fn remove_values(body: &mut Value, names: &[&str]) {
    let values = body["ExpressionAttributeValues"].as_object_mut();
    let values = values.expect("values");
    values.retain(|name, _| !names.contains(&name.as_str()));
}
