//! `keys rotate`: replaces a key. The order ensures that clients always have a valid key:
//!
//! 1. Store the record of the new key, and its id in the record of the old key.
//! 2. Print the new key.
//! 3. Let the old key expire at the end of the overlap.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use workspace_management::{
    records::{ApiKeyRecord, ApiKeyState},
    store::{MAX_CACHE_TTL, timestamp},
};

use super::{
    key_arguments::{Expiry, KeyArgs, parse_expiry, parse_overlap, read_key_ids},
    new_key::{KeyRequest, NewKey, check_can_print},
};
use crate::{
    context::{Context, GlobalOptions, ReasonArgs, Run},
    deployment::Deployment,
    key_record,
    output::JsonArray,
    read,
    record::Stored,
    text::humanize,
    write::{Write, change, set},
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
    /// When the new key expires: a duration, a date, or `never`. Required if it is not recorded for
    /// how long the old key was issued [default: the same lifetime as the old key]
    #[arg(long, value_name = "WHEN", value_parser = parse_expiry)]
    expires: Option<Expiry>,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let ids = read_key_ids(&args.key_args.keys_or_ids)?;
    check_can_print()?;
    let context = options.connect().await?;
    let run = context.begin_run(args.reason).await?;
    let mut keys_to_rotate = Vec::new();
    let mut already_replaced_messages = Vec::new();
    for record in key_record::require(&context.deployment, &ids).await? {
        let key: Stored<ApiKeyRecord> = record.parse()?;
        let id = &key.fields.key_id;
        ensure!(
            !matches!(
                key.fields.state(SystemTime::now()),
                ApiKeyState::Revoked | ApiKeyState::Expired
            ),
            "the key {id} is revoked or expired: create a new key with `workspacectl keys create`"
        );
        // Rotates the other keys first, and then fails for those that were already replaced.
        if let Some(successor_id) =
            find_unrevoked_successor(&context.deployment, &key.fields).await?
        {
            already_replaced_messages.push(already_replaced_message(&key.fields, successor_id));
            continue;
        }
        let expiry = match args.expires {
            Some(expiry) => expiry,
            None => same_lifetime(&key.fields)?,
        };
        keys_to_rotate.push((key, expiry));
    }
    let mut array = JsonArray::default();
    let mut result = Ok(());
    for (old_key, expiry) in keys_to_rotate {
        result = rotate(&context, &run, &old_key, expiry, args.overlap, &mut array).await;
        if result.is_err() {
            break;
        }
    }
    array.close(result, &context.options)?;
    ensure!(
        already_replaced_messages.is_empty(),
        already_replaced_messages.join("; ")
    );
    Ok(())
}

/// The id of the key that has replaced a key. `None` if there is none, or if it is revoked.
async fn find_unrevoked_successor<'a>(
    deployment: &Deployment,
    old_key: &'a ApiKeyRecord,
) -> Result<Option<&'a str>> {
    let Some(successor_id) = &old_key.successor_id else {
        return Ok(None);
    };
    let successor = read::find(deployment, &key_record::key(successor_id)).await?;
    Ok(successor
        .filter(|successor| !successor.has("revoked_at"))
        .map(|_| successor_id.as_str()))
}

/// What to say about a key that has an unrevoked successor.
fn already_replaced_message(old_key: &ApiKeyRecord, successor_id: &str) -> String {
    let id = &old_key.key_id;
    let mut message = format!(
        "the key {id} was already replaced by {successor_id}: use the new key or, if it is lost, revoke it and rotate {id} again"
    );
    if old_key.replaced_at.is_none() {
        message += &format!(
            ". The old key is still valid: {}",
            unfinished_rotation_message(old_key)
        );
    }
    message
}

/// What to say about a key whose rotation was interrupted before the key got its new expiry.
pub(crate) fn unfinished_rotation_message(old_key: &ApiKeyRecord) -> String {
    let id = &old_key.key_id;
    let end = match &old_key.expires_at {
        Some(at) => format!("is valid until {at}"),
        None => "does not expire".to_owned(),
    };
    format!(
        "its rotation was interrupted, so it {end}: run `workspacectl keys revoke {id}` when clients use the new key"
    )
}

async fn rotate(
    context: &Context,
    run: &Run,
    old_key: &Stored<ApiKeyRecord>,
    expiry: Expiry,
    overlap: Duration,
    array: &mut JsonArray,
) -> Result<()> {
    let id = &old_key.fields.key_id;
    let request = KeyRequest {
        org: old_key.fields.org_id.clone(),
        label: old_key.fields.label.clone(),
        expiry,
        operations: old_key.fields.operations.clone(),
        projects: old_key.fields.projects.clone(),
    };
    let new_key = NewKey::issue(&context.deployment, run, request, Some(old_key))
        .await
        .with_context(|| format!("cannot replace the key {id}"))?;
    new_key.print_or_revoke(context, run, Some(array)).await?;
    schedule_expiry(context, run, old_key, &new_key, overlap)
        .await
        .with_context(|| format!("both keys are valid: revoke {id} when clients use the new key"))
}

/// Lets a replaced key expire at the end of the overlap, unless it expires earlier.
async fn schedule_expiry(
    context: &Context,
    run: &Run,
    old_key: &Stored<ApiKeyRecord>,
    new_key: &NewKey,
    overlap: Duration,
) -> Result<()> {
    let id = &old_key.fields.key_id;
    let now = SystemTime::now();
    let mut expires_at = now + overlap;
    if let Some(current) = &old_key.fields.expires_at {
        expires_at = expires_at.min(humantime::parse_rfc3339(current)?);
    }
    let expires_at = humantime::format_rfc3339_seconds(expires_at).to_string();
    let assignments = [
        set("expires_at", &expires_at),
        set("replaced_at", timestamp(now)),
        set("replaced_by_operator", &run.operator),
    ];
    let write = Write::update(&old_key.record, assignments)
        .if_equal("replaced_by", &new_key.stored.fields.key_id)
        .or_say(format!("another command has changed the key {id}"));
    let outcome = change(&context.deployment, run, "rotate", vec![write]).await?;
    outcome.done()?;
    context.report(&format!(
        "the old key {id} is valid until {expires_at}. For up to {} longer, the function can accept it if it has cached it",
        humanize(MAX_CACHE_TTL)
    ));
    Ok(())
}

/// The lifetime that was chosen for the old key. Fails if it is not recorded although the key
/// expires.
fn same_lifetime(old_key: &ApiKeyRecord) -> Result<Expiry> {
    match (old_key.lifetime_seconds, &old_key.expires_at) {
        (Some(seconds), _) => Ok(Expiry::After(Duration::from_secs(seconds))),
        (None, None) => Ok(Expiry::Never),
        (None, Some(_)) => bail!(
            "it is not recorded for how long the key {} was issued: pass --expires",
            old_key.key_id
        ),
    }
}
