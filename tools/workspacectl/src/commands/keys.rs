//! `keys`: API keys. A key is printed only once, because only the hash of its secret is stored.

mod create;
mod key_arguments;
mod list;
mod new_key;
mod revoke;
pub(crate) mod rotate;
mod usage;

use std::collections::BTreeSet;

use anyhow::Result;

pub use self::{
    key_arguments::Expiry,
    new_key::{KeyRequest, NewKey},
};

pub(crate) use self::key_arguments::read_key_ids;

use self::key_arguments::KeyArgs;
use crate::{context::GlobalOptions, key_record, organization, output::print_rows};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys create --org globex --label ci --expires 90d --allow create_team,add_team_users
  workspacectl keys rotate 0fzzzxjylrx3 --overlap 7d
  workspacectl keys check - < keys.txt";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Create an API key and print it. It cannot be printed again
    #[command(after_help = create::EXAMPLES)]
    Create(create::Args),
    /// List API keys with their state and last four characters
    #[command(after_help = list::EXAMPLES)]
    List(list::Args),
    /// Show what API keys may do and when they expire, or who erased them. Does not verify their
    /// secrets
    #[command(after_help = "Example:\n  workspacectl keys check - < keys.txt")]
    Check(KeyArgs),
    /// Replace API keys with new ones that may do the same. The old keys expire after --overlap
    #[command(after_help = rotate::EXAMPLES)]
    Rotate(rotate::Args),
    /// Revoke API keys. For up to a minute, the function can still accept keys that it has cached
    #[command(after_help = revoke::EXAMPLES)]
    Revoke(revoke::Args),
    /// Show when API keys were last used, how often and from where
    #[command(after_help = usage::EXAMPLES)]
    Usage(usage::Args),
}

/// The columns of `keys list` and `keys check`.
#[rustfmt::skip] // few lines
const KEY_COLUMNS: [&str; 11] = [
    "key_id", "org_id", "state", "label", "expires_at", "last_four",
    "created_at", "replaced_by", "revoked_at", "operations", "projects",
];

pub(crate) async fn execute(command: Command, options: GlobalOptions) -> Result<()> {
    match command {
        Command::Create(args) => create::execute(args, options).await,
        Command::List(args) => list::execute(args, options).await,
        Command::Check(args) => check(&args, options).await,
        Command::Rotate(args) => rotate::execute(args, options).await,
        Command::Revoke(args) => revoke::execute(args, options).await,
        Command::Usage(args) => usage::execute(args, options).await,
    }
}

/// Shows keys and says which of their organizations are not enabled. Does not check the secrets.
async fn check(args: &KeyArgs, options: GlobalOptions) -> Result<()> {
    let ids = read_key_ids(&args.keys_or_ids)?;
    let context = options.connect().await?;
    let records = key_record::require(&context.deployment, &ids).await?;
    let outputs: Vec<_> = records.iter().map(key_record::to_output).collect();
    print_rows(&outputs, &KEY_COLUMNS, &context.options)?;
    let orgs: BTreeSet<_> = records
        .iter()
        .filter_map(|key| key.text("org_id"))
        .collect();
    for org in orgs {
        let state = match organization::find(&context.deployment, org).await? {
            Some(organization) if organization.fields.is_enabled() => continue,
            Some(organization) => organization::state_name(organization.fields.state()),
            None => "not registered",
        };
        context.report(&format!(
            "the organization {org} is {state}: its keys are not accepted"
        ));
    }
    Ok(())
}
