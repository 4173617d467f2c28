//! Reads one record or many, with strong consistency unless an index is read.
//!
//! The indexes `by_organization` (teams and API keys) and `by_user` (members) are eventually
//! consistent: an index can lack a record that was just created and still have a record that was
//! just deleted.

mod request;

use std::collections::BTreeSet;

use anyhow::Result;
use clap::value_parser;
use workspace_management::{
    records::{Table, Team, TeamMember},
    store::Item,
};
use workspace_records::kinds::{HISTORY, Kind, PrimaryKey};

use self::request::{Match, PageRequest, Read};
use crate::{deployment::Deployment, errors::RequestResultExt as _, record::Record};

/// Reads the record with this primary key.
pub(crate) async fn find(deployment: &Deployment, key: &PrimaryKey) -> Result<Option<Record>> {
    let table_name = deployment.table_name(key.table());
    let message = format!("cannot read {} in {table_name}", key.values().join(" "));
    let response = deployment
        .dynamodb
        .get_item()
        .consistent_read(true)
        .table_name(table_name)
        .set_key(Some(key.to_item()))
        .send()
        .await
        .request_context(deployment, message)?;
    let record = response.item.map(|item| Record::new(key.table(), item));
    record.transpose()
}

/// Which records of a table to read, by a list of reads.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) table: Table,
    reads: Vec<Read>,
}

/// The option of commands that print a list.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct LimitArgs {
    /// Print at most COUNT records, in DynamoDB's order [default: all records, sorted]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(i32).range(1..))]
    limit: Option<i32>,
}

/// What a list prints.
pub(crate) struct Listing {
    pub(crate) records: Vec<Record>,
    /// Whether there are more records than the limit.
    pub(crate) is_cut: bool,
}

impl Scope {
    /// All records.
    pub(crate) fn all(table: Table) -> Self {
        let reads = vec![Read::Scan(None)];
        Self { table, reads }
    }

    /// The records with this partition key.
    pub(crate) fn partition(table: Table, partition: &str) -> Self {
        Self::partitions(table, [partition.to_owned()])
    }

    /// The records with these partition keys.
    fn partitions(table: Table, partitions: impl IntoIterator<Item = String>) -> Self {
        let query = |partition| Read::Query {
            index: None,
            partition_key: Match::Equal(table.primary_key_attributes[0], partition),
            sort_key: None,
        };
        let reads = partitions.into_iter().map(query).collect();
        Self { table, reads }
    }

    /// The members of a team.
    pub(crate) fn members(org: &str, project: &str, team: &str) -> Self {
        let partition = TeamMember::partition_key(org, project, team);
        Self::partition(Table::TEAM_MEMBERS, &partition)
    }

    /// The records of an organization. Misses none, but scans the whole table of API keys, teams or
    /// members.
    pub(crate) fn organization(table: Table, org: &str) -> Self {
        let matches = match Kind::of(table).partition_key_parts {
            ["org"] => return Self::partition(table, org),
            ["key"] => Match::Equal("org_id", org.to_owned()),
            // The `#` excludes organizations whose ids only begin with this id.
            _ => Match::BeginsWith(table.primary_key_attributes[0], format!("{org}#")),
        };
        let reads = vec![Read::Scan(Some(matches))];
        Self { table, reads }
    }

    /// The teams or API keys of an organization, from the index.
    pub(crate) fn organization_in_index(table: Table, org: &str) -> Self {
        let reads = vec![Read::Query {
            index: Some("by_organization"),
            partition_key: Match::Equal("org_id", org.to_owned()),
            sort_key: None,
        }];
        Self { table, reads }
    }

    /// The entries of the history about erasures that deleted an API key. Scans the whole history.
    pub(crate) fn erasures_of_key(id: &str) -> Self {
        let matches = Match::Contains("erased_keys", id.to_owned());
        Self {
            table: HISTORY,
            reads: vec![Read::Scan(Some(matches))],
        }
    }

    /// The memberships of a user in an organization or, without one, in all, from the index.
    pub(crate) fn user_in_index(org: Option<&str>, user: &str) -> Self {
        let reads = vec![Read::Query {
            index: Some("by_user"),
            partition_key: Match::Equal("user_id", user.to_owned()),
            // Excludes users of different organizations who have the same id.
            sort_key: org.map(|org| Match::BeginsWith("team", format!("{org}#"))),
        }];
        let table = Table::TEAM_MEMBERS;
        Self { table, reads }
    }

    /// The teams or members of an organization or, if given, of one of its projects. Finds the
    /// teams in the index.
    pub(crate) async fn teams_or_members(
        deployment: &Deployment,
        table: Table,
        org: &str,
        project: Option<&str>,
    ) -> Result<Self> {
        let teams = Self::organization_in_index(Table::TEAMS, org);
        // Excludes records whose `org_id` is not that of their primary key.
        let prefix = Team::partition_key(org, "");
        let mut partitions = BTreeSet::new();
        for record in teams.read(deployment).await? {
            let partition = record.key.partition();
            let Some(of_team) = partition.strip_prefix(&prefix) else {
                continue;
            };
            if project.is_none_or(|project| project == of_team) {
                partitions.insert(match table {
                    Table::TEAMS => partition,
                    // The partition of the team's members.
                    _ => format!("{partition}#{}", record.key.id()),
                });
            }
        }
        Ok(Self::partitions(table, partitions))
    }

    /// Reads a list for output.
    pub(crate) async fn list(&self, deployment: &Deployment, args: LimitArgs) -> Result<Listing> {
        let limit = args.limit.map_or(Ok(usize::MAX), usize::try_from)?;
        let page_size = args.limit.map(|limit| limit.saturating_add(1));
        let mut records = Vec::new();
        let mut pages = self.pages(deployment, page_size);
        while records.len() <= limit
            && let Some(page) = pages.next().await?
        {
            records.extend(page);
        }
        let is_cut = records.len() > limit;
        records.truncate(limit);
        if args.limit.is_none() {
            records.sort_by_cached_key(|record| record.key.values());
        }
        Ok(Listing { records, is_cut })
    }

    /// Reads all records, in DynamoDB's order.
    pub(crate) async fn read(&self, deployment: &Deployment) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut pages = self.pages(deployment, None);
        while let Some(page) = pages.next().await? {
            records.extend(page);
        }
        Ok(records)
    }

    /// Reads page by page. A page has at most `page_size` records, or a megabyte.
    pub(crate) fn pages<'a>(
        &'a self,
        deployment: &'a Deployment,
        page_size: Option<i32>,
    ) -> Pages<'a> {
        Pages {
            deployment,
            scope: self,
            page_size,
            read_count: 0,
            start_key: None,
        }
    }
}

/// The pages of a scope.
pub(crate) struct Pages<'a> {
    deployment: &'a Deployment,
    scope: &'a Scope,
    page_size: Option<i32>,
    /// How many reads of the scope have ended.
    read_count: usize,
    /// Where the current read continues.
    start_key: Option<Item>,
}

impl Pages<'_> {
    /// Sends the next request. `None` if everything was read.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Record>>> {
        let Some(read) = self.scope.reads.get(self.read_count) else {
            return Ok(None);
        };
        let page = PageRequest {
            start_key: self.start_key.take(),
            size: self.page_size,
        };
        let table = self.scope.table;
        let (items, start_key) = read.send(self.deployment, table, page).await?;
        if start_key.is_none() {
            self.read_count += 1;
        }
        self.start_key = start_key;
        let records = items.into_iter().map(|item| Record::new(table, item));
        records.collect::<Result<_>>().map(Some)
    }
}

/// One scope for each table, with all records of an organization.
pub(crate) fn organization_scopes(org: &str) -> Vec<Scope> {
    let tables = Table::ALL.iter();
    tables
        .map(|table| Scope::organization(*table, org))
        .collect()
}

/// Like [`organization_scopes`], but finds teams in the index, which can lack teams that were
/// created in the last few seconds. Still scans the table of API keys, so that no key is missed.
pub(crate) async fn organization_scopes_via_teams(
    deployment: &Deployment,
    org: &str,
) -> Result<Vec<Scope>> {
    let mut scopes = organization_scopes(org);
    for scope in &mut scopes {
        if [Table::TEAMS, Table::TEAM_MEMBERS].contains(&scope.table) {
            *scope = Scope::teams_or_members(deployment, scope.table, org, None).await?;
        }
    }
    Ok(scopes)
}
