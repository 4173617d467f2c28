//! Serves the API in front of any DynamoDB, such as DynamoDB Local, moto or a proxy. Creates missing
//! tables, and stores the demo organization and its key.
//!
//! usage: `cargo run --package workspace-local --example api -- DYNAMODB_URL`

use std::{env, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::Client;
use tokio::net::TcpListener;
use workspace_local::{
    demo::store_demo,
    gateway,
    tables::{create_missing, sdk_config, table_names},
};
use workspace_management::{auth::AnonymousOperations, service::Service, store::Store};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let url = env::args().nth(1).context("usage: api DYNAMODB_URL")?;
    let client = Client::from_conf(sdk_config(&url).build());
    create_missing(&client, &table_names()).await?;
    store_demo(&client, &table_names()).await?;

    // Without a cache, so that a disabled organization and a removed team have an effect at once.
    let store = Store::new(sdk_config(&url), table_names(), Duration::ZERO);
    let service = Service::new(store, AnonymousOperations::Allowed);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, gateway::routes(Arc::new(service), None)?).await?;
    Ok(())
}
