//! Compares the function with baselines: how fast it starts and responds, and how large it is.
//!
//! `cargo bench` builds the programs as they are deployed. It runs each behind an emulator of the
//! Lambda Runtime API, with an embedded DynamoDB behind TLS. It prints the figures and writes them
//! to `docs/`. Times depend on the machine and its load. The ratios of one run depend on them less.
//!
//! With `-- --test`, it starts each program only once. With `-- soak`, it sends the function many
//! requests and measures nothing else.

mod bench;
mod endpoint;
mod function;
mod growth;
mod operations;
mod report;
mod sizes;
mod soak;
mod start;
mod throughput;

use std::{env, path::Path};

use anyhow::Result;

use crate::{bench::Bench, report::Report};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let has_argument = |name| env::args().any(|argument| argument == name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir()?;
    let bench = Bench::new(&root, folder.path()).await?;
    if has_argument("soak") {
        return soak::run(&bench).await;
    }
    let starts = if has_argument("--test") {
        1
    } else {
        start::STARTS
    };
    let mut report = Report::default();
    start::measure(&bench, starts, &mut report).await?;
    operations::measure(&bench, &mut report).await?;
    throughput::measure(&bench, &mut report).await?;
    growth::measure(&bench, &mut report).await?;
    sizes::measure(&bench, &mut report)?;
    report.print();
    report.write(&root.join("docs"))
}
