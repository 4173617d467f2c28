//! The function's role allows the actions that the code uses, and no more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use test_support::{TestApp, iam};
use workspace_management::operations::Operation;
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

    // Names of tables end with the logical id.
    let arn = |table: &str, _: Option<&str>| format!("{}.Arn", table.rsplit('-').next().unwrap());
    let requests = app.take_requests();
    let needed = requests
        .iter()
        .flat_map(|request| iam::needed(request, arn));
    let needed: BTreeSet<_> = needed.collect();
    assert_eq!(needed, iam::granted(&policies()["records"]));
}
