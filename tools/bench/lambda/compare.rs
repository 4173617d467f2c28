//! Measures the programs, with full CPU and with the CPU share that Lambda gives functions with
//! little memory.

use std::{fs, time::Duration};

use anyhow::Result;
use tokio::time::sleep;

use crate::{
    bench::{Bench, Program, comparison_event},
    cpu_group::CpuGroup,
    report::Report,
};

/// The memory of a function in MB, which is the default of `template.yaml`.
pub(crate) const MEMORY: u64 = 256;

/// The time between two calls of one program, without the calls themselves. The programs take
/// turns, with a pause before each call. This time is longer than the period of the CPU quota, and
/// not a multiple of it.
const INTERVAL: Duration = Duration::from_millis(33);

/// How often each program is started and called before the measurements.
const WARM_UP_STARTS: usize = 2;
const WARM_UP_CALLS: usize = 20;

/// Measures starts, memory and sizes without a CPU limit.
pub(crate) async fn with_full_cpu(bench: &Bench, report: &mut Report) -> Result<()> {
    const TABLE: &str = "full CPU";
    eprintln!("starting each program {} times", bench.starts);
    for round in 0..WARM_UP_STARTS + bench.starts {
        for program in &bench.programs {
            let (mut function, ready) = bench.start(program, None).await?;
            let first = function.invoke(&comparison_event(&program.name)).await?;
            let cpu = function.cpu_time()?;
            let memory = function.peak_memory()?;
            function.stop().await?;
            if round >= WARM_UP_STARTS {
                let name = &program.name;
                report.time(TABLE, "start to ready", name, ready);
                report.time(TABLE, "CPU until the first response", name, cpu);
                report.time(TABLE, "first response, once ready", name, first);
                let figure = "peak memory after the first response";
                report.bytes(TABLE, figure, name, memory);
            }
        }
    }
    for Program { name, file } in &bench.programs {
        report.bytes(TABLE, "binary", name, fs::metadata(file)?.len());
    }
    Ok(())
}

/// Measures starts and warm calls with Lambda's CPU share.
///
/// # Errors
/// If this machine cannot limit the CPU, or a program fails.
pub(crate) async fn with_cpu_share(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("starting and calling each program with the CPU share of {MEMORY} MB");
    for _ in 0..bench.starts {
        for program in &bench.programs {
            measure_start(bench, program, false, report).await?;
            measure_start(bench, program, true, report).await?;
        }
    }
    measure_calls(bench, report).await
}

/// Starts a program and sends the first event as soon as the program is ready. Lambda gives a
/// function more CPU while it starts, but does not document how much. So the start is measured with
/// full CPU, or with the CPU share of the requests if `limits_start`.
async fn measure_start(
    bench: &Bench,
    program: &Program,
    limits_start: bool,
    report: &mut Report,
) -> Result<()> {
    let group = CpuGroup::create(&program.name)?;
    if limits_start {
        group.limit(MEMORY)?;
    }
    let (mut function, ready) = bench.start(program, Some(&group)).await?;
    if !limits_start {
        group.limit(MEMORY)?;
    }
    let first = function.invoke(&comparison_event(&program.name)).await?;
    function.stop().await?;
    let table = &format!("{MEMORY} MB");
    let name = &program.name;
    if limits_start {
        let figure = "start to first response, limited start";
        report.time(table, figure, name, ready + first);
    } else {
        report.time(table, "start to first response", name, ready + first);
        report.time(table, "first response, once ready", name, first);
    }
    Ok(())
}

/// Measures warm calls of each program.
async fn measure_calls(bench: &Bench, report: &mut Report) -> Result<()> {
    let table = &format!("{MEMORY} MB");
    let mut running = Vec::new();
    for program in &bench.programs {
        let group = CpuGroup::create(&program.name)?;
        let (function, _) = bench.start(program, Some(&group)).await?;
        group.limit(MEMORY)?;
        let event = comparison_event(&program.name);
        running.push((&program.name, function, event, group));
    }
    let pause = INTERVAL / running.len() as u32;
    for call in 0..WARM_UP_CALLS + bench.calls {
        for (name, function, event, _) in &mut running {
            sleep(pause).await;
            let cpu_before = function.cpu_time()?;
            let time = function.invoke(event).await?;
            let cpu = function.cpu_time()? - cpu_before;
            if call >= WARM_UP_CALLS {
                report.time(table, "warm response", name, time);
                report.time(table, "CPU of a warm response", name, cpu);
            }
        }
    }
    for (_, function, _, _) in running {
        function.stop().await?;
    }
    Ok(())
}
