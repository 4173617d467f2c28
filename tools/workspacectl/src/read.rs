//! Reads one record, or many: a whole table, some of its partitions, or a page.
//!
//! The indexes `by_organization` (teams and API keys) and `by_user` (members) are eventually
//! consistent: an index can lack a record that was just created and still have a record that was
//! just deleted.

use std::collections::{BTreeSet, HashMap, VecDeque};

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use clap::value_parser;
use serde_json::Value;
use workspace_management::store::{Item, Table};
use workspace_records::{
    item::{primary_key_values, string_attribute, to_json},
    kinds::Kind,
};

use crate::{
    deployment::Deployment,
    errors::{RequestError, RequestResultExt as _, UsageError},
};

/// Reads the record with this primary key, with strong consistency.
pub(crate) async fn find(
    deployment: &Deployment,
    table: Table,
    primary_key: &[impl AsRef<str>],
) -> Result<Option<Value>> {
    let primary_key: Vec<&str> = primary_key.iter().map(AsRef::as_ref).collect();
    let display_key = primary_key.join(" ");
    let table_name = deployment.table_name(table);
    let response = deployment
        .dynamodb
        .get_item()
        .consistent_read(true)
        .table_name(table_name)
        .set_key(Some(table.primary_key(&primary_key)))
        .send()
        .await
        .request_context(format!("cannot read {display_key} in {table_name}"))?;
    Ok(response.item.map(to_json))
}

/// A part of what a [`Reader`] reads: the records that one scan or one query returns. Both can take
/// several requests.
enum Part {
    /// All records of the table.
    WholeTable,
    /// The records that have this partition key.
    Partition(String),
    /// The API keys, teams or members of an organization. Needs a scan of the whole table, because
    /// an index can lack a record that was just created.
    Organization(String),
}

/// Reads many records, with strong consistency unless it reads from an index.
pub(crate) struct Reader {
    pub(crate) table: Table,
    index: Option<&'static str>,
    /// The name of the partition key of the table or the index.
    partition_key_name: &'static str,
    /// The parts that have not been read to their ends, in order.
    unread_parts: VecDeque<Part>,
    /// The name of the sort key and the prefix of its values.
    sort_key_prefix: Option<(&'static str, String)>,
    /// How many more records may be read. `None` if there is no limit.
    remaining_limit: Option<i32>,
    /// The primary key after which the next request continues. In an index, it also contains the
    /// attributes of the index's key.
    start_key: Option<Item>,
}

/// What a request returns: items and, if there may be more, the start key of the next request.
type BatchAndStartKey = (Vec<Item>, Option<Item>);

/// What a read returns: all records or, with a limit, one page of them.
#[derive(Default)]
pub(crate) struct Listing {
    /// The records, sorted by their primary keys unless the read has a limit.
    pub(crate) records: Vec<Value>,
    /// The value of `--after` for the next page. `None` if there are no more records.
    pub(crate) cursor: Option<String>,
}

/// The options of commands that print a page of records.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Print at most COUNT records, in DynamoDB's order [default: all records, sorted]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(i32).range(1..))]
    limit: Option<i32>,
    /// Continue after the page that printed this cursor
    #[arg(long, value_name = "CURSOR", requires = "limit", value_parser = parse_cursor)]
    after: Option<Item>,
}

impl PageArgs {
    /// Checks that the cursor is from a list with the same options. A cursor names a partition in
    /// `attribute`. Fails unless this partition is `prefix`, such as `acme`, or begins with
    /// `prefix#`.
    pub(crate) fn check_cursor(&self, attribute: &str, prefix: &str) -> Result<(), UsageError> {
        let Some(after) = &self.after else {
            return Ok(());
        };
        if let Some(AttributeValue::S(value)) = after.get(attribute)
            && (value == prefix || value.starts_with(&format!("{prefix}#")))
        {
            return Ok(());
        }
        let message = "the cursor is from a list with different options: repeat the options of the previous page";
        Err(UsageError(message.to_owned()))
    }
}

impl Reader {
    fn new(table: Table, parts: impl IntoIterator<Item = Part>) -> Self {
        Self {
            table,
            index: None,
            partition_key_name: table.primary_key_attributes[0],
            unread_parts: parts.into_iter().collect(),
            sort_key_prefix: None,
            remaining_limit: None,
            start_key: None,
        }
    }

    /// A reader of all records of a table.
    pub(crate) fn all(table: Table) -> Self {
        Self::new(table, [Part::WholeTable])
    }

    /// A reader of the records with this partition key.
    pub(crate) fn partition(table: Table, partition: &str) -> Self {
        Self::new(table, [Part::Partition(partition.to_owned())])
    }

    /// A reader of the records with one of these partition keys. They must be sorted, so that a
    /// page can continue at the partition of a cursor.
    pub(crate) fn partitions(table: Table, partitions: Vec<String>) -> Self {
        Self::new(table, partitions.into_iter().map(Part::Partition))
    }

    /// A reader of the records of an organization, which misses none. For API keys, teams and
    /// members, it scans the whole table.
    pub(crate) fn organization(table: Table, org: &str) -> Self {
        match Kind::of(table).partition_key_parts {
            ["org"] => Self::partition(table, org),
            _ => Self::new(table, [Part::Organization(org.to_owned())]),
        }
    }

    /// Reads from the index `name`, whose partition key is called `partition_key_name`.
    pub(crate) fn with_index(
        mut self,
        name: &'static str,
        partition_key_name: &'static str,
    ) -> Self {
        self.index = Some(name);
        self.partition_key_name = partition_key_name;
        self
    }

    /// Reads only records whose sort key begins with a prefix.
    pub(crate) fn with_sort_key_prefix(mut self, name: &'static str, prefix: String) -> Self {
        self.sort_key_prefix = Some((name, prefix));
        self
    }

    /// Reads only a page. Must not be used with [`Reader::organization`], whose scans have no limit.
    pub(crate) fn with_page(mut self, args: PageArgs) -> Self {
        self.remaining_limit = args.limit;
        self.start_key = args.after;
        let parts = &mut self.unread_parts;
        // Skips the partitions before the cursor's. If that one is gone, starts with the next.
        if !matches!(parts.front(), Some(Part::WholeTable))
            && let Some(start_key) = &self.start_key
            && let Some(AttributeValue::S(start)) = start_key.get(self.partition_key_name)
        {
            parts.retain(|part| matches!(part, Part::Partition(name) if name >= start));
            if !matches!(parts.front(), Some(Part::Partition(name)) if name == start) {
                self.start_key = None;
            }
        }
        self
    }

    /// Reads all records or, with a limit, one page.
    pub(crate) async fn read(mut self, deployment: &Deployment) -> Result<Listing> {
        let has_limit = self.remaining_limit.is_some();
        let mut items: Vec<Item> = Vec::new();
        while self.remaining_limit != Some(0)
            && let Some(batch) = self.next_batch(deployment).await?
        {
            if let Some(remaining_limit) = &mut self.remaining_limit {
                *remaining_limit -= i32::try_from(batch.len())?;
            }
            items.extend(batch);
        }
        // DynamoDB returns a start key whenever it stops at the limit, even at the end of a partition
        // or of the table. So there is a cursor only if a further read finds a record.
        let mut start_key = self.start_key.clone();
        if start_key.is_some() {
            self.remaining_limit = Some(1);
            let mut has_more = false;
            while !has_more && let Some(batch) = self.next_batch(deployment).await? {
                has_more = !batch.is_empty();
            }
            start_key = start_key.filter(|_| has_more);
        }
        let cursor = start_key.map(encode_cursor).transpose()?;
        let mut records: Vec<Value> = items.into_iter().map(to_json).collect();
        if !has_limit {
            records.sort_by_cached_key(|record| primary_key_values(self.table, record));
        }
        Ok(Listing { records, cursor })
    }

    /// Counts the records without keeping them in memory.
    pub(crate) async fn count(mut self, deployment: &Deployment) -> Result<usize> {
        let mut count = 0;
        while let Some(batch) = self.next_batch(deployment).await? {
            count += batch.len();
        }
        Ok(count)
    }

    /// Sends the next request. Returns at most a megabyte of items, or `None` if all were read.
    pub(crate) async fn next_batch(
        &mut self,
        deployment: &Deployment,
    ) -> Result<Option<Vec<Item>>> {
        let Some(part) = self.unread_parts.front() else {
            return Ok(None);
        };
        let result = match part {
            Part::WholeTable => self.send_scan(deployment, None).await,
            Part::Organization(org) => self.send_scan(deployment, Some(org)).await,
            Part::Partition(partition) => self.send_query(deployment, partition).await,
        };
        let table_name = deployment.table_name(self.table);
        let (items, start_key) = result.context(format!("cannot read {table_name}"))?;
        if start_key.is_none() {
            self.unread_parts.pop_front();
        }
        self.start_key = start_key;
        Ok(Some(items))
    }

    /// Scans the table for all records or, if `org` is given, for those of an organization.
    async fn send_scan(
        &self,
        deployment: &Deployment,
        org: Option<&str>,
    ) -> Result<BatchAndStartKey, RequestError> {
        let mut scan = deployment
            .dynamodb
            .scan()
            .table_name(deployment.table_name(self.table))
            .consistent_read(true)
            .set_exclusive_start_key(self.start_key.clone());
        // A scan with a filter has no limit, because DynamoDB would count items before filtering.
        scan = match org {
            None => scan.set_limit(self.remaining_limit),
            Some(org) if self.table == Table::API_KEYS => scan
                .filter_expression("org_id = :org")
                .expression_attribute_values(":org", AttributeValue::S(org.to_owned())),
            Some(org) => scan
                .filter_expression("begins_with(#partition_key, :prefix)")
                .expression_attribute_names("#partition_key", self.partition_key_name)
                // The `#` excludes organizations whose ids only begin with this id.
                .expression_attribute_values(":prefix", AttributeValue::S(format!("{org}#"))),
        };
        let response = scan.send().await?;
        Ok((
            response.items.unwrap_or_default(),
            response.last_evaluated_key,
        ))
    }

    async fn send_query(
        &self,
        deployment: &Deployment,
        partition: &str,
    ) -> Result<BatchAndStartKey, RequestError> {
        let mut condition = "#partition_key = :partition".to_owned();
        let mut query = deployment
            .dynamodb
            .query()
            .table_name(deployment.table_name(self.table))
            .set_index_name(self.index.map(str::to_owned))
            .consistent_read(self.index.is_none())
            .expression_attribute_names("#partition_key", self.partition_key_name)
            .expression_attribute_values(":partition", AttributeValue::S(partition.to_owned()))
            .set_exclusive_start_key(self.start_key.clone())
            .set_limit(self.remaining_limit);
        if let Some((name, prefix)) = &self.sort_key_prefix {
            condition += " AND begins_with(#sort_key, :prefix)";
            query = query
                .expression_attribute_names("#sort_key", *name)
                .expression_attribute_values(":prefix", AttributeValue::S(prefix.clone()));
        }
        let response = query.key_condition_expression(condition).send().await?;
        Ok((
            response.items.unwrap_or_default(),
            response.last_evaluated_key,
        ))
    }
}

/// The partitions of `table` (teams or members) that belong to an organization, or to one of its
/// projects. Finds the teams in the index.
pub(crate) async fn find_partitions_via_teams_index(
    deployment: &Deployment,
    table: Table,
    org: &str,
    project: Option<&str>,
) -> Result<Vec<String>> {
    let reader = Reader::partition(Table::TEAMS, org).with_index("by_organization", "org_id");
    let mut partitions = BTreeSet::new();
    for team in reader.read(deployment).await?.records {
        // The attribute `project` is the partition key: `<org>#<project>`.
        let partition = string_attribute(&team, "project");
        if project.is_some_and(|project| partition != format!("{org}#{project}")) {
            continue;
        }
        partitions.insert(match table {
            // The partition of the team's members.
            Table::TEAM_MEMBERS => primary_key_values(Table::TEAMS, &team).join("#"),
            _ => partition.to_owned(),
        });
    }
    Ok(partitions.into_iter().collect())
}

/// One reader per table for all records of an organization. The readers miss no record, but they
/// scan the whole tables of API keys, teams and members.
pub(crate) fn org_readers(org: &str) -> Vec<Reader> {
    let tables = Table::ALL.iter().copied();
    let readers = tables.map(|table| Reader::organization(table, org));
    readers.collect()
}

/// Like [`org_readers`], but finds teams in the index, which can lack teams that were created in
/// the last few seconds. Still scans the table of API keys, so that no key is missed.
pub(crate) async fn org_readers_via_teams_index(
    deployment: &Deployment,
    org: &str,
) -> Result<Vec<Reader>> {
    let mut readers = org_readers(org);
    for reader in &mut readers {
        let table = reader.table;
        if [Table::TEAMS, Table::TEAM_MEMBERS].contains(&table) {
            let partitions = find_partitions_via_teams_index(deployment, table, org, None).await?;
            *reader = Reader::partitions(table, partitions);
        }
    }
    Ok(readers)
}

/// The partition keys `<org>#<project>#<team>` of the memberships of `user` in `org`, sorted.
pub(crate) async fn member_partitions_of_user(
    deployment: &Deployment,
    org: &str,
    user: &str,
) -> Result<Vec<String>> {
    // The prefix excludes users of different organizations who have the same id.
    let reader = Reader::partition(Table::TEAM_MEMBERS, user)
        .with_index("by_user", "user_id")
        .with_sort_key_prefix("team", format!("{org}#"));
    let mut partitions = Vec::new();
    for member in reader.read(deployment).await?.records {
        partitions.push(string_attribute(&member, "team").to_owned());
    }
    Ok(partitions)
}

/// Encodes a start key, for `--after`.
fn encode_cursor(start_key: Item) -> Result<String> {
    let attributes: HashMap<String, String> = serde_dynamo::from_item(start_key)?;
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&attributes)?))
}

/// Parses a cursor from [`encode_cursor`].
fn parse_cursor(text: &str) -> Result<Item> {
    const ADVICE: &str = "use the cursor that the previous page printed";
    let json = URL_SAFE_NO_PAD.decode(text).context(ADVICE)?;
    let attributes: HashMap<String, String> = serde_json::from_slice(&json).context(ADVICE)?;
    serde_dynamo::to_item(attributes).context(ADVICE)
}
