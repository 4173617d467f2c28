//! A handler for `create_logging_instance` with the SDK's default settings. For each request, the
//! handler reads the record of the API key and writes the logging instance. The handler does not
//! verify the secret of the key.

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, types::AttributeValue};
use lambda_http::{Body, Error, Request, RequestExt as _, Response, run, service_fn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let client = Client::new(&config);
    run(service_fn(|request: Request| create(&client, request))).await
}

async fn create(client: &Client, request: Request) -> Result<Response<Body>, Error> {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let key = request.headers().get("authorization").ok_or("no API key")?;
    let id = key.to_str()?.split('_').nth(1).ok_or("malformed API key")?;
    let keys = std::env::var("KEYS_TABLE")?;
    let read = client.get_item().table_name(keys).key("key_id", text(id));
    read.send().await?.item.ok_or("unknown API key")?;
    let path = request.raw_http_path().to_owned();
    let mut segments = path.split('/').skip(4);
    let org = segments.next().ok_or("no organization")?;
    let project = segments.next().ok_or("no project")?;
    let body: serde_json::Value = serde_json::from_slice(request.body().as_ref())?;
    client
        .put_item()
        .table_name(std::env::var("LOGGING_INSTANCES_TABLE")?)
        .item("org_id", text(org))
        .item("project_id", text(project))
        .item(
            "project_name",
            text(body["projectName"].as_str().ok_or("no projectName")?),
        )
        .send()
        .await?;
    Ok(Response::builder().status(204).body(Body::Empty)?)
}
