//! `history`: shows who changed what, when and why.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use anyhow::Result;
use aws_sdk_dynamodb::types::AttributeValue;
use clap::{
    builder::{NonEmptyStringValueParser, PossibleValuesParser},
    value_parser,
};
use serde_json::{Map, Value, json};
use workspace_management::{
    api_key::ApiKey,
    records::Table,
    store::{Item, timestamp},
};
use workspace_records::{
    item::to_json,
    kinds::{HISTORY, Kind},
};

use crate::{
    arguments::{ORG_HELP, parse_identifier},
    context::GlobalOptions,
    deployment::Deployment,
    errors::RequestResultExt as _,
    message::print_message,
    output::print_listing,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl history --org acme --since 30d
  workspacectl history --org acme --kind team --key docs
  workspacectl history --org acme --by ada --limit 20 --json";

const COLUMNS: [&str; 6] = ["at", "action", "record", "changes", "by", "reason"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
    org: String,
    /// Only changes of this kind of record
    #[arg(long, value_parser = PossibleValuesParser::new(Table::ALL.iter().map(|table| Kind::of(*table).singular())))]
    kind: Option<String>,
    /// Only changes of the record with this id and, of a team or a project, of what is in it
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    key: Option<String>,
    /// Only changes by this operator: an ARN, `user@host`, or the name in either
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    by: Option<String>,
    /// Only changes of the last days or hours, such as 30d or 12h
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    since: Option<Duration>,
    /// Print at most COUNT changes
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

/// Prints entries, the newest first.
pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let context = options.connect().await?;
    context.deployment.require_history()?;
    let limit = args.limit.map_or(Ok(usize::MAX), usize::try_from)?;
    let mut entries = args.find(&context.deployment, limit).await?;
    let is_cut = entries.len() > limit;
    entries.truncate(limit);
    if entries.is_empty() {
        print_message("no changes match the options");
    }
    let rows = if context.options.json {
        entries
    } else {
        to_rows(&entries)
    };
    print_listing(&rows, is_cut, &COLUMNS, &context.options)
}

impl Args {
    /// Reads the matching entries, the newest first: one more than `limit`, if there are as many.
    async fn find(&self, deployment: &Deployment, limit: usize) -> Result<Vec<Value>> {
        let now = SystemTime::now();
        let since = self.since.and_then(|since| now.checked_sub(since));
        let since = timestamp(since.unwrap_or(SystemTime::UNIX_EPOCH));
        let table_name = deployment.table_name(HISTORY);
        let query = deployment.dynamodb.query().table_name(table_name);
        let mut items = query
            .consistent_read(true)
            .scan_index_forward(false)
            .key_condition_expression("org_id = :org AND entry_id >= :since")
            .expression_attribute_values(":org", AttributeValue::S(self.org.clone()))
            .expression_attribute_values(":since", AttributeValue::S(since))
            .into_paginator()
            .items()
            .send();
        let now = now.duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let mut entries = Vec::new();
        while entries.len() <= limit
            && let Some(item) = items.next().await
        {
            let item: Item =
                item.request_context(deployment, format!("cannot read {table_name}"))?;
            let entry = to_json(item);
            // DynamoDB deletes expired items only after hours or days.
            let is_expired = entry["expires_at"].as_u64().is_some_and(|at| at <= now);
            if !is_expired && self.matches(&entry) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    fn matches(&self, entry: &Value) -> bool {
        let is_kind = |kind: &String| entry["kind"] == **kind;
        let is_by = |name: &String| {
            let by = entry["by"].as_str().unwrap_or_default();
            by == name || operator_name(by) == name || by.split('@').next() == Some(name)
        };
        self.kind.as_ref().is_none_or(is_kind)
            && self.by.as_ref().is_none_or(is_by)
            && self.key.as_ref().is_none_or(|key| self.has_key(entry, key))
    }

    /// Whether an entry is about the record with this id, or about what is in it.
    fn has_key(&self, entry: &Value, key: &str) -> bool {
        let key = ApiKey::parse(key).map_or(key, |parsed| parsed.id);
        let attributes = entry["key"].as_object().into_iter().flatten();
        let mut values = attributes.filter_map(|(_, value)| value.as_str());
        values.any(|value| {
            // The organization is in almost every key.
            let in_org = value.strip_prefix(&format!("{}#", self.org));
            let is_part = in_org.unwrap_or(value).split('#').any(|part| part == key);
            (is_part || value == key) && (value != self.org || entry["kind"] == "organization")
        })
    }
}

/// The name in an ARN: what is behind the last `/`.
fn operator_name(by: &str) -> &str {
    by.rsplit('/').next().unwrap_or(by)
}

/// Prepares entries for a table.
fn to_rows(entries: &[Value]) -> Vec<Value> {
    let mut ended = BTreeSet::new();
    let mut rows = Vec::new();
    // The newest is first, so an end is before its beginning.
    for entry in entries {
        let id = format!("{} {}", entry["run_id"], entry["key"]);
        let changes = match entry["phase"].as_str() {
            Some("end") => {
                ended.insert(id);
                let counts = entry["counts"].as_object().into_iter().flatten();
                let counts = counts.map(|(name, count)| format!("{count} {name}"));
                let result = entry["result"].as_str().unwrap_or_default().to_owned();
                let mut parts: Vec<_> = [result].into_iter().chain(counts).collect();
                parts.extend(differences(entry));
                parts.join(", ")
            }
            Some(_) if ended.contains(&id) => "begun".to_owned(),
            Some(_) => "begun, not ended".to_owned(),
            None => differences(entry).join(", "),
        };
        let key = entry["key"].as_object().into_iter().flatten();
        let key: Vec<_> = key.filter_map(|(_, value)| value.as_str()).collect();
        rows.push(json!({
            "at": entry["at"], "action": entry["action"], "record": key.join(" "),
            "changes": changes, "by": operator_name(entry["by"].as_str().unwrap_or_default()),
            "reason": entry["reason"],
        }));
    }
    rows
}

/// What an entry says about attributes, such as `team_name: Docs → Manuals`. Leaves out when and by
/// whom, which other columns say.
fn differences(entry: &Value) -> Vec<String> {
    let empty = Map::new();
    let [before, after] = ["before", "after"].map(|name| entry[name].as_object().unwrap_or(&empty));
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let mut differences = Vec::new();
    for name in names {
        let is_audit =
            name != "expires_at" && ["_at", "_by", "_id"].iter().any(|end| name.ends_with(end));
        if is_audit {
            continue;
        }
        differences.push(match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) => {
                format!("{name}: {} → {}", text(before), text(after))
            }
            (Some(before), None) => format!("{name}: {} → -", text(before)),
            (None, after) => format!("{name}: {}", after.map(text).unwrap_or_default()),
        });
    }
    differences
}

fn text(value: &Value) -> String {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map_or_else(|| value.to_string(), str::to_owned)
}
