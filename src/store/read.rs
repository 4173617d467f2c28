//! Reads items with strong consistency.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::types::KeysAndAttributes;
use tokio::time::sleep;

use super::{Item, Store, Table};
use crate::error::{Error, Result};

/// The wait before the first retry of unprocessed reads. The wait doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

impl Store {
    /// Reads items and returns them in the order of `lookups`, whose tables must differ. Sends
    /// `BatchGetItem` even for one item, so that the function needs only one permission to read.
    /// Repeats the reads that DynamoDB leaves unprocessed, until none are left or `service` ends
    /// the request.
    pub(super) async fn read_items<const N: usize>(
        &self,
        lookups: [(Table, Vec<&str>); N],
    ) -> Result<[Option<Item>; N]> {
        let mut pending = HashMap::with_capacity(N);
        for (table, primary_key_values) in &lookups {
            let keys_and_attributes = KeysAndAttributes::builder()
                .consistent_read(true)
                .keys(table.primary_key(primary_key_values))
                .build()
                .map_err(Error::internal)?;
            pending.insert(self.table_names.get(*table).to_owned(), keys_and_attributes);
        }
        let mut items_by_table = HashMap::with_capacity(N);
        let mut backoff = INITIAL_BACKOFF;
        loop {
            let batch = self.client.batch_get_item();
            // `?` converts the error with `From<SdkError>` in `retry.rs`.
            let response = batch.set_request_items(Some(pending)).send().await?;
            items_by_table.extend(response.responses.unwrap_or_default());
            pending = response.unprocessed_keys.unwrap_or_default();
            if pending.is_empty() {
                break;
            }
            sleep(backoff).await;
            backoff *= 2;
        }
        Ok(lookups.map(|(table, _)| {
            let items = items_by_table.remove(self.table_names.get(table));
            items.and_then(|mut items| items.pop())
        }))
    }
}
