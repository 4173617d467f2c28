//! A handler with the SDK's default settings, by an author who knows Lambda. The handler caches API
//! keys, and opens the connection to DynamoDB before the first event.

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use baseline_sdk::ONE_MINUTE;
use lambda_http::Error;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let client = Client::new(&config);
    baseline_sdk::connect(&client).await?;
    baseline_sdk::serve(client, ONE_MINUTE).await
}
