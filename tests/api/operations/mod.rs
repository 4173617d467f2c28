//! One file for each operation: a [`Sample`], and tests of what only this operation does.
//!
//! The tests that cover every operation need nothing else to cover a new one: those below of what
//! operations store, `bodies.rs` of what they reject, the fault matrix, the simulation and others.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use workspace_management::{operations::Operation, store::Table};

use test_support::{TestApp, key_id};

mod add_models;
mod add_team_users;
mod create_data_store;
mod create_logging_instance;
mod create_team;
mod set_bot_voice;

/// For each example of a problem in the contract that only this operation has, the bodies to send to
/// the path of the sample. The response to the last one is the example.
pub type Problems = Vec<(&'static str, Vec<Value>)>;

/// The values from which a [`Sample`] is made.
#[derive(Debug, Clone)]
pub struct Values {
    /// A name with an ASCII letter.
    pub name: String,
    pub description: String,
    pub flag: bool,
    /// The entries of an array: a name and a number.
    pub entries: Vec<(String, i64)>,
    /// The id of a team in the project `apollo` of `acme`.
    pub team: String,
}

impl Values {
    /// Values for tests that need only one sample. The demo team is `team`.
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

/// A valid request of the organization `acme`, and what it stores.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub path: String,
    pub body: Value,
    pub records: Vec<Stored>,
    pub write: Write,
    /// The record without which the response is 404.
    pub requires: Option<Stored>,
}

/// A record, without its audit attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub table: Table,
    /// The attributes of the key. An id that is derived from a name is in lower case, which is right
    /// only if the name is a single word of ASCII letters and digits.
    pub key: Value,
    pub content: Value,
}

/// What a request does if its records exist.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Write {
    /// Creates one record, whose id can be derived from a name. Succeeds if it exists with the same
    /// content. Otherwise it is a 409.
    Create,
    /// Adds all of its records. Succeeds if each that exists has the same content. Otherwise it is
    /// a 409.
    Add,
    /// Replaces the content.
    Replace,
}

impl Sample {
    /// A sample of an operation.
    pub fn of(operation: Operation, values: &Values) -> Self {
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

/// The problems of an operation that no other operation has.
pub fn problems(operation: Operation) -> Problems {
    match operation {
        Operation::AddModels => add_models::problems(),
        Operation::CreateDataStore => create_data_store::problems(),
        Operation::CreateLoggingInstance => create_logging_instance::problems(),
        Operation::CreateTeam => create_team::problems(),
        Operation::AddTeamUsers | Operation::SetBotVoice => vec![],
    }
}

impl Stored {
    pub fn new(table: Table, key: Value, content: Value) -> Self {
        Self {
            table,
            key,
            content,
        }
    }

    /// Whether a record has this key.
    pub fn is_key_of(&self, record: &Value) -> bool {
        contains(record, &self.key)
    }

    /// Whether a record has this content.
    pub fn is_content_of(&self, record: &Value) -> bool {
        contains(record, &self.content)
    }
}

/// A name or description as it is stored.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

fn contains(record: &Value, attributes: &Value) -> bool {
    let mut attributes = attributes.as_object().unwrap().iter();
    attributes.all(|(name, value)| record[name] == *value)
}

/// The requests of callers with a key, and without one if the operation allows that.
#[tokio::test]
async fn every_sample_stores_its_records() {
    let values = Values::example();
    let cases = Operation::ALL.iter().flat_map(|operation| {
        let is_anonymous = [false, true].into_iter();
        is_anonymous.map(move |is_anonymous| (*operation, is_anonymous))
    });
    for (operation, is_anonymous) in cases {
        if is_anonymous && !operation.allows_anonymous() {
            continue;
        }
        let app = TestApp::new().await;
        app.insert_demo_team().await;
        let before = app.all_records().await;
        let sample = Sample::of(operation, &values);
        let key = app.issue_key("acme", |_| {}).await;
        let (client, creator) = if is_anonymous {
            (app.anonymous(), "anonymous".to_owned())
        } else {
            (app.with_key(&key), key_id(&key))
        };

        let response = client.post(&sample.path, sample.body.clone()).await;

        response.assert_success();
        let headers = [("x-request-id".to_owned(), "gateway-request".to_owned())];
        assert_eq!(response.headers, headers.into());
        let mut stored = app.all_records().await;
        for (table, records) in &mut stored {
            records.retain(|record| !before[table].contains(record));
        }
        for expected in &sample.records {
            let records = stored.get_mut(expected.table.noun).unwrap();
            let index = records
                .iter()
                .position(|record| expected.is_key_of(record) && expected.is_content_of(record));
            let index = index.unwrap_or_else(|| panic!("{expected:?} is not in {records:?}"));
            assert_created_by(&records.remove(index), &creator);
        }
        let unexpected: Vec<_> = stored.into_values().flatten().collect();
        assert!(unexpected.is_empty(), "{operation:?}: {unexpected:?}");
    }
}

/// Checks the audit attributes of a record that was just created.
fn assert_created_by(record: &Value, creator: &str) {
    assert_eq!(record["created_by"], creator, "{record}");
    assert_eq!(record["request_id"], "gateway-request", "{record}");
    let created_at = record["created_at"].as_str().unwrap_or_default();
    let created_at = humantime::parse_rfc3339(created_at).expect("created_at is a time");
    let age = SystemTime::now().duration_since(created_at).unwrap();
    assert!(age < Duration::from_secs(60), "{record}");
}
