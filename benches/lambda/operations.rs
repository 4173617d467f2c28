//! How long a warm program takes to respond, and how many requests it sends to DynamoDB.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use tokio::time::sleep;
use workspace_management::operation::Operation;

use crate::{
    bench::{Bench, CALLS, comparison_event, event},
    report::Report,
};

/// The number of calls of each program before the measured ones.
const WARM_UP_CALLS: usize = 50;

/// Measures one operation in every program, then every operation in the function.
pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("calling each operation {CALLS} times");
    compare_programs(bench, report).await?;
    for operation in Operation::ALL {
        measure_operation(bench, *operation, report).await?;
    }
    Ok(())
}

async fn compare_programs(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut functions = Vec::new();
    for program in &bench.programs {
        let (function, _) = bench.start(program).await?;
        functions.push((&program.name, function, comparison_event(&program.name)?));
    }
    for call in 0..WARM_UP_CALLS + CALLS {
        for (program, function, event) in &mut functions {
            let time = function.invoke(event).await?.response;
            if call >= WARM_UP_CALLS {
                report.time("warm, create_logging_instance", program, time);
            }
        }
    }
    let memory = format!("peak memory after {} calls", WARM_UP_CALLS + CALLS);
    for (program, function, _) in functions {
        report.size(&memory, program, function.peak_memory()?);
        function.stop().await?;
    }
    Ok(())
}

async fn measure_operation(bench: &Bench, operation: Operation, report: &mut Report) -> Result<()> {
    let name = operation.name();
    let event: Arc<str> = event(operation)?.to_string().into();
    let mut function = bench.start_ours(&[]).await?;
    // Leaves out what the function sends to DynamoDB while it starts.
    sleep(Duration::from_millis(100)).await;
    bench.endpoint.take_traffic();
    function.invoke(&event).await?;
    let first = bench.endpoint.take_traffic();
    report.count("DynamoDB requests, first call", name, first.requests);
    report.count("DynamoDB round trips, first call", name, first.round_trips);
    for _ in 0..CALLS {
        let time = function.invoke(&event).await?.response;
        report.time("warm, ours", name, time);
        let requests = bench.endpoint.take_traffic().requests;
        report.count("DynamoDB requests, warm", name, requests);
    }
    function.stop().await
}
