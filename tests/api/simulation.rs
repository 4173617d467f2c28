//! Concurrent callers, repeated requests and faults in an order that a seed determines, checked
//! against the rules of the API.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use serde_json::{Value, json};
use test_support::{
    event, send, service,
    simulation::{self, Faults, Network, Tables},
};
use tokio::time::{sleep, timeout};
use workspace_management::{
    api_key::ApiKey, auth::AnonymousOperations, operations::Operation, service::Service,
    store::Table,
};
use workspace_records::{columns::kinds, local::table_names, schemas};

use crate::operations::{Sample, Stored, Values, Write};

/// The status of a request whose caller did not wait for the response.
const GAVE_UP: u16 = 0;

/// A request as its caller saw it, between two ticks of a common counter.
#[derive(Debug, Clone)]
struct Attempt {
    sample: Sample,
    creator: String,
    request_id: String,
    began: usize,
    ended: usize,
    status: u16,
}

/// A random request. The values are few, so that requests meet the same records.
fn random_request(rng: &mut Rng) -> (Operation, Sample) {
    fn choose<T: Clone>(rng: &mut Rng, values: &[T]) -> T {
        values[rng.usize(0..values.len())].clone()
    }
    let operation = choose(rng, Operation::ALL);
    let mut entries: Vec<_> = (0..4).filter(|_| rng.bool()).collect();
    entries.push(rng.u64(4..6));
    let values = Values {
        name: choose(rng, &["Red", "red", "Blue"]).to_owned(),
        description: choose(rng, &["", "x"]).to_owned(),
        flag: rng.bool(),
        entries: entries
            .into_iter()
            // Mostly the same number for the same name, so that batches succeed too.
            .map(|entry| (entry.to_string(), rng.i64(0..8) / 7))
            .collect(),
        team: choose(rng, &["red", "blue"]).to_owned(),
    };
    (operation, Sample::of(operation, &values))
}

type Records = Vec<(Table, Value)>;

/// Runs a schedule. Returns every request, and the records at the end.
async fn run_schedule(seed: u64, lost_writes: u64) -> (Vec<Attempt>, Records) {
    let mut rng = simulation::rng(seed);
    let tables = Tables::new().await;
    let keys = [tables.register("acme", 1), tables.issue_key("acme", 2)];
    let faults = Faults {
        latency: 30,
        errors: [0, 15, 60][rng.usize(0..3)],
        lost_writes,
        ..Faults::default()
    };
    let config = simulation::config(Network::new(&tables, &mut rng, faults));
    let service = service(config, table_names(), AnonymousOperations::Allowed);
    let (service, ticks) = (Arc::new(service), Arc::new(AtomicUsize::new(0)));
    let callers = [0, 1, 2].map(|number| {
        let caller = Caller {
            number,
            key: keys[number % 2].clone(),
            service: service.clone(),
            ticks: ticks.clone(),
            rng: rng.fork(),
        };
        tokio::spawn(caller.run())
    });
    let mut attempts = Vec::new();
    for caller in callers {
        attempts.extend(caller.await.unwrap());
    }
    let records = kinds().flat_map(|table| {
        let records = tables.records(table).into_iter();
        records.map(move |record| (table, record))
    });
    (attempts, records.collect())
}

/// One of the concurrent callers. The last one sends no API key where it is not required.
struct Caller {
    number: usize,
    key: String,
    service: Arc<Service>,
    ticks: Arc<AtomicUsize>,
    rng: Rng,
}

impl Caller {
    async fn run(mut self) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        let (mut request, mut repetitions) = (random_request(&mut self.rng), 0);
        while attempts.len() < 4 {
            let request_id = format!("{}-{}", self.number, attempts.len());
            let attempt = self.attempt(request.clone(), request_id).await;
            let failed = [503, GAVE_UP].contains(&attempt.status);
            attempts.push(attempt);
            let repeats = failed || self.rng.u8(0..5) == 0;
            if repeats && repetitions < 2 {
                repetitions += 1;
            } else {
                (request, repetitions) = (random_request(&mut self.rng), 0);
            }
            sleep(Duration::from_millis(self.rng.u64(0..40))).await;
        }
        attempts
    }

    async fn attempt(
        &mut self,
        (operation, sample): (Operation, Sample),
        request_id: String,
    ) -> Attempt {
        let (mut headers, mut creator) = (BTreeMap::new(), "anonymous".to_owned());
        if !(operation.allows_anonymous() && self.number == 2) {
            headers.insert("authorization".to_owned(), self.key.clone());
            creator = ApiKey::parse(&self.key).unwrap().id.to_owned();
        }
        let body = sample.body.to_string();
        let mut event = event("POST", &sample.path, &headers, Some(&body));
        event["requestContext"]["requestId"] = json!(request_id);
        let began = self.ticks.fetch_add(1, Ordering::Relaxed);
        // The deadline is on the machine's clock, which is not paused: the caller gives up first.
        let response = send(&self.service, &event, Duration::from_secs(60));
        let patience = Duration::from_millis(self.rng.u64(100..6_000));
        let response = timeout(patience, response).await;
        Attempt {
            sample,
            creator,
            request_id,
            began,
            ended: self.ticks.fetch_add(1, Ordering::Relaxed),
            status: response.map_or(GAVE_UP, |response| response.status),
        }
    }
}

fn find<'a>(records: &'a Records, stored: &Stored) -> Option<&'a Value> {
    let mut records = records.iter();
    let found = records.find(|(table, record)| *table == stored.table && stored.is_key_of(record));
    found.map(|(_, record)| record)
}

/// Whether every record of a sample exists with its content.
fn is_stored(records: &Records, sample: &Sample) -> bool {
    sample
        .records
        .iter()
        .all(|stored| find(records, stored).is_some_and(|record| stored.is_content_of(record)))
}

/// Whether another request stored a record before an attempt began.
fn was_stored_before(
    table: Table,
    record: &Value,
    attempt: &Attempt,
    attempts: &[Attempt],
) -> bool {
    attempts.iter().any(|other| {
        let mut stored = other.sample.records.iter();
        other.status == 204
            && other.ended < attempt.began
            && stored.any(|stored| stored.table == table && stored.is_key_of(record))
    })
}

/// Whether a record was written by this attempt, or by one that ended after this one began.
fn is_last_write(attempt: &Attempt, attempts: &[Attempt], record: Option<&Value>) -> bool {
    let stored = &attempt.sample.records[0];
    let is_writer = |other: &Attempt, record: &Value| {
        let last = &other.sample.records[0];
        (last.table, &last.key) == (stored.table, &stored.key)
            && last.is_content_of(record)
            && other.ended >= attempt.began
    };
    record.is_some_and(|record| attempts.iter().any(|other| is_writer(other, record)))
}

/// The rules that a response violates.
fn response_violations(
    attempt: &Attempt,
    attempts: &[Attempt],
    records: &Records,
) -> Vec<&'static str> {
    let sample = &attempt.sample;
    let stored = &sample.records[0];
    let found = find(records, stored);
    let is_stored = is_stored(records, sample);
    let requirement = sample.requires.as_ref();
    let rules = match (attempt.status, sample.write) {
        (GAVE_UP | 503, _) => vec![],
        (204, write) => vec![
            (
                requirement.is_none_or(|required| find(records, required).is_some()),
                "a request succeeds only if the record that it requires exists",
            ),
            match write {
                Write::Create | Write::Add => {
                    (is_stored, "every stored record exists with its content")
                }
                Write::Replace => (
                    is_last_write(attempt, attempts, found),
                    "the last write wins",
                ),
            },
        ],
        (409, Write::Create | Write::Add) => vec![(
            sample.records.iter().any(|stored| {
                find(records, stored).is_some_and(|record| !stored.is_content_of(record))
            }),
            "a conflict means that a record exists with other content",
        )],
        (404, _) => vec![(
            requirement.is_some_and(|required| {
                !was_stored_before(required.table, &required.key, attempt, attempts)
            }),
            "a record that was created before is found",
        )],
        _ => vec![(false, "the operation has no such response")],
    };
    let violated = rules.into_iter().filter(|(holds, _)| !holds);
    violated.map(|(_, rule)| rule).collect()
}

/// The rules that a record violates.
fn record_violations(
    (table, record): &(Table, Value),
    attempts: &[Attempt],
    records: &Records,
) -> Vec<&'static str> {
    let mut sources = attempts.iter();
    let request_id = match &record["updated_request_id"] {
        Value::Null => &record["request_id"],
        updated => updated,
    };
    let Some(source) = sources.find(|attempt| *request_id == *attempt.request_id) else {
        return vec!["a record belongs to a request"];
    };
    let mut own = source.sample.records.iter();
    let own = own.find(|stored| stored.table == *table && stored.is_key_of(record));
    let writer = if record["updated_by"].is_null() {
        &record["created_by"]
    } else {
        &record["updated_by"]
    };
    let rules = [
        (
            own.is_some_and(|stored| stored.is_content_of(record)),
            "a record has the content of its request",
        ),
        (
            *writer == *source.creator,
            "a record has the creator of its request",
        ),
        (
            is_stored(records, &source.sample),
            "a request is stored as a whole",
        ),
        (
            source.sample.write == Write::Replace
                || !was_stored_before(*table, record, source, attempts),
            "the creator of a record stays the same",
        ),
    ];
    let violated = rules.into_iter().filter(|(holds, _)| !holds);
    violated.map(|(_, rule)| rule).collect()
}

/// Every rule that a schedule violates, with the request or the record.
fn violations(attempts: &[Attempt], records: &Records) -> Vec<String> {
    let responses = attempts.iter().flat_map(|attempt| {
        let rules = response_violations(attempt, attempts, records).into_iter();
        rules.map(move |rule| format!("{rule}: {attempt:?}"))
    });
    let stored = records.iter().flat_map(|record| {
        let rules = record_violations(record, attempts, records).into_iter();
        rules.map(move |rule| format!("{rule}: {} {}", record.0.noun, record.1))
    });
    let invalid = records
        .iter()
        .flat_map(|(table, record)| schemas::errors(*table, record));
    responses.chain(stored).chain(invalid).collect()
}

#[test]
fn no_schedule_violates_a_rule() {
    let statuses = Mutex::new(BTreeMap::<u16, u64>::new());
    simulation::assert_holds((200, 10_000), async |seed| {
        let (attempts, records) = run_schedule(seed, 0).await;
        let mut violations = violations(&attempts, &records);
        if !violations.is_empty() {
            violations.push(format!("{attempts:#?}\n{records:#?}"));
        }
        for attempt in attempts {
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
    let run = || {
        let mut runs = simulation::run(0..20, async |seed| {
            format!("{:?}", run_schedule(seed, 0).await.0)
        });
        runs.sort();
        runs
    };
    assert_eq!(run(), run());
}

#[test]
fn the_simulation_finds_lost_writes() {
    let found = simulation::run(0..40, async |seed| {
        let (attempts, records) = run_schedule(seed, 30).await;
        !violations(&attempts, &records).is_empty()
    });
    let found = found.into_iter().filter(|(_, is_found)| *is_found);
    assert!(found.count() > 20);
}
