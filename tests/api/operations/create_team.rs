//! Tests of `create_team`, which creates a team in a project.

use serde_json::json;
use workspace_management::store::Table;

use super::{ExpectedRecord, ProblemExamples, Sample, SampleValues, WriteKind, trimmed};

const PATH: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

pub(super) fn sample(values: &SampleValues) -> Sample {
    let name = &values.name;
    let description = &values.description;
    let key = json!({ "project": "acme#apollo", "team_id": name.to_lowercase() });
    let content = json!({ "team_name": trimmed(name), "team_description": trimmed(description) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "teamName": name, "teamDescription": description }),
        records: vec![ExpectedRecord::new(Table::TEAMS, key, content)],
        write: WriteKind::Create,
        requires: None,
    }
}

pub(super) fn problems() -> ProblemExamples {
    let names = ["C++", "C#"].map(|name| json!({ "teamName": name }));
    let descriptions = ["Reads papers", "x"]
        .map(|text| json!({ "teamName": "Research Team", "teamDescription": text }));
    vec![
        ("TeamTaken/other_name", names.to_vec()),
        ("TeamTaken/other_description", descriptions.to_vec()),
    ]
}
