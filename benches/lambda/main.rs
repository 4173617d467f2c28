//! Compares the function with baselines: how fast it starts and responds, and how large it is.
//!
//! `cargo bench` builds the programs as they are deployed. It runs each behind an emulator of the
//! Lambda Runtime API, with an embedded DynamoDB behind TLS. It prints the figures and writes them
//! to `docs/`. Times depend on the machine and its load. The ratios of one run depend on them less.
//!
//! One part measures the programs with the CPU share that Lambda gives to functions with little
//! memory. It needs Linux and the right to create control groups, and is skipped without. Then, and
//! after any run with arguments, `docs/` stays as it is.
//!
//! With `-- --test`, the benchmark starts each program only once. With `-- cpu`, it measures only
//! that part, and with `-- soak`, it sends the function many requests and measures nothing else.
//! `-- --with NAME=FILE` compares a further build of the function.

mod bench;
mod cpu_group;
mod documents;
mod endpoint;
mod function;
mod growth;
mod lambda_cpu;
mod operations;
mod report;
mod sizes;
mod soak;
mod start;

use std::{env, path::Path};

use anyhow::{Context as _, Result, anyhow};

use crate::{
    bench::{Bench, Program},
    cpu_group::CpuGroup,
    report::Report,
};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = env::args().skip(1).filter(|it| it != "--bench").collect();
    let has_argument = |name| arguments.iter().any(|argument| argument == name);
    let can_limit_cpu = CpuGroup::create("test").map(drop);
    if has_argument("cpu") {
        can_limit_cpu
            .as_ref()
            .map_err(|reason| anyhow!("{reason:#}"))?;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir()?;
    let bench = Bench::new(&root, folder.path(), other_builds(&arguments)?).await?;
    if has_argument("soak") {
        return soak::run(&bench).await;
    }
    let starts = if has_argument("--test") {
        1
    } else {
        start::STARTS
    };
    let mut report = Report::default();
    if has_argument("cpu") {
        lambda_cpu::measure(&bench, starts, &mut report).await?;
        report.print();
        return Ok(());
    }
    start::measure(&bench, starts, &mut report).await?;
    operations::measure(&bench, &mut report).await?;
    growth::measure(&bench, &mut report).await?;
    sizes::measure(&bench, &mut report)?;
    if can_limit_cpu.is_ok() {
        lambda_cpu::measure(&bench, starts, &mut report).await?;
    }
    report.print();
    match can_limit_cpu {
        Err(reason) => {
            println!("SKIPPED: Lambda's CPU share. This machine cannot limit the CPU: {reason:#}");
            println!("The documentation was not changed.");
        }
        Ok(()) if arguments.is_empty() => {
            report.write(&root.join("docs"))?;
            documents::write(&root, &report)?;
        }
        Ok(()) => println!("The documentation was not changed, because there are arguments."),
    }
    Ok(())
}

/// The builds of the function in `--with NAME=FILE`.
fn other_builds(arguments: &[String]) -> Result<Vec<Program>> {
    let options = arguments.windows(2).filter(|pair| pair[0] == "--with");
    let build = |pair: &[String]| {
        let (name, file) = pair[1]
            .split_once('=')
            .with_context(|| format!("--with needs NAME=FILE, not {}", pair[1]))?;
        Ok(Program {
            name: name.to_owned(),
            file: file.into(),
        })
    };
    options.map(build).collect()
}
