//! The function's role allows the actions that the code uses, and no more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use test_support::TestApp;
use workspace_management::{operations::Operation, store::Table};
use workspace_records::tables::template;
use yaml_serde::Value;

use crate::operations::{Sample, SampleValues};

fn properties(resource: &str) -> &'static Value {
    &template().unwrap()["Resources"][resource]["Properties"]
}

/// The statements of each policy of the function's role, by the name of the policy.
fn policies() -> BTreeMap<String, Vec<Value>> {
    let role = properties("FunctionRole");
    let mut policies = BTreeMap::new();
    for policy in role["Policies"].as_sequence().unwrap() {
        let name = policy["PolicyName"].as_str().unwrap().to_owned();
        let statements = policy["PolicyDocument"]["Statement"].as_sequence();
        policies.insert(name, statements.unwrap().clone());
    }
    policies
}

/// The actions that the policy `records` allows, each with the logical id of a table.
fn allowed_actions() -> BTreeSet<(String, String)> {
    let mut allowed = BTreeSet::new();
    for statement in &policies()["records"] {
        assert_eq!(statement["Effect"], "Allow");
        let action = statement["Action"].as_str().unwrap();
        let action = action.strip_prefix("dynamodb:").unwrap();
        for resource in statement["Resource"].as_sequence().unwrap() {
            let table = resource.as_str().unwrap().strip_suffix(".Arn").unwrap();
            allowed.insert((action.to_owned(), table.to_owned()));
        }
    }
    allowed
}

/// SAM adds managed policies to a role only if it creates the role itself.
#[test]
fn outside_dynamodb_the_function_may_only_write_its_log() {
    let function = properties("Function");
    assert_eq!(function["Role"], "FunctionRole.Arn");
    assert_eq!(function.get("Policies"), None);
    assert_eq!(properties("FunctionRole").get("ManagedPolicyArns"), None);
    let policies = policies();
    assert!(policies.keys().eq(["log", "records"]));
    let [log] = &policies["log"][..] else {
        panic!("{policies:?}");
    };
    let actions = ["logs:CreateLogStream", "logs:PutLogEvents"].map(Value::from);
    assert_eq!(log["Action"].as_sequence().unwrap(), &actions);
    assert_eq!(log["Resource"], "LogGroup.Arn");
}

#[tokio::test]
async fn the_policy_allows_exactly_the_actions_that_the_operations_use() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let with_one_entry = SampleValues {
        entries: vec![("ada".to_owned(), 1)],
        ..SampleValues::example()
    };
    let client = app.client_with_new_key("acme").await;
    for operation in Operation::ALL {
        for values in [&with_one_entry, &SampleValues::example()] {
            let sample = Sample::of(*operation, values);
            app.advance_clock(Duration::from_secs(60));
            client
                .post(&sample.path, sample.body.clone())
                .await
                .assert_success();
            if operation.is_key_optional() {
                // The status depends on the operation, because the records exist.
                app.advance_clock(Duration::from_secs(60));
                app.anonymous_client().post(&sample.path, sample.body).await;
            }
        }
    }

    let mut used = BTreeSet::new();
    for request in app.dynamodb_requests.take() {
        let body = request.body.to_string();
        // A transaction needs permission for its actions, and the service sends only updates in
        // transactions.
        let action = request.action.replace("TransactWriteItems", "UpdateItem");
        for table in Table::ALL {
            if body.contains(app.table_names.get(*table)) {
                used.insert((action.clone(), table.logical_id.to_owned()));
            }
        }
    }
    assert_eq!(used, allowed_actions());
}
