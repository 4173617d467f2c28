//! The sizes of the programs, and of the archives that are deployed to Lambda.

use std::{
    fs,
    io::{Cursor, Write as _},
};

use anyhow::{Context as _, Result};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    bench::{Bench, Program},
    report::Report,
};

/// Reads and compresses each program.
pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for Program { name, file } in &bench.programs {
        let binary = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("bootstrap", SimpleFileOptions::default())?;
        archive.write_all(&binary)?;
        report.size("binary", name, binary.len() as u64);
        report.size("zip", name, archive.finish()?.into_inner().len() as u64);
    }
    Ok(())
}
