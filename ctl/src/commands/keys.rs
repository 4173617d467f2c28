//! `keys`: the API keys. A key is printed only when it is created; only the SHA-256 hash of its
//! secret is stored.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow, bail};
use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata as _,
    types::{AttributeValue, ReturnValue},
};
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use workspace_local::demo::key_record;
use workspace_management::{
    api_key::{ApiKey, KeyRecord},
    operation::Operation,
    store::{Table, timestamp},
};

use crate::{
    commands::orgs::is_registered,
    deployment::Deployment,
    output::{print_record, print_records, write_line},
    query::{Query, Scope},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys create --org globex --label ci --expires 90d --allow create_team,add_team_users
  workspacectl keys list --org globex
  workspacectl keys rotate 0fzzzxjylrx3 --overlap 7d
  workspacectl keys revoke 0fzzzxjylrx3";

const CREATE_EXAMPLES: &str = "\
Examples:
  workspacectl keys create --org globex
  workspacectl keys create --org globex --label ci --expires 90d --allow create_team,add_team_users
  KEY=$(workspacectl keys create --org globex)";

const ROTATE_EXAMPLES: &str = "\
Examples:
  workspacectl keys rotate 0fzzzxjylrx3
  workspacectl keys rotate 0fzzzxjylrx3 --overlap 7d --expires 365d";

/// The columns of `keys list`.
const COLUMNS: [&str; 8] = [
    "key_id",
    "last_four",
    "org_id",
    "label",
    "state",
    "created_at",
    "expires_at",
    "operations",
];

/// Creates, lists, rotates or revokes API keys.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Create an API key and print it. It cannot be printed again
    #[command(after_help = CREATE_EXAMPLES)]
    Create {
        /// The organization, which must be registered
        #[arg(long)]
        org: String,
        /// A label that `keys list` shows
        #[arg(long, default_value = "")]
        label: String,
        /// How long the key is valid, such as 90d or 12h [default: until it is revoked]
        #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
        expires: Option<Duration>,
        /// The operations that the key may call, separated by commas [default: all]
        #[arg(long, value_name = "OPERATIONS", value_delimiter = ',', value_parser = operation_parser())]
        allow: Option<Vec<String>>,
    },
    /// List API keys with their state and last four characters
    List {
        /// Only keys of this organization
        #[arg(long)]
        org: Option<String>,
    },
    /// Replace an API key with one for the same operations. The old key expires after --overlap
    #[command(after_help = ROTATE_EXAMPLES)]
    Rotate {
        /// The id of the old key, from `keys list`
        id: String,
        /// How long the old key stays valid, such as 24h or 7d
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = humantime::parse_duration)]
        overlap: Duration,
        /// How long the new key is valid [default: the lifetime of the old key]
        #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
        expires: Option<Duration>,
    },
    /// Revoke an API key. Running functions may cache and accept it for up to KeyCacheSeconds
    Revoke {
        /// The id of the key, from `keys list`
        id: String,
    },
}

/// Runs a command.
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
            let (key, mut record) = new_key(&org, &label)?;
            record.operations = allow;
            record.expires_at = expires.map(expires_in).transpose()?;
            insert(deployment, &key, &record).await?;
            print_new_key(deployment, &key, &record, json).await
        }
        Command::List { org } => {
            let query = match org {
                Some(org) => Query::new(Table::KEYS, Scope::Partition("org_id", org))
                    .index("by_organization"),
                None => Query::new(Table::KEYS, Scope::All),
            };
            let keys = query.run(deployment).await?.records;
            let keys: Vec<Value> = keys.into_iter().map(to_display).collect();
            print_records(&keys, &COLUMNS, json)
        }
        Command::Rotate {
            id,
            overlap,
            expires,
        } => rotate(deployment, &id, overlap, expires, json).await,
        Command::Revoke { id } => {
            let record = revoke(deployment, &id).await?;
            eprintln!(
                "the key {id} is revoked: functions that cache it accept it for up to KeyCacheSeconds"
            );
            print_record(&to_display(record), &id, json)
        }
    }
}

async fn rotate(
    deployment: &Deployment,
    id: &str,
    overlap: Duration,
    expires: Option<Duration>,
    json: bool,
) -> Result<()> {
    let old = get(deployment, id).await?;
    if !old.is_valid_at(SystemTime::now()) {
        bail!(
            "the key {id} is revoked or expired: create a new one with `workspacectl keys create`"
        );
    }
    let end = expires_in(overlap)?;
    let (key, mut record) = new_key(&old.org_id, &old.label)?;
    record.operations.clone_from(&old.operations);
    record.expires_at = expires.or(lifetime(&old)?).map(expires_in).transpose()?;
    insert(deployment, &key, &record).await?;
    // Sets the old key's expiry only after the new key was printed.
    print_new_key(deployment, &key, &record, json).await?;
    let end = expire(deployment, &old, end).await?;
    eprintln!("the key {id} is valid until {end}");
    Ok(())
}

/// Parses the name of an operation. Help and errors list the names.
fn operation_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(Operation::ALL.iter().map(|operation| operation.name()))
}

/// A new API key of an organization, and its record.
fn new_key(org: &str, label: &str) -> Result<(String, KeyRecord)> {
    let (mut id, mut secret) = ([0; 8], [[0; 16]; 2]);
    getrandom::fill(&mut id)
        .and_then(|()| getrandom::fill(secret.as_flattened_mut()))
        .context("the operating system provides no random numbers")?;
    let key = ApiKey::generate(id, secret);
    let record = key_record(&key, org, label);
    Ok((key, record))
}

/// Prints a new key. Revokes it if it cannot be printed, because then no one knows it.
async fn print_new_key(
    deployment: &Deployment,
    key: &str,
    record: &KeyRecord,
    json: bool,
) -> Result<()> {
    let text = match json {
        true => {
            let mut record = to_display(serde_json::to_value(record)?);
            record["key"] = json!(key);
            serde_json::to_string_pretty(&record)?
        }
        false => {
            eprintln!(
                "the key {} of {} (store it now, it cannot be printed again):",
                record.key_id, record.org_id
            );
            key.to_owned()
        }
    };
    if let Err(error) = write_line(&text) {
        revoke(deployment, &record.key_id).await?;
        bail!("cannot print the key, so it was revoked: {error}");
    }
    Ok(())
}

/// The time from a key's creation to its expiry, or `None` if it does not expire.
fn lifetime(key: &KeyRecord) -> Result<Option<Duration>> {
    let Some(expires_at) = &key.expires_at else {
        return Ok(None);
    };
    let created_at = humantime::parse_rfc3339(&key.created_at)?;
    let expires_at = humantime::parse_rfc3339(expires_at)?;
    Ok(Some(expires_at.duration_since(created_at)?))
}

/// The current time plus a duration, in RFC 3339, whose last year is 9999.
fn expires_in(duration: Duration) -> Result<String> {
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800);
    let at = SystemTime::now()
        .checked_add(duration)
        .filter(|at| *at < end);
    let at = at.context("the key would expire after the year 9999: use a shorter duration")?;
    Ok(humantime::format_rfc3339_seconds(at).to_string())
}

/// A key's record for output: with its state, without the hash of its secret.
fn to_display(mut record: Value) -> Value {
    let state = match serde_json::from_value::<KeyRecord>(record.clone()) {
        Ok(key) if key.is_valid_at(SystemTime::now()) => "active",
        Ok(key) if key.revoked_at.is_some() => "revoked",
        Ok(_) => "expired",
        Err(_) => "malformed",
    };
    if let Value::Object(members) = &mut record {
        members.remove("secret_sha256");
        members.insert("state".to_owned(), json!(state));
    }
    record
}

async fn get(deployment: &Deployment, id: &str) -> Result<KeyRecord> {
    let response = deployment
        .client
        .get_item()
        .consistent_read(true)
        .table_name(deployment.tables.name(Table::KEYS))
        .key("key_id", AttributeValue::S(id.to_owned()))
        .send()
        .await
        .with_context(|| format!("cannot read the key {id}"))?;
    let item = response.item.ok_or_else(|| no_such_key(id))?;
    serde_dynamo::from_item(item)
        .with_context(|| format!("the record of the key {id} is malformed"))
}

/// Stores a new key's record, and the last four characters of its text. They belong to the
/// checksum, not to the secret.
async fn insert(deployment: &Deployment, key: &str, record: &KeyRecord) -> Result<()> {
    let last_four = AttributeValue::S(key[key.len() - 4..].to_owned());
    deployment
        .client
        .put_item()
        .table_name(deployment.tables.name(Table::KEYS))
        .set_item(Some(serde_dynamo::to_item(record)?))
        .item("last_four", last_four)
        .condition_expression("attribute_not_exists(key_id)")
        .send()
        .await
        .context("cannot store the key")?;
    Ok(())
}

/// Revokes a key and returns its record. The time of an earlier revocation stays.
async fn revoke(deployment: &Deployment, id: &str) -> Result<Value> {
    let expression = "SET revoked_at = if_not_exists(revoked_at, :at)";
    update(deployment, id, expression, timestamp(SystemTime::now())).await
}

/// Lets a key expire at the given time, unless it expires earlier. Returns when it expires.
async fn expire(deployment: &Deployment, key: &KeyRecord, at: String) -> Result<String> {
    // RFC 3339 times in UTC sort chronologically.
    if let Some(earlier) = key.expires_at.clone().filter(|earlier| *earlier <= at) {
        return Ok(earlier);
    }
    update(deployment, &key.key_id, "SET expires_at = :at", at.clone())
        .await
        .context(
            "cannot set an expiry on the old key: both keys stay valid until you revoke one with `workspacectl keys revoke`",
        )?;
    Ok(at)
}

/// Updates the record of an existing key with an expression that uses the time `:at`. Returns the
/// new record.
async fn update(deployment: &Deployment, id: &str, expression: &str, at: String) -> Result<Value> {
    let updated = deployment
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
    match updated {
        Ok(updated) => Ok(serde_dynamo::from_item(
            updated.attributes.unwrap_or_default(),
        )?),
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => {
            Err(no_such_key(id))
        }
        Err(error) => Err(error).with_context(|| format!("cannot update the key {id}")),
    }
}

fn no_such_key(id: &str) -> anyhow::Error {
    anyhow!("there is no key {id}: run `workspacectl keys list` to see the existing ones")
}
