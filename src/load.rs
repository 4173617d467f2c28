//! Sheds requests of the organization that asks for most, while DynamoDB throttles writes.
//!
//! All organizations share the write units of a table. Without this module, an organization that
//! asks for more than a table's maximum would use up the units of the others too. Each process
//! decides on its own, because the requests that it handles are a sample of all requests.
//! `cargo bench --bench lambda -- flood` measures the effect of the constants.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use crate::error::{Error, Result};

/// How long the write units of a request count.
const WINDOW: Duration = Duration::from_secs(1);

/// The maximum number of requests that are remembered.
const MAX_REQUESTS: usize = 1_000;

/// What remains of the share of the heaviest requester after a request with a throttled write.
const REMAINING_SHARE: f64 = 0.5;

/// The time in which the share doubles.
const DOUBLING_TIME: Duration = Duration::from_secs(2);

/// How long a requester is limited after its last throttled write.
const LIMITED_TIME: Duration = Duration::from_secs(15);

/// How long throttled writes of others lower the limit of a requester after its own. A requester
/// whose writes are not throttled is not the reason why those of others are: they can exceed the
/// throughput of a partition that only they use.
const SHARED_TIME: Duration = Duration::from_secs(5);

/// What this process was asked for, and whether DynamoDB throttled a write.
#[derive(Debug, Default)]
pub(crate) struct Load(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The authorized requests of the last second, oldest first. Shed requests count too.
    requests: VecDeque<RememberedRequest>,
    limit: Option<Limit>,
    /// Whether the last request was admitted within a limit.
    is_limited: bool,
    /// The requester whose write was throttled since then.
    throttled: Option<String>,
}

#[derive(Debug)]
struct RememberedRequest {
    received_at: SystemTime,
    requester: String,
    write_units: usize,
}

/// The limit of a requester, as long as it is the heaviest.
#[derive(Debug)]
struct Limit {
    requester: String,
    /// When a write of the requester itself was last throttled.
    throttled_at: SystemTime,
    /// The share of the requested write units that is admitted from `lowered_at` on. It grows.
    share: f64,
    lowered_at: SystemTime,
    /// The write units that can be admitted, as of `credited_at`.
    credit: f64,
    credited_at: SystemTime,
}

impl Load {
    /// Reports that DynamoDB throttled a write. Returns whether to send the write again, which would
    /// only delay the requests of others if the requester is limited.
    pub(crate) fn retries_throttled_write(&self) -> bool {
        let mut state = self.lock();
        let last_request = state.requests.back();
        state.throttled = last_request.map(|request| request.requester.clone());
        !state.is_limited
    }

    /// Admits a request that asks for this number of write units. `requester` must be authorized.
    ///
    /// # Errors
    /// [`Error::OrganizationShed`]
    pub(crate) fn admit(
        &self,
        requester: &str,
        write_units: usize,
        received_at: SystemTime,
    ) -> Result<()> {
        let state = &mut *self.lock();
        state.remember(RememberedRequest {
            received_at,
            requester: requester.to_owned(),
            write_units,
        });
        if let Some(throttled) = state.throttled.take() {
            state.lower_limit(&throttled, received_at);
        }
        let limit = state.limit_of(requester, received_at);
        let is_limited = limit.is_some();
        let is_admitted =
            limit.is_none_or(|(limit, rate)| limit.admits(write_units as f64, rate, received_at));
        state.is_limited = is_limited;
        if is_admitted {
            Ok(())
        } else {
            Err(Error::OrganizationShed)
        }
    }

    /// Ignores poisoning, because each field is valid at any time.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remember(&mut self, request: RememberedRequest) {
        let now = request.received_at;
        self.requests.push_back(request);
        while let Some(oldest) = self.requests.front()
            && (self.requests.len() > MAX_REQUESTS
                || elapsed(oldest.received_at, now).is_none_or(|age| age >= WINDOW))
        {
            self.requests.pop_front();
        }
    }

    /// Limits the heaviest requester, or lowers its limit, after a write of `throttled` was throttled.
    fn lower_limit(&mut self, throttled: &str, now: SystemTime) {
        let Some((requester, _)) = heaviest(&self.requests) else {
            return;
        };
        match &mut self.limit {
            Some(limit) if limit.requester == requester => limit.lower(throttled, now),
            _ if requester == throttled => {
                self.limit = Some(Limit {
                    requester: requester.to_owned(),
                    throttled_at: now,
                    share: REMAINING_SHARE,
                    lowered_at: now,
                    credit: 0.0,
                    credited_at: now,
                });
            }
            _ => {}
        }
    }

    /// The limit of a requester if it is the heaviest, and the units per second that are admitted.
    fn limit_of(&mut self, requester: &str, now: SystemTime) -> Option<(&mut Limit, f64)> {
        let limit = self.limit.as_mut()?;
        let share = limit.share_at(now);
        if limit.requester != requester || share >= 1.0 {
            return None;
        }
        let (heaviest, units) = heaviest(&self.requests)?;
        (heaviest == requester).then_some((limit, share * units as f64))
    }
}

/// The requester that asks for more than half of the units, and its units in the last second.
/// `None` if there is no other requester.
fn heaviest(requests: &VecDeque<RememberedRequest>) -> Option<(&str, usize)> {
    let mut units_by_requester = HashMap::<_, usize>::new();
    for request in requests {
        let units = units_by_requester.entry(&*request.requester);
        *units.or_default() += request.write_units;
    }
    let total: usize = units_by_requester.values().sum();
    let heaviest = units_by_requester
        .into_iter()
        .max_by_key(|(_, units)| *units);
    heaviest.filter(|(_, units)| *units < total && 2 * *units > total)
}

impl Limit {
    fn lower(&mut self, throttled: &str, now: SystemTime) {
        let share = self.share_at(now);
        if self.requester == throttled {
            self.throttled_at = now;
        }
        if elapsed(self.throttled_at, now).is_some_and(|time| time < SHARED_TIME) {
            self.share = share * REMAINING_SHARE;
            self.lowered_at = now;
        }
    }

    /// `rate` is the number of units per second that are admitted.
    fn admits(&mut self, write_units: f64, rate: f64, now: SystemTime) -> bool {
        let seconds = elapsed(self.credited_at, now).map_or(0.0, |time| time.as_secs_f64());
        // At most the units of a second are saved up, so that no burst follows a pause.
        self.credit = rate.max(write_units).min(self.credit + rate * seconds);
        self.credited_at = now;
        let is_admitted = self.credit >= write_units;
        if is_admitted {
            self.credit -= write_units;
        }
        is_admitted
    }

    /// The share of the requested units that is admitted.
    fn share_at(&self, now: SystemTime) -> f64 {
        match (
            elapsed(self.throttled_at, now),
            elapsed(self.lowered_at, now),
        ) {
            (Some(throttled), Some(lowered)) if throttled < LIMITED_TIME => {
                (self.share * lowered.div_duration_f64(DOUBLING_TIME).exp2()).min(1.0)
            }
            _ => 1.0,
        }
    }
}

/// The time since `earlier`. `None` if the clock moved backwards.
fn elapsed(earlier: SystemTime, now: SystemTime) -> Option<Duration> {
    now.duration_since(earlier).ok()
}
