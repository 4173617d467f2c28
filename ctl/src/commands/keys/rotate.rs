//! `keys rotate`.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use workspace_management::api_key::KeyRecord;

use super::{
    arguments::{Expiry, KeyArgument, expiry, overlap},
    create::NewKey,
    record,
};
use crate::deployment::Deployment;

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys rotate 0fzzzxjylrx3
  workspacectl keys rotate 0fzzzxjylrx3 --overlap 7d --expires 90d";

/// The options of `keys rotate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    key: KeyArgument,
    /// How long the old key stays valid, at most 30d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = overlap)]
    overlap: Duration,
    /// When the new key expires: a duration, a date, or `never` [default: after the time for which
    /// the old key was issued]
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<Expiry>,
}

/// Replaces a key.
///
/// # Errors
/// If the arguments are invalid, there is no such key, it is not valid, or DynamoDB cannot be
/// reached.
pub(crate) async fn run(options: Options, deployment: &Deployment, json: bool) -> Result<()> {
    let id = options.key.id()?;
    let now = SystemTime::now();
    let expiry = options.expires.map(|expiry| expiry.time(now)).transpose()?;
    let item = record::get(deployment, &id).await?;
    let old: KeyRecord = serde_json::from_value(item.clone())
        .with_context(|| format!("the record of the key {id} is malformed"))?;
    if !old.is_valid_at(now) {
        bail!(
            "the key {id} is revoked or expired: create a new one with `workspacectl keys create`"
        );
    }
    let expiry = match expiry {
        Some(expiry) => expiry,
        None => issued_for(&item, &old)?.time(now)?,
    };
    let new = NewKey::generate(&old.org_id, &old.label, old.operations.clone(), expiry)?;
    new.store(deployment).await?;
    // Changes the old key only after the new one was printed.
    new.print(deployment, json).await?;
    let requested = humantime::format_rfc3339_seconds(now + options.overlap).to_string();
    // RFC 3339 times in UTC sort chronologically.
    let earlier = old.expires_at.filter(|earlier| *earlier < requested);
    let end = earlier.as_ref().unwrap_or(&requested);
    retire(deployment, &id, end, &new.record.key_id).await?;
    let reason = match earlier {
        Some(_) => ", because it expires before the end of the overlap",
        None => "",
    };
    eprintln!("the key {id} is valid until {end}{reason}");
    Ok(())
}

/// The time for which a key was issued. An earlier rotation may have shortened the time until it
/// expires.
fn issued_for(item: &Value, old: &KeyRecord) -> Result<Expiry> {
    if let Some(seconds) = item["issued_for"].as_u64() {
        return Ok(Expiry::After(Duration::from_secs(seconds)));
    }
    match &old.expires_at {
        Some(expires_at) if item["replaced_by"].is_null() => {
            let created_at = humantime::parse_rfc3339(&old.created_at)?;
            let expires_at = humantime::parse_rfc3339(expires_at)?;
            Ok(Expiry::After(expires_at.duration_since(created_at)?))
        }
        _ => Ok(Expiry::Never),
    }
}

/// Lets a key expire at the given time, and notes its replacement.
async fn retire(deployment: &Deployment, id: &str, at: &str, new_id: &str) -> Result<()> {
    let values = [(":at", at), (":new", new_id)];
    let expression = "SET expires_at = :at, replaced_by = :new";
    record::update(deployment, id, expression, &values)
        .await
        .context(
            "cannot set an expiry on the old key: both keys stay valid until you revoke one with `workspacectl keys revoke`",
        )?;
    Ok(())
}
