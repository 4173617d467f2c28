//! `edit`: corrects a record, such as its name or description. Its primary key does not change, and
//! a team keeps its members. The update fails if the record has been written since it was read.

mod values;

use anyhow::{Result, bail, ensure};
use workspace_records::kinds::PrimaryKey;

use self::values::{
    NewAttribute, NewValue, NewValueArgs, NewVoiceArgs, number_parser, parse_project_name,
};
use crate::{
    arguments::{DataStoreArgs, ModelArgs, ProjectArgs, VoiceArgs, parse_identifier},
    context::{Context, GlobalOptions, ReasonArgs, Run},
    deployment::Deployment,
    output::print_json_or_text,
    read::{self, Scope},
    record::{LAST_WRITE, Record},
    text::escape,
    write::{Assignment, Write, change, set_updated},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl edit team --org globex --project apollo docs --name Manuals --description Handbooks
  workspacectl edit data-store --org globex papers --name Maps
  workspacectl edit logging-instance --org globex --project apollo --project-name Apollo
  workspacectl edit model --org globex --type chat gpt-4o --id 7
  workspacectl edit voice --org globex bot-7 --type alloy --enabled false";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    reason: ReasonArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Correct the name or the description of a team. Its id and its members do not change
    #[command(
        after_help = "Example:\n  workspacectl edit team --org globex --project apollo docs --name Manuals --description Handbooks"
    )]
    Team {
        #[command(flatten)]
        project_args: ProjectArgs,
        /// The id of the team
        #[arg(value_parser = parse_identifier)]
        team: String,
        #[command(flatten)]
        new_values: NewValueArgs,
    },
    /// Correct the name or the description of a data store. Its id does not change
    #[command(
        after_help = "Example:\n  workspacectl edit data-store --org globex papers --name Maps"
    )]
    DataStore {
        #[command(flatten)]
        data_store_args: DataStoreArgs,
        #[command(flatten)]
        new_values: NewValueArgs,
    },
    /// Correct the project name of a logging instance
    #[command(
        after_help = "Example:\n  workspacectl edit logging-instance --org globex --project apollo --project-name Apollo"
    )]
    LoggingInstance {
        #[command(flatten)]
        project_args: ProjectArgs,
        /// The new project name
        #[arg(long, value_name = "NAME", value_parser = parse_project_name)]
        project_name: NewValue,
    },
    /// Correct the `id` of a model, which is the client's own number
    #[command(
        after_help = "Example:\n  workspacectl edit model --org globex --type chat gpt-4o --id 7"
    )]
    Model {
        #[command(flatten)]
        model_args: ModelArgs,
        /// The new `id`: an integer
        #[arg(long, allow_negative_numbers = true, value_parser = number_parser())]
        id: NewValue,
    },
    /// Correct the voice of a bot
    #[command(
        after_help = "Example:\n  workspacectl edit voice --org globex bot-7 --type alloy --enabled false"
    )]
    Voice {
        #[command(flatten)]
        voice_args: VoiceArgs,
        #[command(flatten)]
        new_voice: NewVoiceArgs,
    },
}

impl Command {
    /// The primary key of the record, and its new attributes.
    fn into_parts(self) -> (PrimaryKey, Vec<NewAttribute>) {
        match self {
            Self::Team {
                project_args: ProjectArgs { org, project },
                team,
                new_values,
            } => (
                PrimaryKey::team(&org, &project, &team),
                new_values.into_attributes(["team_name", "team_description"]),
            ),
            Self::DataStore {
                data_store_args,
                new_values,
            } => (
                data_store_args.into_key(),
                new_values.into_attributes(["data_store_name", "data_store_description"]),
            ),
            Self::LoggingInstance {
                project_args,
                project_name,
            } => {
                let name = "project_name";
                let value = project_name;
                (
                    project_args.into_logging_instance_key(),
                    vec![NewAttribute { name, value }],
                )
            }
            Self::Model { model_args, id } => {
                let (name, value) = ("id", id);
                (model_args.into_key(), vec![NewAttribute { name, value }])
            }
            Self::Voice {
                voice_args,
                new_voice,
            } => (voice_args.into_key(), new_voice.into_attributes()),
        }
    }
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let (key, attributes) = args.command.into_parts();
    options.check_can_confirm()?;
    let context = options.connect().await?;
    let run = context.begin_run(args.reason).await?;
    edit(&key, attributes, &context, run).await
}

async fn edit(
    key: &PrimaryKey,
    mut new: Vec<NewAttribute>,
    context: &Context,
    run: Run,
) -> Result<()> {
    let Some(record) = read::find(&context.deployment, key).await? else {
        bail!("{key} does not exist");
    };
    ensure!(!record.has("removing_id"), "{key} is being removed");
    let old = record.to_json();
    new.retain(|attribute| old[attribute.name] != attribute.value.json);
    let (edited, outcome) = if new.is_empty() {
        (record, "already has these values")
    } else {
        check_name_is_free(key, &new, &context.deployment).await?;
        context.confirm(&summary(&record, &new), &key.id())?;
        let edited = update(&context.deployment, run, &record, new).await?;
        (edited, "was changed")
    };
    context.report(&format!("{key} {outcome}"));
    print_json_or_text(&edited.to_json(), &escape(&key.id()), &context.options)
}

/// Fails if a different record has the new name, or the id that is derived from the new name.
async fn check_name_is_free(
    key: &PrimaryKey,
    new: &[NewAttribute],
    deployment: &Deployment,
) -> Result<()> {
    // Only the name of a team or data store has a `derived_id`: the id that a create request with
    // this name would use.
    let mut new = new.iter();
    let Some(rename) = new.find(|attribute| attribute.value.derived_id.is_some()) else {
        return Ok(());
    };
    let scope = Scope::partition(key.table(), &key.partition());
    for record in scope.read(deployment).await? {
        let id = record.key.id();
        let has_new_name = record.text(rename.name) == rename.value.json.as_str();
        let has_new_id = Some(&id) == rename.value.derived_id.as_ref();
        if record.key != *key && (has_new_name || has_new_id) {
            bail!(
                "the record {id} already has this name, or the id derived from this name: choose a different name"
            );
        }
    }
    Ok(())
}

/// Describes the changes and how they affect requests.
fn summary(record: &Record, new: &[NewAttribute]) -> String {
    let key = &record.key;
    let old = record.to_json();
    let mut descriptions = Vec::new();
    let mut effect = match key {
        PrimaryKey::BotVoice { .. } => "A client that sets the old voice again undoes this.",
        _ => "A client that repeats its create request with the old values will get a 409.",
    }
    .to_owned();
    for NewAttribute { name, value } in new {
        let (old_value, new_value) = (&old[name], &value.json);
        descriptions.push(format!("{name} changes from {old_value} to {new_value}"));
        if let Some(id) = &value.derived_id
            && *id != key.id()
        {
            effect += &format!(
                " A create request with the new name will create a different record, with the id {id}."
            );
        }
    }
    let descriptions = descriptions.join(", and ");
    format!("{key}: {descriptions}. {effect}")
}

/// Updates the record unless it has been written since it was read. Returns the updated record.
async fn update(
    deployment: &Deployment,
    run: Run,
    record: &Record,
    new: Vec<NewAttribute>,
) -> Result<Record> {
    let mut assignments = Vec::from(set_updated(&run));
    for NewAttribute { name, value } in new {
        let value = serde_dynamo::to_attribute_value(value.json)?;
        assignments.push(Assignment::Set(name, value));
    }
    let write = Write::update(record, assignments)
        .if_unchanged(record, &LAST_WRITE)
        .if_missing("removing_id");
    let edited = write.result();
    change(deployment, &run, "edit", vec![write])
        .await?
        .done()?;
    Ok(edited)
}
