//! What a terminal shows while a command reads, writes or waits.

use std::{
    io::{self, IsTerminal as _},
    pin::pin,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::{sleep, timeout};

use crate::deployment::Deployment;

/// How long a read takes before the progress bar appears.
const DELAY: Duration = Duration::from_secs(1);

/// Counts records while a command writes or reads many, and shows the count on a terminal.
pub(crate) struct Counter {
    bar: ProgressBar,
    count: usize,
}

impl Counter {
    /// Starts at zero. The text says what is counted, such as `records deleted`.
    pub(crate) fn new(text: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} {msg}, {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(text);
        Self { bar, count: 0 }
    }

    pub(crate) fn add(&mut self, count: usize) {
        self.count += count;
        self.bar.set_position(self.count as u64);
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

/// The progress of reading a table.
pub(crate) struct Progress<'a> {
    deployment: &'a Deployment,
    table: &'a str,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl<'a> Progress<'a> {
    /// Starts the clock.
    pub(crate) fn new(deployment: &'a Deployment, table: &'a str) -> Self {
        Self {
            deployment,
            table,
            started: Instant::now(),
            bar: None,
        }
    }

    /// Waits for a request, and shows how many records the requests before it returned.
    pub(crate) async fn track<T>(&mut self, request: impl Future<Output = T>, count: usize) -> T {
        let mut request = pin!(request);
        let delay = DELAY.saturating_sub(self.started.elapsed());
        if let Ok(response) = timeout(delay, &mut request).await {
            return response;
        }
        if self.bar.is_none() && io::stderr().is_terminal() {
            self.bar = Some(self.new_bar().await);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(count as u64);
        }
        request.await
    }

    async fn new_bar(&self) -> ProgressBar {
        let table = self
            .deployment
            .client
            .describe_table()
            .table_name(self.table)
            .send();
        // DynamoDB updates this count about every six hours.
        let total = table
            .await
            .ok()
            .and_then(|table| table.table?.item_count)
            .and_then(|count| u64::try_from(count).ok());
        let style = match total {
            Some(_) => "{bar:40} {human_pos} of about {human_len} records, {elapsed}",
            None => "{spinner} {human_pos} records, {elapsed}",
        };
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar
    }

    /// Removes the progress bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
