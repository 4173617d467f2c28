//! Checks the API keys.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use anyhow::Result;
use workspace_management::records::{ApiKeyRecord, ApiKeyState, Table};

use super::Status;
use crate::{
    commands::keys::rotate::unfinished_rotation_message,
    deployment::Deployment,
    key_record, organization,
    read::Scope,
    record::Record,
    text::{humanize, pluralize},
};

/// `doctor` warns about keys that expire within this time.
const EXPIRY_NOTICE: Duration = Duration::from_secs(NOTICE_DAYS * 86_400);
const NOTICE_DAYS: u64 = 14;

/// Warns about API keys of enabled organizations that expire soon and have no active replacement, or
/// whose rotation was interrupted. Ignores keys that were issued for at most [`EXPIRY_NOTICE`],
/// because they are meant to expire. Fails if the keys or their organizations cannot be read.
pub(super) async fn check(deployment: &Deployment) -> Result<Status> {
    let records = Scope::all(Table::API_KEYS).read(deployment).await?;
    // No key with a malformed record is accepted, so none can expire.
    let keys = records.into_iter().flat_map(Record::parse::<ApiKeyRecord>);
    let now = SystemTime::now();
    let mut keys: Vec<ApiKeyRecord> = keys.map(|key| key.fields).collect();
    keys.retain(|key| key.state(now) == ApiKeyState::Active);
    let active_ids: BTreeSet<&String> = keys.iter().map(|key| &key.key_id).collect();
    let mut is_enabled = BTreeMap::new();
    let (mut expiring, mut problems) = (0, Vec::new());
    for key in &keys {
        let Some(problem) = find_problem(key, &active_ids) else {
            continue;
        };
        let org = &key.org_id;
        if !is_enabled.contains_key(org) {
            let organization = organization::find(deployment, org).await?;
            let enabled = organization.is_some_and(|organization| organization.fields.is_enabled());
            is_enabled.insert(org, enabled);
        }
        match problem {
            _ if !is_enabled[org] => {}
            Problem::Expires => expiring += 1,
            Problem::RotationInterrupted => {
                let message = unfinished_rotation_message(key);
                problems.push(format!("the key {}: {message}", key.key_id));
            }
        }
    }
    Ok(status(expiring, problems))
}

/// What can be wrong with an active key.
enum Problem {
    /// It expires soon and has no active replacement.
    Expires,
    /// It has a replacement, but its rotation did not let it expire.
    RotationInterrupted,
}

fn find_problem(key: &ApiKeyRecord, active_ids: &BTreeSet<&String>) -> Option<Problem> {
    let successor_id = key.successor_id.as_ref();
    if successor_id.is_some_and(|id| active_ids.contains(id)) {
        // A rotation sets `replaced_at` when it lets the old key expire.
        let is_interrupted = key.replaced_at.is_none();
        return is_interrupted.then_some(Problem::RotationInterrupted);
    }
    let is_long_lived = key.lifetime_seconds.unwrap_or(u64::MAX) > EXPIRY_NOTICE.as_secs();
    let expires = is_long_lived && key_record::is_active_and_expires_within(key, EXPIRY_NOTICE);
    expires.then_some(Problem::Expires)
}

fn status(expiring: usize, mut problems: Vec<String>) -> Status {
    let days = humanize(EXPIRY_NOTICE);
    if expiring > 0 {
        let keys_text = pluralize(expiring, "key");
        problems.insert(0, format!(
            "{keys_text} without a replacement will expire within {days}: run `workspacectl keys list --expiring {NOTICE_DAYS}d`"
        ));
    }
    if problems.is_empty() {
        return Status::Passed(format!(
            "no key of an enabled organization will expire within {days} without a replacement. Keys issued for {days} or less are not checked"
        ));
    }
    Status::Warning(problems.join("; "))
}
