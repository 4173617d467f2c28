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
    values::{DisplayName, Identifier, escape},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub(crate) struct CreateLoggingInstance {
    #[deserr(rename = "projectName")]
    project_name: DisplayName,
}

// The defaults allow for stored records that lack an attribute.
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
    request: CreateLoggingInstance,
) -> Result<Success> {
    let instance = LoggingInstance {
        org_id: caller.organization.as_str().to_owned(),
        project_id: project.as_str().to_owned(),
        project_name: request.project_name.into_string(),
        audit: caller.audit().clone(),
    };
    match store.insert(Table::LOGGING_INSTANCES, &instance).await? {
        Some(existing) if existing.project_name != instance.project_name => {
            Err(Error::OtherProjectName(escape(&existing.project_name)))
        }
        existing => Ok(Success::Stored {
            id: None,
            is_new: existing.is_none_or(|existing| caller.created(&existing.audit)),
        }),
    }
}
