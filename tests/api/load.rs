//! What happens while DynamoDB throttles writes: the function gives up early, and sheds requests of
//! the organization that asks for most.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};
use test_support::{
    TestApp, TestResponse, event,
    faults::{Fault, Phase},
    handle_checking_log, operation_event, send, unique_key,
};
use workspace_management::{operations::Operation, service::Service};

const SECOND: Duration = Duration::from_secs(1);

/// What DynamoDB responds when a write exceeds the throughput of a table, an index or a partition.
const THROTTLING: [Fault; 5] = [
    Fault::Status(400, "ProvisionedThroughputExceededException"),
    Fault::Status(400, "RequestLimitExceeded"),
    Fault::Status(400, "ThrottlingException"),
    Fault::Cancelled("ProvisionedThroughputExceeded"),
    Fault::Cancelled("ThrottlingError"),
];

/// Sends an operation while every write has the fault. Returns the response, the number of writes,
/// and the time. `app` must have the demo team.
async fn send_while_writes_fail(
    app: &TestApp,
    operation: Operation,
    fault: Fault,
) -> (TestResponse, usize, Duration) {
    let writes = Arc::new(AtomicUsize::new(0));
    let counter = writes.clone();
    let service = app.hooked_service(move |request| {
        if request.is_read() {
            return None;
        }
        counter.fetch_add(1, Ordering::Relaxed);
        Some((fault, Phase::BeforeExecution))
    });
    let event = operation_event(operation);
    let started = Instant::now();
    let response = send(&service, &event, Duration::from_secs(3)).await;
    (response, writes.load(Ordering::Relaxed), started.elapsed())
}

#[tokio::test]
async fn a_throttled_write_is_sent_twice_at_most() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    for operation in Operation::ALL {
        for fault in THROTTLING {
            let (response, writes, time) = send_while_writes_fail(&app, *operation, fault).await;
            response.assert_problem(503, "unavailable");
            assert_eq!(response.headers["retry-after"], "1");
            assert_eq!(writes, 2, "{operation:?} {fault:?}");
            // The wait is at most 50 ms. The rest is the time of a debug build on a busy machine.
            assert!(time < SECOND, "{operation:?} {fault:?}: {time:?}");
        }
    }
}

#[tokio::test]
async fn other_transient_failures_keep_their_retries() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let send = |fault| send_while_writes_fail(&app, Operation::AddTeamUsers, fault);
    let (error, conflict) = tokio::join!(
        send(Fault::Status(500, "InternalServerError")),
        send(Fault::Cancelled("TransactionConflict")),
    );
    for (response, writes, _) in [error, conflict] {
        response.assert_problem(503, "unavailable");
        assert!(writes > 4, "{writes} writes");
    }
}

/// A service whose writes are throttled while `is_throttled` is true. Organizations send requests
/// at the times of a clock that only the test moves.
struct Scenario {
    service: Service,
    is_throttled: Arc<AtomicBool>,
    /// The requests to DynamoDB since the last look.
    dynamodb_requests: Arc<AtomicUsize>,
    keys: BTreeMap<&'static str, String>,
    now: SystemTime,
}

impl Scenario {
    async fn new() -> Self {
        let app = TestApp::new().await;
        let mut keys = BTreeMap::new();
        for organization in ["acme", "globex", "initech"] {
            app.register(organization).await;
            keys.insert(organization, app.issue_key(organization, |_| {}).await);
        }
        let is_throttled = Arc::new(AtomicBool::new(false));
        let dynamodb_requests = Arc::new(AtomicUsize::new(0));
        let (throttled, requests) = (is_throttled.clone(), dynamodb_requests.clone());
        let service = app.hooked_service(move |request| {
            requests.fetch_add(1, Ordering::Relaxed);
            let fault = match &*request.action {
                "TransactWriteItems" => Fault::Cancelled("ThrottlingError"),
                _ => Fault::Status(400, "ThrottlingException"),
            };
            let is_faulty = !request.is_read() && throttled.load(Ordering::Relaxed);
            is_faulty.then_some((fault, Phase::BeforeExecution))
        });
        Self {
            service,
            is_throttled,
            dynamodb_requests,
            keys,
            now: SystemTime::now(),
        }
    }

    fn throttle(&self, is_throttled: bool) {
        self.is_throttled.store(is_throttled, Ordering::Relaxed);
    }

    /// Adds models to an organization, with its own key.
    async fn add_models(&self, organization: &str, models: usize) -> TestResponse {
        self.add_models_with(organization, &self.keys[organization], models)
            .await
    }

    /// `key` is empty for an anonymous caller.
    async fn add_models_with(&self, organization: &str, key: &str, models: usize) -> TestResponse {
        let path = format!("/api/v1/org/{organization}/addModelsToOrg/chat");
        let headers = BTreeMap::from([("authorization".to_owned(), key.to_owned())]);
        let models: Vec<Value> = (0..models)
            .map(|id| json!({ "id": id, "modelid": format!("model number {id}") }))
            .collect();
        let body = json!({ "aIModelsSelectedToAddToOrg": models }).to_string();
        self.send(&event("POST", &path, &headers, Some(&body)))
            .await
    }

    async fn send(&self, event: &Value) -> TestResponse {
        let time_limit = Duration::from_secs(10);
        TestResponse::read(handle_checking_log(&self.service, event, self.now, time_limit).await)
    }

    /// Lets `acme` flood the service with 20 requests per second for some seconds, and `globex`
    /// send 4 small requests per second. No write is throttled. Returns how many requests of each
    /// succeed.
    async fn flood(&mut self, seconds: u32) -> (usize, usize) {
        let mut succeeded = (0, 0);
        for request in 0..20 * seconds {
            self.now += SECOND / 20;
            if self.add_models("acme", 5).await.status == 204 {
                succeeded.0 += 1;
            }
            if request % 5 == 0 && self.add_models("globex", 1).await.status == 204 {
                succeeded.1 += 1;
            }
        }
        succeeded
    }

    /// Lets `acme` flood the service, and throttles so many writes that `acme` gets nothing.
    async fn shed_acme(&mut self) {
        self.flood(1).await;
        self.throttle_one("acme").await;
        for _ in 0..20 {
            self.throttle_one("globex").await;
        }
    }

    /// Throttles one write of `organization`.
    async fn throttle_one(&mut self, organization: &str) {
        self.throttle(true);
        let response = self.add_models(organization, 1).await;
        response.assert_problem(503, "unavailable");
        self.throttle(false);
    }
}

#[tokio::test]
async fn only_the_heaviest_organization_is_shed_and_only_after_a_throttled_write() {
    let mut scenario = Scenario::new().await;
    assert_eq!(scenario.flood(2).await, (40, 8));

    scenario.throttle_one("acme").await;
    // The limit has been exceeded by both, so it does not matter whose write is throttled next.
    scenario.throttle_one("globex").await;

    let (acme, globex) = scenario.flood(1).await;
    // Each throttled request halves the share, which is 25 % now and grows.
    assert!((4..=7).contains(&acme), "{acme} of 20");
    assert_eq!(globex, 4);
    scenario.flood(2).await;
    let (acme, globex) = scenario.flood(1).await;
    // The share doubles every 2 seconds.
    assert!((13..=19).contains(&acme), "{acme} of 20");
    assert_eq!(globex, 4);
}

#[tokio::test]
async fn the_heaviest_organization_is_shed_for_15_seconds_while_others_together_ask_for_less() {
    let mut scenario = Scenario::new().await;
    scenario.shed_acme().await;
    assert_eq!(scenario.flood(1).await, (0, 4));

    for (organization, models) in [("initech", 100), ("globex", 100), ("acme", 5)] {
        let response = scenario.add_models(organization, models).await;
        response.assert_success();
    }
    scenario.now += SECOND;
    for _ in 0..20 {
        scenario.add_models("acme", 5).await.assert_success();
    }
    scenario.now += 12 * SECOND;
    let (acme, globex) = scenario.flood(1).await;
    assert!(acme < 20, "{acme} of 20");
    assert_eq!(globex, 4);
    scenario.now += SECOND;
    assert_eq!(scenario.flood(1).await, (20, 4));
}

#[tokio::test]
async fn anonymous_callers_do_not_use_up_the_share_of_the_organization_in_the_path() {
    let mut scenario = Scenario::new().await;
    scenario.add_models("acme", 1).await.assert_success();
    scenario.throttle(true);
    for _ in 0..20 {
        scenario.add_models_with("acme", "", 100).await;
        scenario.add_models("globex", 1).await;
    }
    scenario.throttle(false);

    scenario.now += SECOND / 20;
    for organization in ["acme", "globex"] {
        let response = scenario.add_models_with(organization, "", 100).await;
        response.assert_problem(503, "unavailable");
    }
    scenario.add_models("acme", 5).await.assert_success();
}

/// `globex` exceeds only a limit of its own, such as that of its partition.
#[tokio::test]
async fn an_organization_whose_own_writes_are_not_throttled_is_not_shed() {
    let mut scenario = Scenario::new().await;
    for _ in 0..3 {
        scenario.now += SECOND / 20;
        scenario.throttle_one("globex").await;
        for _ in 0..19 {
            scenario.now += SECOND / 20;
            scenario.add_models("acme", 5).await.assert_success();
        }
    }
}

/// Requests of different sizes share a limit fairly.
#[tokio::test]
async fn small_requests_of_a_limited_organization_do_not_starve_its_large_ones() {
    let mut scenario = Scenario::new().await;
    scenario.flood(1).await;
    scenario.throttle_one("acme").await;
    let mut admitted = 0;
    for _ in 0..10 {
        for _ in 0..4 {
            scenario.now += SECOND / 20;
            scenario.add_models("acme", 1).await;
        }
        scenario.add_models("globex", 1).await.assert_success();
        if scenario.add_models("acme", 50).await.status == 204 {
            admitted += 1;
        }
    }
    assert!((3..10).contains(&admitted), "{admitted} of 10");
}

#[tokio::test]
async fn a_rejected_caller_does_not_count_for_the_organization_in_the_path() {
    let mut scenario = Scenario::new().await;
    for (key, status) in [(unique_key(), 401), (scenario.keys["globex"].clone(), 403)] {
        for _ in 0..20 {
            let response = scenario.add_models_with("acme", &key, 100).await;
            assert_eq!(response.status, status);
        }
    }
    scenario.add_models("globex", 1).await.assert_success();
    scenario.add_models("acme", 1).await.assert_success();
    for _ in 0..20 {
        scenario.throttle_one("globex").await;
    }

    for _ in 0..20 {
        scenario.add_models("acme", 1).await.assert_success();
    }
}

/// The response to a request that is shed.
pub(crate) async fn shed_response() -> TestResponse {
    let mut scenario = Scenario::new().await;
    scenario.shed_acme().await;
    scenario.add_models("acme", 5).await
}

#[tokio::test]
async fn every_operation_can_be_shed_without_a_request_to_dynamodb() {
    let mut scenario = Scenario::new().await;
    scenario.shed_acme().await;
    scenario.dynamodb_requests.store(0, Ordering::Relaxed);

    for operation in Operation::ALL {
        let mut event = operation_event(*operation);
        event["headers"]["authorization"] = json!(format!("Bearer {}", scenario.keys["acme"]));
        let response = scenario.send(&event).await;
        response.assert_problem(503, "unavailable");
        assert_eq!(response.headers["retry-after"], "1");
    }
    assert_eq!(scenario.dynamodb_requests.load(Ordering::Relaxed), 0);
    // An invalid request gets the same response as ever.
    let response = scenario.add_models("acme", 101).await;
    response.assert_problem(422, "invalid_body");
}

#[tokio::test]
async fn a_throttled_write_of_the_organization_that_is_shed_is_sent_once() {
    let mut scenario = Scenario::new().await;
    scenario.flood(1).await;
    scenario.throttle_one("acme").await;
    scenario.throttle(true);
    scenario.dynamodb_requests.store(0, Ordering::Relaxed);

    let mut sent = 0;
    for _ in 0..15 {
        scenario.now += SECOND / 20;
        scenario
            .add_models("acme", 5)
            .await
            .assert_problem(503, "unavailable");
        let writes = scenario.dynamodb_requests.swap(0, Ordering::Relaxed);
        assert!(writes <= 1, "{writes}");
        sent += writes;
    }
    assert!((1..15).contains(&sent), "{sent}");
}
