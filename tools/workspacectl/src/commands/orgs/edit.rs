//! `orgs edit`: changes the name and the reference of an organization, which only people read.

use anyhow::Result;
use clap::ArgGroup;
use workspace_management::records::Organization;

use crate::{
    arguments::{ORG_HELP, parse_identifier},
    context::{GlobalOptions, ReasonArgs},
    organization::{self, NameArgs},
    output::print_json_or_text,
    record::{LAST_WRITE, Stored},
    write::{Write, change, remove, set, set_updated},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs edit globex --name Globex --reference CRM-42
  workspacectl orgs edit globex --reference ''";

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("new").required(true).multiple(true).args(["name", "reference"])))]
pub(crate) struct Args {
    #[arg(value_parser = parse_identifier, help = ORG_HELP)]
    org: String,
    #[command(flatten)]
    name_args: NameArgs,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let context = options.connect().await?;
    let run = context.begin_run(args.reason).await?;
    let org = &args.org;
    let mut organization = organization::require(&context.deployment, org).await?;
    let record = &organization.record;
    let mut assignments = Vec::new();
    for (name, text) in args.name_args.into_attributes() {
        if record.text(name).unwrap_or_default() == text {
            continue;
        }
        assignments.push(match text.is_empty() {
            true => remove(name),
            false => set(name, text),
        });
    }
    let mut outcome = "already has these values";
    if !assignments.is_empty() {
        assignments.extend(set_updated(&run));
        let write = Write::update(record, assignments).if_unchanged(record, &LAST_WRITE);
        let edited: Stored<Organization> = write.result().parse()?;
        change(&context.deployment, &run, "edit", vec![write])
            .await?
            .done()?;
        (organization, outcome) = (edited, "was changed");
    }
    let title = organization::id_and_name(&organization.record);
    context.report(&format!("the organization {title} {outcome}"));
    let output = organization::to_output(&organization);
    print_json_or_text(&output, org, &context.options)
}
