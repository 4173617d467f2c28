//! Every event gets a response that a client can read. Accepted values are stored as sent.
//!
//! A failed test prints its seed. `PROPTEST_RNG_SEED=... cargo test --test api properties` replays
//! the failure.

use std::{cell::Cell, collections::BTreeMap, env, ops::RangeInclusive, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::{Index, select},
    test_runner::{Config, RngSeed, TestRunner},
};
use serde_json::{Value, json};
use test_support::{
    TestResponse, event,
    fixtures::{self, key_record},
    iterations, operation_event, send, service,
};
use tokio::runtime::{Builder, Runtime};
use workspace_local::{
    demo::DEMO_KEY,
    dynamodb::{DynamoDb, http_client},
};
use workspace_management::{
    auth::AnonymousAccess, operations::Operation, records::Table, service::Service,
};
use workspace_records::{
    local::{sdk_config, table_names},
    schemas,
};

use crate::operations::{Sample, SampleValues, pointers};

const MODEL_IDS: RangeInclusive<i64> = -((1 << 53) - 1)..=(1 << 53) - 1;

/// The service and a DynamoDB without a network, for tests that are not async.
struct BlockingApp {
    runtime: Runtime,
    dynamodb: DynamoDb,
    service: Service,
    headers: BTreeMap<String, String>,
}

impl BlockingApp {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let dynamodb = runtime.block_on(DynamoDb::with_tables()).unwrap();
        dynamodb.put(Table::ORGANIZATIONS, fixtures::organization("acme"));
        let team = fixtures::team("acme", "apollo", "research-team", "Research Team");
        dynamodb.put(Table::TEAMS, team);
        dynamodb.put(Table::API_KEYS, key_record(DEMO_KEY, "acme", "test"));
        let config = sdk_config("http://dynamodb").http_client(http_client(dynamodb.clone()));
        Self {
            runtime,
            dynamodb,
            service: service(config, table_names(), AnonymousAccess::Allowed),
            headers: [("authorization".to_owned(), format!("Bearer {DEMO_KEY}"))].into(),
        }
    }

    /// Sends an event. The status must be below 500. The log must contain no secret of the event.
    fn send(&self, event: &Value) -> Result<TestResponse, TestCaseError> {
        let response = send(&self.service, event, Duration::from_secs(10));
        let response = self.runtime.block_on(response);
        prop_assert!(response.status < 500, "{response:?}");
        Ok(response)
    }

    fn post(&self, path: &str, body: &Value) -> Result<TestResponse, TestCaseError> {
        let body = body.to_string();
        self.send(&event("POST", path, &self.headers, Some(&body)))
    }
}

fn check<S: Strategy>(
    strategy: S,
    property: impl Fn(&BlockingApp, S::Value) -> Result<(), TestCaseError>,
) {
    let seed = match env::var("PROPTEST_RNG_SEED") {
        Ok(seed) => seed.parse().expect("PROPTEST_RNG_SEED must be a number"),
        Err(_) => fastrand::u64(..),
    };
    let config = Config {
        cases: iterations(1_000, 10_000),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    println!("{} cases from PROPTEST_RNG_SEED={seed}", config.cases);
    let app = BlockingApp::new();
    let result = TestRunner::new(config).run(&strategy, |value| property(&app, value));
    if let Err(failure) = result {
        panic!("PROPTEST_RNG_SEED={seed} replays this failure: {failure}");
    }
    for table in schemas::tables() {
        for record in app.dynamodb.records(table) {
            assert_eq!(schemas::errors(table, &record), [""; 0]);
        }
    }
}

fn operations() -> impl Strategy<Value = Operation> {
    select(Operation::ALL)
}

/// The path of an operation, with the ids of existing records.
fn paths() -> impl Strategy<Value = String> {
    operations().prop_map(|operation| Sample::example(operation).path)
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..40).prop_map(|characters| characters.into_iter().collect())
}

fn word_or_text(words: &str) -> impl Strategy<Value = String> + use<> {
    let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
    prop_oneof![select(words), text()]
}

/// The names of all fields in the bodies of the samples.
fn field_names() -> Vec<String> {
    let mut names = Vec::new();
    for operation in Operation::ALL {
        for pointer in pointers(&Sample::example(*operation).body) {
            let name = pointer.rsplit('/').next().unwrap();
            if name.starts_with(|first: char| first.is_alphabetic()) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// An object whose fields mostly have the names of fields in bodies.
fn object_like_a_body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    let names = field_names();
    let object = move |value: BoxedStrategy<Value>| {
        let name = prop_oneof![9 => select(names.clone()), 1 => text()];
        btree_map(name, value, 0..5).prop_map(Value::from_iter)
    };
    let nested = object.clone();
    let any_value = leaf.boxed().prop_recursive(3, 32, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            nested(inner.boxed())
        ]
        .boxed()
    });
    object(any_value.boxed())
}

/// The event with one value replaced. `place` selects a field on each level.
fn with_replaced_value(mut event: Value, place: &[Index], replacement: Value) -> Value {
    let mut target = &mut event;
    for index in place {
        if let Value::Object(object) = &*target
            && !object.is_empty()
        {
            let names: Vec<_> = object.keys().cloned().collect();
            target = &mut target[index.get(&names)];
        }
    }
    *target = replacement;
    event
}

#[test]
fn any_bytes_can_be_the_body() {
    let bytes = prop_oneof![
        vec(any::<u8>(), 0..200),
        object_like_a_body().prop_map(|object| {
            let mut half = object.to_string().into_bytes();
            half.truncate(half.len() / 2);
            half
        })
    ];
    check((paths(), bytes), |app, (path, bytes)| {
        let mut event = event("POST", &path, &app.headers, Some(&STANDARD.encode(bytes)));
        event["isBase64Encoded"] = json!(true);
        app.send(&event).map(drop)
    });
}

#[test]
fn any_text_can_be_the_path() {
    let segment = word_or_text("api v1 org project bot playground voice % %41 %FF ..");
    let path = vec(segment, 0..9).prop_map(|segments| format!("/{}", segments.join("/")));
    check(prop_oneof![path, text()], |app, path| {
        app.post(&path, &json!({})).map(drop)
    });
}

#[test]
fn any_text_can_be_a_header() {
    let name = word_or_text("authorization Authorization content-type content-length");
    let value = prop_oneof![text(), text().prop_map(|text| format!("Bearer wsk_{text}"))];
    let headers = btree_map(name, value, 0..6);
    check((paths(), headers), |app, (path, headers)| {
        app.send(&event("POST", &path, &headers, Some("{}")))
            .map(drop)
    });
}

#[test]
fn any_object_can_be_the_body() {
    check((paths(), object_like_a_body()), |app, (path, body)| {
        app.post(&path, &body).map(drop)
    });
}

#[test]
fn any_json_can_be_the_event() {
    let place = vec(any::<Index>(), 1..4);
    check(
        (operations(), place, object_like_a_body(), any::<bool>()),
        |app, (operation, place, json, is_whole_event)| {
            let event = if is_whole_event {
                json
            } else {
                with_replaced_value(operation_event(operation), &place, json)
            };
            app.send(&event).map(drop)
        },
    );
}

/// The body contains the digits as text. They are compared with the digits in DynamoDB.
#[test]
fn an_integer_with_a_zero_fraction_is_stored_exactly() {
    // Most of these ids are so large that a fast parser would round them.
    check((MODEL_IDS, "0{1,3}"), |app, (number, zeros)| {
        let path = "/api/v1/org/acme/addModelsToOrg/chat";
        let body = format!(
            r#"{{"aIModelsSelectedToAddToOrg":[{{"id":{number}.{zeros},"modelid":"m"}}]}}"#
        );
        let response = app.send(&event("POST", path, &app.headers, Some(&body)))?;
        prop_assert_eq!(response.status, 204, "{:?}", response);
        let records = app.dynamodb.records(Table::MODELS);
        prop_assert_eq!(records[0]["id"].to_string(), number.to_string());
        app.dynamodb.delete(Table::MODELS, &records[0]);
        Ok(())
    });
}

/// A string that most fields accept: mostly ASCII letters, without control characters. Some strings
/// have only the characters of names whose id has no hash.
fn field_text() -> impl Strategy<Value = String> {
    let is_allowed = |character: &char| !character.is_control();
    let any_character = any::<char>().prop_filter("no control character", is_allowed);
    let letter = proptest::char::range('a', 'z').boxed();
    let common =
        prop_oneof![3 => letter.clone(), 1 => select(&b"AZ09 ._-"[..]).prop_map(char::from)];
    let any_text = vec(prop_oneof![3 => letter, 1 => any_character], 1..30);
    prop_oneof![vec(common, 1..30), any_text]
        .prop_map(|characters| characters.into_iter().collect())
}

#[test]
fn accepted_values_are_stored_as_they_were_sent() {
    let values = (field_text(), field_text(), MODEL_IDS, any::<bool>()).prop_map(
        |(name, description, number, flag)| SampleValues {
            name: name.clone(),
            description,
            flag,
            entries: vec![(name, number)],
            team: "research-team".to_owned(),
        },
    );
    let accepted = Cell::new(0);
    check((operations(), values), |app, (operation, values)| {
        let sample = Sample::of(operation, &values);
        let response = app.post(&sample.path, &sample.body)?;

        let expected = &sample.records[0];
        let mut records = app.dynamodb.records(expected.table);
        records.retain(|record| record["request_id"] != fixtures::REQUEST_ID);
        let [stored] = &records[..] else {
            // For example, no id can be derived from the name, because the name has no letter.
            prop_assert_eq!(response.status, 422, "{:?}", response);
            return Ok(());
        };
        prop_assert_eq!(response.status, 204, "{:?}", response);
        prop_assert!(expected.matches_content(stored), "{expected:?}: {stored}");
        prop_assert_eq!(schemas::errors(expected.table, stored), [""; 0]);
        prop_assert!(expected.matches_key(stored), "{expected:?}: {stored}");
        app.dynamodb.delete(expected.table, stored);
        accepted.set(accepted.get() + 1);
        Ok(())
    });
    println!("{} of them accepted", accepted.get());
    assert!(accepted.get() > iterations(800, 8_000));
}
