//! Waits until no function process uses what it read before a record was marked.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::sleep;
use workspace_management::{service::TIMEOUT, store::MAX_PARENT_TTL};

use crate::deployment::Deployment;

/// How late a write may arrive at DynamoDB after the function that sent it has given up. This is an
/// assumption: AWS rejects requests only five minutes after they were signed.
const LATE_WRITE: Duration = Duration::from_secs(20);

/// The maximum time after a mark until the last write of a request that used a cached record: cache
/// time + function timeout + late write.
pub const SAFE_WAIT: Duration =
    Duration::from_secs(MAX_PARENT_TTL.as_secs() + TIMEOUT.as_secs() + LATE_WRITE.as_secs());

/// The option of commands that wait.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Wait {
    /// How long to wait for the function's caches to expire. A shorter wait is safe
    /// only for a local service, or if nothing sends requests
    #[arg(long, value_name = "SECONDS", env = "WORKSPACECTL_WAIT", default_value_t = SAFE_WAIT.as_secs())]
    wait: u64,
}

impl Wait {
    /// Waits. The time begins now: call it when the write of the mark was acknowledged, and in every
    /// run, because stored times come from other clocks.
    pub(crate) async fn run(self, deployment: &Deployment, reason: &str) {
        if deployment.is_on_aws() && !self.is_safe() {
            eprintln!(
                "warning: functions can use what they have cached for {} seconds, but --wait or WORKSPACECTL_WAIT is {}",
                SAFE_WAIT.as_secs(),
                self.wait
            );
        }
        waiting(self.time(), reason).await;
    }

    /// Whether nothing that functions have cached is used after the wait.
    pub(crate) fn is_safe(self) -> bool {
        self.time() >= SAFE_WAIT
    }

    fn time(self) -> Duration {
        Duration::from_secs(self.wait)
    }

    /// A wait of so many seconds.
    pub fn seconds(wait: u64) -> Self {
        Self { wait }
    }
}

/// Waits, and shows for how long and why: as a bar on a terminal, otherwise in a line.
async fn waiting(time: Duration, reason: &str) {
    if time.is_zero() {
        return;
    }
    let bar = ProgressBar::with_draw_target(Some(time.as_secs()), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} s: {msg}") {
        bar.set_style(style);
    }
    bar.set_message(reason.to_owned());
    if bar.is_hidden() {
        eprintln!("waiting {} s: {reason}", time.as_secs());
    }
    for _ in 0..time.as_secs() {
        sleep(Duration::from_secs(1)).await;
        bar.inc(1);
    }
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use workspace_records::tables::template;

    use super::*;

    #[test]
    fn the_wait_covers_the_cache_the_timeout_of_the_template_and_a_late_write() {
        let template = template().expect("YAML");
        let timeout = template["Resources"]["Function"]["Properties"]["Timeout"].as_u64();
        let timeout = timeout.expect("a timeout");
        assert_eq!(SAFE_WAIT.as_secs(), 60 + timeout + 20);
        assert_eq!(SAFE_WAIT.as_secs(), 90, "docs/runbook.md says 90 seconds");
        assert!(Wait::seconds(90).is_safe() && !Wait::seconds(89).is_safe());
    }
}
