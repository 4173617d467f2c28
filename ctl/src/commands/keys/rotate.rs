//! `keys rotate`.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use workspace_management::{
    api_key::KeyRecord,
    store::{Table, timestamp},
};

use super::{
    all,
    arguments::{Expiry, KeySelection, Selected, expiry, overlap},
    create::NewKey,
    record,
};
use crate::{
    deployment::Deployment,
    records::{text_of, unchanged},
    session::{Operator, Session},
    write::Condition,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys rotate 0fzzzxjylrx3
  workspacectl keys rotate 0fzzzxjylrx3 --overlap 7d --expires 90d
  workspacectl keys rotate --all --org globex --json > new-keys.jsonl";

/// The options of `keys rotate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    keys: KeySelection,
    /// How long the old key stays valid, at most 30d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = overlap)]
    overlap: Duration,
    /// When the new key expires: a duration, a date, or `never` [default: valid for as long as
    /// the old key was, counted from now]
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<Expiry>,
}

/// Replaces a key, or all keys of an organization.
///
/// # Errors
/// If the arguments are invalid, there is no such key, it is not valid, or DynamoDB cannot be
/// reached.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let selected = options.keys.selected()?;
    let expires = options.expires.map(|expiry| expiry.time(SystemTime::now()));
    expires.transpose()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let org = match selected {
        Selected::Key(id) => return rotate(&options, session, &operator, &id, None).await,
        Selected::AllOf(org) => org,
    };
    let keys = all::confirm(deployment, org, options.keys.confirmation, "replaced").await?;
    let interrupted = interrupted_rotation(&keys, SystemTime::now());
    if interrupted.is_some() {
        eprintln!("continuing a rotation of the last hour, which was interrupted");
    }
    let rotation = interrupted.unwrap_or(&operator.run_id);
    let old = keys.iter().filter(|key| is_to_rotate(key, rotation));
    let mut count = 0;
    for key in old {
        rotate(
            &options,
            session,
            &operator,
            text_of(key, "key_id"),
            Some(rotation),
        )
        .await?;
        count += 1;
    }
    eprintln!("{count} keys of {org} were replaced");
    Ok(())
}

/// Whether a rotation of all keys has not replaced a key yet.
fn is_to_rotate(key: &Value, rotation: &str) -> bool {
    key["replaced_by"].is_null() && key["rotation_id"] != *rotation
}

/// The id of the last rotation of all keys, if it has left keys that were created before it. A
/// rotation that ended more than an hour ago is not continued, because its keys may have leaked.
fn interrupted_rotation(keys: &[Value], now: SystemTime) -> Option<&str> {
    let created_at = |key: &Value| text_of(key, "created_at").to_owned();
    let rotated = keys.iter().filter(|key| !key["rotation_id"].is_null());
    let last = rotated.clone().max_by_key(|key| created_at(key))?;
    let ended = humantime::parse_rfc3339(text_of(last, "created_at")).ok()?;
    if now > ended + Duration::from_secs(3_600) {
        return None;
    }
    let rotation = text_of(last, "rotation_id");
    // RFC 3339 times in UTC sort chronologically.
    let own = rotated.filter(|key| key["rotation_id"] == *rotation);
    let started = own.map(created_at).min()?;
    let mut left = keys.iter().filter(|key| is_to_rotate(key, rotation));
    left.any(|key| created_at(key) < started)
        .then_some(rotation)
}

/// Replaces a key.
async fn rotate(
    options: &Options,
    session: &Session,
    operator: &Operator,
    id: &str,
    rotation: Option<&str>,
) -> Result<()> {
    let (deployment, now) = (session.deployment().await?, SystemTime::now());
    let item = record::find(deployment, id).await?;
    let old: KeyRecord = serde_json::from_value(item.clone())
        .with_context(|| format!("the record of the key {id} is malformed"))?;
    if !old.is_valid_at(now) {
        bail!(
            "the key {id} is revoked or expired: create a new one with `workspacectl keys create`"
        );
    }
    let expiry = match options.expires {
        Some(expiry) => expiry,
        None => issued_for(&item, &old)?,
    };
    let expires_at = expiry.time(now)?;
    let mut new = NewKey::generate(&old.org_id, &old.label, old.operations.clone(), expires_at)?;
    new.replaces = Some(id.to_owned());
    new.rotation = rotation.map(str::to_owned);
    record::insert(deployment, &mut new, operator).await?;
    // Changes the old key only after the new one was printed.
    new.print(deployment, operator, session.json).await?;
    let requested = humantime::format_rfc3339_seconds(now + options.overlap).to_string();
    let earlier = old.expires_at.filter(|earlier| *earlier < requested);
    let end = earlier.as_ref().unwrap_or(&requested);
    retire(deployment, &item, end, &new.record.key_id, operator).await?;
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

/// Lets a key, as it was read, expire at the given time, and notes its replacement. Without the
/// condition, the late attempt of one rotation could extend the life that another one has shortened.
async fn retire(
    deployment: &Deployment,
    old: &Value,
    at: &str,
    new_id: &str,
    operator: &Operator,
) -> Result<()> {
    let id = text_of(old, "key_id");
    let (unchanged, seen) = unchanged(old, &["expires_at", "replaced_by"]);
    let condition = Condition {
        table: Table::KEYS,
        key: &[id],
        expression: &format!("attribute_exists(key_id) AND {unchanged}"),
        values: &seen,
    };
    let expression = "SET expires_at = :at, replaced_by = :new, replaced_at = :now, \
        replaced_by_operator = :who";
    let values = [
        ("at", at.to_owned()),
        ("new", new_id.to_owned()),
        ("now", timestamp(SystemTime::now())),
        ("who", operator.name.clone()),
    ];
    let advice = "both keys stay valid until you revoke one with `workspacectl keys revoke`";
    let updated = condition.update(deployment, expression, &values).await;
    if updated.with_context(|| advice)?.is_some() {
        return Ok(());
    }
    // If the response to this run's write was lost, the SDK has sent it again.
    let key = record::find(deployment, id).await?;
    if key["replaced_by"] != *new_id {
        bail!("another command has changed the key {id}: {advice}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(created_at: u32, rotation: Option<&str>, replaced_by: Option<&str>) -> Value {
        json!({
            "created_at": format!("2026-01-01T00:0{created_at}:00Z"), "rotation_id": rotation,
            "replaced_by": replaced_by,
        })
    }

    #[test]
    fn a_rotation_is_interrupted_if_it_left_an_older_key() {
        let (old, replaced) = (key(1, None, None), key(2, None, Some("b")));
        let (first, second) = (key(5, Some("r1"), None), key(6, Some("r1"), None));
        let later = key(7, None, None);
        for (keys, expected) in [
            (vec![&old, &later], None),
            (vec![&replaced, &first, &old], Some("r1")),
            (vec![&replaced, &first, &second], None),
            (vec![&replaced, &first, &later], None),
        ] {
            let keys: Vec<Value> = keys.into_iter().cloned().collect();
            let now = humantime::parse_rfc3339("2026-01-01T00:30:00Z").expect("a time");
            assert_eq!(interrupted_rotation(&keys, now), expected, "{keys:?}");
            let later = now + Duration::from_secs(3_600);
            assert_eq!(interrupted_rotation(&keys, later), None, "{keys:?}");
        }
    }
}
