//! How the programs behave with the CPU share that Lambda gives to functions with little memory,
//! and what Lambda bills for them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::sleep;

use crate::{
    bench::{Bench, CALLS, Program, SDK, comparison_event},
    cpu_group::CpuGroup,
    report::Report,
};

/// The smallest memory of a function in MB, and the default of `template.yaml`.
pub(crate) const MEMORY_SIZES: [u64; 2] = [128, 256];

/// The number of calls of each program before the measured ones.
const WARM_UP_CALLS: usize = 20;

/// The sum of the pauses between two calls of a program that do not follow each other directly.
/// There is a pause before the call of each program, because the programs take turns. The sum is
/// longer than the quota's period, and not a multiple of it.
const INTERVAL: Duration = Duration::from_millis(33);

/// How many calls follow each other directly.
const BURST: usize = 100;

/// Its section "Prices" has the prices of AWS in us-east-1, without free tiers.
const DOCUMENTATION: &str = include_str!("../../docs/operations.md");

/// The share of requests that start a program. AWS reports less than 1 %:
/// <https://aws.amazon.com/blogs/compute/aws-lambda-standardizes-billing-for-init-phase/>.
const COLD_SHARE: f64 = 0.01;

/// The name of a figure. With it, the report finds the figure again.
pub(crate) fn figure(memory: u64, name: &str) -> String {
    format!("{memory} MB: {name}")
}

/// Measures starts and warm calls of all programs but `baseline-sdk`.
///
/// # Errors
/// If this machine cannot limit the CPU, or a program fails.
pub(crate) async fn measure(bench: &Bench, starts: usize, report: &mut Report) -> Result<()> {
    let programs = bench.programs.iter().filter(|program| program.name != SDK);
    let programs: Vec<&Program> = programs.collect();
    for memory in MEMORY_SIZES {
        eprintln!("starting and calling each program with the CPU share of {memory} MB");
        for _ in 0..starts {
            for program in &programs {
                measure_start(bench, program, memory, false, report).await?;
                measure_start(bench, program, memory, true, report).await?;
            }
        }
        measure_calls(bench, &programs, memory, report).await?;
        for program in &programs {
            report_cost(&program.name, memory, report)?;
        }
    }
    Ok(())
}

/// Starts a program and sends the first event as soon as it is ready. Lambda gives a function more
/// CPU while it starts, but does not document how much. So the start is measured both with all CPU
/// and, if `limits_start`, with the share of the requests.
async fn measure_start(
    bench: &Bench,
    program: &Program,
    memory: u64,
    limits_start: bool,
    report: &mut Report,
) -> Result<()> {
    let group = CpuGroup::create(&program.name)?;
    if limits_start {
        group.limit(Some(memory))?;
    }
    let (mut function, ready) = bench.start_in_group(program, &group).await?;
    if !limits_start {
        group.limit(Some(memory))?;
    }
    let first = function.invoke(&comparison_event(&program.name)?).await?;
    function.stop().await?;
    let figure = |name: &str| match limits_start {
        false => figure(memory, name),
        true => figure(memory, &format!("{name}, limited start")),
    };
    let subject = &program.name;
    report.time(
        &figure("start to first response"),
        subject,
        ready + first.response,
    );
    report.time(&figure("first response"), subject, first.response);
    report.time(
        &figure("billed, cold"),
        subject,
        billed(ready + first.until_next_poll),
    );
    Ok(())
}

/// Calls each program at intervals, and then many times in direct succession.
async fn measure_calls(
    bench: &Bench,
    programs: &[&Program],
    memory: u64,
    report: &mut Report,
) -> Result<()> {
    let mut running = Vec::new();
    for program in programs {
        let group = CpuGroup::create(&program.name)?;
        let (function, _) = bench.start_in_group(program, &group).await?;
        group.limit(Some(memory))?;
        running.push((program, function, comparison_event(&program.name)?, group));
    }
    for call in 0..WARM_UP_CALLS + CALLS {
        for (program, function, event, _) in &mut running {
            sleep(INTERVAL / programs.len() as u32).await;
            let cpu_before = function.cpu_time()?;
            let invocation = function.invoke(event).await?;
            if call >= WARM_UP_CALLS {
                let subject = &program.name;
                let cpu = function.cpu_time()? - cpu_before;
                report.time(
                    &figure(memory, "warm response"),
                    subject,
                    invocation.response,
                );
                report.time(&figure(memory, "CPU of a warm response"), subject, cpu);
                let billed = billed(invocation.until_next_poll);
                report.time(&figure(memory, "billed, warm"), subject, billed);
            }
        }
    }
    for _ in 0..CALLS / BURST {
        for (program, function, event, _) in &mut running {
            for _ in 0..BURST {
                let time = function.invoke(event).await?.response;
                report.time(&figure(memory, "warm response, busy"), &program.name, time);
            }
        }
    }
    for (_, function, _, _) in running {
        function.stop().await?;
    }
    Ok(())
}

/// The time that Lambda bills: whole milliseconds, and in a custom runtime also those of the start.
fn billed(time: Duration) -> Duration {
    Duration::from_millis(time.as_nanos().div_ceil(1_000_000) as u64)
}

/// A price in the documentation, in USD for the unit there.
fn price(name: &str) -> Option<f64> {
    let (_, section) = DOCUMENTATION.split_once("\n### Prices\n")?;
    let (_, row) = section.split_once(&format!("\n| {name} | "))?;
    row.split(" | ").next()?.parse().ok()
}

/// Reports what Lambda bills for a million requests at intervals.
///
/// # Errors
/// If the documentation has no price.
fn report_cost(program: &str, memory: u64, report: &mut Report) -> Result<()> {
    let million_requests = price("Lambda requests").context("no price of a million requests")?;
    let gb_second = price("Lambda duration, x86_64").context("no price of a GB-second")?;
    let mean = |name| report.mean(&figure(memory, name), program);
    let seconds = COLD_SHARE * mean("billed, cold") + (1.0 - COLD_SHARE) * mean("billed, warm");
    let gb_seconds = 1e6 * seconds * memory as f64 / 1024.0;
    let price = million_requests + gb_seconds * gb_second;
    report.price(&figure(memory, "a million requests"), program, price);
    Ok(())
}
