//! A handler that sends one `PutItem` with the function's SDK client, as `create_logging_instance`
//! does when the function is warm. It shows the cost of the SDK.

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use lambda_http::{Body, Error, Request, Response, run, service_fn};
use workspace_management::config::Config;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env()?.dynamodb.connect().await?;
    let client = Client::from_conf(config.build());
    let table = std::env::var("LOGGING_INSTANCES_TABLE")?;
    run(service_fn(|_: Request| put(&client, &table))).await
}

async fn put(client: &Client, table: &str) -> Result<Response<Body>, Error> {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    client
        .put_item()
        .table_name(table)
        .item("org_id", text("acme"))
        .item("project_id", text("baseline-sdk"))
        .item("project_name", text("Apollo"))
        .item("created_at", text("2026-01-01T00:00:00.000Z"))
        .item("created_by", text("acmeDemoKey1"))
        .item("request_id", text("event-create-logging-instance"))
        .send()
        .await?;
    Ok(Response::builder().status(204).body(Body::Empty)?)
}
