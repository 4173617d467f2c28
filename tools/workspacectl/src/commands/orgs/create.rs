//! `orgs create`: registers an organization.

use std::{
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use anyhow::{Result, bail, ensure};
use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::BeforeDeserializationInterceptorContextRef,
    },
    error::BoxError,
    types::AttributeValue,
};
use aws_smithy_types::{DateTime, date_time::Format};
use serde_json::json;
use workspace_management::{
    records::{Organization, Table},
    store::timestamp,
};

use crate::{
    arguments::parse_identifier,
    commands::restore::MAX_CLOCK_DIFFERENCE,
    context::{Context, GlobalOptions, ReasonArgs},
    deployment::Deployment,
    errors::RequestResultExt as _,
    organization::{self, NameArgs},
    output::print_json_or_text,
    read::Scope,
    record::{Record, Stored},
    text::humanize,
    write::{Outcome, Write, change},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The id, as in the paths of the API. It has 1 to 128 characters: ASCII letters, digits and
    /// `-._~:@`. It must not be `.` or `..`, or start with `wsk_`
    #[arg(value_parser = parse_identifier)]
    org: String,
    /// Also succeed if the organization is already registered. Its record does not change
    #[arg(long)]
    if_absent: bool,
    #[command(flatten)]
    name_args: NameArgs,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let Args {
        org,
        if_absent,
        name_args,
        reason,
    } = args;
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    check_clock(&context.deployment, &org).await?;
    confirm_similar_id(&context, &org).await?;
    let new_organization = Organization {
        org_id: org.clone(),
        created_at: timestamp(SystemTime::now()),
        created_by: run.operator.clone(),
        registration_id: Some(run.id.clone()),
        ..Organization::default()
    };
    let mut new_record = Record::new(
        Table::ORGANIZATIONS,
        serde_dynamo::to_item(new_organization)?,
    )?;
    for (name, text) in name_args.into_attributes() {
        if !text.is_empty() {
            let text = AttributeValue::S(text);
            new_record.item.insert(name.to_owned(), text);
        }
    }
    // Never overwrites, so that two customers who choose the same id do not share an organization.
    let put = vec![Write::put(new_record.clone())];
    let (record, is_new) = match change(&context.deployment, &run, "create", put).await? {
        Outcome::Done => (new_record, true),
        Outcome::Refused(refusal) => (refusal.existing.unwrap_or(new_record), false),
    };
    let organization: Stored<Organization> = record.parse()?;
    ensure!(
        is_new || if_absent,
        "the organization {org} is already registered: choose a different id, or use --if-absent"
    );
    let already = if is_new { "" } else { "already " };
    context.report(&format!("the organization {org} was {already}registered"));
    let mut output = organization::to_output(&organization);
    output["created"] = json!(is_new);
    print_json_or_text(&output, &org, &context.options)
}

/// Asks the operator if the id is new and differs from an existing one only by case, because this is
/// rarely intended.
async fn confirm_similar_id(context: &Context, org: &str) -> Result<()> {
    let scope = Scope::all(Table::ORGANIZATIONS);
    let organizations = scope.read(&context.deployment).await?;
    let mut similar = Vec::new();
    for organization in &organizations {
        let id = organization.key.id();
        if id == org {
            return Ok(());
        }
        if id.eq_ignore_ascii_case(org) {
            similar.push(organization::id_and_name(organization));
        }
    }
    if similar.is_empty() {
        return Ok(());
    }
    let similar = similar.join(", ");
    let text = format!(
        "the id {org} differs only by case from {similar}. {org} will be a different organization."
    );
    let can_confirm = context.options.check_can_confirm();
    can_confirm.inspect_err(|_| context.report(&text))?;
    context.confirm(&text, org)
}

/// Sends a request and compares this machine's clock with the `Date` header of the response. Fails
/// if they differ too much, because `restore` compares times. Succeeds if there is no such header.
async fn check_clock(deployment: &Deployment, org: &str) -> Result<()> {
    let table_name = deployment.table_name(Table::ORGANIZATIONS);
    let date = ResponseDate::default();
    deployment
        .dynamodb
        .get_item()
        .table_name(table_name)
        .set_key(Some(Table::ORGANIZATIONS.primary_key(&[org])))
        .customize()
        .interceptor(date.clone())
        .send()
        .await
        .request_context(deployment, format!("cannot read {org} in {table_name}"))?;
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
        bail!("this machine's clock is {difference} {direction} DynamoDB's: correct it");
    }
    Ok(())
}

/// The `Date` header of the response to a request. Empty until the response arrives.
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
