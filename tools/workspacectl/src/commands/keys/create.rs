//! `keys create`: creates and prints an API key.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use workspace_management::operations::Operation;

use super::{
    key_arguments::{Expiry, parse_expiry, parse_label},
    new_key::{KeyRequest, NewKey, check_can_print},
};
use crate::{
    arguments::parse_identifier,
    context::{GlobalOptions, ReasonArgs},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys create --org globex --label ci --expires 90d --allow create_team,add_team_users
  workspacectl keys create --org globex --expires 2027-01-31
  KEY=$(workspacectl keys create --org globex)";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The id of the organization, which must be enabled
    #[arg(long, value_parser = parse_identifier)]
    org: String,
    /// A label that `keys list` shows
    #[arg(long, default_value = "", value_parser = parse_label)]
    label: String,
    /// When the key expires: a duration such as 90d or 12h, the end of a day such as 2027-01-31 (UTC),
    /// a time with its offset such as 2027-01-31T18:00+01:00, or `never`
    #[arg(long, value_name = "WHEN", default_value = "365d", value_parser = parse_expiry)]
    expires: Expiry,
    /// The operations that the key may call, separated by commas [default: all]
    #[arg(long, value_name = "OPERATIONS", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Operation::ALL.iter().map(|operation| operation.name())))]
    allow: Option<Vec<String>>,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    check_can_print()?;
    let context = options.connect().await?;
    let run = context.begin_run(args.reason).await?;
    let request = KeyRequest {
        org: args.org,
        label: args.label,
        expiry: args.expires,
        operations: args.allow,
    };
    let new_key = NewKey::issue(&context.deployment, &run, request, None).await?;
    new_key.print_or_revoke(&context, &run, None).await
}
