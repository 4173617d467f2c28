//! Runs concurrent clients, retries and faults in an order that a seed determines, and checks the
//! rules of the API.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use serde_json::Value;
use test_support::{
    TestResponse, handle_checking_log, service,
    simulation::{self, Faults, Network, Tables},
};
use tokio::time::{sleep, timeout};
use workspace_management::{
    api_key::ApiKey,
    auth::AnonymousAccess,
    operations::Operation,
    records::Table,
    service::{FUNCTION_TIMEOUT, Service},
};
use workspace_records::{
    kinds::{Kind, api_tables},
    local::table_names,
    schemas,
};

use crate::operations::{ExpectedRecord, Sample, SampleValues};

/// The status of a request whose client did not wait for the response.
const GAVE_UP: u16 = 0;

/// A request, as the client saw it.
#[derive(Debug, Clone)]
struct Attempt {
    sample: Sample,
    /// The expected `created_by` or `updated_by`.
    creator: String,
    request_id: String,
    /// The ticks of a counter that all clients share, before and after the request.
    began: usize,
    ended: usize,
    status: u16,
}

/// A random request. There are few values, so that requests write the same records.
fn random_request(rng: &mut Rng) -> (Operation, Sample) {
    fn choose<T: Clone>(rng: &mut Rng, values: &[T]) -> T {
        values[rng.usize(0..values.len())].clone()
    }
    let operation = choose(rng, Operation::ALL);
    let mut entries: Vec<_> = (0..4).filter(|_| rng.bool()).collect();
    entries.push(rng.u64(4..6));
    let values = SampleValues {
        name: choose(rng, &["Red", "red", "Blue"]).to_owned(),
        description: choose(rng, &["", "x"]).to_owned(),
        flag: rng.bool(),
        entries: entries
            .into_iter()
            // A name mostly has the same number, so that some requests with many entries succeed.
            .map(|entry| (entry.to_string(), rng.i64(0..8) / 7))
            .collect(),
        team: choose(rng, &["red", "blue"]).to_owned(),
    };
    (operation, Sample::of(operation, &values))
}

/// What happened in a schedule.
#[derive(Debug)]
struct Run {
    attempts: Vec<Attempt>,
    /// The records at the end.
    records: Vec<(Table, Value)>,
}

async fn run_schedule(seed: u64, lost_writes: u64) -> Run {
    let mut rng = Rng::with_seed(seed);
    let tables = Tables::new().await;
    let keys = [tables.register("acme", 1), tables.issue_key("acme", 2)];
    let faults = Faults {
        latency: 30,
        errors: [0, 15, 60][rng.usize(0..3)],
        lost_writes,
        ..Faults::default()
    };
    let config = simulation::config(Network::new(&tables, &mut rng, faults));
    let service = Arc::new(service(config, table_names(), AnonymousAccess::Allowed));
    let ticks = Arc::new(AtomicUsize::new(0));
    let clients = [0, 1, 2].map(|number| {
        let client = Client {
            number,
            key: keys[number % 2].clone(),
            service: service.clone(),
            tables: tables.clone(),
            ticks: ticks.clone(),
            rng: rng.fork(),
        };
        tokio::spawn(client.run())
    });
    let mut attempts = Vec::new();
    for client in clients {
        attempts.extend(client.await.unwrap());
    }
    let mut records = Vec::new();
    for table in api_tables() {
        for record in tables.records(table) {
            records.push((table, record));
        }
    }
    Run { attempts, records }
}

/// One of three concurrent clients. The last client sends no API key where a key is optional.
struct Client {
    number: usize,
    key: String,
    service: Arc<Service>,
    tables: Tables,
    ticks: Arc<AtomicUsize>,
    rng: Rng,
}

impl Client {
    /// Sends four requests. Some are retries.
    async fn run(mut self) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        let mut request = random_request(&mut self.rng);
        let mut retries = 0;
        while attempts.len() < 4 {
            let request_id = format!("{}-{}", self.number, attempts.len());
            let attempt = self.attempt(request.clone(), request_id).await;
            let failed = [503, GAVE_UP].contains(&attempt.status);
            attempts.push(attempt);
            let wants_retry = failed || self.rng.u8(0..5) == 0;
            if wants_retry && retries < 2 {
                retries += 1;
            } else {
                request = random_request(&mut self.rng);
                retries = 0;
            }
            sleep(Duration::from_millis(self.rng.u64(0..40))).await;
        }
        attempts
    }

    /// Sends a request, and gives up after a random time.
    async fn attempt(
        &mut self,
        (operation, sample): (Operation, Sample),
        request_id: String,
    ) -> Attempt {
        let mut headers = BTreeMap::new();
        let mut creator = "anonymous".to_owned();
        if !(operation.is_key_optional() && self.number == 2) {
            headers.insert("authorization".to_owned(), self.key.clone());
            creator = ApiKey::parse(&self.key).unwrap().id.to_owned();
        }
        let event = sample.event(&headers, &request_id);
        let began = self.ticks.fetch_add(1, Ordering::Relaxed);
        let now = self.tables.time();
        let response = handle_checking_log(&self.service, &event, now, FUNCTION_TIMEOUT);
        let patience = Duration::from_millis(self.rng.u64(100..6_000));
        let response = timeout(patience, response).await;
        Attempt {
            sample,
            creator,
            request_id,
            began,
            ended: self.ticks.fetch_add(1, Ordering::Relaxed),
            status: match response {
                Ok(response) => TestResponse::read(response).status,
                Err(_) => GAVE_UP,
            },
        }
    }
}

impl Attempt {
    /// The expected record with this primary key.
    fn expected_record(&self, table: Table, key: &Value) -> Option<&ExpectedRecord> {
        let mut records = self.sample.records.iter();
        records.find(|expected| expected.table == table && expected.matches_key(key))
    }
}

impl Run {
    /// The record with the primary key of the expected one.
    fn find(&self, expected: &ExpectedRecord) -> Option<&Value> {
        for (table, record) in &self.records {
            if *table == expected.table && expected.matches_key(record) {
                return Some(record);
            }
        }
        None
    }

    /// Whether the record with the primary key of the expected one has the expected content. `None`
    /// if there is no such record.
    fn has_content(&self, expected: &ExpectedRecord) -> Option<bool> {
        let record = self.find(expected)?;
        Some(expected.matches_content(record))
    }

    /// Whether every record of a sample exists with the expected content.
    fn is_stored(&self, sample: &Sample) -> bool {
        let mut expected = sample.records.iter();
        expected.all(|expected| self.has_content(expected) == Some(true))
    }

    /// Whether an attempt that stored this record succeeded before `attempt` began.
    fn was_stored_before(&self, attempt: &Attempt, table: Table, record: &Value) -> bool {
        self.attempts.iter().any(|earlier| {
            earlier.status == 204
                && earlier.ended < attempt.began
                && earlier.expected_record(table, record).is_some()
        })
    }

    /// Whether this attempt wrote a record, or an attempt that ended after this one began.
    fn is_last_write(&self, attempt: &Attempt, table: Table, record: &Value) -> bool {
        self.attempts.iter().any(|writer| {
            let expected = writer.expected_record(table, record);
            writer.ended >= attempt.began
                && expected.is_some_and(|expected| expected.matches_content(record))
        })
    }

    fn response_violations(&self, attempt: &Attempt) -> Vec<&'static str> {
        let sample = &attempt.sample;
        let mut violations = Vec::new();
        let mut check = |holds: bool, rule| {
            if !holds {
                violations.push(rule);
            }
        };
        match attempt.status {
            GAVE_UP | 503 => {}
            204 => {
                if let Some(required) = &sample.requires {
                    let exists = self.find(required).is_some();
                    check(
                        exists,
                        "a request succeeds only if the required record exists",
                    );
                }
                if sample.replaces {
                    let expected = &sample.records[0];
                    let record = self.find(expected).unwrap_or(&Value::Null);
                    let is_last = self.is_last_write(attempt, expected.table, record);
                    check(is_last, "the last write wins");
                } else {
                    let is_stored = self.is_stored(sample);
                    check(is_stored, "every stored record exists with its content");
                }
            }
            409 if !sample.replaces => {
                let mut expected = sample.records.iter();
                let conflicts = expected.any(|it| self.has_content(it) == Some(false));
                check(conflicts, "after a 409, a record has different content");
            }
            404 => {
                let may_be_missing = sample.requires.as_ref().is_some_and(|required| {
                    !self.was_stored_before(attempt, required.table, &required.key)
                });
                check(may_be_missing, "a record that was stored before is found");
            }
            _ => check(false, "the operation has no such response"),
        }
        violations
    }

    fn record_violations(&self, table: Table, record: &Value) -> Vec<&'static str> {
        let (request_id, writer) = match &record["updated_request_id"] {
            Value::Null => (&record["request_id"], &record["created_by"]),
            updated => (updated, &record["updated_by"]),
        };
        let mut attempts = self.attempts.iter();
        let Some(source) = attempts.find(|attempt| *request_id == *attempt.request_id) else {
            return vec!["a record belongs to a request"];
        };
        let mut violations = Vec::new();
        let expected = source.expected_record(table, record);
        if expected.is_none_or(|expected| !expected.matches_content(record)) {
            violations.push("a record has the content of its request");
        }
        if *writer != *source.creator {
            violations.push("a record has the creator of its request");
        }
        if !self.is_stored(&source.sample) {
            violations.push("a request is stored as a whole");
        }
        if !source.sample.replaces && self.was_stored_before(source, table, record) {
            violations.push("the creator of a record stays the same");
        }
        violations
    }

    /// Every rule that the schedule violates, with the attempt or the record.
    fn violations(&self) -> Vec<String> {
        let mut violations = Vec::new();
        for attempt in &self.attempts {
            for rule in self.response_violations(attempt) {
                violations.push(format!("{rule}: {attempt:?}"));
            }
        }
        for (table, record) in &self.records {
            for rule in self.record_violations(*table, record) {
                violations.push(format!("{rule}: {} {record}", Kind::of(*table).plural));
            }
            violations.extend(schemas::errors(*table, record));
        }
        violations
    }
}

#[test]
fn no_schedule_violates_a_rule() {
    let statuses = Mutex::new(BTreeMap::<u16, u64>::new());
    simulation::assert_holds((200, 10_000), async |seed| {
        let run = run_schedule(seed, 0).await;
        let mut violations = run.violations();
        if !violations.is_empty() {
            violations.push(format!("{run:#?}"));
        }
        for attempt in run.attempts {
            *statuses.lock().unwrap().entry(attempt.status).or_default() += 1;
        }
        violations
    });
    let statuses = statuses.into_inner().unwrap();
    println!("responses by status: {statuses:?}");
    for status in [204, 404, 409] {
        assert!(statuses.contains_key(&status), "{statuses:?}");
    }
}

#[test]
fn a_seed_replays_its_schedule() {
    let test = "simulation::a_seed_replays_its_schedule";
    simulation::assert_replays(test, 0..8, |seed| run_schedule(seed, 0));
}

#[test]
fn the_simulation_finds_lost_writes() {
    let mut runs = simulation::run(0..40, async |seed| {
        run_schedule(seed, 30).await.violations()
    });
    runs.retain(|(_, violations)| !violations.is_empty());
    assert!(runs.len() > 20, "{} of 40 runs", runs.len());
}
