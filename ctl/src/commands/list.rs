//! `list`: the records that the operations store.

use std::{collections::BTreeSet, num::NonZeroUsize};

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::{
    deployment::Deployment,
    output::print_records,
    query::{Page, Query, Scope, all_records},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl list teams --org acme --project apollo
  workspacectl list members --org acme --project apollo --team research-team --json
  workspacectl list models --limit 100
  workspacectl list models --limit 100 --after CURSOR    # the cursor that the previous page printed";

/// The columns that come last, if a record has them.
const AUDIT_COLUMNS: [&str; 4] = ["created_at", "created_by", "updated_at", "updated_by"];

/// Which records to list.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The kind of records
    #[arg(value_parser = kind_parser())]
    kind: Table,
    #[arg(long, help = scope_help("organization", "org"))]
    org: Option<String>,
    #[arg(long, requires = "org", help = scope_help("project", "project"))]
    project: Option<String>,
    #[arg(long, requires = "project", help = scope_help("team", "team"))]
    team: Option<String>,
    /// Print at most COUNT records, in DynamoDB's order [default: all records, sorted]
    #[arg(long, value_name = "COUNT")]
    limit: Option<NonZeroUsize>,
    /// Continue after the page that printed this cursor
    #[arg(long, value_name = "CURSOR", requires = "limit")]
    after: Option<String>,
}

/// The tables that the command lists. Organizations and keys have their own commands.
fn kinds() -> impl Iterator<Item = Table> {
    Table::ALL
        .iter()
        .copied()
        .filter(|table| ![Table::ORGANIZATIONS, Table::KEYS].contains(table))
}

fn kind_parser() -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(kinds().map(|table| table.name)).try_map(|name| {
        let table = kinds().find(|table| table.name == name);
        table.ok_or("unknown kind")
    })
}

/// The help of an option that selects records by an identifier of their partition key.
fn scope_help(noun: &str, identifier: &str) -> String {
    let kinds: Vec<_> = kinds()
        .filter(|table| table.partition.contains(&identifier))
        .map(|table| table.name)
        .collect();
    format!("Only records of this {noun} ({})", kinds.join(", "))
}

/// Lists records.
///
/// # Errors
/// If an option does not apply to the kind, the cursor is invalid, or DynamoDB cannot be reached.
pub(crate) async fn run(options: Options, deployment: &Deployment, json: bool) -> Result<()> {
    let table = options.kind;
    let scope = scope(table, [options.org, options.project, options.team])?;
    let query = Query::new(table, scope).page(options.limit, options.after.as_deref())?;
    let Page { records, cursor } = query.run(deployment).await?;
    print_records(&records, &columns(table, &records), json)?;
    if let Some(cursor) = cursor {
        eprintln!("there may be more records: --after {cursor}");
    }
    Ok(())
}

/// The scope that the values of `--org`, `--project` and `--team` select. Each requires the one
/// before it.
fn scope(table: Table, values: [Option<String>; 3]) -> Result<Scope> {
    let values: Vec<_> = values.into_iter().flatten().collect();
    if values.len() > table.partition.len() {
        let options: Vec<_> = table.partition.iter().map(|id| format!("--{id}")).collect();
        bail!(
            "{} can only be filtered by {}",
            table.name,
            options.join(", ")
        );
    }
    Ok(if values.is_empty() {
        Scope::All
    } else if values.len() == table.partition.len() {
        Scope::Partition(table.key[0], values.join("#"))
    } else {
        Scope::KeyPrefix(table.key[0], format!("{}#", values.join("#")))
    })
}

/// The columns of a table of records: the key, then the content, then the audit attributes.
fn columns(table: Table, records: &[Value]) -> Vec<&str> {
    let attributes: BTreeSet<&str> = records
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|record| record.keys().map(String::as_str))
        .collect();
    let content = attributes.iter().copied().filter(|name| {
        !table.key.contains(name) && !AUDIT_COLUMNS.contains(name) && !name.ends_with("request_id")
    });
    let audit = AUDIT_COLUMNS
        .into_iter()
        .filter(|name| attributes.contains(name));
    let key = table.key.iter().copied();
    key.chain(content).chain(audit).collect()
}

/// All records of every kind, with their columns.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn all_kinds(deployment: &Deployment) -> Result<Vec<Value>> {
    let mut kinds_with_records = Vec::new();
    for table in kinds() {
        let records = all_records(deployment, table).await?;
        kinds_with_records.push(json!({
            "kind": table.name,
            "columns": columns(table, &records),
            "records": records,
        }));
    }
    Ok(kinds_with_records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_cover_the_partition_of_every_kind() {
        for table in kinds() {
            assert!(
                ["org", "project", "team"].starts_with(table.partition),
                "{}",
                table.name
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
