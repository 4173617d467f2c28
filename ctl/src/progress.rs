//! What a terminal shows while a command reads, writes or waits.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::sleep;

/// How long a command takes before the count appears.
const DELAY: Duration = Duration::from_secs(1);

/// Counts records while a command writes or reads many, and shows the count on a terminal.
pub(crate) struct Counter {
    bar: ProgressBar,
    count: usize,
}

impl Counter {
    /// Starts at zero. The text says what is counted, such as `records deleted`.
    pub(crate) fn new(text: &'static str) -> Self {
        let target = ProgressDrawTarget::stderr();
        // Unlike `set_message`, this draws nothing yet.
        let bar = ProgressBar::with_draw_target(None, target).with_message(text);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} {msg}, {elapsed}") {
            bar.set_style(style);
        }
        Self { bar, count: 0 }
    }

    pub(crate) fn add(&mut self, count: usize) {
        self.count += count;
        if self.bar.elapsed() >= DELAY {
            self.bar.set_position(self.count as u64);
        }
    }

    /// Hides the counter while something else is printed.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the counter from the terminal, and returns the count.
    pub(crate) fn finish(&self) -> usize {
        self.bar.finish_and_clear();
        self.count
    }
}

/// Waits, and shows for how long and why: as a bar on a terminal, otherwise in a line.
pub(crate) async fn waiting(time: Duration, reason: &str) {
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
