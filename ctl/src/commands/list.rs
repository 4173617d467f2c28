//! `list`: the records that the operations store.

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use workspace_management::store::Table;
use workspace_records::columns::{columns, kinds};

use crate::{
    commands::orgs::organization::Organization,
    deployment::Deployment,
    index::{partitions_of, teams_of},
    output::print_page,
    query::{Page, PageOptions, Query, Scope, get},
    session::Session,
    usage::{UsageError, identifier, kind_parser},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl list teams --org acme --project apollo
  workspacectl list members --org acme --project apollo --team research-team --json
  workspacectl list members --org acme --user ada@example.com
  workspacectl list models --limit 100
  workspacectl list models --limit 100 --after CURSOR    # the cursor that the previous page printed
  workspacectl list models --limit 100 --json | jq -r .next";

/// Which records to list.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The kind of records
    #[arg(value_parser = kind_parser(kinds()))]
    kind: Table,
    #[arg(long, help = scope_help("organization", "org"), value_parser = identifier)]
    org: Option<String>,
    #[arg(long, requires = "org", help = scope_help("project", "project"), value_parser = identifier)]
    project: Option<String>,
    #[arg(long, requires = "project", help = scope_help("team", "team"), value_parser = identifier)]
    team: Option<String>,
    /// Only memberships of this user in the organization (members)
    #[arg(long, requires = "org", conflicts_with_all = ["project", "limit"], value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// The help of an option that selects records by an identifier of their partition key.
fn scope_help(noun: &str, identifier: &str) -> String {
    let kinds: Vec<_> = kinds()
        .filter(|table| table.partition.contains(&identifier))
        .map(|table| table.noun)
        .collect();
    format!("Only records of this {noun} ({})", kinds.join(", "))
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let table = options.kind;
    let org = options.org.clone();
    let values = identifiers(table, [options.org, options.project, options.team])?;
    if options.user.is_some() && table != Table::TEAM_MEMBERS {
        return Err(UsageError("only members can be filtered by --user".to_owned()).into());
    }
    if !values.is_empty() {
        options
            .page
            .check(table.primary_key[0], &values.join("#"))?;
    }
    let deployment = session.deployment().await?;
    let page = match (&options.user, &org) {
        (Some(user), Some(org)) => memberships(deployment, org, user).await?,
        _ => {
            let scope = scope(deployment, table, &values).await?;
            let query = Query::new(table, scope).page(options.page);
            query.run(deployment).await?
        }
    };
    if page.records.is_empty() {
        if let Some(org) = &org {
            Organization::find(deployment, org).await?;
        }
        eprintln!("there are no such {}", table.noun);
    }
    let columns = columns(table, &page.records);
    print_page(&page, &columns, session)
}

/// The memberships of a user in the teams of an organization.
async fn memberships(deployment: &Deployment, org: &str, user: &str) -> Result<Page> {
    let mut records = Vec::new();
    for team in teams_of(deployment, org, user).await? {
        let key = [team.as_str(), user];
        records.extend(get(deployment, Table::TEAM_MEMBERS, &key).await?);
    }
    Ok(Page {
        records,
        ..Page::default()
    })
}

/// The values of `--org`, `--project` and `--team` that select records. Each requires the one before
/// it.
fn identifiers(table: Table, values: [Option<String>; 3]) -> Result<Vec<String>, UsageError> {
    let values: Vec<_> = values.into_iter().flatten().collect();
    if values.len() > table.partition.len() {
        let options: Vec<_> = table.partition.iter().map(|id| format!("--{id}")).collect();
        return Err(UsageError(format!(
            "{} can only be filtered by {}",
            table.noun,
            options.join(", ")
        )));
    }
    Ok(values)
}

/// The scope that identifiers select. The teams of an organization or a project, and their members, are
/// found in an index.
async fn scope(deployment: &Deployment, table: Table, values: &[String]) -> Result<Scope> {
    Ok(match values {
        [] => Scope::All,
        _ if values.len() == table.partition.len() => {
            Scope::partition(table.primary_key[0], &values.join("#"))
        }
        [org, rest @ ..] => {
            let project = rest.first().map(String::as_str);
            let partitions = partitions_of(deployment, table, org, project).await?;
            Scope::Partitions(table.primary_key[0], partitions)
        }
    })
}
