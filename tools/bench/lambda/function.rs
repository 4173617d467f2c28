//! Runs a program as a Lambda function, and measures its time and memory.

use std::{
    fs,
    path::Path,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
    time::sleep,
};
use workspace_local::runtime_api::{RuntimeApi, environment};
use workspace_management::records::Table;

use crate::cpu_group::{CpuGroup, PERIOD};

/// A shell script that joins the control group whose file is `$1`, waits for a line on the standard
/// input, and then becomes the program `$0`.
const JOIN_AND_WAIT: &str = r#"echo $$ > "$1" && read -r _ && exec "$0" < /dev/null"#;

/// A running program and the Runtime API that the program uses.
pub(crate) struct Function {
    process: Child,
    runtime_api: RuntimeApi,
}

impl Function {
    /// Starts a program, in this control group if there is one, and waits until the program asks
    /// for its first event. Returns how long this took.
    pub(crate) async fn start(
        program: &Path,
        variables: &[(&str, &str)],
        group: Option<&CpuGroup>,
    ) -> Result<(Self, Duration)> {
        let mut runtime_api = RuntimeApi::start().await?;
        let mut command = match group {
            None => Command::new(program),
            Some(group) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", JOIN_AND_WAIT]);
                shell.arg(program).arg(group.processes());
                shell
            }
        };
        command
            .env_clear()
            .envs(environment(runtime_api.address()))
            .envs(Table::ALL.iter().map(|it| (it.env_variable, it.logical_id)))
            .env("ANONYMOUS_OPERATIONS", "allowed")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_SESSION_TOKEN", "local")
            .envs(variables.iter().copied())
            .stdin(if group.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let mut started = Instant::now();
        let mut process = command
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        if let Some(mut shell) = process.stdin.take() {
            // In this time, the shell joins the group, and the kernel renews the quota.
            sleep(3 * PERIOD).await;
            started = Instant::now();
            shell.write_all(b"\n").await?;
        }
        let ready = runtime_api.next_poll().await?;
        let function = Self {
            process,
            runtime_api,
        };
        Ok((function, ready - started))
    }

    /// Sends an event, and waits until the function is ready for the next event. Returns how long
    /// the response took.
    ///
    /// # Errors
    /// If the response is not a 204.
    pub(crate) async fn invoke(&mut self, event: &Arc<str>) -> Result<Duration> {
        let response = self.respond(event).await?;
        ensure!(
            response.status()? == 204,
            "the response is not a 204: {}",
            String::from_utf8_lossy(&response.body)
        );
        Ok(response.duration)
    }

    /// Sends an event, and waits until the function is ready for the next event. Returns the
    /// response.
    pub(crate) async fn respond(&mut self, event: &Arc<str>) -> Result<Response> {
        self.runtime_api.discard_polls();
        let sent = Instant::now();
        self.runtime_api.send("invocation", event.clone());
        let result = self.runtime_api.next_result().await?;
        self.runtime_api.next_poll().await?;
        Ok(Response {
            duration: result.at - sent,
            body: result.body.to_vec(),
        })
    }

    /// The CPU time of all threads since the start of the process.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.id()?))? {
            let statistics = fs::read_to_string(task?.path().join("schedstat"))?;
            let on_cpu = statistics.split(' ').next().context("schedstat is empty")?;
            nanoseconds += on_cpu.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// The peak resident memory since the start of the process, in bytes.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let value = value.context("the process status has no VmHWM")?;
        let kibibytes: u64 = value.trim().trim_end_matches(" kB").parse()?;
        Ok(kibibytes * 1024)
    }

    /// Kills the process.
    pub(crate) async fn stop(mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }

    fn id(&self) -> Result<u32> {
        self.process.id().context("the program has exited")
    }
}

/// The response to an event.
pub(crate) struct Response {
    /// The time since the event was sent.
    pub(crate) duration: Duration,
    body: Vec<u8>,
}

impl Response {
    /// The HTTP status.
    ///
    /// # Errors
    /// If the function reported an error instead of a response.
    pub(crate) fn status(&self) -> Result<u16> {
        let response: Value = serde_json::from_slice(&self.body)?;
        let status = response["statusCode"].as_u64();
        let status = status.context("the response has no status")?;
        Ok(status.try_into()?)
    }
}
