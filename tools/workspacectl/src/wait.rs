//! After a record has been marked or disabled, waits until the function can no longer act on an
//! older copy of the record.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::sleep;
use workspace_management::{service::FUNCTION_TIMEOUT, store::MAX_CACHE_TTL};

use crate::{deployment::Deployment, message::print_message};

/// How long after the function's timeout one of its writes can still reach DynamoDB. AWS accepts
/// requests for five minutes after they were signed, so this is only an assumption.
const MAX_WRITE_DELAY: Duration = Duration::from_secs(20);

/// The maximum time from marking a record, or disabling an organization, to the last write based on
/// an older copy of that record: cache time + function timeout + write delay.
pub const SAFE_WAIT: Duration = Duration::from_secs(
    MAX_CACHE_TTL.as_secs() + FUNCTION_TIMEOUT.as_secs() + MAX_WRITE_DELAY.as_secs(),
);

const WAIT_REASON: &str = "for the function's caches to expire and its last writes to finish";

/// The argument of commands that wait.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct WaitArgs {
    /// How long to wait for the function's caches to expire and its last writes to finish. A
    /// shorter wait is safe only if no client sends requests. Otherwise, a late write can leave a
    /// record behind, or end up in a new organization with the same id
    #[arg(id = "wait", long, value_name = "SECONDS", env = "WORKSPACECTL_WAIT", default_value_t = SAFE_WAIT.as_secs())]
    pub seconds: u64,
    /// Whether to wait without saying so. For tests, because they do not capture messages.
    #[arg(skip)]
    pub is_silent: bool,
}

impl WaitArgs {
    /// Waits. Shows a progress bar on a terminal, and otherwise a line. Every run must wait, even
    /// if an earlier run set the mark, because the time in the mark may be from the clock of a
    /// different machine.
    pub(crate) async fn wait(self, deployment: &Deployment) {
        if deployment.is_on_aws() && !self.is_safe() {
            print_message(&format!(
                "warning: the wait of {} s (--wait or WORKSPACECTL_WAIT) is too short: the function can write for up to {} s from now",
                self.seconds,
                SAFE_WAIT.as_secs()
            ));
        }
        if self.seconds == 0 {
            return;
        }
        if self.is_silent {
            return sleep(Duration::from_secs(self.seconds)).await;
        }
        let bar = ProgressBar::with_draw_target(Some(self.seconds), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} s {msg}") {
            bar.set_style(style);
        }
        bar.set_message(WAIT_REASON);
        if bar.is_hidden() {
            print_message(&format!("waiting {} s {WAIT_REASON}", self.seconds));
        }
        for _ in 0..self.seconds {
            sleep(Duration::from_secs(1)).await;
            bar.inc(1);
        }
        bar.finish_and_clear();
    }

    /// Whether the wait is at least [`SAFE_WAIT`].
    pub fn is_safe(self) -> bool {
        self.seconds >= SAFE_WAIT.as_secs()
    }
}
