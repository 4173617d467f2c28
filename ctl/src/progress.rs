//! How far a read of a table has come, shown on a terminal once it takes long.

use std::{
    io::{self, IsTerminal as _},
    pin::pin,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::timeout;

use crate::deployment::Deployment;

/// After how long it is shown.
const LONG: Duration = Duration::from_secs(1);

/// A read that is under way.
pub(crate) struct Progress<'a> {
    deployment: &'a Deployment,
    table: &'a str,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(deployment: &'a Deployment, table: &'a str) -> Self {
        Self {
            deployment,
            table,
            started: Instant::now(),
            bar: None,
        }
    }

    /// Waits for a page, when so many records are read.
    pub(crate) async fn during<T>(&mut self, page: impl Future<Output = T>, read: usize) -> T {
        let mut page = pin!(page);
        let patience = LONG.saturating_sub(self.started.elapsed());
        if let Ok(page) = timeout(patience, &mut page).await {
            return page;
        }
        if self.bar.is_none() && io::stderr().is_terminal() {
            // A table's number of items is counted some times a day.
            let table = self
                .deployment
                .client
                .describe_table()
                .table_name(self.table)
                .send();
            let count = table
                .await
                .ok()
                .and_then(|table| table.table?.item_count)
                .and_then(|count| u64::try_from(count).ok());
            let style = match count {
                Some(_) => "{bar:40} {human_pos} of about {human_len} records, {elapsed}",
                None => "{spinner} {human_pos} records, {elapsed}",
            };
            let bar = ProgressBar::with_draw_target(count, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(read as u64);
        }
        page.await
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
