//! How long each program takes to start and to respond to its first event.

use anyhow::Result;

use crate::{
    bench::{Bench, comparison_event},
    report::Report,
};

/// The number of measured starts of each program.
pub(crate) const STARTS: usize = 32;

/// The number of starts before them that are not measured.
const WARM_UP_STARTS: usize = 2;

/// Starts the programs in turn, because the machine's speed changes during a run.
pub(crate) async fn measure(bench: &Bench, starts: usize, report: &mut Report) -> Result<()> {
    eprintln!("starting each program {starts} times");
    for round in 0..WARM_UP_STARTS + starts {
        for program in &bench.programs {
            let (mut function, ready) = bench.start(program).await?;
            let program = &program.name;
            let ready_cpu = function.cpu_time()?;
            let first = function.invoke(&comparison_event(program)?).await?;
            let first_cpu = function.cpu_time()?;
            let memory = function.peak_memory()?;
            function.stop().await?;
            if round >= WARM_UP_STARTS {
                report.time("start to ready, wall", program, ready);
                report.time("start to ready, CPU", program, ready_cpu);
                report.time("first response, wall", program, first.response);
                report.time("CPU until the first response", program, first_cpu);
                report.size("peak memory after the first response", program, memory);
            }
        }
    }
    Ok(())
}
