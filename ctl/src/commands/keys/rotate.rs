//! `keys rotate`.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use workspace_management::{
    api_key::KeyRecord,
    store::{Table, timestamp},
};

use super::{
    all,
    arguments::{Expiry, KeySelection, Selected, expiry, overlap},
    create::{NewKey, check_output},
    record,
};
use crate::{
    deployment::Deployment,
    output::{counted, escape},
    records::{has, text_of},
    session::{Operator, Session},
    write::{Condition, transact},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys rotate 0fzzzxjylrx3
  workspacectl keys rotate 0fzzzxjylrx3 --overlap 7d --expires 90d
  workspacectl keys rotate --all --org globex --json > new-keys.jsonl
  workspacectl keys rotate --all --org globex --continue 64f1c0d2a3b49e58 --json >> new-keys.jsonl";

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
    /// Replace a key that was already replaced. Its earlier replacement does not change
    #[arg(long, conflicts_with = "all")]
    again: bool,
    /// Continue this interrupted run of --all, and do not replace the keys that it created
    #[arg(long = "continue", value_name = "RUN", requires = "all")]
    run: Option<String>,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let selected = options.keys.selected()?;
    let expires = options.expires.map(|expiry| expiry.time(SystemTime::now()));
    expires.transpose()?;
    check_output()?;
    let deployment = session.deployment().await?;
    let mut operator = Operator::of(deployment).await?;
    if let Some(run) = &options.run {
        operator.run_id.clone_from(run);
    }
    let rotation = Rotation {
        deployment,
        operator: &operator,
        options: &options,
        json: session.json,
    };
    match selected {
        Selected::Keys(ids) => {
            let keys = record::find_all(deployment, &ids).await?;
            keys.iter().try_for_each(|key| check(key, options.again))?;
            for key in keys {
                rotation.replace(key).await?;
            }
            Ok(())
        }
        Selected::AllOf(org) => rotation.replace_all(org).await,
    }
}

/// Checks that a key can be replaced.
fn check(key: &Value, again: bool) -> Result<()> {
    let (id, new) = (text_of(key, "key_id"), text_of(key, "replaced_by"));
    if !record::is_active(key) {
        bail!(
            "the key {id} is revoked or expired: create a new one with `workspacectl keys create`"
        );
    }
    if has(key, "replaced_by") && !again {
        bail!(
            "the key {id} was already replaced by {new}: use that key or, if no one has it, revoke it, and run this command with --again"
        );
    }
    Ok(())
}

/// Whether a key was replaced, and its replacement was printed.
fn is_retired(key: &Value) -> bool {
    has(key, "replaced_at")
}

/// The active keys that an interrupted run has created, and may not have printed.
fn unprinted(keys: &[Value], org: &str, run: &str) -> Result<Vec<String>> {
    let created = keys.iter().filter(|key| key["request_id"] == run);
    if created.clone().next().is_none() {
        bail!(
            "no key of {org} was created by a run {run}: check the id, or leave out --continue to replace all keys"
        );
    }
    let is_printed = |new: &Value| {
        let mut keys = keys.iter();
        keys.any(|old| is_retired(old) && old["replaced_by"] == new["key_id"])
    };
    let unprinted = created.filter(|key| record::is_active(key) && !is_printed(key));
    Ok(unprinted
        .map(|key| text_of(key, "key_id").to_owned())
        .collect())
}

/// What all keys of a command have in common.
struct Rotation<'a> {
    deployment: &'a Deployment,
    /// Its run is the one that this command continues, if there is one.
    operator: &'a Operator,
    options: &'a Options,
    json: bool,
}

impl Rotation<'_> {
    /// Replaces all active keys of an organization that the run did not create. One that was already
    /// replaced only expires at the end of the overlap.
    async fn replace_all(&self, org: &str) -> Result<()> {
        let run = self.operator.run_id.as_str();
        let mut left = vec![];
        if self.options.run.is_some() {
            left = unprinted(&record::of(self.deployment, org).await?, org, run)?;
        }
        eprintln!(
            "this is run {run}: if it is interrupted, repeat the command with --continue {run}"
        );
        let mut count = 0;
        let confirmation = (self.options.keys.confirmation, "replaced");
        let is_selected = |key: &Value| {
            let is_done = key["request_id"] == run || (is_retired(key) && self.ends_before(key));
            record::is_active(key) && !is_done
        };
        let change = async |key: Value| {
            if is_retired(&key) {
                return self.retire(&key).await;
            }
            count += 1;
            self.replace(key).await
        };
        all::change(self.deployment, org, confirmation, is_selected, change).await?;
        eprintln!("replaced {} of {org}", counted(count, "key"));
        if !left.is_empty() {
            bail!(
                "the interrupted run created keys that it may not have printed: revoke {} if you do not have them",
                left.join(", ")
            );
        }
        Ok(())
    }

    async fn replace(&self, mut item: Value) -> Result<()> {
        let old: KeyRecord = serde_json::from_value(item.clone())?;
        let expiry = self.options.expires.map_or_else(|| issued_for(&item), Ok)?;
        let expires_at = expiry.time(SystemTime::now())?;
        let mut new = NewKey::generate(&old.org_id, &old.label, old.operations, expires_at)?;
        new.replaces = Some(item.clone());
        let inserted = record::insert(self.deployment, &mut new, self.operator).await;
        inserted.with_context(|| format!("cannot replace the key {}", old.key_id))?;
        // Lets the old key expire only after the new one was printed.
        new.print(self.deployment, self.operator, self.json).await?;
        if has(&item, "replaced_by") {
            eprintln!(
                "the key {}, which replaced {} before, does not change: revoke it if no one has it",
                escape(text_of(&item, "replaced_by")),
                old.key_id
            );
        }
        item["replaced_by"] = json!(new.record.key_id);
        let advice = "both keys stay valid until you revoke one with `workspacectl keys revoke`";
        self.retire(&item).await.context(advice)
    }

    /// Lets a key, which must not have changed, expire at the end of the overlap.
    async fn retire(&self, key: &Value) -> Result<()> {
        let (id, now) = (text_of(key, "key_id"), SystemTime::now());
        let condition = Condition::unchanged(Table::KEYS, key, &["expires_at", "replaced_by"]);
        let end = match self.ends_before(key) {
            true => text_of(key, "expires_at").to_owned(),
            false => humantime::format_rfc3339_seconds(now + self.options.overlap).to_string(),
        };
        let expression = "SET expires_at = :at, replaced_at = :now, replaced_by_operator = :who";
        let values = [
            ("at", end.clone()),
            ("now", timestamp(now)),
            ("who", self.operator.name.clone()),
        ];
        let action = condition.update_action(self.deployment, expression, &values)?;
        let failed = transact(self.deployment, vec![action]).await;
        let failed = failed.with_context(|| format!("cannot update the key {id}"))?;
        if !failed.is_empty() {
            bail!("another command has changed the key {id}");
        }
        let until = record::accepted_until(now + self.options.overlap);
        eprintln!("the key {id} is valid until {}{until}", escape(&end));
        Ok(())
    }

    /// Whether a key expires before the end of the overlap.
    fn ends_before(&self, key: &Value) -> bool {
        let expires_at = humantime::parse_rfc3339(text_of(key, "expires_at"));
        expires_at.is_ok_and(|at| at <= SystemTime::now() + self.options.overlap)
    }
}

/// The time for which a key was issued. A rotation shortens the time until it expires.
fn issued_for(item: &Value) -> Result<Expiry> {
    Ok(
        match (item["issued_for"].as_u64(), item["expires_at"].as_str()) {
            (Some(seconds), _) => Expiry::After(Duration::from_secs(seconds)),
            (None, Some(at)) if !has(item, "replaced_by") => {
                Expiry::At(humantime::parse_rfc3339(at)?)
            }
            _ => Expiry::Never,
        },
    )
}
