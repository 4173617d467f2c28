//! Tests of `create_team`, which creates a team in a project.

use serde_json::json;
use workspace_management::store::Table;

use super::{Problems, Sample, Stored, Values, Write, trimmed};

const PATH: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";

/// A sample for the tests that cover every operation.
pub(super) fn sample(values: &Values) -> Sample {
    let (name, description) = (&values.name, &values.description);
    let key = json!({ "project": "acme#apollo", "team_id": name.to_lowercase() });
    let content = json!({ "team_name": trimmed(name), "team_description": trimmed(description) });
    Sample {
        path: PATH.to_owned(),
        body: json!({ "teamName": name, "teamDescription": description }),
        records: vec![Stored::new(Table::TEAMS, key, content)],
        write: Write::Create,
        requires: None,
    }
}

pub(super) fn problems() -> Problems {
    let team = |name: &str, text: &str| json!({ "teamName": name, "teamDescription": text });
    let research = |text: &str| team("Research Team", text);
    vec![
        (
            "TeamTaken/other_name",
            vec![team("C++", ""), team("C#", "")],
        ),
        (
            "TeamTaken/other_description",
            vec![research(""), research("x")],
        ),
    ]
}
