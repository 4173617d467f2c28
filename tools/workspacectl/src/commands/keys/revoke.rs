//! `keys revoke`: revokes API keys, or all keys of an organization.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use workspace_management::store::{MAX_CACHE_TTL, Table};
use workspace_records::item::string_attribute;

use super::key_arguments::read_key_ids;
use crate::{
    arguments::parse_identifier,
    deployment::Deployment,
    key_record,
    message::print_message,
    organization,
    output::{print_json_or_text, print_rows},
    read::Reader,
    session::{Run, Session},
    text::{humanize, pluralize},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys revoke 0fzzzxjylrx3
  workspacectl keys revoke - < leaked-keys.txt
  workspacectl keys revoke --all --org globex";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    // Not the field of `KeyArgs`, because `--all` replaces the keys.
    /// Keys or their ids, or `-` to read them from standard input, one per line
    #[arg(
        value_name = "KEY|ID|-",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    keys_or_ids: Vec<String>,
    /// Revoke all keys of the organization in --org
    #[arg(long, requires = "org")]
    all: bool,
    /// The organization, for --all
    #[arg(long, requires = "all", value_parser = parse_identifier)]
    org: Option<String>,
}

pub(crate) async fn execute(args: Args, session: &Session) -> Result<()> {
    match &args.org {
        // With `--all`, which requires `--org`.
        Some(org) => revoke_all(org, session).await,
        None => revoke_listed(&args.keys_or_ids, session).await,
    }
}

async fn revoke_listed(keys_or_ids: &[String], session: &Session) -> Result<()> {
    let ids = read_key_ids(keys_or_ids)?;
    let (deployment, run) = session.deployment_and_run().await?;
    let records = key_record::require_records(deployment, &ids).await?;
    let revoked = revoke_keys(deployment, &run, records, session).await?;
    print_json_or_text(&json!(revoked), &ids.join("\n"), session)
}

/// Reads the whole table once and revokes the keys of an organization. Can miss a key that is
/// created at the same time, unless the organization is disabled.
async fn revoke_all(org: &str, session: &Session) -> Result<()> {
    session.check_can_confirm()?;
    let (deployment, run) = session.deployment_and_run().await?;
    let organization = organization::require(deployment, org).await?;
    if organization.record.is_enabled() {
        print_message(&format!(
            "note: {org} is enabled, so this command can miss a key that is created at the same time. To prevent this, run `workspacectl orgs disable {org}` first"
        ));
    }
    let reader = Reader::organization(Table::API_KEYS, org);
    let mut records = reader.read(deployment).await?.records;
    // Also revokes keys that seem to be expired, because the local clock may be wrong.
    records.retain(|record| record.get("revoked_at").is_none());
    let keys_text = pluralize(records.len(), "key");
    let text = format!("{keys_text} of {org} will be revoked, which cannot be undone.");
    session.confirm(&text, org)?;
    let revoked = revoke_keys(deployment, &run, records, session).await?;
    let columns = ["key_id", "label", "state", "revoked_at"];
    print_rows(&revoked, &columns, session)
}

/// Revokes keys and returns their records for output.
async fn revoke_keys(
    deployment: &Deployment,
    run: &Run,
    records: Vec<Value>,
    session: &Session,
) -> Result<Vec<Value>> {
    let mut revoked = Vec::new();
    let mut new_count = 0;
    for record in records {
        let id = string_attribute(&record, "key_id");
        if record.get("revoked_at").is_some() {
            let [at, by] = ["revoked_at", "revoked_by"].map(|name| string_attribute(&record, name));
            session.report(&format!("the key {id} was already revoked at {at} by {by}"));
        } else {
            new_count += 1;
        }
        let revoked_record = key_record::revoke(deployment, id, run)
            .await
            .context("not all keys were revoked: run the command again")?;
        revoked.push(key_record::into_output(revoked_record));
    }
    session.report(&format!(
        "revoked {}. For up to {}, the function can still accept a key that it has cached",
        pluralize(new_count, "key"),
        humanize(MAX_CACHE_TTL)
    ));
    Ok(revoked)
}
