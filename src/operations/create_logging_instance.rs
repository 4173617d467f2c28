//! `POST /api/v1/project/{org_id}/{project_id}/createLoggingInstance`: creates a project's logging
//! instance.

use deserr::Deserr;

use crate::{
    auth::Caller,
    body::Violations,
    error::{Error, Result},
    operations::{Input, Success},
    records::{LoggingInstance, Table},
    store::Store,
    text::shorten,
    values::{DisplayName, Identifier},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations, deny_unknown_fields)]
pub(crate) struct CreateLoggingInstanceInput {
    #[deserr(rename = "projectName")]
    project_name: DisplayName,
}

impl Input for CreateLoggingInstanceInput {}

/// Creates the logging instance of a project. A project has at most one.
pub(crate) async fn create_logging_instance(
    store: &Store,
    caller: &Caller,
    project_id: &Identifier,
    input: CreateLoggingInstanceInput,
) -> Result<Success> {
    let instance = LoggingInstance {
        org_id: caller.org_id.as_str().to_owned(),
        project_id: project_id.as_str().to_owned(),
        project_name: input.project_name.into_string(),
        creation: caller.creation_attributes().clone(),
    };
    let mut is_new = true;
    if let Some(existing) = store
        .insert_if_absent(Table::LOGGING_INSTANCES, &instance)
        .await?
    {
        if existing.project_name != instance.project_name {
            // No caller of this operation is anonymous, so the existing name may be shown.
            let existing_name = shorten(&existing.project_name);
            return Err(Error::DifferentProjectName { existing_name });
        }
        is_new = caller.created_in_this_request(&existing.creation);
    }
    Ok(Success::CreatedOrFound { id: None, is_new })
}
