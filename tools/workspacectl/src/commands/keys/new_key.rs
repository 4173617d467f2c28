//! Issues and prints an API key.

use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Error, Result, bail, ensure};
use serde_json::json;
use workspace_management::{
    records::{ApiKeyRecord, OrganizationState},
    store::timestamp,
};
use workspace_records::item::new_key_record;

use super::key_arguments::Expiry;
use crate::{
    context::{Context, Run},
    deployment::Deployment,
    key_record, organization,
    output::{JsonArray, is_stdout_discarded, print_or_fail_on_closed_pipe},
    record::Stored,
    text::{escape_json, humanize},
};

/// What a new key is for.
pub struct KeyRequest {
    /// The id of the organization, which must be enabled.
    pub org: String,
    /// A label that `keys list` shows.
    pub label: String,
    /// When the key expires.
    pub expiry: Expiry,
    /// The operations that the key may call. `None` means all.
    pub operations: Option<Vec<String>>,
    /// The projects that the key is limited to. `None` means no limit.
    pub projects: Option<Vec<String>>,
}

/// Checks that a key can be printed, before one is created.
pub(super) fn check_can_print() -> Result<()> {
    ensure!(
        !is_stdout_discarded()?,
        "no key was created, because standard output is closed or /dev/null, and a key is printed only once"
    );
    Ok(())
}

/// A new key whose record is stored.
pub struct NewKey {
    /// The key itself. Only its hash is stored, so the key is lost if it is not printed.
    pub key: String,
    pub(super) stored: Stored<ApiKeyRecord>,
}

impl NewKey {
    /// Generates a key and stores its record for the current registration of the organization. If
    /// the new key replaces an old one, also stores the new id in the record of the old key. Fails
    /// unless these conditions hold:
    ///
    /// - The organization is enabled, and its registration has not changed.
    /// - The old key has this registration, is not revoked, and was not replaced since it was read.
    pub async fn issue(
        deployment: &Deployment,
        run: &Run,
        request: KeyRequest,
        old_key: Option<&Stored<ApiKeyRecord>>,
    ) -> Result<Self> {
        let org = &request.org;
        let organization = organization::require(deployment, org).await?;
        let state = organization.fields.state();
        if state != OrganizationState::Enabled {
            bail!(
                "no key can be created, because {org} is {}",
                organization::state_name(state)
            );
        }
        let Some(registration_id) = organization.fields.registration_id.as_deref() else {
            bail!(
                "the record of {org} has no request_id, which keys need: set it to a random value"
            );
        };
        let key = key_record::random_key()?;
        let now = SystemTime::now();
        let expires_at = request.expiry.resolve(now).map_err(Error::msg)?;
        let label = &request.label;
        let mut record = new_key_record(&key, org, registration_id, label, &timestamp(now))
            .context("the new key is malformed")?;
        record.operations = request.operations.map(distinct);
        record.projects = request.projects.map(distinct);
        record.expires_at = expires_at.map(|at| humantime::format_rfc3339_seconds(at).to_string());
        let lifetime = expires_at.and_then(|at| at.duration_since(now).ok());
        record.created_by = Some(run.operator.clone());
        record.run_id = Some(run.id.clone());
        record.lifetime_seconds = lifetime.map(|lifetime| lifetime.as_secs());
        record.predecessor_id = old_key.map(|old_key| old_key.fields.key_id.clone());
        let stored =
            key_record::insert_and_link_old(deployment, run, &record, registration_id, old_key)
                .await?;
        Ok(Self {
            key,
            stored: stored.parse()?,
        })
    }

    /// Prints the key, with `--json` as the next entry of the array, if there is one. If that fails,
    /// revokes the key, because it cannot be printed again.
    pub(super) async fn print_or_revoke(
        &self,
        context: &Context,
        run: &Run,
        array: Option<&mut JsonArray>,
    ) -> Result<()> {
        let mut record = key_record::to_output(&self.stored.record);
        record["key"] = json!(self.key);
        let printed = match array {
            _ if !context.options.json => print_or_fail_on_closed_pipe(&self.key),
            Some(array) => array.print_next(&record),
            None => print_or_fail_on_closed_pipe(&escape_json(&record.to_string())),
        };
        if let Err(error) = printed {
            let id = &self.stored.fields.key_id;
            let result = key_record::revoke(&context.deployment, &self.stored.record, run).await;
            result.with_context(|| {
                format!("the new key was neither printed nor revoked: run `workspacectl keys revoke {id}`")
            })?;
            bail!("cannot print the key, so it was revoked: {error}");
        }
        context.report(&self.summary());
        Ok(())
    }

    /// Describes the key: its organization, expiry, operations and projects.
    fn summary(&self) -> String {
        let record = &self.stored.fields;
        let validity = match (&record.expires_at, record.lifetime_seconds) {
            (Some(at), Some(seconds)) => {
                let lifetime = humanize(Duration::from_secs(seconds));
                format!("is valid until {at} (for {lifetime})")
            }
            _ => "does not expire".to_owned(),
        };
        let operations = match &record.operations {
            Some(operations) => operations.join(", "),
            None => "every operation".to_owned(),
        };
        let projects = match &record.projects {
            Some(projects) => format!(" in these projects: {}", projects.join(", ")),
            None => String::new(),
        };
        format!(
            "the key {} of {} {validity} and may call {operations}{projects}. Store it now: it cannot be printed again",
            record.key_id, record.org_id
        )
    }
}

/// Drops repeated names.
fn distinct(mut names: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}
