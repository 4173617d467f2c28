//! `list`: lists the records that were stored through the API.

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use workspace_management::records::Table;
use workspace_records::{
    columns::columns,
    kinds::{Kind, api_tables},
};

use crate::{
    arguments::{parse_identifier, table_parser},
    context::{Context, GlobalOptions},
    deployment::Deployment,
    errors::UsageError,
    key_record,
    message::print_message,
    organization,
    output::print_listing,
    read::{self, LimitArgs, Listing, Scope},
    record::Record,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl list teams --org acme --project apollo
  workspacectl list members --org acme --project apollo --team research-team --json
  workspacectl list members --user ada@example.com
  workspacectl list models --limit 100";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The kind of record to list
    #[arg(value_name = "KIND", value_parser = table_parser(api_tables()))]
    table: Table,
    /// Only records of this organization
    #[arg(long, value_parser = parse_identifier)]
    org: Option<String>,
    /// Only teams or members of this project
    #[arg(long, requires = "org", value_parser = parse_identifier)]
    project: Option<String>,
    /// Only members of this team
    #[arg(long, requires = "project", value_parser = parse_identifier)]
    team: Option<String>,
    /// Only memberships of this user. Cannot be combined with --project or --limit
    #[arg(long, conflicts_with_all = ["project", "limit"], value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,
    #[command(flatten)]
    limit: LimitArgs,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let table = args.table;
    let org = args.org.clone();
    let ids = partition_key_ids(table, [args.org, args.project, args.team])?;
    if args.user.is_some() && table != Table::TEAM_MEMBERS {
        return Err(UsageError("only members can be filtered by --user".to_owned()).into());
    }
    let Context {
        deployment,
        options,
    } = options.connect().await?;
    let Listing { records, is_cut } = match &args.user {
        Some(user) => memberships(&deployment, org.as_deref(), user).await?,
        None => {
            scope(&deployment, table, &ids)
                .await?
                .list(&deployment, args.limit)
                .await?
        }
    };
    // An empty list can mean a mistyped id, so check that the organization exists.
    if records.is_empty() {
        if let Some(org) = &org {
            organization::require(&deployment, org).await?;
        }
        print_message(&format!("no {} match the options", Kind::of(table).plural));
    }
    let mut records: Vec<_> = records.iter().map(Record::to_json).collect();
    if !options.json {
        key_record::add_labels(&deployment, &mut records).await?;
    }
    print_listing(&records, is_cut, &columns(table, &records), &options)
}

/// The memberships of a user. Reads each record, because the index can still list deleted ones.
async fn memberships(deployment: &Deployment, org: Option<&str>, user: &str) -> Result<Listing> {
    let mut records = Vec::new();
    for member in Scope::user_in_index(org, user).read(deployment).await? {
        records.extend(read::find(deployment, &member.key).await?);
    }
    let is_cut = false;
    Ok(Listing { records, is_cut })
}

/// The ids given with `--org`, `--project` and `--team`. Fails if one does not apply to the kind.
fn partition_key_ids(table: Table, ids: [Option<String>; 3]) -> Result<Vec<String>, UsageError> {
    // Each option requires the one before it, so the number of ids says which were given.
    let ids: Vec<_> = ids.into_iter().flatten().collect();
    if ids.len() > Kind::of(table).partition_key_parts.len() {
        let options = Kind::of(table).partition_key_parts.join(", --");
        let message = format!(
            "{} can only be filtered by --{options}",
            Kind::of(table).plural
        );
        return Err(UsageError(message));
    }
    Ok(ids)
}

/// The records with these ids. If the ids are not a whole partition key, finds the partitions in an
/// index.
async fn scope(deployment: &Deployment, table: Table, ids: &[String]) -> Result<Scope> {
    Ok(match ids {
        [] => Scope::all(table),
        _ if ids.len() == Kind::of(table).partition_key_parts.len() => {
            Scope::partition(table, &ids.join("#"))
        }
        [org, rest @ ..] => {
            let project = rest.first().map(String::as_str);
            Scope::teams_or_members(deployment, table, org, project).await?
        }
    })
}
