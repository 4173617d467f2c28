//! A handler for `create_logging_instance` with the SDK. For each request, the handler finds the
//! record of the API key and writes the logging instance. The handler does not verify the secret of
//! the key.
//!
//! `LEVER` names the program: the steps from `baseline-typical` to the function. Each includes the
//! steps before it.

use std::{
    collections::HashMap,
    env,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::{
    Client,
    config::{Credentials, SharedCredentialsProvider},
    types::AttributeValue,
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use lambda_http::{Body, Error, Request, RequestExt as _, Response, service_fn};
use tokio::runtime;

fn main() -> Result<(), Error> {
    let lever = env::var("LEVER")?;
    let mut runtime = match &*lever {
        "one-thread" => runtime::Builder::new_current_thread(),
        _ => runtime::Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(run(&lever))
}

async fn run(lever: &str) -> Result<(), Error> {
    let ring = Builder::new().tls_provider(Provider::rustls(CryptoMode::Ring));
    let defaults = aws_config::defaults(BehaviorVersion::latest());
    let config = match lever {
        "baseline-typical" | "cache" | "baseline-careful" => defaults.load().await,
        "ring" | "five-roots" => defaults.http_client(ring.build_https()).load().await,
        "no-credential-chain" | "one-thread" => SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .http_client(ring.build_https())
            .region(Region::new(env::var("AWS_REGION")?))
            .endpoint_url(env::var("AWS_ENDPOINT_URL_DYNAMODB")?)
            .credentials_provider(SharedCredentialsProvider::new(Credentials::new(
                env::var("AWS_ACCESS_KEY_ID")?,
                env::var("AWS_SECRET_ACCESS_KEY")?,
                env::var("AWS_SESSION_TOKEN").ok(),
                None,
                "environment",
            )))
            .build(),
        _ => return Err("unknown lever".into()),
    };
    let handler = &Handler {
        client: Client::new(&config),
        key_ttl: Duration::from_secs(if lever == "baseline-typical" { 0 } else { 60 }),
        keys: Mutex::default(),
    };
    if !["baseline-typical", "cache"].contains(&lever) {
        // Finds the credentials, and opens the connection to DynamoDB.
        handler.key_exists("none").await?;
    }
    lambda_http::run(service_fn(|request| handler.create(request))).await
}

struct Handler {
    client: Client,
    /// How long an API key is cached.
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
        if !self.key_exists(id).await? {
            return Err("unknown API key".into());
        }
        keys().insert(id.to_owned(), now);
        Ok(())
    }

    async fn key_exists(&self, id: &str) -> Result<bool, Error> {
        let read = self.client.get_item().table_name(env::var("KEYS_TABLE")?);
        Ok(read.key("key_id", text(id)).send().await?.item.is_some())
    }
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}
