//! How many requests one process handles per second.

use std::{sync::Arc, time::Instant};

use anyhow::Result;
use workspace_management::operation::Operation;

use crate::{
    bench::{Bench, event},
    report::Report,
};

/// The number of requests at each concurrency.
const REQUESTS: u32 = 4000;

/// Sends all requests at once. The function handles as many at a time as its concurrency allows.
pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("sending {REQUESTS} requests at once");
    let event: Arc<str> = event(Operation::CreateLoggingInstance)?.to_string().into();
    for concurrency in ["1", "8", "64"] {
        let variables = [("AWS_LAMBDA_MAX_CONCURRENCY", concurrency)];
        let mut function = bench.start_ours(&variables).await?;
        function.invoke(&event).await?;
        let started = Instant::now();
        for id in 0..REQUESTS {
            function.send(id.into(), &event);
        }
        for _ in 0..REQUESTS {
            function.response().await?;
        }
        let per_second = f64::from(REQUESTS) / started.elapsed().as_secs_f64();
        report.count(
            "requests per second, by concurrency",
            concurrency,
            per_second as usize,
        );
        function.stop().await?;
    }
    Ok(())
}
