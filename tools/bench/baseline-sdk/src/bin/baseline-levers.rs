//! The steps between the other baselines and the function. `LEVER` names the last lever that is
//! used, and each lever includes those before it.

use std::env;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::{
    Client,
    config::{Credentials, SharedCredentialsProvider},
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use baseline_sdk::ONE_MINUTE;
use lambda_http::Error;
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
        "cache" => defaults.load().await,
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
    let client = Client::new(&config);
    if lever != "cache" {
        baseline_sdk::connect(&client).await?;
    }
    baseline_sdk::serve(client, ONE_MINUTE).await
}
