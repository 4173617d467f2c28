//! Waits until no function process uses what it read before a record was marked.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::sleep;
use workspace_management::{service::TIMEOUT, store::MAX_CACHE_TIME};

use crate::deployment::Deployment;

/// How late a write may arrive at DynamoDB after the function that sent it has given up. This is an
/// assumption: AWS rejects requests only five minutes after they were signed.
const LATE_WRITE: Duration = Duration::from_secs(20);

/// The maximum time after a mark until the last write of a request that used a cached record: cache
/// time + function timeout + late write.
pub const SAFE_WAIT: Duration =
    Duration::from_secs(MAX_CACHE_TIME.as_secs() + TIMEOUT.as_secs() + LATE_WRITE.as_secs());

/// Why commands wait.
pub(crate) const LAST_WRITES: &str =
    "functions still use what they have cached, and their last writes end";

/// The option of commands that wait.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Wait {
    /// How long to wait until no function uses what it has cached. During a shorter wait, a request
    /// can still write: after an erasure, even for the next organization with the same id. A local
    /// service caches too. A shorter wait is safe only if nothing sends requests
    #[arg(long, value_name = "SECONDS", env = "WORKSPACECTL_WAIT", default_value_t = SAFE_WAIT.as_secs())]
    pub wait: u64,
}

impl Wait {
    /// Waits, and shows for how long and why: as a bar on a terminal, otherwise in a line. The time
    /// begins now: call it when the write of the mark was acknowledged, and in every run, because
    /// stored times come from other clocks.
    pub(crate) async fn run(self, deployment: &Deployment, reason: &'static str) {
        if deployment.is_on_aws() && !self.is_safe() {
            eprintln!(
                "warning: functions can use what they have cached for {} seconds, but --wait or WORKSPACECTL_WAIT is {}",
                SAFE_WAIT.as_secs(),
                self.wait
            );
        }
        if self.wait == 0 {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(self.wait), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} s: {msg}") {
            bar.set_style(style);
        }
        bar.set_message(reason);
        if bar.is_hidden() {
            eprintln!("waiting {} s: {reason}", self.wait);
        }
        for _ in 0..self.wait {
            sleep(Duration::from_secs(1)).await;
            bar.inc(1);
        }
        bar.finish_and_clear();
    }

    /// Whether nothing that functions have cached is used after the wait.
    pub(crate) fn is_safe(self) -> bool {
        self.wait >= SAFE_WAIT.as_secs()
    }
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
        assert!(Wait { wait: 90 }.is_safe() && !Wait { wait: 89 }.is_safe());
    }
}
