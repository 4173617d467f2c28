//! `orgs create`.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use anyhow::{Result, bail};
use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::BeforeDeserializationInterceptorContextRef,
    },
    error::BoxError,
};
use aws_smithy_types::{DateTime, date_time::Format};
use serde_json::json;
use workspace_management::store::{Table, insert_item, timestamp};
use workspace_records::item::to_json;

use super::organization::Organization;
use crate::{
    errors::Response as _, output::print_record, session::Session, text::humanize,
    usage::identifier,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs create globex
  workspacectl orgs create globex --if-absent --json
  workspacectl --stack workspace-management orgs create globex";

/// How much the clocks of operators and functions may differ. `restore` tolerates as much.
pub(crate) const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(5 * 60);

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
    let (deployment, operator) = session.start().await?;
    check_clock(&org, session).await?;
    // Two callers who choose the same id must not share an organization.
    let item = serde_dynamo::to_item(json!({
        "org_id": org,
        "created_at": timestamp(SystemTime::now()),
        "created_by": operator.name,
        "request_id": operator.run_id,
    }))?;
    let (client, tables) = (&deployment.client, &deployment.tables);
    let inserted = insert_item(client, tables, Table::ORGANIZATIONS, item).await;
    let existing = inserted.or_fail(|| format!("cannot register {org}"))?;
    let organization = Organization::find(deployment, &org).await?;
    // A repeated attempt finds the record that an earlier one has stored.
    let is_new = existing.is_none_or(|existing| {
        Organization(to_json(existing)).registration() == Some(&operator.run_id)
    });
    match (is_new, if_absent) {
        (true, _) => eprintln!("the organization {org} was registered"),
        (false, true) => eprintln!("the organization {org} was already registered"),
        (false, false) => bail!(
            "the organization {org} is already registered: choose another id, or use --if-absent"
        ),
    }
    let mut record = organization.into_display();
    record["created"] = json!(is_new);
    print_record(&record, &org, session.json)
}

/// Compares the clock of this machine with the `Date` of a response of DynamoDB.
///
/// # Errors
/// If they differ too much: `restore` compares the times of records with that of their organization.
async fn check_clock(org: &str, session: &Session) -> Result<()> {
    let deployment = session.deployment().await?;
    let name = deployment.tables.name(Table::ORGANIZATIONS);
    let request = deployment.client.get_item().table_name(name);
    let request = request.set_key(Some(Table::ORGANIZATIONS.item_key(&[org])));
    let date = ResponseDate::default();
    let response = request.customize().interceptor(date.clone()).send().await;
    response.or_fail(|| format!("cannot read {org} in {name}"))?;
    let Some(theirs) = date.0.get().copied() else {
        return Ok(());
    };
    let ours = SystemTime::now();
    let (difference, direction) = match ours.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    if difference > MAX_CLOCK_DIFFERENCE {
        let difference = humanize(difference);
        bail!("this machine's clock is {difference} {direction} DynamoDB's: set it");
    }
    Ok(())
}

/// The `Date` of the response to a request.
#[derive(Debug, Clone, Default)]
struct ResponseDate(Arc<OnceLock<SystemTime>>);

impl Intercept for ResponseDate {
    fn name(&self) -> &'static str {
        "date of a response"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(date) = context.response().headers().get("date") {
            let date = DateTime::from_str(date, Format::HttpDate)?;
            let _ = self.0.set(SystemTime::try_from(date)?);
        }
        Ok(())
    }
}
