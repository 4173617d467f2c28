//! The protocols of the commands that remove, disable and erase. The commands run in this process,
//! so that the tests control time and the network.

mod simulation;

use workspacectl::wait::WaitArgs;

#[test]
fn a_wait_of_90_seconds_is_safe_and_a_shorter_one_is_not() {
    let is_safe = |seconds| {
        let is_silent = true;
        WaitArgs { seconds, is_silent }.is_safe()
    };
    assert!(is_safe(90) && !is_safe(89));
}
