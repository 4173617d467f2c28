//! Reads items with strong consistency.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use aws_sdk_dynamodb::types::KeysAndAttributes;
use tokio::time::sleep;

use super::{Item, Store, Table};
use crate::error::{Error, Result};

/// The wait before the first retry of unprocessed reads. The wait doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

impl Store {
    /// Reads items, at most one of each table, in one `BatchGetItem` unless DynamoDB leaves some
    /// unprocessed. Repeats those until none are left or `service` ends the request.
    pub(super) async fn read_items(
        &self,
        lookups: &[(Table, Vec<&str>)],
    ) -> Result<BTreeMap<Table, Item>> {
        let mut pending = HashMap::new();
        for (table, primary_key_values) in lookups {
            let keys_and_attributes = KeysAndAttributes::builder()
                .consistent_read(true)
                .keys(table.primary_key(primary_key_values))
                .build()
                .map_err(Error::internal)?;
            pending.insert(self.table_names.get(*table).to_owned(), keys_and_attributes);
        }
        let mut items = BTreeMap::new();
        let mut backoff = INITIAL_BACKOFF;
        loop {
            let batch = self.client.batch_get_item();
            // `?` converts the error with `From<SdkError>` in `retry.rs`.
            let response = batch.set_request_items(Some(pending)).send().await?;
            let mut responses = response.responses.unwrap_or_default();
            for (table, _) in lookups {
                let found = responses.remove(self.table_names.get(*table));
                items.extend(found.and_then(|mut found| Some((*table, found.pop()?))));
            }
            pending = response.unprocessed_keys.unwrap_or_default();
            if pending.is_empty() {
                return Ok(items);
            }
            sleep(backoff).await;
            backoff *= 2;
        }
    }
}
