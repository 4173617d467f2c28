//! The permissions that policies of IAM grant, and that requests need. A permission is an action
//! with a resource as the policy writes it: `dynamodb:GetItem KeysTable.Arn`.

use std::{collections::BTreeSet, slice};

use serde_json::Value;
use yaml_serde::Value as Yaml;

use crate::hook::Request;

/// The permissions that the statements of a policy grant. Of an ARN, only the last part counts.
pub fn granted<'a>(statements: impl IntoIterator<Item = &'a Yaml>) -> BTreeSet<String> {
    let check = |statement: &&Yaml| assert_eq!(statement["Effect"], "Allow");
    listed(statements.into_iter().inspect(check))
}

/// The permissions that the statements of a policy list, whether they grant or deny them.
pub fn listed<'a>(statements: impl IntoIterator<Item = &'a Yaml>) -> BTreeSet<String> {
    let mut granted = BTreeSet::new();
    for statement in statements {
        for action in texts(&statement["Action"]) {
            for resource in texts(&statement["Resource"]) {
                let resource = resource.rsplit(':').next().unwrap();
                granted.insert(format!("{action} {resource}"));
            }
        }
    }
    granted
}

fn texts(value: &Yaml) -> impl Iterator<Item = &str> {
    let list = value.as_sequence();
    let list = list.map_or(slice::from_ref(value), Vec::as_slice);
    list.iter().map(|text| text.as_str().unwrap())
}

/// The permissions that a request to DynamoDB needs. `resource` is how the policy writes a table,
/// or the index of a table.
pub fn needed(
    request: &Request,
    resource: impl Fn(&str, Option<&str>) -> String,
) -> BTreeSet<String> {
    let permission = |action: &str, table: &str, index: Option<&str>| {
        format!("dynamodb:{action} {}", resource(table, index))
    };
    let of_body = |action: &str, body: &Value| {
        let table = body["TableName"].as_str().unwrap();
        permission(action, table, body["IndexName"].as_str())
    };
    let (action, body) = (&request.action, &request.body);
    if let Some(reads) = body["RequestItems"].as_object() {
        let tables = reads.keys();
        return tables
            .map(|table| permission(action, table, None))
            .collect();
    }
    let Some(items) = body["TransactItems"].as_array() else {
        return [of_body(action, body)].into();
    };
    let items = items.iter().flat_map(|item| item.as_object().unwrap());
    // `Put`, `Update`, `Delete` and `ConditionCheck` need `dynamodb:PutItem` and so on.
    let needed = items.map(|(name, body)| of_body(&format!("{name}Item"), body));
    needed.collect()
}
