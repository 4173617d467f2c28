//! `keys rotate`: replaces a key by a new one, in an order in which a client always has a valid key.
//!
//! 1. Store the new key, and its id in the old key.
//! 2. Print the new key.
//! 3. Let the old key expire at the end of the overlap.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use workspace_management::store::{Table, timestamp};

use super::{
    arguments::{Expiry, Keys, expiry, key_ids, overlap},
    create::{NewKey, check_output},
    stored::{self, StoredKey},
};
use crate::{
    deployment::Deployment,
    query,
    session::{Operator, Session},
    text::escape,
    write::Condition,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys rotate 0fzzzxjylrx3
  workspacectl keys rotate 0fzzzxjylrx3 --overlap 7d --expires 90d
  workspacectl keys rotate - --json < ids.txt > new-keys.jsonl";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    keys: Keys,
    /// How long the old key stays valid, at most 30d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = overlap)]
    overlap: Duration,
    /// When the new key expires: a duration, a date, or `never` [default: valid for as long as
    /// the old key was, counted from now]
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<Expiry>,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let ids = key_ids(&options.keys.keys)?;
    if let Some(expires) = options.expires {
        expires.time(SystemTime::now())?;
    }
    check_output()?;
    let (deployment, operator) = session.start().await?;
    let mut keys = Vec::new();
    for record in stored::find_all(deployment, &ids).await? {
        let key = stored::parse(&record)?;
        if !key.record.is_valid_at(SystemTime::now()) {
            let id = &key.record.key_id;
            bail!(
                "the key {id} is revoked or expired: create a new one with `workspacectl keys create`"
            );
        }
        keys.push(key);
    }
    let mut refusals = Vec::new();
    for key in keys {
        match refusal(deployment, &key).await? {
            Some(refusal) => refusals.push(refusal),
            None => rotate(deployment, &operator, &key, &options, session.json).await?,
        }
    }
    if !refusals.is_empty() {
        bail!(refusals.join("; "));
    }
    Ok(())
}

/// Why a key is not replaced: it was replaced before, and the replacement can still be used.
async fn refusal(deployment: &Deployment, key: &StoredKey) -> Result<Option<String>> {
    let Some(new) = &key.replaced_by else {
        return Ok(None);
    };
    let replacement = query::get(deployment, Table::KEYS, &[new]).await?;
    let can_be_used = replacement.is_some_and(|record| record.get("revoked_at").is_none());
    Ok(can_be_used.then(|| {
        let id = &key.record.key_id;
        format!(
            "the key {id} was already replaced by {new}: use that key or, if no one has it, revoke it, and run this command again"
        )
    }))
}

/// Replaces a key.
async fn rotate(
    deployment: &Deployment,
    operator: &Operator,
    old: &StoredKey,
    options: &Options,
    json: bool,
) -> Result<()> {
    let id = &old.record.key_id;
    let expires = options.expires.map_or_else(|| issued_for(old), Ok)?;
    let expires_at = expires.time(SystemTime::now())?;
    let operations = old.record.operations.clone();
    let mut new = NewKey::generate(
        &old.record.org_id,
        &old.record.label,
        operations,
        expires_at,
    )?;
    new.stored.replaces = Some(id.clone());
    let inserted = stored::insert(deployment, &mut new, Some(old), operator).await;
    inserted.with_context(|| format!("cannot replace the key {id}"))?;
    new.print(deployment, operator, json).await?;
    let expired = expire(deployment, operator, old, &new, options.overlap).await;
    expired.context("both keys stay valid until you revoke one with `workspacectl keys revoke`")
}

/// Lets a replaced key expire at the end of the overlap, unless it expires before.
async fn expire(
    deployment: &Deployment,
    operator: &Operator,
    old: &StoredKey,
    new: &NewKey,
    overlap: Duration,
) -> Result<()> {
    let (id, now) = (&old.record.key_id, SystemTime::now());
    let end = now + overlap;
    let expires_at = match &old.record.expires_at {
        Some(earlier) if humantime::parse_rfc3339(earlier)? <= end => earlier.clone(),
        _ => humantime::format_rfc3339_seconds(end).to_string(),
    };
    let by_new = [(":new", new.stored.record.key_id.as_str())];
    let condition = Condition::new(Table::KEYS, &[id]).and("replaced_by = :new", &by_new);
    let expression = "SET expires_at = :at, replaced_at = :now, replaced_by_operator = :who";
    let now = timestamp(now);
    let values = [
        (":at", &*expires_at),
        (":now", &*now),
        (":who", &*operator.name),
    ];
    let updated = condition.update(deployment, expression, &values).await?;
    updated.with_context(|| format!("another command has changed the key {id}"))?;
    let cached = stored::MAY_BE_CACHED;
    eprintln!(
        "the key {id} is valid until {}: {cached} longer",
        escape(&expires_at)
    );
    Ok(())
}

/// How long a key was valid when it was issued.
fn issued_for(key: &StoredKey) -> Result<Expiry> {
    Ok(match (key.issued_for, &key.record.expires_at) {
        (Some(seconds), _) => Expiry::After(Duration::from_secs(seconds)),
        // Another program has set its end.
        (None, Some(at)) if key.replaced_by.is_none() => Expiry::At(humantime::parse_rfc3339(at)?),
        // It never expired, until it was replaced.
        (None, _) => Expiry::Never,
    })
}
