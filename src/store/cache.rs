//! A cache in memory, with a time to live.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

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

    /// The cached record. Drops one that is too old.
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

    /// Caches a record. `read_at` must be taken before the read is sent, so that no entry outlives
    /// its time to live.
    pub(super) fn insert(&self, key: &str, record: R, read_at: SystemTime) {
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
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn cache(read_at: SystemTime) -> Cache<&'static str> {
        let cache = Cache::new(TTL);
        cache.insert("key", "record", read_at);
        cache
    }

    #[test]
    fn an_entry_is_used_until_its_time_to_live_ends() {
        let start = SystemTime::now();
        let cache = cache(start);
        let just_before = start + TTL - Duration::from_nanos(1);

        assert_eq!(cache.get("key", start), Some("record"));
        assert_eq!(cache.get("key", just_before), Some("record"));
        assert_eq!(cache.get("key", start + TTL), None);
        assert_eq!(cache.get("key", just_before), None, "it was dropped");
        assert_eq!(cache.get("other", start), None);
    }

    #[test]
    fn an_entry_is_dropped_when_the_clock_moves_backwards() {
        let start = SystemTime::now();
        let cache = cache(start);

        assert_eq!(cache.get("key", start - Duration::from_secs(1)), None);
        assert_eq!(cache.get("key", start), None);
    }

    #[test]
    fn a_time_to_live_of_zero_disables_the_cache() {
        let (cache, now) = (Cache::new(Duration::ZERO), SystemTime::now());

        cache.insert("key", "record", now);

        assert_eq!(cache.get("key", now), None);
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
