//! Compares the function with baselines: how fast it starts and responds, and how large it is.
//!
//! `cargo bench` builds the programs as they are deployed. It runs each behind an emulator of the
//! Lambda Runtime API, with an embedded DynamoDB behind TLS. It prints the figures as tables of
//! Markdown and stores them in `docs/benchmark.json`. Times depend on the machine and its load. The
//! ratios of one run depend on them less.
//!
//! One part measures the programs with the CPU share that Lambda gives to functions with little
//! memory. It needs Linux and the right to create control groups, and is skipped without. Then, and
//! after any run with arguments, the stored figures stay as they are.
//!
//! With `-- --test`, the benchmark takes few samples. With `-- cpu`, it measures only that part.
//! `-- --with NAME=FILE` compares a further build of the function.

mod bench;
mod compare;
mod cpu_group;
mod endpoint;
mod function;
mod report;

use std::{env, fs, path::Path};

use anyhow::{Context as _, Result};

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
    let can_limit_cpu = CpuGroup::create("test").and_then(|group| group.limit(256));
    let only_cpu = has_argument("cpu");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir()?;
    let mut bench = Bench::new(&root, folder.path(), other_builds(&arguments)?).await?;
    if has_argument("--test") {
        (bench.starts, bench.calls) = (1, 4);
    }
    let mut report = Report::default();
    if only_cpu || can_limit_cpu.is_ok() {
        compare::with_cpu_share(&bench, &mut report).await?;
    }
    if !only_cpu {
        compare::with_all_cpu(&bench, &mut report).await?;
    }
    println!("{}", report.markdown());
    if let Err(reason) = can_limit_cpu {
        println!("SKIPPED: Lambda's CPU share. This machine cannot limit the CPU: {reason:#}");
    } else if arguments.is_empty() {
        fs::write(root.join("docs/benchmark.json"), report.json()?)?;
    }
    Ok(())
}

/// The builds of the function in `--with NAME=FILE`.
fn other_builds(arguments: &[String]) -> Result<Vec<Program>> {
    let options = arguments.windows(2).filter(|pair| pair[0] == "--with");
    let build = |pair: &[String]| {
        let parts = pair[1].split_once('=');
        let (name, file) = parts.context("usage: --with NAME=FILE")?;
        Ok(Program {
            name: name.to_owned(),
            file: file.into(),
        })
    };
    options.map(build).collect()
}
