//! An in-memory cache whose values expire.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// The maximum number of values. A full cache is cleared, because a repeated read is cheap.
const CAPACITY: usize = 10_000;

/// Caches values by key. A miss says nothing about whether a record exists.
pub(super) struct Cache<K, V> {
    /// The time to live: how long a value is used. Zero disables the cache.
    ttl: Duration,
    values: Mutex<HashMap<K, CachedValue<V>>>,
}

struct CachedValue<V> {
    value: V,
    // Wall-clock time, because a monotonic clock may stop while Lambda freezes the process.
    received_at: SystemTime,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    pub(super) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            values: Mutex::default(),
        }
    }

    /// Returns the cached value, or drops it if it is too old.
    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q, now: SystemTime) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut values = self.lock();
        let cached = values.get(key)?;
        match now.duration_since(cached.received_at) {
            Ok(age) if age < self.ttl => Some(cached.value.clone()),
            // An error means that the clock moved backwards, so the age is unknown.
            _ => {
                values.remove(key);
                None
            }
        }
    }

    /// Caches a value. `received_at` must be a time before the read was sent, so that no value
    /// is used for longer than its time to live.
    pub(super) fn insert(&self, key: K, value: V, received_at: SystemTime) {
        if self.ttl.is_zero() {
            return;
        }
        let mut values = self.lock();
        if values.len() >= CAPACITY && !values.contains_key(&key) {
            values.clear();
        }
        values.insert(key, CachedValue { value, received_at });
    }

    /// Locks the map. Ignores poisoning, because a panic cannot leave the map half changed.
    fn lock(&self) -> MutexGuard<'_, HashMap<K, CachedValue<V>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    #[test]
    fn a_value_is_dropped_when_the_clock_moves_backwards() {
        let start = SystemTime::now();
        let cache = Cache::new(TTL);
        cache.insert("key", "value", start);

        assert_eq!(cache.get(&"key", start - Duration::from_secs(1)), None);
        assert_eq!(cache.get(&"key", start), None);
    }

    #[test]
    fn a_full_cache_is_cleared() {
        let now = SystemTime::now();
        let cache = Cache::new(TTL);
        for number in 0..CAPACITY {
            cache.insert(number, "value", now);
        }
        assert_eq!(cache.lock().len(), CAPACITY);
        cache.insert(CAPACITY, "value", now);

        assert_eq!(cache.lock().len(), 1);
    }
}
