//! The CPU share of a Lambda function, as a Linux control group.

use std::{
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use anyhow::{Context as _, Result};

/// The memory in MB with which a function has one vCPU:
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>.
const MEMORY_OF_ONE_VCPU: u64 = 1769;

/// How often the kernel renews the quota. AWS does not document this period for Lambda.
pub(crate) const PERIOD: Duration = Duration::from_millis(20);

/// A control group for one program. Usually, only root can create one.
pub(crate) struct CpuGroup(PathBuf);

impl CpuGroup {
    /// Creates a group without a limit.
    ///
    /// # Errors
    /// If this machine has no CPU controller, or its groups cannot be changed.
    pub(crate) fn create(name: &str) -> Result<Self> {
        let version_2 = Path::new("/sys/fs/cgroup");
        let controllers = fs::read_to_string(version_2.join("cgroup.controllers"));
        let has_version_2 =
            controllers.is_ok_and(|names| names.split_whitespace().any(|it| it == "cpu"));
        let root = if has_version_2 {
            // Lets groups below the root have `cpu.max`. If this write fails, `limit` fails too.
            let _ = fs::write(version_2.join("cgroup.subtree_control"), "+cpu");
            version_2.to_owned()
        } else {
            version_2.join("cpu")
        };
        let id = process::id();
        let folder = root.join(format!("workspace-management-benchmark-{id}-{name}"));
        fs::create_dir(&folder)
            .with_context(|| format!("cannot create the control group {}", folder.display()))?;
        Ok(Self(folder))
    }

    /// Gives the group the CPU share of a function with this much memory in MB.
    pub(crate) fn limit(&self, memory: u64) -> Result<()> {
        let period = PERIOD.as_micros() as u64;
        let quota = period * memory / MEMORY_OF_ONE_VCPU;
        if self.0.join("cpu.max").exists() {
            return self.write("cpu.max", format!("{quota} {period}"));
        }
        self.write("cpu.cfs_period_us", period)?;
        self.write("cpu.cfs_quota_us", quota)
    }

    /// The file to which a process writes its id to join the group.
    pub(crate) fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    fn write(&self, file: &str, value: impl Display) -> Result<()> {
        let file = self.0.join(file);
        fs::write(&file, value.to_string())
            .with_context(|| format!("cannot write {value} to {}", file.display()))
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        // Fails while a process of the group runs, so an aborted run leaves the group behind.
        let _ = fs::remove_dir(&self.0);
    }
}
