//! `keys`: who may call. A key is shown once, when it is issued; what is stored of it does not open anything.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata,
    types::{AttributeValue, ReturnValue},
};
use serde_json::{Value, json};
use workspace_local::demo::key_record;
use workspace_management::{
    caller::now,
    key::{KeyRecord, mint},
    operations,
    store::Table,
};

use crate::{
    commands::orgs::is_registered,
    deployment::Deployment,
    output::{print_record, print_records, write_line},
    query::items,
};

/// Issues, lists, rotates or revokes keys.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Issue a key to an organization. It is shown this once
    Create {
        /// The organization, which must be registered
        #[arg(long)]
        org: String,
        /// What to call the key
        #[arg(long, default_value = "")]
        label: String,
        /// How long it is valid, such as 90d or 12h; without it, until it is revoked
        #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
        expires: Option<Duration>,
        /// The operations that it may call, separated by commas; without it, all
        #[arg(long, value_name = "OPERATIONS", value_delimiter = ',', value_parser = operations::NAMES)]
        allow: Option<Vec<String>>,
    },
    /// List the keys: their state and last four characters, not their secrets
    List {
        /// Only of this organization
        #[arg(long)]
        org: Option<String>,
    },
    /// Replace a key by a new one with the same rights, while the old one goes on working for a time
    Rotate {
        /// The old key's id, as `keys list` shows it
        id: String,
        /// How long the old key goes on working, such as 24h or 7d
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = humantime::parse_duration)]
        overlap: Duration,
        /// How long the new key is valid; without it, as long as the old one was when it was issued
        #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
        expires: Option<Duration>,
    },
    /// Revoke a key. It stops working when the functions have forgotten it, after KeyCacheSeconds at most
    Revoke {
        /// The key's id, as `keys list` shows it
        id: String,
    },
}

/// Carries out a command.
///
/// # Errors
/// If the organization is not registered, there is no such key, or DynamoDB cannot be reached.
pub(crate) async fn run(command: Command, deployment: &Deployment, json: bool) -> Result<()> {
    match command {
        Command::Create {
            org,
            label,
            expires,
            allow,
        } => {
            if !is_registered(deployment, &org).await? {
                bail!(
                    "the organization {org} is not registered: run `workspacectl orgs create {org}` first"
                );
            }
            let (key, mut record) = minted(&org, &label)?;
            record.operations = allow;
            record.expires_at = expires.map(ahead).transpose()?;
            store(deployment, &key, &record).await?;
            show(deployment, &key, &record, json).await
        }
        Command::List { org } => {
            let keys = match org {
                Some(org) => {
                    items(
                        deployment,
                        Table::KEYS,
                        Some("by_organization"),
                        Some(("org_id", org)),
                    )
                    .await?
                }
                None => items(deployment, Table::KEYS, None, None).await?,
            };
            let keys: Vec<Value> = keys.into_iter().map(shown).collect();
            let columns = [
                "key_id",
                "last_four",
                "org_id",
                "label",
                "state",
                "created_at",
                "expires_at",
                "operations",
            ];
            print_records(&keys, &columns, json)
        }
        Command::Rotate {
            id,
            overlap,
            expires,
        } => {
            let old = find(deployment, &id).await?;
            if !old.is_valid_at(SystemTime::now()) {
                bail!(
                    "the key {id} is revoked or expired: issue a new one with `workspacectl keys create`"
                );
            }
            let end = ahead(overlap)?;
            let (key, mut record) = minted(&old.org_id, &old.label)?;
            record.operations.clone_from(&old.operations);
            record.expires_at = expires.or(lifetime(&old)?).map(ahead).transpose()?;
            store(deployment, &key, &record).await?;
            // Only when the new key is in its holder's hands does the old one get an end.
            show(deployment, &key, &record, json).await?;
            let end = expire(deployment, &old, end).await?;
            eprintln!("the key {id} works until {end}");
            Ok(())
        }
        Command::Revoke { id } => {
            let record = revoke(deployment, &id).await?;
            eprintln!("the key {id} is revoked: functions forget it within KeyCacheSeconds");
            print_record(&shown(record), &id, json)
        }
    }
}

/// A new key of an organization, and its record.
fn minted(org: &str, label: &str) -> Result<(String, KeyRecord)> {
    let mut random = ([0; 8], [0; 32]);
    getrandom::fill(&mut random.0).context("the system has no random bytes")?;
    getrandom::fill(&mut random.1).context("the system has no random bytes")?;
    let key = mint(random.0, random.1);
    let record = key_record(&key, org, label);
    Ok((key, record))
}

/// Shows a key that was stored, this once. One that nobody can have read is revoked.
async fn show(deployment: &Deployment, key: &str, record: &KeyRecord, json: bool) -> Result<()> {
    let text = match json {
        true => {
            let mut shown = shown(serde_json::to_value(record)?);
            shown["key"] = json!(key);
            serde_json::to_string_pretty(&shown)?
        }
        false => {
            eprintln!(
                "the key {} of {}, shown this once:",
                record.key_id, record.org_id
            );
            key.to_owned()
        }
    };
    if let Err(error) = write_line(&text) {
        revoke(deployment, &record.key_id).await?;
        bail!("the key could not be shown, and so is revoked: {error}");
    }
    Ok(())
}

/// How long a key was to be valid when it was issued, if it expires.
fn lifetime(key: &KeyRecord) -> Result<Option<Duration>> {
    let Some(expires_at) = &key.expires_at else {
        return Ok(None);
    };
    let (from, to) = (
        humantime::parse_rfc3339(&key.created_at)?,
        humantime::parse_rfc3339(expires_at)?,
    );
    Ok(Some(to.duration_since(from)?))
}

async fn find(deployment: &Deployment, id: &str) -> Result<KeyRecord> {
    let found = deployment
        .client
        .get_item()
        .consistent_read(true)
        .table_name(deployment.tables.name(Table::KEYS))
        .key("key_id", AttributeValue::S(id.to_owned()))
        .send()
        .await
        .with_context(|| format!("the key {id} cannot be read"))?;
    let item = found.item.with_context(|| no_such_key(id))?;
    serde_dynamo::from_item(item).with_context(|| format!("the key {id} has an unreadable record"))
}

/// Lets a key expire at a moment, unless it does so before; when it does.
async fn expire(deployment: &Deployment, key: &KeyRecord, at: String) -> Result<String> {
    // RFC 3339 in UTC sorts as the moments do.
    if let Some(earlier) = key.expires_at.clone().filter(|earlier| *earlier <= at) {
        return Ok(earlier);
    }
    let set = ("SET expires_at = :at", at.clone());
    match change(
        deployment,
        &key.key_id,
        set,
        "the old key cannot be given an end",
    )
    .await
    {
        Ok(_) => Ok(at),
        Err(error) => Err(error.context(
            "the new key works, and the old one goes on: run `keys revoke` on one of them",
        )),
    }
}

fn no_such_key(id: &str) -> String {
    format!("there is no key {id}: `workspacectl keys list` shows those there are")
}

/// The moment that lies that far ahead, in RFC 3339, which ends with the year 9999.
fn ahead(duration: Duration) -> Result<String> {
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800);
    let at = SystemTime::now()
        .checked_add(duration)
        .filter(|at| *at < end);
    let at = at.context("the key would expire after the year 9999: give it less time")?;
    Ok(humantime::format_rfc3339_seconds(at).to_string())
}

/// A key's record as it may be shown: with its state, without the digest.
fn shown(mut record: Value) -> Value {
    let state = match serde_json::from_value::<KeyRecord>(record.clone()) {
        Ok(key) if key.is_valid_at(SystemTime::now()) => "active",
        Ok(key) if key.revoked_at.is_some() => "revoked",
        Ok(_) => "expired",
        Err(_) => "unreadable",
    };
    if let Value::Object(members) = &mut record {
        members.remove("secret_sha256");
        members.insert("state".to_owned(), json!(state));
    }
    record
}

/// Stores a key's record, and the last four characters of its text: they are of the checksum, not of the secret.
async fn store(deployment: &Deployment, key: &str, record: &KeyRecord) -> Result<()> {
    let last_four = AttributeValue::S(key[key.len() - 4..].to_owned());
    let stored = deployment
        .client
        .put_item()
        .table_name(deployment.tables.name(Table::KEYS))
        .set_item(Some(serde_dynamo::to_item(record)?))
        .item("last_four", last_four)
        .condition_expression("attribute_not_exists(key_id)")
        .send()
        .await;
    match stored {
        Err(error) if is_failed_condition(&error) => Ok(()),
        stored => stored.map(|_| ()).context("the key cannot be stored"),
    }
}

/// Revokes a key; its record.
async fn revoke(deployment: &Deployment, id: &str) -> Result<Value> {
    let set = ("SET revoked_at = if_not_exists(revoked_at, :at)", now());
    change(deployment, id, set, "the key cannot be revoked").await
}

/// Changes a key's record by an expression in which `:at` is a moment; the record as it then is.
async fn change(
    deployment: &Deployment,
    id: &str,
    (expression, at): (&str, String),
    failure: &'static str,
) -> Result<Value> {
    let changed = deployment
        .client
        .update_item()
        .table_name(deployment.tables.name(Table::KEYS))
        .key("key_id", AttributeValue::S(id.to_owned()))
        .update_expression(expression)
        .condition_expression("attribute_exists(key_id)")
        .expression_attribute_values(":at", AttributeValue::S(at))
        .return_values(ReturnValue::AllNew)
        .send()
        .await;
    match changed {
        Ok(changed) => Ok(serde_dynamo::from_item(
            changed.attributes.unwrap_or_default(),
        )?),
        Err(error) if is_failed_condition(&error) => bail!(no_such_key(id)),
        Err(error) => Err(error).context(failure),
    }
}

fn is_failed_condition(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ConditionalCheckFailedException")
}
