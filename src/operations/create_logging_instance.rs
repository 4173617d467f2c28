//! `POST /api/v1/project/{org_id}/{project_id}/createLoggingInstance`: creates the logging instance of a project.

use deserr::Deserr;
use serde::Serialize;

use crate::{
    body::Violations,
    caller::{Caller, Creation},
    error::Error,
    store::{Record, Store, Table},
    values::{Identifier, Name},
};

/// The logging instance to create.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub struct CreateLoggingInstance {
    #[deserr(rename = "projectName")]
    project_name: Name,
}

#[derive(Serialize)]
struct LoggingInstance<'a> {
    org_id: &'a Identifier,
    project_id: &'a Identifier,
    project_name: Name,
    #[serde(flatten)]
    creation: Creation,
}

impl Record for LoggingInstance<'_> {
    const TABLE: Table = Table::LOGGING_INSTANCES;
}

/// Creates the one logging instance that a project has.
pub async fn create_logging_instance(
    store: &Store,
    caller: &Caller,
    project: &Identifier,
    request: CreateLoggingInstance,
) -> Result<(), Error> {
    let logging_instance = LoggingInstance {
        org_id: caller.organization(),
        project_id: project,
        project_name: request.project_name,
        creation: caller.creation(),
    };
    store.create(&logging_instance).await
}
