//! A DynamoDB whose table of team members has a [maximum throughput], as template.yaml declares it.
//!
//! [maximum throughput]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode-max-throughput.html

use std::time::Duration;

use anyhow::Result;
use axum::{
    body::Body,
    http::{self, Method, StatusCode},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
};
use test_support::{
    faults::{Fault, Phase},
    hook::{Hooked, Request, routes},
};
use tokio::{net::TcpListener, time::sleep};
use workspace_local::{
    dynamodb::DynamoDb,
    gateway::TokenBucket,
    server::{self, Access},
};

/// The maximum write units per second.
const MAX_UNITS: f64 = 100.0;

/// How much later DynamoDB responds than the embedded one. On AWS, a response takes a few
/// milliseconds.
const LATENCY: Duration = Duration::from_millis(4);

/// Which writes DynamoDB accepts when it throttles. AWS documents only "best effort".
#[derive(Debug, Clone, Copy)]
pub(crate) enum Admission {
    /// A write needs all of its units.
    Strict,
    /// A write needs a part of a unit. The others are borrowed from later writes.
    Debt,
}

/// Listens on a free port, and throttles the writes of the function, which writes only to the table
/// of members. Returns the URL.
///
/// DynamoDB bills a unit per kilobyte, and the record of a member is smaller. In a transaction, each
/// record costs twice as much. The index has the same maximum, and never costs more.
pub(crate) async fn start(dynamodb: DynamoDb, admission: Admission) -> Result<String> {
    let units = TokenBucket::new(MAX_UNITS);
    let throttle = move |request: &Request| {
        let (cost, fault) = match &*request.action {
            "PutItem" | "UpdateItem" => (1.0, Fault::Status(400, "ThrottlingException")),
            "TransactWriteItems" => {
                let records = request.body["TransactItems"].as_array()?.len();
                (2.0 * records as f64, Fault::Cancelled("ThrottlingError"))
            }
            _ => return None,
        };
        let needed = match admission {
            Admission::Strict => cost,
            Admission::Debt => f64::MIN_POSITIVE,
        };
        let is_throttled = !units.take(cost, needed);
        is_throttled.then_some((fault, Phase::BeforeExecution))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let routes = routes(Hooked::new(dynamodb, throttle));
    let routes = routes.layer(from_fn(respond));
    tokio::spawn(server::serve(listener, routes, Access::default()));
    Ok(url)
}

async fn respond(request: http::Request<Body>, next: Next) -> Response {
    // The function opens its connection with a GET, which the hook does not expect.
    let response = if request.method() == Method::GET {
        StatusCode::NOT_FOUND.into_response()
    } else {
        next.run(request).await
    };
    sleep(LATENCY).await;
    response
}
