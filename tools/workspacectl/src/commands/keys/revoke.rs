//! `keys revoke`: revokes API keys, or all keys of an organization.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use workspace_management::{records::Table, store::MAX_CACHE_TTL};

use super::key_arguments::read_key_ids;
use crate::{
    arguments::parse_identifier,
    context::{Context, GlobalOptions, ReasonArgs, Run},
    key_record,
    message::print_message,
    organization,
    output::{print_json_or_text, print_rows},
    read::Scope,
    record::Record,
    text::{humanize, pluralize},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys revoke 0fzzzxjylrx3
  workspacectl keys revoke - < leaked-keys.txt
  workspacectl keys revoke --all --org globex";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    // Not the field of `KeyArgs`, because `--all` replaces the keys.
    /// Keys or their ids, or `-` to read them from standard input, one per line
    #[arg(
        value_name = "KEY|ID|-",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    keys_or_ids: Vec<String>,
    /// Revoke all keys of the organization in --org
    #[arg(long, requires = "org")]
    all: bool,
    /// The organization, for --all
    #[arg(long, requires = "all", value_parser = parse_identifier)]
    org: Option<String>,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    match &args.org {
        // With `--all`, which requires `--org`.
        Some(org) => revoke_all(org, args.reason, options).await,
        None => revoke_listed(&args.keys_or_ids, args.reason, options).await,
    }
}

async fn revoke_listed(
    keys_or_ids: &[String],
    reason: ReasonArgs,
    options: GlobalOptions,
) -> Result<()> {
    let ids = read_key_ids(keys_or_ids)?;
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    let records = key_record::require(&context.deployment, &ids).await?;
    let revoked = revoke_keys(&context, &run, records).await?;
    print_json_or_text(&json!(revoked), &ids.join("\n"), &context.options)
}

/// Reads the whole table once and revokes the keys of an organization. Can miss a key that is
/// created at the same time, unless the organization is disabled.
async fn revoke_all(org: &str, reason: ReasonArgs, options: GlobalOptions) -> Result<()> {
    options.check_can_confirm()?;
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    let organization = organization::require(&context.deployment, org).await?;
    if organization.fields.is_enabled() {
        print_message(&format!(
            "note: {org} is enabled, so this command can miss a key that is created at the same time. To prevent this, run `workspacectl orgs disable {org}` first"
        ));
    }
    let scope = Scope::organization(Table::API_KEYS, org);
    let mut keys = scope.read(&context.deployment).await?;
    keys.sort_by_cached_key(|key| key.key.clone());
    // Also revokes keys that seem to be expired, because the local clock may be wrong.
    keys.retain(|key| !key.has("revoked_at"));
    let keys_text = pluralize(keys.len(), "key");
    let title = organization::id_and_name(&organization.record);
    let text = format!("{keys_text} of {title} will be revoked, which cannot be undone.");
    context.confirm(&text, org)?;
    let revoked = revoke_keys(&context, &run, keys).await?;
    let columns = ["key_id", "label", "state", "revoked_at"];
    print_rows(&revoked, &columns, &context.options)
}

/// Revokes keys and returns their records for output.
async fn revoke_keys(context: &Context, run: &Run, keys: Vec<Record>) -> Result<Vec<Value>> {
    let mut revoked = Vec::new();
    let mut new_count = 0;
    for key in keys {
        let id = key.key.id();
        if key.has("revoked_at") {
            let [at, by] = ["revoked_at", "revoked_by"].map(|name| key.text(name).unwrap_or("-"));
            context.report(&format!("the key {id} was already revoked at {at} by {by}"));
        } else {
            new_count += 1;
        }
        let revoked_record = key_record::revoke(&context.deployment, &key, run)
            .await
            .context("not all keys were revoked: run the command again")?;
        revoked.push(key_record::to_output(&revoked_record));
    }
    context.report(&format!(
        "revoked {}. For up to {}, the function can still accept a key that it has cached",
        pluralize(new_count, "key"),
        humanize(MAX_CACHE_TTL)
    ));
    Ok(revoked)
}
