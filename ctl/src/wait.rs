//! Waits until no function process uses what it read before a record was marked.

use std::time::Duration;

use workspace_management::{service::TIMEOUT, store::MAX_EXISTENCE_TTL};

use crate::progress::waiting;

/// How late a write may arrive at DynamoDB after the function that sent it has given up. This is an
/// assumption: AWS rejects requests only five minutes after they were signed.
const LATE_WRITE: Duration = Duration::from_secs(20);

/// The time from a mark until the last write of a request that did not see it: it began before the
/// caches ended, took as long as the function may run, and its write arrived late.
pub(crate) const SAFE_WAIT: Duration =
    Duration::from_secs(MAX_EXISTENCE_TTL.as_secs() + TIMEOUT.as_secs() + LATE_WRITE.as_secs());

/// The option of commands that wait.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Wait {
    /// How long to wait until functions no longer use what they have cached. Less than the default
    /// is only safe for a local service, or if nothing sends requests
    #[arg(long, value_name = "SECONDS", env = "WORKSPACECTL_WAIT", default_value_t = SAFE_WAIT.as_secs())]
    wait: u64,
}

impl Wait {
    /// Waits. The time begins now: call it when the write of the mark was acknowledged, and in every
    /// run, because stored times come from other clocks.
    pub(crate) async fn run(self, reason: &str) {
        waiting(self.time(), reason).await;
    }

    /// Whether nothing that functions have cached is used after the wait.
    pub(crate) fn is_safe(self) -> bool {
        self.time() >= SAFE_WAIT
    }

    fn time(self) -> Duration {
        Duration::from_secs(self.wait)
    }

    #[cfg(test)]
    pub(crate) fn seconds(wait: u64) -> Self {
        Self { wait }
    }
}

#[cfg(test)]
mod tests {
    use workspace_local::tables::TEMPLATE;
    use yaml_serde::Value;

    use super::*;

    #[test]
    fn the_wait_covers_the_cache_the_timeout_of_the_template_and_a_late_write() {
        let template: Value = yaml_serde::from_str(TEMPLATE).expect("YAML");
        let timeout = template["Globals"]["Function"]["Timeout"].as_u64();
        let timeout = timeout.expect("a timeout");
        assert_eq!(SAFE_WAIT.as_secs(), 60 + timeout + 20);
        assert_eq!(SAFE_WAIT.as_secs(), 90, "docs/runbook.md says 90 seconds");
        assert!(Wait::seconds(90).is_safe() && !Wait::seconds(89).is_safe());
    }
}
