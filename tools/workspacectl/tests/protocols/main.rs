//! The protocols of the commands that remove, disable and erase. The commands run in this process,
//! so that the tests control time and the network.

mod simulation;

use workspace_records::tables::template;
use workspacectl::wait::{SAFE_WAIT, WaitArgs};

#[test]
fn the_wait_covers_the_cache_the_timeout_of_the_template_and_a_late_write() {
    let template = template().expect("YAML");
    let timeout = template["Resources"]["Function"]["Properties"]["Timeout"].as_u64();
    let timeout = timeout.expect("a timeout");
    assert_eq!(SAFE_WAIT.as_secs(), 60 + timeout + 20);
    assert_eq!(SAFE_WAIT.as_secs(), 90, "docs/runbook.md says 90 seconds");
    let is_safe = |seconds| {
        let is_silent = true;
        WaitArgs { seconds, is_silent }.is_safe()
    };
    assert!(is_safe(90) && !is_safe(89));
}
