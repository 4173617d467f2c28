//! `POST /api/v1/project/{org_id}/{project_id}/createLoggingInstance`: creates a project's logging
//! instance.

use deserr::Deserr;
use serde::{Deserialize, Serialize};

use crate::{
    auth::{Audit, Caller},
    body::Violations,
    error::{Error, Result},
    operations::Success,
    store::{Store, Table},
    text::escape,
    values::{DisplayName, Identifier},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub(crate) struct CreateLoggingInstance {
    #[deserr(rename = "projectName")]
    project_name: DisplayName,
}

// Has defaults, because other programs may have removed attributes: see `store`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LoggingInstance {
    org_id: String,
    project_id: String,
    project_name: String,
    #[serde(flatten)]
    audit: Audit,
}

/// Creates the logging instance of a project. A project has at most one.
pub(crate) async fn create_logging_instance(
    store: &Store,
    caller: &Caller<'_>,
    project: &Identifier,
    input: CreateLoggingInstance,
) -> Result<Success> {
    let instance = LoggingInstance {
        org_id: caller.org_id.as_str().to_owned(),
        project_id: project.as_str().to_owned(),
        project_name: input.project_name.into_string(),
        audit: caller.audit().clone(),
    };
    let mut is_new = true;
    if let Some(stored) = store
        .insert_if_absent(Table::LOGGING_INSTANCES, &instance)
        .await?
    {
        if stored.project_name != instance.project_name {
            // No caller of this operation is anonymous, so the existing name may be shown.
            let existing = escape(&stored.project_name);
            return Err(Error::DifferentProjectName { existing });
        }
        is_new = caller.is_from_this_request(&stored.audit);
    }
    Ok(Success::Stored { id: None, is_new })
}
