//! A handler with the SDK's default settings, as it is usually written. The handler reads the API
//! key for each request, and the first request opens the connection to DynamoDB.

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use lambda_http::Error;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    baseline_sdk::serve(Client::new(&config), Duration::ZERO).await
}
