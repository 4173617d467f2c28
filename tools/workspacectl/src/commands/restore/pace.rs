//! Limits how many write units a restore uses.

use std::{cell::Cell, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::record::Record;

/// The size of a record for which DynamoDB bills one write unit.
const BYTES_PER_UNIT: usize = 1024;

/// How far the writes may catch up after they were late.
const MAX_CATCH_UP: Duration = Duration::from_millis(100);

/// When the next record may be written.
pub(super) struct Pace {
    /// `None` for no limit.
    units_per_second: Option<u32>,
    next_write: Cell<Instant>,
}

impl Pace {
    pub(super) fn new(units_per_second: Option<u32>) -> Self {
        Self {
            units_per_second,
            next_write: Cell::new(Instant::now()),
        }
    }

    /// Waits until a record may be written.
    pub(super) async fn wait(&self, record: &Record) {
        let Some(units_per_second) = self.units_per_second else {
            return;
        };
        let earliest = Instant::now().checked_sub(MAX_CATCH_UP);
        let write = earliest.map_or(self.next_write.get(), |it| it.max(self.next_write.get()));
        // JSON is a little larger than what DynamoDB bills.
        let size = record.to_json().to_string().len();
        let units = u32::try_from(size.div_ceil(BYTES_PER_UNIT)).unwrap_or(u32::MAX);
        let duration = Duration::from_secs(1) * units / units_per_second;
        self.next_write.set(write + duration);
        sleep_until(write).await;
    }
}
