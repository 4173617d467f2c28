//! A cache in memory, with a time to live.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use crate::error::Result;

/// The maximum number of entries. A full cache is cleared, because entries are cheap to read again.
const CAPACITY: usize = 10_000;

/// Records by their key. It never caches that a record is absent.
pub(super) struct Cache<R> {
    /// How long an entry is used. Zero disables the cache.
    ttl: Duration,
    entries: Mutex<HashMap<String, Entry<R>>>,
}

struct Entry<R> {
    record: R,
    // Wall-clock time, because a monotonic clock may stop while Lambda freezes the process.
    read_at: SystemTime,
}

impl<R: Clone> Cache<R> {
    pub(super) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            entries: Mutex::default(),
        }
    }

    /// The cached record, or else what `read` returns.
    ///
    /// `now` must be taken before `read` sends its request, so that no entry is used longer than
    /// the time to live after it was read.
    pub(super) async fn get_or_read(
        &self,
        key: &str,
        now: SystemTime,
        read: impl Future<Output = Result<Option<R>>>,
    ) -> Result<Option<R>> {
        if let Some(record) = self.get(key, now) {
            return Ok(Some(record));
        }
        let record = read.await?;
        if let Some(record) = &record {
            self.insert(key, record.clone(), now);
        }
        Ok(record)
    }

    /// The cached record.
    pub(super) fn get(&self, key: &str, now: SystemTime) -> Option<R> {
        let mut entries = self.entries();
        let entry = entries.get(key)?;
        match now.duration_since(entry.read_at) {
            Ok(age) if age < self.ttl => Some(entry.record.clone()),
            // An error means that the clock moved backwards: the entry's age is unknown.
            _ => {
                entries.remove(key);
                None
            }
        }
    }

    fn insert(&self, key: &str, record: R, read_at: SystemTime) {
        if self.ttl.is_zero() {
            return;
        }
        let mut entries = self.entries();
        if entries.len() >= CAPACITY && !entries.contains_key(key) {
            entries.clear();
        }
        entries.insert(key.to_owned(), Entry { record, read_at });
    }

    /// A panic cannot leave the map half changed, so a poisoned lock is fine.
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry<R>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::error::Error;

    const TTL: Duration = Duration::from_secs(60);

    /// What the cache returns if DynamoDB has the record.
    fn get(
        cache: &Cache<&'static str>,
        now: SystemTime,
        stored: Option<&'static str>,
    ) -> Option<&'static str> {
        let read = async { Ok(stored) };
        let found = cache.get_or_read("key", now, read).now_or_never();
        found.unwrap().unwrap()
    }

    #[test]
    fn an_entry_is_used_until_its_time_to_live_ends() {
        let (cache, start) = (Cache::new(TTL), SystemTime::now());
        let just_before = start + TTL - Duration::from_nanos(1);

        assert_eq!(get(&cache, start, Some("old")), Some("old"));
        assert_eq!(get(&cache, start, Some("new")), Some("old"));
        assert_eq!(get(&cache, just_before, Some("new")), Some("old"));
        assert_eq!(get(&cache, start + TTL, Some("new")), Some("new"));
        assert_eq!(get(&cache, start + TTL, None), Some("new"));
    }

    #[test]
    fn an_entry_is_not_used_when_the_clock_moves_backwards() {
        let (cache, start) = (Cache::new(TTL), SystemTime::now());

        get(&cache, start, Some("old"));

        let earlier = start - Duration::from_secs(1);
        assert_eq!(get(&cache, earlier, None), None);
        assert_eq!(get(&cache, start, Some("new")), Some("new"));
    }

    #[test]
    fn an_absent_record_is_read_again() {
        let (cache, now) = (Cache::new(TTL), SystemTime::now());

        assert_eq!(get(&cache, now, None), None);
        assert_eq!(get(&cache, now, Some("created")), Some("created"));
    }

    #[test]
    fn a_failed_read_is_not_cached() {
        let (cache, now) = (Cache::new(TTL), SystemTime::now());

        let read = async { Err(Error::internal("failed")) };
        let found = cache.get_or_read("key", now, read).now_or_never();

        assert!(found.unwrap().is_err());
        assert_eq!(get(&cache, now, Some("record")), Some("record"));
    }

    #[test]
    fn a_time_to_live_of_zero_disables_the_cache() {
        let (cache, now) = (Cache::new(Duration::ZERO), SystemTime::now());

        get(&cache, now, Some("old"));

        assert_eq!(get(&cache, now, Some("new")), Some("new"));
        assert!(cache.entries().is_empty());
    }

    #[test]
    fn a_full_cache_is_cleared() {
        let (cache, now) = (Cache::new(TTL), SystemTime::now());

        for number in 0..CAPACITY {
            cache.insert(&number.to_string(), "record", now);
        }
        assert_eq!(cache.entries().len(), CAPACITY);
        cache.insert("one more", "record", now);

        assert_eq!(cache.entries().len(), 1);
    }
}
