//! `orgs`: organizations, which the API cannot create, disable or erase.

pub mod change_state;
mod create;
mod edit;
pub mod erase;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Result;
use serde_json::{Value, json};
use workspace_management::records::Table;
use workspace_records::kinds::{HISTORY, Kind};

use self::change_state::StateChange;
use crate::{
    arguments::{ORG_HELP, parse_identifier},
    context::{Context, GlobalOptions, ReasonArgs},
    deployment::Deployment,
    export::ExportWriter,
    organization,
    output::{print_json, print_listing, print_rows},
    read::{LimitArgs, Scope, organization_scopes_via_teams},
    text::pluralize,
    wait::WaitArgs,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs create globex --name Globex --reference CRM-42
  workspacectl orgs disable globex
  workspacectl orgs erase globex --export globex.jsonl";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Register an organization
    #[command(after_help = "Example:\n  workspacectl orgs create globex --if-absent --json")]
    Create(create::Args),
    /// Change the name or the reference of an organization
    #[command(after_help = edit::EXAMPLES)]
    Edit(edit::Args),
    /// List the registered organizations
    #[command(after_help = "Example:\n  workspacectl orgs list --limit 100 --json")]
    List(LimitArgs),
    /// Show an organization: whether it is enabled, who changed that, and how many records and
    /// distinct users it has
    ///
    /// Counting reads every record of the organization and the API keys of all organizations. The
    /// counts include teams that are being removed, and can miss teams created seconds ago.
    #[command(after_help = "Example:\n  workspacectl orgs show globex --json")]
    Show {
        #[arg(value_parser = parse_identifier, help = ORG_HELP)]
        org: String,
    },
    /// Reject every request for an organization, with or without an API key
    #[command(after_help = "Example:\n  workspacectl orgs disable globex --no-wait")]
    Disable {
        #[arg(value_parser = parse_identifier, help = ORG_HELP)]
        org: String,
        /// Exit at once, like --wait 0 but without a warning. Some requests can still succeed
        #[arg(long)]
        no_wait: bool,
        #[command(flatten)]
        wait_args: WaitArgs,
        #[command(flatten)]
        reason: ReasonArgs,
    },
    /// Accept requests for a disabled organization again
    #[command(after_help = "Example:\n  workspacectl orgs enable globex")]
    Enable {
        #[arg(value_parser = parse_identifier, help = ORG_HELP)]
        org: String,
        #[command(flatten)]
        reason: ReasonArgs,
    },
    /// Write all records of an organization to standard output or a file, as JSON Lines
    ///
    /// Teams that were created in the last few seconds may be missing. The export of `orgs erase`
    /// always has all records.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export {
        #[arg(value_parser = parse_identifier, help = ORG_HELP)]
        org: String,
        /// The new file; `-` is standard output
        #[arg(long, value_name = "FILE", default_value = "-")]
        out: PathBuf,
        /// Also export the history, which `restore` leaves out
        #[arg(long)]
        history: bool,
    },
    /// Delete all records of a disabled organization
    #[command(after_help = erase::EXAMPLES)]
    Erase(erase::Args),
}

const EXPORT_EXAMPLES: &str = "\
Example:
  workspacectl orgs export globex --out globex.jsonl";

#[rustfmt::skip] // four per line
const LIST_COLUMNS: [&str; 6] = [
    "org_id", "state", "name", "reference",
    "created_at", "created_by",
];

#[rustfmt::skip] // four per line
const SHOW_COLUMNS: [&str; 10] = [
    "org_id", "state", "name", "reference",
    "created_at", "created_by",
    "disabled_at", "disabled_by", "enabled_at", "enabled_by",
];

pub(crate) async fn execute(command: Command, options: GlobalOptions) -> Result<()> {
    match command {
        Command::Create(args) => create::execute(args, options).await,
        Command::Edit(args) => edit::execute(args, options).await,
        Command::List(args) => list(args, options).await,
        Command::Show { org } => show(&org, options).await,
        Command::Disable {
            org,
            no_wait,
            wait_args,
            reason,
        } => {
            let wait_args = (!no_wait).then_some(wait_args);
            change_state::execute(&org, StateChange::Disable, wait_args, reason, options).await
        }
        Command::Enable { org, reason } => {
            change_state::execute(&org, StateChange::Enable, None, reason, options).await
        }
        Command::Export { org, out, history } => export(&org, &out, history, options).await,
        Command::Erase(args) => erase::execute(args, options).await,
    }
}

async fn list(args: LimitArgs, options: GlobalOptions) -> Result<()> {
    let context = options.connect().await?;
    let scope = Scope::all(Table::ORGANIZATIONS);
    let listing = scope.list(&context.deployment, args).await?;
    let mut outputs = Vec::new();
    for record in listing.records {
        let organization = record.parse()?;
        outputs.push(organization::to_output(&organization));
    }
    print_listing(&outputs, listing.is_cut, &LIST_COLUMNS, &context.options)
}

async fn show(org: &str, options: GlobalOptions) -> Result<()> {
    let Context {
        deployment,
        options,
    } = options.connect().await?;
    let organization = organization::require(&deployment, org).await?;
    let mut output = organization::to_output(&organization);
    let (mut counts, user_count) = count_records(&deployment, org).await?;
    if options.json {
        output["records"] = counts;
        output["users"] = json!(user_count);
        return print_json(&output);
    }
    counts["users"] = json!(user_count);
    print_rows(&[output], &SHOW_COLUMNS, &options)?;
    let tables = Table::ALL.iter();
    let counted_tables = tables.filter(|table| **table != Table::ORGANIZATIONS);
    let kinds = counted_tables.map(|table| Kind::of(*table).plural);
    let kinds: Vec<_> = kinds.chain(["users"]).collect();
    print_rows(&[counts], &kinds, &options)
}

async fn export(org: &str, path: &Path, history: bool, options: GlobalOptions) -> Result<()> {
    let mut export = ExportWriter::create(path)?;
    let context = options.connect().await?;
    organization::require(&context.deployment, org).await?;
    let mut count = 0;
    let mut scopes = organization_scopes_via_teams(&context.deployment, org).await?;
    if history {
        context.deployment.require_history()?;
        scopes.push(Scope::organization(HISTORY, org));
    }
    for scope in scopes {
        count += export.write_scope(&context.deployment, &scope).await?;
    }
    export.persist()?;
    context.report(&format!("exported {} of {org}", pluralize(count, "record")));
    Ok(())
}

/// Counts the records of an organization by kind, and its distinct users.
async fn count_records(deployment: &Deployment, org: &str) -> Result<(Value, usize)> {
    let mut counts = json!({});
    let mut users = BTreeSet::new();
    for scope in organization_scopes_via_teams(deployment, org).await? {
        if scope.table == Table::ORGANIZATIONS {
            continue;
        }
        let mut count = 0;
        let mut pages = scope.pages(deployment, None);
        while let Some(page) = pages.next().await? {
            count += page.len();
            if scope.table == Table::TEAM_MEMBERS {
                users.extend(page.iter().map(|member| member.key.id()));
            }
        }
        counts[Kind::of(scope.table).plural] = json!(count);
    }
    Ok((counts, users.len()))
}
