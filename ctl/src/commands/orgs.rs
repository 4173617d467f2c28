//! `orgs`: organizations, which the API cannot create, disable or erase.

mod create;
pub mod erase;
mod export;
pub mod organization;
pub mod state;

use anyhow::Result;
use serde_json::{Value, json};
use workspace_management::store::Table;

pub(crate) use self::create::MAX_CLOCK_DIFFERENCE;
use self::organization::{Organization, State};
use crate::{
    deployment::Deployment,
    index::queries_of,
    output::{print_page, print_records},
    query::{PageOptions, Query, Scope},
    session::Session,
    usage::identifier,
    wait::Wait,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs create globex
  workspacectl orgs create globex --if-absent --json
  workspacectl orgs disable globex
  workspacectl orgs export globex --out globex.jsonl
  workspacectl orgs erase globex --export globex.jsonl";

/// Registers, disables and erases organizations.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Register an organization
    #[command(after_help = create::EXAMPLES)]
    Create(create::Options),
    /// List the registered organizations
    #[command(after_help = LIST_EXAMPLES)]
    List(PageOptions),
    /// Show an organization: whether it is enabled, who changed that, and how many records it has
    ///
    /// To count the records, reads all of them, and the whole table of keys. Teams are found in an index,
    /// which can lack those of the last seconds. The counts include teams that are being removed.
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        #[arg(value_parser = identifier, help = ORG_HELP)]
        org: String,
    },
    /// Reject every request for an organization, with any key or without one
    #[command(after_help = state::DISABLE_EXAMPLES)]
    Disable {
        #[arg(value_parser = identifier, help = ORG_HELP)]
        org: String,
        /// Exit as soon as the organization is marked, while functions still accept requests
        #[arg(long)]
        no_wait: bool,
        #[command(flatten)]
        wait: Wait,
    },
    /// Accept requests for a disabled organization again
    #[command(after_help = state::ENABLE_EXAMPLES)]
    Enable {
        #[arg(value_parser = identifier, help = ORG_HELP)]
        org: String,
    },
    /// Write all records of an organization to a file, as JSON Lines
    ///
    /// Teams are found in an index, which can lack those of the last seconds. Before `orgs erase` deletes
    /// anything, it exports all records completely.
    #[command(after_help = export::EXAMPLES)]
    Export(export::Options),
    /// Delete all records of a disabled organization
    #[command(after_help = erase::EXAMPLES)]
    Erase(erase::Options),
}

const ORG_HELP: &str = "The id of the organization";

const LIST_EXAMPLES: &str = "\
Examples:
  workspacectl orgs list
  workspacectl orgs list --limit 100 --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  workspacectl orgs show globex
  workspacectl orgs show globex --json";

/// The columns of an organization.
#[rustfmt::skip] // keeps a table short
const COLUMNS: [&str; 8] = [
    "org_id", "state", "created_at", "created_by",
    "disabled_at", "disabled_by", "enabled_at", "enabled_by",
];

pub(crate) async fn run(command: Command, session: &Session) -> Result<()> {
    match command {
        Command::Create(options) => create::run(options, session).await,
        Command::List(page) => {
            let query = Query::new(Table::ORGANIZATIONS, Scope::All).page(page);
            let mut page = query.run(session.deployment().await?).await?;
            for organization in &mut page.records {
                *organization = Organization(organization.take()).into_display();
            }
            print_page(&page, &COLUMNS[..4], session)
        }
        Command::Show { org } => {
            let deployment = session.deployment().await?;
            let organization = Organization::find(deployment, &org).await?;
            let mut organization = organization.into_display();
            let counts = count_records(deployment, &org).await?;
            organization["records"] = counts.clone();
            print_records(&[organization], &COLUMNS, session)?;
            if !session.json {
                let kinds: Vec<_> = Table::ALL[1..].iter().map(|table| table.noun).collect();
                print_records(&[counts], &kinds, session)?;
            }
            Ok(())
        }
        Command::Disable { org, no_wait, wait } => {
            let wait = (!no_wait).then_some(wait);
            state::run(&org, State::Disabled, wait, session).await
        }
        Command::Enable { org } => state::run(&org, State::Enabled, None, session).await,
        Command::Export(options) => export::run(options, session).await,
        Command::Erase(options) => erase::run(options, session).await,
    }
}

/// The numbers of records that an organization has, by their kind.
async fn count_records(deployment: &Deployment, org: &str) -> Result<Value> {
    let mut counts = json!({});
    for query in queries_of(deployment, org).await? {
        let table = query.table;
        if table != Table::ORGANIZATIONS {
            counts[table.noun] = json!(query.count(deployment).await?);
        }
    }
    Ok(counts)
}
