//! Concurrent callers, repeats and faults over a small world, in an order that a seed decides, held against the interface.
//!
//! One thread and a clock that jumps from timer to timer make a schedule: the real service and SDK, the real engine, and between
//! them waits, lost requests and lost answers. `SIMULATION_SCHEDULES` says how many to run, `SIMULATION_SEED` with which
//! seed to begin; the seed of a broken one is printed, and replays it.

use std::{
    collections::BTreeMap,
    env,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::config::retry::RetryPartition;
use fastrand::Rng;
use serde_json::{Value, json};
use tokio::time::timeout;
use workspace_local::tables::{sdk_config, table_names};
use workspace_management::{api_key::ApiKey, store::Table};

use crate::{
    engine::{Chance, Engine},
    support::{Answer, Setting, event, rand8, send, service, trials},
};

/// One of the interface's operations, with what is sent.
#[derive(Debug, Clone, PartialEq)]
enum Ask {
    Team(&'static str, &'static str),
    Members(&'static str, Vec<u64>),
    Models(Vec<(u64, u64)>),
    Voice(&'static str, bool),
    Store(&'static str),
    Logging(&'static str),
}

impl Ask {
    fn any(rng: &mut Rng) -> Self {
        fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
            of[rng.usize(0..of.len())]
        }
        match rng.u8(0..8) {
            0 | 1 => Self::Team(one(rng, &["Red", "red", "Blue"]), one(rng, &["", "x"])),
            2 | 3 => {
                let mut users: Vec<u64> = (0..5).filter(|_| rng.bool()).collect();
                users.push(rng.u64(5..7));
                Self::Members(one(rng, &["red", "blue"]), users)
            }
            4 => {
                let models = rng.u64(1..4);
                Self::Models(
                    (0..models)
                        .map(|model| (model, rng.u64(0..8) / 7))
                        .collect(),
                )
            }
            5 => Self::Voice(one(rng, &["alloy", "echo"]), rng.bool()),
            6 => Self::Store(one(rng, &["", "x", "y"])),
            _ => Self::Logging(one(rng, &["Apollo", "apollo"])),
        }
    }

    fn request(&self) -> (String, Value) {
        let project = "/api/v1/project/acme/p";
        match self {
            Self::Team(name, description) => (
                format!("{project}/createNewTeamOnProject"),
                json!({ "teamName": name, "teamDescription": description }),
            ),
            Self::Members(team, users) => {
                let users: Vec<_> = users
                    .iter()
                    .map(|user| json!({ "userid": user.to_string() }))
                    .collect();
                (
                    format!("{project}/{team}/addUsersToTheTeam"),
                    json!({ "usersAddingToTeam": users }),
                )
            }
            Self::Models(models) => {
                let models: Vec<_> = models
                    .iter()
                    .map(|(model, id)| json!({ "modelid": model.to_string(), "id": id }))
                    .collect();
                (
                    "/api/v1/org/acme/addModelsToOrg/chat".to_owned(),
                    json!({ "aIModelsSelectedToAddToOrg": models }),
                )
            }
            Self::Voice(kind, enabled) => (
                "/api/v1/bot/playground/b/voice".to_owned(),
                json!({ "type": kind, "enabled": enabled }),
            ),
            Self::Store(description) => (
                "/api/v1/org/acme/dataStores/create".to_owned(),
                json!({ "dataStoreName": "Papers", "dataStoreDescription": description }),
            ),
            Self::Logging(name) => (
                format!("{project}/createLoggingInstance"),
                json!({ "projectName": name }),
            ),
        }
    }

    /// The records that this leads to if nothing is there: their table, the values of their key, and their content.
    fn records(&self) -> Vec<(Table, String, Value)> {
        match self {
            Self::Team(name, description) => vec![(
                Table::TEAMS,
                name.to_lowercase(),
                json!({ "team_name": name, "team_description": description }),
            )],
            Self::Members(team, users) => users
                .iter()
                .map(|user| {
                    (
                        Table::TEAM_MEMBERS,
                        format!("acme#p#{team} {user}"),
                        json!({}),
                    )
                })
                .collect(),
            Self::Models(models) => models
                .iter()
                .map(|(model, id)| (Table::MODELS, format!("chat#{model}"), json!({ "id": id })))
                .collect(),
            Self::Voice(kind, enabled) => vec![(
                Table::BOT_VOICES,
                "b".to_owned(),
                json!({ "type": kind, "enabled": enabled }),
            )],
            Self::Store(description) => vec![(
                Table::DATA_STORES,
                "papers".to_owned(),
                json!({ "data_store_name": "Papers", "data_store_description": description }),
            )],
            Self::Logging(name) => vec![(
                Table::LOGGING_INSTANCES,
                "p".to_owned(),
                json!({ "project_name": name }),
            )],
        }
    }
}

/// The status of a request whose sender did not wait for the answer.
const GAVE_UP: u16 = 0;

/// A request as its sender saw it: between two moments, by one maker, with an answer.
#[derive(Debug, Clone)]
struct Attempt {
    ask: Ask,
    maker: String,
    request_id: String,
    began: usize,
    ended: usize,
    status: u16,
}

impl Attempt {
    fn is_as(&self, other: &Self) -> bool {
        (&self.ask, &self.maker) == (&other.ask, &other.maker)
    }
}

/// Runs one schedule; what was asked, and what is there in the end.
fn schedule(seed: u64, lies: u8) -> (Vec<Attempt>, BTreeMap<(&'static str, String), Value>) {
    fastrand::seed(seed); // the SDK's waits
    let mut rng = Rng::with_seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async move {
        let mut engine = Engine::new().await;
        engine.put(Table::ORGANIZATIONS, json!({ "org_id": "acme" }));
        let keys = [1, 2].map(|number| engine.issue("acme", number));
        engine.chance = Some(Chance {
            rng: Arc::new(Mutex::new(rng.fork())),
            faults: [0, 15, 60][rng.usize(0..3)],
            lies,
        });
        let config = sdk_config("http://engine")
            .http_client(engine.clone())
            .retry_partition(RetryPartition::new(format!("{:?}", rand8())));
        let service = Arc::new(service(config, table_names(), &Setting::default()));
        let clock = Arc::new(AtomicUsize::new(0));
        let callers = (0..3).map(|caller| {
            let (service, clock, mut rng) = (service.clone(), clock.clone(), rng.fork());
            let key = keys[caller % 2].clone();
            tokio::spawn(async move {
                let mut attempts = Vec::new();
                let (mut ask, mut again) = (Ask::any(&mut rng), 0);
                while attempts.len() < 4 {
                    let may_be_anonymous = matches!(ask, Ask::Models(_) | Ask::Store(_));
                    let is_anonymous = may_be_anonymous && caller == 2;
                    let mut headers = BTreeMap::new();
                    let mut maker = "anonymous".to_owned();
                    if !is_anonymous {
                        headers.insert("authorization".to_owned(), key.clone());
                        maker = ApiKey::parse(&key).unwrap().id().to_owned();
                    }
                    let request_id = format!("{caller}-{}", attempts.len());
                    let (path, body) = ask.request();
                    let mut event = event("POST", &path, &headers, Some(&body.to_string()));
                    event["requestContext"]["requestId"] = json!(request_id);
                    let began = clock.fetch_add(1, Ordering::Relaxed);
                    // The service's own deadline is one of the machine's clock, which does not jump: the caller gives up before.
                    let answer = send(&service, event, Duration::from_secs(60));
                    let patience = Duration::from_millis(rng.u64(100..6_000));
                    let status = match timeout(patience, answer).await {
                        Ok(answer) => Answer::read(answer).status,
                        Err(_) => GAVE_UP,
                    };
                    attempts.push(Attempt {
                        ask: ask.clone(),
                        maker,
                        request_id,
                        began,
                        ended: clock.fetch_add(1, Ordering::Relaxed),
                        status,
                    });
                    again = if [503, GAVE_UP].contains(&status) || rng.u8(0..5) == 0 {
                        again + 1
                    } else {
                        0
                    };
                    if again == 0 || again > 2 {
                        (ask, again) = (Ask::any(&mut rng), 0);
                    }
                    tokio::time::sleep(Duration::from_millis(rng.u64(0..40))).await;
                }
                attempts
            })
        });
        let callers: Vec<_> = callers.collect();
        let mut attempts = Vec::new();
        for caller in callers {
            attempts.extend(caller.await.unwrap());
        }
        let mut records = BTreeMap::new();
        let tables = [
            (Table::TEAMS, "team_id"),
            (Table::TEAM_MEMBERS, "user_id"),
            (Table::MODELS, "model"),
            (Table::BOT_VOICES, "bot_id"),
            (Table::DATA_STORES, "data_store_id"),
            (Table::LOGGING_INSTANCES, "project_id"),
        ];
        for (table, key) in tables {
            for record in engine.records(table) {
                let mut name = record[key].as_str().unwrap().to_owned();
                if table == Table::TEAM_MEMBERS {
                    name = format!("{} {name}", record["team"].as_str().unwrap());
                }
                records.insert((table.logical_id, name), record);
            }
        }
        (attempts, records)
    })
}

/// What of the interface a schedule breaks.
fn broken(attempts: &[Attempt], records: &BTreeMap<(&'static str, String), Value>) -> Vec<String> {
    let mut broken = Vec::new();
    let at = |table: Table, key: &str| records.get(&(table.logical_id, key.to_owned()));
    let holds = |record: &Value, content: &Value| {
        content
            .as_object()
            .unwrap()
            .iter()
            .all(|(name, value)| record[name] == *value)
    };
    for attempt in attempts {
        let mut check = |holds: bool, rule: &str| {
            if !holds {
                broken.push(format!("{rule}: {attempt:?}"));
            }
        };
        let led_to = attempt.ask.records();
        let found: Vec<_> = led_to
            .iter()
            .map(|(table, key, content)| (at(*table, key), content))
            .collect();
        let is_whole = found
            .iter()
            .all(|(record, content)| record.is_some_and(|record| holds(record, content)));
        let is_by_maker = |record: &Value| record["created_by"] == *attempt.maker;
        let allowed: &[u16] = match &attempt.ask {
            Ask::Team(..) | Ask::Store(_) | Ask::Logging(_) => {
                let present = found[0].0;
                let is_own = is_whole && present.is_some_and(is_by_maker);
                check(
                    attempt.status != 204 || is_own,
                    "a create that succeeded is there",
                );
                check(
                    attempt.status != 409 || present.is_some() && !is_own,
                    "a name is taken by another",
                );
                &[204, 409, 503]
            }
            Ask::Members(team, _) => {
                check(attempt.status != 204 || is_whole, "no member is lost");
                let team_before = attempts.iter().any(|other| {
                    matches!(&other.ask, Ask::Team(name, _) if name.to_lowercase() == *team)
                        && other.status == 204
                        && other.ended < attempt.began
                });
                check(
                    attempt.status != 404 || !team_before,
                    "a team that was made is found",
                );
                check(
                    attempt.status != 204 || at(Table::TEAMS, team).is_some(),
                    "members have a team",
                );
                &[204, 404, 503]
            }
            Ask::Models(_) => {
                check(attempt.status != 204 || is_whole, "no model is lost");
                let contradicts = found
                    .iter()
                    .any(|(record, content)| record.is_some_and(|record| !holds(record, content)));
                check(
                    attempt.status != 409 || contradicts,
                    "a model is taken by another id",
                );
                &[204, 409, 503]
            }
            Ask::Voice(..) => {
                let last = found[0].0;
                check(
                    attempt.status != 204 || last.is_some(),
                    "a voice that was set is there",
                );
                let overwritten = last.is_some_and(|last| {
                    attempts.iter().any(|other| {
                        matches!(other.ask, Ask::Voice(..))
                            && holds(last, &other.ask.records()[0].2)
                            && last["updated_by"] == *other.maker
                            && other.ended >= attempt.began
                    })
                });
                check(attempt.status != 204 || overwritten, "the last voice wins");
                &[204, 503]
            }
        };
        check(
            attempt.status == GAVE_UP || allowed.contains(&attempt.status),
            "the answer is one of the operation's",
        );
    }
    for ((table, key), record) in records {
        let mut check = |holds: bool, rule: &str| {
            if !holds {
                broken.push(format!("{rule}: {table} {key} {record}"));
            }
        };
        let Some(source) = attempts
            .iter()
            .find(|attempt| record["request_id"] == *attempt.request_id)
        else {
            check(false, "a record comes from a request");
            continue;
        };
        let led_to = source.ask.records();
        let own = led_to
            .iter()
            .find(|(of, name, _)| of.logical_id == *table && name == key);
        check(
            own.is_some_and(|(_, _, content)| holds(record, content)),
            "a record is of one request alone",
        );
        let maker = if record["updated_by"].is_null() {
            "created_by"
        } else {
            "updated_by"
        };
        check(record[maker] == *source.maker, "a record has its maker");
        let is_whole = led_to.iter().all(|(table, key, content)| {
            at(*table, key).is_some_and(|record| holds(record, content))
        });
        check(is_whole, "no batch is there in part");
        let asked = attempts.iter().any(|attempt| attempt.is_as(source));
        check(asked, "nothing is there that nobody asked for");
    }
    broken
}

#[test]
fn schedules_of_callers_repeats_and_faults_keep_the_interface() {
    let first = env::var("SIMULATION_SEED").map_or_else(
        |_| u64::from_be_bytes(rand8()) >> 16,
        |seed| seed.parse().expect("SIMULATION_SEED is a number"),
    );
    let count = u64::from(trials(200, 10_000));
    println!("{count} schedules from SIMULATION_SEED={first}");
    let threads = std::thread::available_parallelism().unwrap().get() as u64;
    let answers = Mutex::new(BTreeMap::<u16, u64>::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let answers = &answers;
            scope.spawn(move || {
                for seed in (first + thread..first + count).step_by(threads as usize) {
                    let (attempts, records) = schedule(seed, 0);
                    let broken = broken(&attempts, &records);
                    assert!(
                        broken.is_empty(),
                        "SIMULATION_SEED={seed} replays this:\n{}\n{attempts:#?}\n{records:#?}",
                        broken.join("\n"),
                    );
                    for attempt in attempts {
                        *answers.lock().unwrap().entry(attempt.status).or_default() += 1;
                    }
                }
            });
        }
    });
    println!("answers by status: {:?}", answers.into_inner().unwrap());
}

#[test]
fn a_seed_replays_its_schedule() {
    for seed in 0..20 {
        let [once, again] = [seed; 2].map(|seed| format!("{:?}", schedule(seed, 0).0));
        assert_eq!(once, again, "{seed}");
    }
}

/// The rules find what they are there for.
#[test]
fn schedules_on_an_engine_that_loses_writes_do_not() {
    let found = (0..40).filter(|seed| {
        let (attempts, records) = schedule(*seed, 30);
        !broken(&attempts, &records).is_empty()
    });
    assert!(found.count() > 20);
}
