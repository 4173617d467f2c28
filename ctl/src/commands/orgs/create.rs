//! `orgs create`.

use anyhow::{Result, bail};
use serde_json::json;

use super::record;
use crate::{
    output::print_record,
    session::{Operator, Session},
    usage::identifier,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs create globex
  workspacectl orgs create globex --if-absent --json
  workspacectl --stack workspace-management orgs create globex";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The id, as in the paths of the API: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, not `.` or `..`
    #[arg(value_parser = identifier)]
    org: String,
    /// Succeed if it is already registered. Its record does not change
    #[arg(long)]
    if_absent: bool,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let Options { org, if_absent } = options;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    deployment.check_clock().await?;
    let created = record::create(deployment, &operator, &org, &[]).await?;
    match (created, if_absent) {
        (true, _) => eprintln!("the organization {org} was registered"),
        (false, true) => eprintln!("the organization {org} was already registered"),
        (false, false) => bail!(
            "the organization {org} is already registered: choose another id, or use --if-absent"
        ),
    }
    let mut organization = record::find(deployment, &org).await?;
    record::add_state(&mut organization);
    organization["created"] = json!(created);
    print_record(&organization, &org, session.json)
}
