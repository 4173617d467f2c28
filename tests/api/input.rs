//! Any input whatever gets an answer that a client can read, and what is accepted is stored as it was sent.
//!
//! `PROPTEST_RNG_SEED` replays a run; it is printed.

use std::{cell::Cell, collections::BTreeMap, env, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use workspace_local::{
    events,
    tables::{sdk_config, table_names},
};
use workspace_management::{service::Service, store::Table};

use crate::{
    engine::Engine,
    support::{Answer, Setting, event, rand8, send, service, trials},
};

/// The service over an engine in this process, and what it takes to ask it from a test that is not async.
struct Front {
    runtime: Runtime,
    engine: Engine,
    service: Service,
    headers: BTreeMap<String, String>,
}

impl Front {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let engine = runtime.block_on(Engine::new());
        engine.put(Table::ORGANIZATIONS, json!({ "org_id": "acme" }));
        let team = json!({ "project": "acme#apollo", "team_id": "research-team" });
        engine.put(Table::TEAMS, team);
        let key = engine.issue("acme", 1);
        let config = sdk_config("http://engine").http_client(engine.clone());
        Self {
            runtime,
            engine,
            service: service(config, table_names(), &Setting::default()),
            headers: [("authorization".to_owned(), format!("Bearer {key}"))].into(),
        }
    }

    /// Sends an event whose answer must be none of the service's own failures.
    fn send(&self, event: Value) -> Result<Answer, TestCaseError> {
        let answer = send(&self.service, event, Duration::from_secs(10));
        let answer = Answer::read(self.runtime.block_on(answer));
        prop_assert!(answer.status < 500, "{answer:?}");
        Ok(answer)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Answer, TestCaseError> {
        self.send(event("POST", path, &self.headers, Some(&body.to_string())))
    }
}

/// Holds a property for 10,000 cases, or as many as a quick run has time for.
fn hold<S: Strategy>(
    strategy: S,
    property: impl Fn(&Front, S::Value) -> Result<(), TestCaseError>,
) {
    let seed = match env::var("PROPTEST_RNG_SEED") {
        Ok(seed) => seed.parse().expect("PROPTEST_RNG_SEED is a number"),
        Err(_) => u64::from_be_bytes(rand8()),
    };
    let config = Config {
        cases: trials(1_000, 10_000),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    println!("{} cases from PROPTEST_RNG_SEED={seed}", config.cases);
    let front = Front::new();
    if let Err(broken) = TestRunner::new(config).run(&strategy, |case| property(&front, case)) {
        panic!("PROPTEST_RNG_SEED={seed} replays this: {broken}");
    }
}

/// The paths of the six operations, for records that are there.
fn paths() -> impl Strategy<Value = String> {
    let path = |(_, text): (&str, &str)| {
        let event: Value = serde_json::from_str(text).unwrap();
        event["rawPath"].as_str().unwrap().to_owned()
    };
    proptest::sample::select(events::all().map(path).collect::<Vec<_>>())
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..40).prop_map(|characters| characters.into_iter().collect())
}

/// Any JSON, of members that the bodies have and of others.
fn near_json() -> impl Strategy<Value = Value> {
    let members = [
        "aIModelsSelectedToAddToOrg",
        "id",
        "modelid",
        "usersAddingToTeam",
        "userid",
        "teamName",
        "teamDescription",
        "type",
        "enabled",
        "dataStoreName",
        "dataStoreDescription",
        "projectName",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    let object = move |value: BoxedStrategy<Value>| {
        let member = prop_oneof![9 => proptest::sample::select(members.to_vec()).prop_map(str::to_owned), 1 => text()];
        btree_map(member, value, 0..5).prop_map(Value::from_iter)
    };
    let any = leaf.boxed().prop_recursive(3, 32, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            object(inner.boxed())
        ]
        .boxed()
    });
    object(any.boxed())
}

/// The JSON with one of its values, or of their values, replaced.
fn broken(mut event: Value, at: &[proptest::sample::Index], by: Value) -> Value {
    let mut place = &mut event;
    for index in at {
        let names: Vec<_> = place
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys().cloned())
            .collect();
        if !names.is_empty() {
            place = &mut place[index.get(&names)];
        }
    }
    *place = by;
    event
}

#[test]
fn any_bytes_as_a_body_are_answered() {
    let bytes = prop_oneof![
        vec(any::<u8>(), 0..200),
        near_json().prop_map(|json| {
            let mut text = json.to_string().into_bytes();
            text.truncate(text.len() / 2);
            text
        })
    ];
    hold((paths(), bytes), |front, (path, bytes)| {
        let mut event = event("POST", &path, &front.headers, Some(&STANDARD.encode(bytes)));
        event["isBase64Encoded"] = json!(true);
        front.send(event).map(drop)
    });
}

#[test]
fn any_path_is_answered() {
    let segment = prop_oneof![
        proptest::sample::select(vec![
            "api",
            "v1",
            "org",
            "project",
            "bot",
            "playground",
            "voice",
            "%",
            "%41",
            "%FF",
            ".."
        ])
        .prop_map(str::to_owned),
        text(),
    ];
    let path = vec(segment, 0..9).prop_map(|segments| format!("/{}", segments.join("/")));
    hold(prop_oneof![path, text()], |front, path| {
        front.post(&path, &json!({})).map(drop)
    });
}

#[test]
fn any_headers_are_answered() {
    let name = prop_oneof![
        proptest::sample::select(vec![
            "authorization",
            "Authorization",
            "content-type",
            "content-length"
        ])
        .prop_map(str::to_owned),
        text(),
    ];
    let value = prop_oneof![text(), text().prop_map(|text| format!("Bearer wsk_{text}"))];
    hold(
        (paths(), btree_map(name, value, 0..6)),
        |front, (path, headers)| {
            front
                .send(event("POST", &path, &headers, Some("{}")))
                .map(drop)
        },
    );
}

#[test]
fn any_json_of_nearly_the_right_shape_is_answered() {
    hold((paths(), near_json()), |front, (path, body)| {
        front.post(&path, &body).map(drop)
    });
}

#[test]
fn any_event_is_answered() {
    let names = proptest::sample::select(events::all().collect::<Vec<_>>());
    let at = vec(any::<proptest::sample::Index>(), 1..4);
    hold(
        (names, at, near_json(), any::<bool>()),
        |front, ((_, text), at, by, whole)| {
            let event = if whole {
                by
            } else {
                broken(serde_json::from_str(text).unwrap(), &at, by)
            };
            front.send(event).map(drop)
        },
    );
}

/// A text that most fields take: characters of any script, and room for what is trimmed.
fn name() -> impl Strategy<Value = String> {
    let character =
        any::<char>().prop_filter("no control character", |character| !character.is_control());
    vec(
        prop_oneof![3 => proptest::char::range('a', 'z'), 1 => character],
        1..30,
    )
    .prop_map(|characters| characters.into_iter().collect())
}

#[test]
fn what_is_accepted_is_stored_as_it_was_sent() {
    let request = (paths(), name(), name(), 0_u64..1 << 53, any::<bool>());
    let accepted = Cell::new(0);
    hold(request, |front, (path, first, second, number, flag)| {
        let (table, body, expected) = match path.rsplit('/').next().unwrap() {
            "addUsersToTheTeam" => (
                Table::TEAM_MEMBERS,
                json!({ "usersAddingToTeam": [{ "userid": first }] }),
                json!({ "team": "acme#apollo#research-team", "user_id": first }),
            ),
            "createNewTeamOnProject" => (
                Table::TEAMS,
                json!({ "teamName": first, "teamDescription": second }),
                json!({ "project": "acme#apollo", "team_name": first.trim(), "team_description": second }),
            ),
            "voice" => (
                Table::BOT_VOICES,
                json!({ "type": first, "enabled": flag }),
                json!({ "org_id": "acme", "type": first, "enabled": flag }),
            ),
            "create" => (
                Table::DATA_STORES,
                json!({ "dataStoreName": first, "dataStoreDescription": second }),
                json!({ "org_id": "acme", "data_store_name": first.trim(), "data_store_description": second }),
            ),
            "createLoggingInstance" => (
                Table::LOGGING_INSTANCES,
                json!({ "projectName": first }),
                json!({ "org_id": "acme", "project_id": "apollo", "project_name": first.trim() }),
            ),
            _ => (
                Table::MODELS,
                json!({ "aIModelsSelectedToAddToOrg": [{ "id": number, "modelid": first }] }),
                json!({ "org_id": "acme", "model": format!("chat#{first}"), "id": number }),
            ),
        };
        let answer = front.post(&path, &body)?;

        let records = front.engine.records(table);
        let stored = records
            .iter()
            .find(|record| record["request_id"].is_string());
        let Some(stored) = stored else {
            // Nothing was: its slug is empty, or there is nothing but blanks.
            prop_assert_eq!(answer.status, 422, "{:?}", answer);
            return Ok(());
        };
        prop_assert_eq!(answer.status, 204, "{:?}", answer);
        for (name, value) in expected.as_object().unwrap() {
            prop_assert_eq!(&stored[name], value, "{}", name);
        }
        front.engine.delete(table, stored);
        accepted.set(accepted.get() + 1);
        Ok(())
    });
    println!("{} of them accepted", accepted.get());
    assert!(accepted.get() > trials(800, 8_000));
}
