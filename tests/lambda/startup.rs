//! The environment variables that the function reads when it starts.

use std::time::Duration;

use tokio::time::timeout;
use workspace_management::store::Table;

use crate::{
    function::{Function, anonymous, command, create_papers},
    support::World,
};

#[tokio::test]
async fn an_empty_variable_counts_as_unset() {
    let world = World::new().await;
    let variables = [
        ("AWS_ENDPOINT_URL_DYNAMODB", ""),
        ("AWS_ENDPOINT_URL", &*world.endpoint),
    ];
    let mut function = Function::start(&world, &variables).await;

    function
        .invoke(create_papers(&anonymous()))
        .await
        .is_success();
}

#[tokio::test]
async fn a_missing_or_invalid_variable_stops_the_function_with_an_error_that_names_it() {
    let world = World::new().await;
    let mut rows: Vec<_> = Table::ALL.map(|table| (table.variable, "")).into();
    rows.extend([
        ("ANONYMOUS_OPERATIONS", "perhaps"),
        ("KEY_CACHE_SECONDS", "a minute"),
        ("AWS_REGION", ""),
        ("AWS_ENDPOINT_URL_DYNAMODB", "127.0.0.1:8000"),
        ("SSL_CERT_FILE", "/no/such/file"),
    ]);

    for (variable, value) in rows {
        let mut command = command(&world, "127.0.0.1:9", &[(variable, value)]);
        let output = timeout(Duration::from_secs(10), command.output())
            .await
            .unwrap()
            .unwrap();

        assert!(!output.status.success(), "{variable}");
        let log = String::from_utf8(output.stdout).unwrap();
        let named = if variable == "SSL_CERT_FILE" {
            value
        } else {
            variable
        };
        assert!(log.contains(named), "{variable}: {log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}
#[tokio::test]
async fn the_variables_of_the_template_take_effect() {
    let world = World::new().await;
    let mut function = Function::start(
        &world,
        &[
            ("ANONYMOUS_OPERATIONS", "denied"),
            ("KEY_CACHE_SECONDS", "0"),
        ],
    )
    .await;
    let key = world.issue("acme", |_| {}).await;
    let holder = world.holder(&key);

    function
        .invoke(create_papers(&anonymous()))
        .await
        .is(401, "unauthenticated");
    function
        .invoke(create_papers(&holder.headers))
        .await
        .is_success();
    world.revoke(&key).await;
    function
        .invoke(create_papers(&holder.headers))
        .await
        .is(401, "unauthenticated");
}
