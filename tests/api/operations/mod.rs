//! One file for each operation: a [`Sample`], and tests of what only this operation does.
//!
//! A new operation with a sample is covered by every test that runs all operations: the test below
//! of stored records, `bodies.rs`, the fault matrix, the simulation and others.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use test_support::{TestApp, TestClient, TestResponse, event, key_id};
use workspace_local::demo::DEMO_KEY;
use workspace_management::{operations::Operation, records::Table};
use workspace_records::{kinds::Kind, schemas};

mod add_models;
mod add_team_users;
mod create_data_store;
mod create_logging_instance;
mod create_team;
mod set_bot_voice;

/// The problem examples in the contract that only one operation can cause. Each has a name, and
/// the bodies to send in order to the path of the sample. The last response is the example.
pub type ProblemExamples = Vec<(&'static str, Vec<Value>)>;

/// The values from which a [`Sample`] is made.
#[derive(Debug, Clone)]
pub struct SampleValues {
    /// A name with a letter or a digit.
    pub name: String,
    pub description: String,
    pub flag: bool,
    /// The entries of an array: each has a name and a number.
    pub entries: Vec<(String, i64)>,
    /// The id of a team in the project `apollo` of `acme`.
    pub team: String,
}

impl SampleValues {
    /// Values for tests that need only one sample. `team` is the demo team.
    pub fn example() -> Self {
        Self {
            name: "Papers".to_owned(),
            description: "Reads papers".to_owned(),
            flag: true,
            entries: vec![("ada".to_owned(), 1), ("grace".to_owned(), -2)],
            team: "research-team".to_owned(),
        }
    }
}

/// A valid request for the organization `acme`, and the records that it stores.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub path: String,
    pub body: Value,
    pub records: Vec<ExpectedRecord>,
    /// Whether the request replaces the content of an existing record. Otherwise, it gets a 409 if
    /// an existing record has different content.
    pub replaces: bool,
    /// The record that must exist. Without it, the request gets a 404.
    pub requires: Option<ExpectedRecord>,
}

/// A record that a sample stores, without the audit attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedRecord {
    pub table: Table,
    /// The attributes of the primary key.
    pub key: Value,
    pub content: Value,
}

impl Sample {
    /// A request that does not replace records and requires none.
    fn new(path: &str, body: Value, records: Vec<ExpectedRecord>) -> Self {
        Self {
            path: path.to_owned(),
            body,
            records,
            replaces: false,
            requires: None,
        }
    }

    pub fn example(operation: Operation) -> Self {
        Self::of(operation, &SampleValues::example())
    }

    pub fn event(&self, headers: &BTreeMap<String, String>, request_id: &str) -> Value {
        let body = self.body.to_string();
        let mut event = event("POST", &self.path, headers, Some(&body));
        event["requestContext"]["requestId"] = json!(request_id);
        event
    }

    pub async fn send(&self, client: &TestClient<'_>, request_id: &str) -> TestResponse {
        let event = self.event(&client.headers, request_id);
        client.app.send(event).await
    }

    pub fn of(operation: Operation, values: &SampleValues) -> Self {
        match operation {
            Operation::AddModels => add_models::sample(values),
            Operation::AddTeamUsers => add_team_users::sample(values),
            Operation::CreateDataStore => create_data_store::sample(values),
            Operation::CreateLoggingInstance => create_logging_instance::sample(values),
            Operation::CreateTeam => create_team::sample(values),
            Operation::SetBotVoice => set_bot_voice::sample(values),
        }
    }
}

pub fn problems(operation: Operation) -> ProblemExamples {
    match operation {
        Operation::AddModels => add_models::problems(),
        Operation::CreateDataStore => create_data_store::problems(),
        Operation::CreateLoggingInstance => create_logging_instance::problems(),
        Operation::CreateTeam => create_team::problems(),
        Operation::AddTeamUsers | Operation::SetBotVoice => vec![],
    }
}

impl ExpectedRecord {
    pub fn new(table: Table, key: Value, content: Value) -> Self {
        Self {
            table,
            key,
            content,
        }
    }

    pub fn matches_key(&self, record: &Value) -> bool {
        contains(record, &self.key)
    }

    pub fn matches_content(&self, record: &Value) -> bool {
        contains(record, &self.content)
    }
}

/// A name or a description without the white space that the service removes.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// The id of a team or data store, by the sentence in docs/api.md instead of the code.
fn id_of(name: &str) -> String {
    let name = trimmed(name);
    let mut id = String::new();
    let mut needs_digits = false;
    for character in name.chars() {
        match character {
            'a'..='z' | '0'..='9' => id.push(character),
            'A'..='Z' => id.push(character.to_ascii_lowercase()),
            ' ' | '-' | '_' | '.' => id.push('-'),
            _ => {
                id.push('-');
                needs_digits = true;
            }
        }
    }
    if needs_digits {
        let hash = hex::encode(Sha256::digest(name.as_bytes()));
        id = format!("{id}-{}", &hash[..10]);
    }
    while id.contains("--") {
        id = id.replace("--", "-");
    }
    id.trim_matches('-').to_owned()
}

/// The JSON pointers of a value and of every value in it.
pub fn pointers(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut add = |name: &str, value: &Value| {
        for pointer in pointers(value) {
            found.push(format!("/{name}{pointer}"));
        }
    };
    for (name, value) in value.as_object().into_iter().flatten() {
        add(name, value);
    }
    for (index, entry) in value.as_array().into_iter().flatten().enumerate() {
        add(&index.to_string(), entry);
    }
    found
}

fn contains(record: &Value, attributes: &Value) -> bool {
    let mut attributes = attributes.as_object().unwrap().iter();
    attributes.all(|(name, value)| record[name] == *value)
}

#[tokio::test]
async fn every_sample_stores_its_records() {
    for operation in Operation::ALL {
        let app = TestApp::new().await;
        assert_stores_sample(*operation, &app.client(DEMO_KEY), &key_id(DEMO_KEY)).await;
        if operation.is_key_optional() {
            let app = TestApp::new().await;
            assert_stores_sample(*operation, &app.anonymous_client(), "anonymous").await;
        }
    }
}

/// Sends the sample. Checks that exactly the expected records are stored.
async fn assert_stores_sample(operation: Operation, client: &TestClient<'_>, creator: &str) {
    let app = client.app;
    app.insert_demo_team().await;
    let before = app.all_records().await;
    let sample = Sample::example(operation);

    let response = client.post(&sample.path, sample.body).await;

    response.assert_success();
    let headers = [
        ("x-content-type-options", "nosniff"),
        ("x-request-id", "gateway-request"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(response.headers, headers.into());
    let mut stored = app.all_records().await;
    for (table, records) in &mut stored {
        records.retain(|record| !before[table].contains(record));
    }
    for expected in &sample.records {
        let records = stored.get_mut(Kind::of(expected.table).plural).unwrap();
        let index = records
            .iter()
            .position(|record| expected.matches_key(record) && expected.matches_content(record));
        let index = index.unwrap_or_else(|| panic!("{expected:?} is not in {records:?}"));
        assert_created_by(&records.remove(index), creator);
        for name in expected.content.as_object().unwrap().keys() {
            let attribute = &schemas::schema(expected.table)["properties"][name];
            assert_eq!(attribute["x-role"], "content", "{name}");
        }
    }
    let unexpected: Vec<_> = stored.into_values().flatten().collect();
    assert!(unexpected.is_empty(), "{operation:?}: {unexpected:?}");
}

/// Checks the audit attributes of a record that was created in the last minute.
fn assert_created_by(record: &Value, creator: &str) {
    assert_eq!(record["created_by"], creator, "{record}");
    assert_eq!(record["request_id"], "gateway-request", "{record}");
    let created_at = record["created_at"].as_str().unwrap_or_default();
    let created_at = humantime::parse_rfc3339(created_at).expect("created_at is a time");
    let age = SystemTime::now().duration_since(created_at).unwrap();
    assert!(age < Duration::from_secs(60), "{record}");
}
