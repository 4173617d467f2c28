//! `env`: the environment variables with which the function uses a deployment's tables. They do not
//! include its settings: the tables do not show with which ones a service was started.

use anyhow::Result;
use workspace_management::store::Table;

use crate::{output::print_record, session::Session};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl env > target/local.env
  echo ANONYMOUS_OPERATIONS=allowed >> target/local.env
  cargo lambda watch --env-file target/local.env";

/// Prints a line `NAME=value` for each variable, or a JSON object.
pub(crate) async fn run(session: &Session) -> Result<()> {
    let deployment = session.deployment().await?;
    let tables = Table::ALL.iter();
    let tables = tables.map(|table| (table.variable, deployment.tables.name(*table)));
    // A local DynamoDB accepts any region and credentials.
    let local = deployment.local_endpoint.as_deref().map(|endpoint| {
        [
            ("AWS_ENDPOINT_URL_DYNAMODB", endpoint),
            ("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", endpoint),
            ("AWS_REGION", "us-east-1"),
            // boto3 reads only this one.
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
        ]
    });
    let variables: Vec<_> = tables.chain(local.into_iter().flatten()).collect();
    eprintln!(
        "not included, because the tables do not show them: \
        ANONYMOUS_OPERATIONS (default: denied), KEY_CACHE_SECONDS (default: 60)"
    );
    let lines = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let lines = Vec::from_iter(lines).join("\n");
    print_record(&variables.into_iter().collect(), &lines, session.json)
}
