//! Compares the function with baselines: how fast it starts and responds, and how large it is.
//!
//! `cargo bench` builds the programs as they are deployed, and runs each program behind an emulator
//! of the Lambda Runtime API, with an embedded DynamoDB behind TLS. The figures are printed as
//! Markdown tables, and stored in `docs/benchmarks.md`. Times depend on the machine and its load. The
//! ratios of one run depend less on the machine and its load.
//!
//! One part measures the programs with the CPU share that Lambda gives to functions with little
//! memory. This part needs Linux and permission to create control groups, and is skipped without
//! them. A run that skips this part, or has arguments, does not change the document.
//!
//! With `-- --test`, the benchmark takes few samples. With `-- --with NAME=FILE`, it also measures
//! another build of the function. With `-- flood`, it measures only how the function responds while
//! one organization floods a table.

mod bench;
mod compare;
mod cpu_group;
mod endpoint;
mod flood;
mod function;
mod report;
mod throttle;

use std::{env, fs, path::Path};

use anyhow::{Context as _, Result};

use crate::{
    bench::{Bench, Program},
    cpu_group::CpuGroup,
    report::{Report, replace_tables},
};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = env::args().skip(1).filter(|it| it != "--bench").collect();
    let has_argument = |name| arguments.iter().any(|argument| argument == name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if has_argument("flood") {
        return flood::run(&root, other_builds(&arguments)?).await;
    }
    let cpu_limit = CpuGroup::create("test").and_then(|group| group.limit(compare::MEMORY));
    let folder = tempfile::tempdir()?;
    let mut bench = Bench::new(&root, folder.path(), other_builds(&arguments)?).await?;
    if has_argument("--test") {
        bench.starts = 1;
        bench.calls = 4;
    }
    let mut report = Report::default();
    if cpu_limit.is_ok() {
        compare::with_cpu_share(&bench, &mut report).await?;
    }
    compare::with_full_cpu(&bench, &mut report).await?;
    let tables = report.markdown(&bench.programs);
    println!("{}", tables.join("\n\n"));
    if let Err(error) = cpu_limit {
        println!("SKIPPED: Lambda's CPU share. This machine cannot limit the CPU: {error:#}");
    } else if arguments.is_empty() {
        let document = root.join("docs/benchmarks.md");
        let text = fs::read_to_string(&document)?;
        fs::write(document, replace_tables(&text, &tables))?;
    }
    Ok(())
}

/// The builds of the function in `--with NAME=FILE`.
fn other_builds(arguments: &[String]) -> Result<Vec<Program>> {
    let mut builds = Vec::new();
    for pair in arguments.windows(2).filter(|pair| pair[0] == "--with") {
        let parts = pair[1].split_once('=');
        let (name, file) = parts.context("usage: --with NAME=FILE")?;
        builds.push(Program {
            name: name.to_owned(),
            file: file.into(),
        });
    }
    Ok(builds)
}
