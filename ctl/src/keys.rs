//! `keys`: who may call. A key is shown once, when it is issued; what is stored of it does not open anything.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use workspace_management::{
    caller::now,
    key::{ApiKey, KeyRecord, mint},
    operations,
    store::Table,
};

use crate::{
    list::items,
    orgs::is_registered,
    tables::Deployment,
    terminal::{print_records, write_line},
};

/// Issues, lists or revokes keys.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
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
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the keys, without their secrets
    List {
        /// Only of this organization
        #[arg(long)]
        org: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
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
pub async fn run(command: Command, deployment: &Deployment) -> Result<()> {
    match command {
        Command::Create {
            org,
            label,
            expires,
            allow,
            json,
        } => {
            if !is_registered(deployment, &org).await? {
                bail!(
                    "the organization {org} is not registered: run `workspacectl orgs create {org}` first"
                );
            }
            let mut random = ([0; 8], [0; 32]);
            getrandom::fill(&mut random.0).context("the system has no random bytes")?;
            getrandom::fill(&mut random.1).context("the system has no random bytes")?;
            let key = mint(random.0, random.1);
            let mut record = record(&key, &org, &label)?;
            record.operations = allow;
            record.expires_at = expires.map(expiry).transpose()?;
            store(deployment, &record).await?;
            let text = match json {
                true => {
                    let mut shown = shown(serde_json::to_value(&record)?);
                    shown["key"] = json!(key);
                    serde_json::to_string_pretty(&shown)?
                }
                false => {
                    eprintln!("the key {} of {org}, shown this once:", record.key_id);
                    key
                }
            };
            if let Err(error) = write_line(&text) {
                revoke(deployment, &record.key_id).await?;
                bail!("the key could not be shown, and so is revoked: {error}");
            }
            Ok(())
        }
        Command::List { org, json } => {
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
                "org_id",
                "label",
                "state",
                "created_at",
                "expires_at",
                "operations",
            ];
            print_records(&keys, &columns, json)
        }
        Command::Revoke { id } => revoke(deployment, &id).await,
    }
}

/// The moment that lies that far ahead, in RFC 3339, which ends with the year 9999.
fn expiry(duration: Duration) -> Result<String> {
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800);
    let at = SystemTime::now()
        .checked_add(duration)
        .filter(|at| *at < end);
    let at = at.context("the key would expire after the year 9999: leave --expires out")?;
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

/// Stores a key that is given, unless its record is there.
///
/// # Errors
/// If the key is malformed or DynamoDB cannot be reached.
pub async fn restore(deployment: &Deployment, key: &str, org: &str, label: &str) -> Result<()> {
    store(deployment, &record(key, org, label)?).await
}

fn record(key: &str, org: &str, label: &str) -> Result<KeyRecord> {
    let key = ApiKey::parse(key).context("the key is malformed")?;
    Ok(KeyRecord {
        key_id: key.id().to_owned(),
        org_id: org.to_owned(),
        label: label.to_owned(),
        secret_sha256: key.digest(),
        operations: None,
        created_at: now(),
        expires_at: None,
        revoked_at: None,
    })
}

async fn store(deployment: &Deployment, record: &KeyRecord) -> Result<()> {
    let stored = deployment
        .client
        .put_item()
        .table_name(deployment.tables.name(Table::KEYS))
        .set_item(Some(serde_dynamo::to_item(record)?))
        .condition_expression("attribute_not_exists(key_id)")
        .send()
        .await;
    match stored {
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|error| error.is_conditional_check_failed_exception()) =>
        {
            Ok(())
        }
        stored => stored.map(|_| ()).context("the key cannot be stored"),
    }
}

async fn revoke(deployment: &Deployment, id: &str) -> Result<()> {
    let revoked = deployment
        .client
        .update_item()
        .table_name(deployment.tables.name(Table::KEYS))
        .key("key_id", AttributeValue::S(id.to_owned()))
        .update_expression("SET revoked_at = if_not_exists(revoked_at, :now)")
        .condition_expression("attribute_exists(key_id)")
        .expression_attribute_values(":now", AttributeValue::S(now()))
        .send()
        .await;
    match revoked {
        Ok(_) => {
            eprintln!("the key {id} is revoked");
            Ok(())
        }
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|error| error.is_conditional_check_failed_exception()) =>
        {
            bail!("there is no key {id}: `workspacectl keys list` shows those there are")
        }
        Err(error) => Err(error).context("the key cannot be revoked"),
    }
}
