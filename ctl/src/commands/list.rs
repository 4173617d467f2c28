//! `list`: the records that the operations store.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;
use workspace_management::store::Table;

use crate::{
    commands::orgs,
    deployment::Deployment,
    index::{partitions_of, teams_of},
    output::print_page,
    query::{Page, PageOptions, Query, Scope},
    records::get,
    session::Session,
    similar,
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

/// The columns that come last, if a record has them.
const AUDIT_COLUMNS: [&str; 4] = ["created_at", "created_by", "updated_at", "updated_by"];

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
    /// Only memberships of this user in the organization (members). Reads all members to name similar
    /// ids
    #[arg(long, requires = "org", conflicts_with_all = ["project", "limit"], value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// The tables that the command lists. Organizations and keys have their own commands.
pub(crate) fn kinds() -> impl Iterator<Item = Table> {
    Table::ALL
        .iter()
        .copied()
        .filter(|table| ![Table::ORGANIZATIONS, Table::KEYS].contains(table))
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
            orgs::record::find(deployment, org).await?;
        }
        eprintln!("there are no such {}", table.noun);
    }
    let columns = columns(table, &page.records);
    print_page(&page, &columns, session)?;
    if let (Some(user), Some(org)) = (&options.user, &org) {
        let teams = partitions_of(deployment, table, org, None).await?;
        similar::report(deployment, teams, user, !page.records.is_empty()).await?;
    }
    Ok(())
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

/// The scope that identifiers select. Only teams and their members are found in an index: other
/// records of projects can exist without a team.
async fn scope(deployment: &Deployment, table: Table, values: &[String]) -> Result<Scope> {
    Ok(match values {
        [] => Scope::All,
        _ if values.len() == table.partition.len() => {
            Scope::partition(table.primary_key[0], &values.join("#"))
        }
        [org, rest @ ..] if [Table::TEAMS, Table::TEAM_MEMBERS].contains(&table) => {
            let project = rest.first().map(String::as_str);
            let partitions = partitions_of(deployment, table, org, project).await?;
            Scope::Partitions(table.primary_key[0], partitions)
        }
        _ => Scope::partitions_of(table, &values.join("#")),
    })
}

/// The attributes that identify a record that can be listed: those of its key, or, where the key joins
/// several values, the attributes with these values.
pub(crate) fn key_columns(table: Table) -> Vec<&'static str> {
    let ids = ["org_id", "project_id", "team_id"];
    let sort_key = match table {
        Table::MODELS => &["model_type", "model_id"],
        _ => &table.primary_key[1..],
    };
    [&ids[..table.partition.len()], sort_key].concat()
}

/// The columns of a table of records: the key, then the content, then the audit attributes.
pub(crate) fn columns<'a>(
    table: Table,
    records: impl IntoIterator<Item = &'a Value>,
) -> Vec<&'a str> {
    let attributes: BTreeSet<&str> = records
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|record| record.keys().map(String::as_str))
        .collect();
    let key = key_columns(table);
    let content = attributes.iter().copied().filter(|name| {
        !table.primary_key.contains(name)
            && !key.contains(name)
            && !AUDIT_COLUMNS.contains(name)
            && !name.ends_with("request_id")
    });
    let audit = AUDIT_COLUMNS
        .into_iter()
        .filter(|name| attributes.contains(name));
    key.iter().copied().chain(content).chain(audit).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn records_of_projects_without_teams_are_listed() {
        let table = Table {
            logical_id: "LibrariesTable",
            variable: "LIBRARIES_TABLE",
            noun: "libraries",
            primary_key: &["project", "library_id"],
            partition: &["org", "project"],
        };
        let deployment = Deployment::local("http://127.0.0.1:1");

        let scope = scope(&deployment, table, &["acme".to_owned()]).await;

        let prefix = "acme#".to_owned();
        assert!(matches!(scope, Ok(Scope::Filter(_, "project", found)) if found == prefix));
        let key = ["org_id", "project_id", "library_id"];
        assert_eq!(key_columns(table), key);
    }

    #[test]
    fn the_options_cover_the_partition_of_every_kind() {
        for table in kinds() {
            assert!(
                ["org", "project", "team"].starts_with(table.partition),
                "{}",
                table.noun
            );
        }
    }

    #[test]
    fn columns_show_the_key_then_the_content_then_the_audit_attributes() {
        let records = [
            json!({ "bot_id": "b", "org_id": "o", "type": "t", "enabled": true, "created_by": "c",
                "created_at": "d", "request_id": "r" }),
            json!({ "bot_id": "b", "org_id": "o", "updated_by": "u", "updated_request_id": "r" }),
        ];
        assert_eq!(
            columns(Table::BOT_VOICES, &records),
            [
                "org_id",
                "bot_id",
                "enabled",
                "type",
                "created_at",
                "created_by",
                "updated_by"
            ]
        );
        assert_eq!(columns(Table::BOT_VOICES, &[]), ["org_id", "bot_id"]);
    }
}
