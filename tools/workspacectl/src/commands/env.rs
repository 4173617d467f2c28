//! `env`: prints the environment variables for running the function locally. These name the tables
//! and, for the local service, its DynamoDB. Variables that configure the function are left out.

use anyhow::Result;
use serde_json::Value;

use crate::{
    context::{Context, GlobalOptions},
    deployment::Place,
    message::print_message,
    output::print_json_or_text,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl env > target/local.env
  echo ANONYMOUS_OPERATIONS=allowed >> target/local.env
  cargo lambda watch --env-file target/local.env";

/// Prints a line `NAME=value` for each variable, or a JSON object.
pub(crate) async fn execute(options: GlobalOptions) -> Result<()> {
    let Context {
        deployment,
        options,
    } = options.connect().await?;
    let mut variables: Vec<(&str, &str)> = deployment
        .tables()
        .map(|(table, name)| (table.env_variable, name))
        .collect();
    if let Place::LocalService { dynamodb_url } = &deployment.place {
        // A local DynamoDB accepts any region and credentials.
        variables.extend([
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_url.as_str()),
            ("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", dynamodb_url),
            ("AWS_REGION", "us-east-1"),
            // For programs that use boto3, which does not read AWS_REGION.
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
        ]);
    }
    print_message(
        "ANONYMOUS_OPERATIONS (default: denied) and KEY_CACHE_SECONDS (default: 60) are not included: \
        to override the defaults, add them yourself",
    );
    let lines = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let text = Vec::from_iter(lines).join("\n");
    print_json_or_text(&Value::from_iter(variables), &text, &options)
}
