//! The CPU share of a Lambda function, as a control group of Linux.

use std::{
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use anyhow::{Context as _, Result};

/// The memory with which a function has one vCPU:
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>.
const MEMORY_OF_ONE_VCPU: u64 = 1769;

/// How often the kernel renews the quota. AWS does not document that of Lambda.
pub(crate) const PERIOD: Duration = Duration::from_millis(20);

/// A control group for one program. Creating it needs the right to do so, usually that of root.
pub(crate) struct CpuGroup {
    folder: PathBuf,
    version: Version,
}

/// The version of the kernel's interface.
#[derive(Clone, Copy)]
enum Version {
    V1,
    V2,
}

impl CpuGroup {
    /// Creates a group without a limit.
    ///
    /// # Errors
    /// If this machine has no CPU controller, or its groups cannot be changed.
    pub(crate) fn create(name: &str) -> Result<Self> {
        let (root, version) = controller()?;
        if let Version::V2 = version {
            // Lets groups below the root have `cpu.max`. If this fails, `limit` does too.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
        }
        let id = process::id();
        let folder = root.join(format!("workspace-management-benchmark-{id}-{name}"));
        fs::create_dir(&folder)
            .with_context(|| format!("cannot create the control group {}", folder.display()))?;
        let group = Self { folder, version };
        group.limit(None)?;
        Ok(group)
    }

    /// Gives the group the CPU share of a function with this much memory in MB, or removes the
    /// limit.
    pub(crate) fn limit(&self, memory: Option<u64>) -> Result<()> {
        let period = PERIOD.as_micros() as u64;
        let quota = memory.map(|memory| period * memory / MEMORY_OF_ONE_VCPU);
        match self.version {
            Version::V1 => {
                self.write("cpu.cfs_period_us", period)?;
                self.write("cpu.cfs_quota_us", quota.map_or(-1, |quota| quota as i64))
            }
            Version::V2 => {
                let quota = quota.map_or_else(|| "max".to_owned(), |quota| quota.to_string());
                self.write("cpu.max", format!("{quota} {period}"))
            }
        }
    }

    /// The file to which a process writes its id to join the group.
    pub(crate) fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    fn write(&self, file: &str, value: impl Display) -> Result<()> {
        let file = self.folder.join(file);
        fs::write(&file, value.to_string())
            .with_context(|| format!("cannot write {value} to {}", file.display()))
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        // Fails while a process of the group runs, so that only an aborted run leaves it behind.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Where control groups with a CPU limit can be created.
fn controller() -> Result<(PathBuf, Version)> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("this is not Linux")?;
    let mut roots = mounts.lines().filter_map(|mount| {
        let fields: Vec<&str> = mount.split(' ').collect();
        let (folder, kind, options) = (Path::new(fields[1]), fields[2], fields[3]);
        let has_cpu =
            |list: &str, separator| list.split(separator).any(|item| item.trim() == "cpu");
        let controllers = || fs::read_to_string(folder.join("cgroup.controllers"));
        match kind {
            "cgroup" if has_cpu(options, ',') => Some((folder.to_owned(), Version::V1)),
            "cgroup2" if has_cpu(&controllers().ok()?, ' ') => {
                Some((folder.to_owned(), Version::V2))
            }
            _ => None,
        }
    });
    roots
        .next()
        .context("no control groups with the `cpu` controller are mounted")
}
