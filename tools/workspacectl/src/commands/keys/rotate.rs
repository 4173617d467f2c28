//! `keys rotate`: replaces a key. The order ensures that clients always have a valid key:
//!
//! 1. Store the record of the new key, and its id in the record of the old key.
//! 2. Print the new key.
//! 3. Let the old key expire at the end of the overlap.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use workspace_management::{
    records::{ApiKeyRecord, ApiKeyState},
    store::{MAX_CACHE_TTL, Table, timestamp},
};

use super::{
    create::{self, NewKey, check_can_print},
    key_arguments::{Expiry, KeyArgs, parse_expiry, parse_overlap, read_key_ids},
};
use crate::{
    deployment::Deployment,
    key_record,
    output::JsonArray,
    read,
    session::{Run, Session},
    text::humanize,
    write::GuardedRecord,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys rotate 0fzzzxjylrx3
  workspacectl keys rotate 0fzzzxjylrx3 --overlap 7d --expires 90d
  workspacectl keys rotate - --json < ids.txt > new-keys.json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    key_args: KeyArgs,
    /// How long the old key stays valid, at most 30d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_overlap)]
    overlap: Duration,
    /// When the new key expires: a duration, a date, or `never` [default: the same lifetime
    /// as the old key or, if that is not recorded, the same expiry]
    #[arg(long, value_name = "WHEN", value_parser = parse_expiry)]
    expires: Option<Expiry>,
}

pub(crate) async fn execute(args: Args, session: &Session) -> Result<()> {
    let ids = read_key_ids(&args.key_args.keys_or_ids)?;
    check_can_print()?;
    let (deployment, run) = session.deployment_and_run().await?;
    let mut records_to_rotate = Vec::new();
    let mut already_replaced_messages = Vec::new();
    for stored in key_record::require_records(deployment, &ids).await? {
        let record: ApiKeyRecord = serde_json::from_value(stored.clone())
            .with_context(|| format!("the record of the key {} is malformed", stored["key_id"]))?;
        let id = &record.key_id;
        ensure!(
            !matches!(
                record.state(SystemTime::now()),
                ApiKeyState::Revoked | ApiKeyState::Expired
            ),
            "the key {id} is revoked or expired: create a new key with `workspacectl keys create`"
        );
        // Rotates the other keys first, and then fails for those that were already replaced.
        match find_unrevoked_successor(deployment, &record).await? {
            Some(successor_id) => already_replaced_messages.push(format!(
                "the key {id} was already replaced by {successor_id}: use the new key or, if it is lost, revoke it and rotate {id} again"
            )),
            None => records_to_rotate.push(record),
        }
    }
    let mut array = JsonArray::default();
    let result = async {
        for old_record in &records_to_rotate {
            rotate(deployment, &run, old_record, &args, &mut array, session).await?;
        }
        anyhow::Ok(())
    };
    let result = result.await;
    let closed = array.close(session);
    result?;
    closed?;
    ensure!(
        already_replaced_messages.is_empty(),
        already_replaced_messages.join("; ")
    );
    Ok(())
}

/// The id of the key that has replaced a key. `None` if there is none, or if it is revoked.
async fn find_unrevoked_successor<'a>(
    deployment: &Deployment,
    record: &'a ApiKeyRecord,
) -> Result<Option<&'a str>> {
    let Some(successor_id) = &record.successor_id else {
        return Ok(None);
    };
    let successor = read::find(deployment, Table::API_KEYS, &[successor_id]).await?;
    match successor {
        Some(record) if record.get("revoked_at").is_none() => Ok(Some(successor_id)),
        _ => Ok(None),
    }
}

async fn rotate(
    deployment: &Deployment,
    run: &Run,
    old_record: &ApiKeyRecord,
    args: &Args,
    array: &mut JsonArray,
    session: &Session,
) -> Result<()> {
    let id = &old_record.key_id;
    let expiry = match args.expires {
        Some(expiry) => expiry,
        None => default_expiry(old_record)?,
    };
    let new_args = create::Args {
        org: old_record.org_id.clone(),
        label: old_record.label.clone(),
        expires: expiry,
        allow: old_record.operations.clone(),
    };
    let new_key = NewKey::issue(deployment, run, new_args, Some(old_record))
        .await
        .with_context(|| format!("cannot replace the key {id}"))?;
    new_key
        .print_or_revoke(deployment, run, Some(array), session)
        .await?;
    schedule_expiry(deployment, run, old_record, &new_key, args.overlap, session)
        .await
        .with_context(|| format!("both keys are valid: revoke {id} when clients use the new key"))
}

/// Lets a replaced key expire at the end of the overlap, unless it expires earlier.
async fn schedule_expiry(
    deployment: &Deployment,
    run: &Run,
    old_record: &ApiKeyRecord,
    new_key: &NewKey,
    overlap: Duration,
    session: &Session,
) -> Result<()> {
    let id = &old_record.key_id;
    let now = SystemTime::now();
    let mut expires_at = now + overlap;
    if let Some(current) = &old_record.expires_at {
        expires_at = expires_at.min(humantime::parse_rfc3339(current)?);
    }
    let expires_at = humantime::format_rfc3339_seconds(expires_at).to_string();
    let new_id = new_key.record.key_id.as_str();
    let key_if_replaced = GuardedRecord::if_exists(Table::API_KEYS, &[id])
        .and("replaced_by = :new", &[(":new", new_id)]);
    let expression = "SET expires_at = :at, replaced_at = :now, replaced_by_operator = :by";
    let replaced_at = timestamp(now);
    let values = [
        (":at", expires_at.as_str()),
        (":now", &replaced_at),
        (":by", &run.operator),
    ];
    let updated = key_if_replaced
        .update(deployment, expression, &values)
        .await?;
    updated.with_context(|| format!("another command has changed the key {id}"))?;
    session.report(&format!(
        "the old key {id} is valid until {expires_at}. For up to {} longer, the function can accept it if it has cached it",
        humanize(MAX_CACHE_TTL)
    ));
    Ok(())
}

/// The expiry of the new key without `--expires`: the lifetime of the old key or, if that is not
/// recorded, its original expiry. Fails if a rotation may have changed the expiry of that key.
fn default_expiry(old_record: &ApiKeyRecord) -> Result<Expiry> {
    if let Some(seconds) = old_record.lifetime_seconds {
        return Ok(Expiry::After(Duration::from_secs(seconds)));
    }
    match &old_record.expires_at {
        None => Ok(Expiry::Never),
        // No rotation has changed the expiry yet.
        Some(at) if old_record.successor_id.is_none() => {
            Ok(Expiry::At(humantime::parse_rfc3339(at)?))
        }
        // `workspacectl` issued the key (it has `last_four`) without an expiry. A rotation set one.
        Some(_) if old_record.last_four.is_some() => Ok(Expiry::Never),
        // Either a different program or a rotation has set the expiry.
        Some(_) => bail!("the lifetime is unknown: pass --expires"),
    }
}
