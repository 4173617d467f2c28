//! Tests of `create_logging_instance`, which creates the logging instance of a project.

use serde_json::json;
use workspace_management::store::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues, WriteKind, trimmed};

const PATH: &str = "/api/v1/project/acme/apollo/createLoggingInstance";

pub(super) fn sample(values: &SampleValues) -> Sample {
    let name = &values.name;
    let key = json!({ "org_id": "acme", "project_id": "apollo" });
    let content = json!({ "project_name": trimmed(name) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "projectName": name }),
        records: vec![ExpectedRecord::new(Table::LOGGING_INSTANCES, key, content)],
        write: WriteKind::Create,
        requires: None,
    }
}

pub(super) fn problems() -> ProblemExamples {
    // No id is derived from the name, so it needs no letter or digit.
    let names = ["Apollo", "🚀"].map(|name| json!({ "projectName": name }));
    vec![("LoggingInstanceTaken/other_project_name", names.to_vec())]
}
