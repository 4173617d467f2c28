//! Metrics: one line for each request in CloudWatch's embedded metric format, of which CloudWatch Logs makes metrics.
//!
//! A line stands on standard output beside the request's line of the log, whatever the log's level and format. CloudWatch bills
//! a metric for the hours in which it has a value, so a count that is zero is left out: rates are sums divided by `Requests`.

use std::{
    cell::Cell,
    fmt::Write as _,
    io::{self, Write as _},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use lambda_http::http::StatusCode;

/// The name of the one dimension. Every metric stands under it, and without any for the whole service.
const OPERATION: &str = "operation";

/// What stands for the operation of a request that asks for none.
const NO_OPERATION: &str = "none";

/// The metrics of a deployment.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// As JSON.
    namespace: String,
}

impl Metrics {
    /// Metrics under that namespace of CloudWatch.
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: serde_json::Value::from(namespace).to_string(),
        }
    }

    /// Writes the line of a request. A log that cannot be written is no reason to fail the request.
    pub(crate) fn write(&self, measured: &Measured) {
        let _ = io::stdout()
            .lock()
            .write_all(self.line(measured).as_bytes());
    }

    fn line(&self, measured: &Measured) -> String {
        let Measured {
            operation,
            status,
            latency,
            cold_start,
            attempts: Attempts { retries, throttles },
        } = measured;
        let counts = [
            ("Requests", 1),
            ("ClientErrors", status.is_client_error().into()),
            ("ServerErrors", status.is_server_error().into()),
            (
                "Unauthenticated",
                (*status == StatusCode::UNAUTHORIZED).into(),
            ),
            ("ColdStarts", (*cold_start).into()),
            ("Retries", retries.get()),
            ("Throttles", throttles.get()),
        ];
        let counts = || counts.iter().filter(|(_, count)| *count > 0);
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut line = String::with_capacity(768);
        // A string takes whatever is written.
        let _ = write!(
            line,
            r#"{{"_aws":{{"Timestamp":{},"CloudWatchMetrics":[{{"Namespace":{},"Dimensions":[[],["{OPERATION}"]],"Metrics":[{{"Name":"Latency","Unit":"Milliseconds"}}"#,
            timestamp.map_or(0, |timestamp| timestamp.as_millis()),
            self.namespace,
        );
        for (name, _) in counts() {
            let _ = write!(line, r#",{{"Name":"{name}","Unit":"Count"}}"#);
        }
        let _ = write!(
            line,
            r#"]}}]}},"{OPERATION}":"{}","Latency":{:.3}"#,
            operation.unwrap_or(NO_OPERATION),
            latency.as_secs_f64() * 1000.0,
        );
        for (name, count) in counts() {
            let _ = write!(line, r#","{name}":{count}"#);
        }
        line.push_str("}\n");
        line
    }
}

/// What there is to say of a request that was answered.
pub(crate) struct Measured {
    pub(crate) operation: Option<&'static str>,
    pub(crate) status: StatusCode,
    pub(crate) latency: Duration,
    pub(crate) cold_start: bool,
    pub(crate) attempts: Attempts,
}

/// How a request's attempts at DynamoDB went beyond the first of each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts {
    /// How many were made after another that failed.
    retries: Cell<u32>,
    /// How many DynamoDB refused because there were too many.
    throttles: Cell<u32>,
}

tokio::task_local! {
    static ATTEMPTS: Attempts;
}

impl Attempts {
    /// Carries a request out; its outcome, and the attempts that were noted meanwhile.
    pub(crate) async fn noted_in<T>(work: impl Future<Output = T>) -> (T, Self) {
        ATTEMPTS
            .scope(Self::default(), async {
                let outcome = work.await;
                (outcome, ATTEMPTS.with(Self::clone))
            })
            .await
    }

    /// Notes an attempt of the request that is under way here.
    pub(crate) fn note(is_retry: bool, is_throttled: bool) {
        let _ = ATTEMPTS.try_with(|attempts| {
            attempts
                .retries
                .update(|retries| retries + u32::from(is_retry));
            attempts
                .throttles
                .update(|throttles| throttles + u32::from(is_throttled));
        });
    }
}
