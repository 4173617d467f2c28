//! A handler for `create_logging_instance` with the SDK. For each request, the handler finds the
//! record of the API key and writes the logging instance. The handler does not verify the secret of
//! the key.

use std::{
    collections::HashMap,
    env,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use lambda_http::{Body, Error, Request, RequestExt as _, Response, run, service_fn};

/// How long the function caches an API key.
pub const ONE_MINUTE: Duration = Duration::from_secs(60);

/// Reads the record of an API key that does not exist, which finds the credentials and opens the
/// connection to DynamoDB.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub async fn connect(client: &Client) -> Result<(), Error> {
    key_exists(client, "none").await?;
    Ok(())
}

/// Handles events until Lambda stops the process. Caches each API key for `key_ttl`.
///
/// # Errors
/// If Lambda's Runtime API fails.
pub async fn serve(client: Client, key_ttl: Duration) -> Result<(), Error> {
    let handler = &Handler {
        client,
        key_ttl,
        keys: Mutex::default(),
    };
    run(service_fn(|request| handler.create(request))).await
}

struct Handler {
    client: Client,
    key_ttl: Duration,
    /// When each API key was read, by id.
    keys: Mutex<HashMap<String, SystemTime>>,
}

impl Handler {
    async fn create(&self, request: Request) -> Result<Response<Body>, Error> {
        let key = request.headers().get("authorization").ok_or("no API key")?;
        let id = key.to_str()?.split('_').nth(1).ok_or("malformed API key")?;
        self.check_key(id).await?;
        let path = request.raw_http_path().to_owned();
        let mut segments = path.split('/').skip(4);
        let org = segments.next().ok_or("no organization")?;
        let project = segments.next().ok_or("no project")?;
        let body: serde_json::Value = serde_json::from_slice(request.body().as_ref())?;
        let name = body["projectName"].as_str().ok_or("no projectName")?;
        self.client
            .put_item()
            .table_name(env::var("LOGGING_INSTANCES_TABLE")?)
            .item("org_id", text(org))
            .item("project_id", text(project))
            .item("project_name", text(name))
            .send()
            .await?;
        Ok(Response::builder().status(204).body(Body::Empty)?)
    }

    async fn check_key(&self, id: &str) -> Result<(), Error> {
        let now = SystemTime::now();
        let keys = || self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let read_at = keys().get(id).copied();
        let age = read_at.and_then(|it| now.duration_since(it).ok());
        if age.is_some_and(|age| age < self.key_ttl) {
            return Ok(());
        }
        if !key_exists(&self.client, id).await? {
            return Err("unknown API key".into());
        }
        keys().insert(id.to_owned(), now);
        Ok(())
    }
}

async fn key_exists(client: &Client, id: &str) -> Result<bool, Error> {
    let read = client.get_item().table_name(env::var("KEYS_TABLE")?);
    Ok(read.key("key_id", text(id)).send().await?.item.is_some())
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}
