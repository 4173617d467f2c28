//! `keys create`: creates and prints an API key.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use workspace_management::operations::Operation;
use workspace_records::contract::Description;

use super::{
    key_arguments::{Expiry, parse_expiry, parse_label},
    new_key::{KeyRequest, NewKey, check_can_print},
};
use crate::{
    arguments::parse_identifier,
    context::{GlobalOptions, ReasonArgs},
    errors::UsageError,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys create --org globex --label ci --expires 90d --allow create_team,add_team_users
  workspacectl keys create --org globex --project apollo --project zeus
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
    /// The projects that the key is limited to, separated by commas: the key may then call only
    /// operations with one of these projects in the path [default: no limit]
    #[arg(long = "project", value_name = "PROJECTS", value_delimiter = ',', value_parser = parse_identifier)]
    projects: Option<Vec<String>>,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    if args.projects.is_some() {
        check_paths_have_project(args.allow.as_deref().unwrap_or_default())?;
    }
    check_can_print()?;
    let context = options.connect().await?;
    let run = context.begin_run(args.reason).await?;
    let request = KeyRequest {
        org: args.org,
        label: args.label,
        expiry: args.expires,
        operations: args.allow,
        projects: args.projects,
    };
    let new_key = NewKey::issue(&context.deployment, &run, request, None).await?;
    new_key.print_or_revoke(&context, &run, None).await
}

/// Fails if the path of an operation has no project.
fn check_paths_have_project(operation_names: &[String]) -> Result<(), UsageError> {
    for operation in Operation::ALL {
        let name = operation.name();
        let has_project = Description::of(*operation).path.contains("{project_id}");
        if !has_project && operation_names.iter().any(|it| it == name) {
            return Err(UsageError(format!(
                "a key with --project cannot call {name}, whose path has no project: issue a separate key for {name}"
            )));
        }
    }
    Ok(())
}
