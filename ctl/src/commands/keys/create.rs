//! `keys create`: creates and prints an API key.

use std::{
    fs::{self, File},
    io,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;
use serde_json::json;
use workspace_management::{
    api_key::{ApiKey, KeyRecord},
    operations::Operation,
    store::timestamp,
};
use workspace_records::item::key_record;

use super::{
    arguments::{Expiry, parse_expiry, parse_label},
    stored::{self, StoredKey},
};
use crate::{
    deployment::Deployment,
    output::print,
    session::{Operator, Session},
    text::{escape, escape_json, humanize},
    usage::parse_identifier,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys create --org globex
  workspacectl keys create --org globex --label ci --expires 90d --allow create_team,add_team_users
  workspacectl keys create --org globex --expires 2027-01-31
  KEY=$(workspacectl keys create --org globex)";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The organization, which must be registered
    #[arg(long, value_parser = parse_identifier)]
    org: String,
    /// A label that `keys list` shows
    #[arg(long, default_value = "", value_parser = parse_label)]
    label: String,
    /// When the key expires: a duration such as 90d or 12h, a date such as 2027-01-31, or `never`
    #[arg(long, value_name = "WHEN", default_value = "365d", value_parser = parse_expiry)]
    expires: Expiry,
    /// The operations that the key may call, separated by commas [default: all]
    #[arg(long, value_name = "OPERATIONS", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Operation::ALL.iter().map(|it| it.name())))]
    allow: Option<Vec<String>>,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let expiry = options.expires.time(SystemTime::now())?;
    check_can_print()?;
    let (deployment, operator) = session.deployment_and_operator().await?;
    let mut new = NewKey::generate(&options.org, &options.label, options.allow, expiry)?;
    stored::insert(deployment, &mut new, None, &operator).await?;
    new.print(deployment, &operator, session.json).await
}

/// Checks that a key can be printed, before one is created.
/// Fails if standard output is `/dev/null`, which Rust opens in place of a closed standard output.
pub(crate) fn check_can_print() -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::{fd::AsFd as _, unix::fs::MetadataExt as _};
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
        if fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == output.rdev()) {
            bail!(
                "no key was created, because standard output is closed or /dev/null, and a key is printed only once"
            );
        }
    }
    Ok(())
}

/// A new key.
pub struct NewKey {
    /// The key itself. It is not stored, so it is lost if it is not printed.
    pub key: String,
    pub(crate) record: StoredKey,
}

impl NewKey {
    /// Generates a key of an organization. `operations` is `None` for a key for all operations.
    ///
    /// # Errors
    /// If the operating system provides no random numbers.
    pub fn generate(
        org: &str,
        label: &str,
        operations: Option<Vec<String>>,
        expires_at: Option<SystemTime>,
    ) -> Result<Self> {
        let (mut id, mut secret) = ([0; 8], [[0; 16]; 2]);
        getrandom::fill(&mut id)
            .and_then(|()| getrandom::fill(secret.as_flattened_mut()))
            .context("the operating system provides no random numbers")?;
        let key = ApiKey::encode(id, secret);
        let parsed = ApiKey::parse(&key).context("the new key is malformed")?;
        let now = SystemTime::now();
        // `stored::insert` sets the registration of the organization, the operator and the run.
        let mut base = key_record(parsed, org, "", label, &timestamp(now));
        base.operations = operations;
        base.expires_at = expires_at.map(|at| humantime::format_rfc3339_seconds(at).to_string());
        // Rounded, because `expires_at` was computed from a slightly earlier time.
        let valid_for = expires_at.and_then(|at| at.duration_since(now).ok());
        let record = StoredKey {
            base,
            last_four: Some(key[key.len() - 4..].to_owned()),
            created_by: None,
            request_id: None,
            issued_for: valid_for.map(|time| (time + Duration::from_millis(500)).as_secs()),
            replaces: None,
            replaced_by: None,
        };
        Ok(Self { key, record })
    }

    /// Prints the key. If it cannot be printed, revokes it, because then it is lost.
    pub(super) async fn print(
        &self,
        deployment: &Deployment,
        operator: &Operator,
        json: bool,
    ) -> Result<()> {
        let text = if json {
            let mut record = stored::to_output(serde_json::to_value(&self.record)?);
            record["key"] = json!(self.key);
            // On one line, because a rotation of several keys prints a line for each.
            escape_json(&record.to_string())
        } else {
            eprintln!("{}", escape(&self.summary()));
            self.key.clone()
        };
        if let Err(error) = print(&text) {
            let id = &self.record.base.key_id;
            let revoked = stored::revoke(deployment, id, operator).await;
            revoked.with_context(|| {
                format!("cannot print the key: run `workspacectl keys revoke {id}`")
            })?;
            bail!("cannot print the key, so it was revoked: {error}");
        }
        Ok(())
    }

    /// The sentence that describes the key: its organization, expiry and operations.
    fn summary(&self) -> String {
        let KeyRecord { key_id, org_id, .. } = &self.record.base;
        let end = match (&self.record.base.expires_at, self.record.issued_for) {
            (Some(at), Some(seconds)) => {
                let time = humanize(Duration::from_secs(seconds));
                format!("is valid until {at} (for {time})")
            }
            _ => "does not expire".to_owned(),
        };
        let operations = match &self.record.base.operations {
            Some(operations) => operations.join(", "),
            None => "every operation".to_owned(),
        };
        format!(
            "the key {key_id} of {org_id} {end} and may call {operations}. Store it now: it cannot be printed again"
        )
    }
}
