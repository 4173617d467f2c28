//! Lambda's side of a program: it starts it, hands it events, takes its answers, and looks at what it cost.

use std::{
    fs,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};
use workspace_local::runtime_api::{RuntimeApi, environment};

/// A program under Lambda.
pub(crate) struct Function {
    process: Child,
    runtime_api: RuntimeApi,
}

impl Function {
    /// Starts a program and waits until it is ready: until it asks for its first event.
    pub(crate) async fn start(
        program: &str,
        variables: &[(String, String)],
    ) -> Result<(Self, Duration)> {
        let mut runtime_api = RuntimeApi::start().await?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(environment(runtime_api.address()))
            .env("METRICS_NAMESPACE", "benchmark")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_SESSION_TOKEN", "local")
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let started = Instant::now();
        let process = command
            .spawn()
            .with_context(|| format!("{program} cannot be started"))?;
        let ready = runtime_api.polled().await?;
        let function = Self {
            process,
            runtime_api,
        };
        Ok((function, ready - started))
    }

    /// Hands the program an event and waits for its answer, which must be a 204; how long it took.
    pub(crate) async fn invoke(&mut self, event: &Arc<str>) -> Result<Duration> {
        // The program is back for the next event before the clock starts.
        self.runtime_api.discard_polls();
        let handed = Instant::now();
        self.send(0, event);
        let (_, answered) = self.answered().await?;
        self.runtime_api.polled().await?;
        Ok(answered - handed)
    }

    pub(crate) fn send(&self, id: u64, event: &Arc<str>) {
        self.runtime_api.send(id, event.clone());
    }

    /// To which event the next answer came, which must be a 204, and when.
    pub(crate) async fn answered(&mut self) -> Result<(u64, Instant)> {
        let result = self.runtime_api.result().await?;
        if !result.body.starts_with(b"{\"statusCode\":204") {
            bail!("answered {}", String::from_utf8_lossy(&result.body));
        }
        Ok((result.request_id.parse()?, result.at))
    }

    /// The CPU time that the program has taken, of all its threads.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.id()?))? {
            let statistics = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = statistics.split(' ').next().context("schedstat is empty")?;
            nanoseconds += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// The most memory that the program has held, in KiB.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        self.status("VmHWM:")
    }

    /// The memory that the program holds, in KiB.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    fn status(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        let value = value.context("no such line")?.trim();
        Ok(value.trim_end_matches(" kB").parse()?)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }

    fn id(&self) -> Result<u32> {
        self.process.id().context("the program has ended")
    }
}
