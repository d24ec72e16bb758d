//! Rate limits by GCRA (a token bucket that stores one instant a key): shared through Redis when there is one, otherwise per process.
//!
//! Invariant: asking never fails and is never slow. When Redis is away each process counts for itself; a limit may then let through as many
//! times more as there are processes, for that long.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Instant,
};

use redis::Script;

use super::redis::Redis;
use crate::base::clock;

/// Keys kept in the process; beyond it the limits start afresh rather than the memory grow.
const LOCAL_KEYS_MAX: usize = 100_000;

/// `limit` requests in any `window_seconds`, all at once if need be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    pub name: &'static str,
    pub limit: u32,
    pub window_seconds: u32,
}

impl Quota {
    /// The same policy for who may do more.
    #[must_use]
    pub const fn times(self, factor: u32) -> Self {
        Self { limit: self.limit.saturating_mul(factor), ..self }
    }
    const fn window_micros(&self) -> i64 {
        self.window_seconds as i64 * 1_000_000
    }
    /// How much time one request stands for.
    const fn interval_micros(&self) -> i64 {
        let interval = self.window_micros() / self.limit as i64;
        if interval < 1 { 1 } else { interval }
    }
}

/// The answer to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub quota: Quota,
    pub allowed: bool,
    pub remaining: u32,
    /// Until the whole quota is free again.
    pub reset_seconds: u32,
    /// Until the next request is allowed; 0 when this one was.
    pub retry_after_seconds: u32,
}

/// The counters of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Limits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    redis: Option<Redis>,
    started: Instant,
    /// By policy and key: the instant (microseconds after `started`) at which the bucket is full again.
    full_at: Mutex<HashMap<(&'static str, String), i64>>,
}

impl Limits {
    pub fn new(redis: Option<Redis>) -> Self {
        Self(Arc::new(Inner { redis, started: clock::monotonic(), full_at: Mutex::new(HashMap::new()) }))
    }

    /// Counts one request of `key` (an account id, an address; never a name or a secret in clear).
    pub async fn take(&self, quota: Quota, key: &str) -> Decision {
        self.count(quota, key, 1).await
    }

    /// Takes back one that should not have counted: a sign-in that succeeded, where only failures are limited.
    pub async fn give_back(&self, quota: Quota, key: &str) {
        self.count(quota, key, -1).await;
    }

    async fn count(&self, quota: Quota, key: &str, cost: i64) -> Decision {
        if let Some(redis) = &self.0.redis {
            let shared = redis.run(async |connection| {
                let invocation_key = redis.key(&format!("limit:{}:{key}", quota.name));
                let mut invocation = SCRIPT.key(invocation_key);
                invocation.arg(quota.window_micros()).arg(quota.interval_micros()).arg(cost);
                invocation.invoke_async::<(i64, i64)>(connection).await
            });
            if let Some((full_in, wait)) = shared.await {
                return decision(quota, full_in, wait);
            }
        }
        self.count_here(quota, key, cost)
    }

    fn count_here(&self, quota: Quota, key: &str, cost: i64) -> Decision {
        let now = i64::try_from(self.0.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        let mut full_at = self.0.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if full_at.len() >= LOCAL_KEYS_MAX {
            full_at.retain(|_, at| *at > now);
            if full_at.len() >= LOCAL_KEYS_MAX {
                full_at.clear();
            }
        }
        let slot = full_at.entry((quota.name, key.to_owned())).or_insert(now);
        let (full, wait) = gcra(quota, *slot, now, cost);
        *slot = full;
        decision(quota, full.saturating_sub(now), wait)
    }
}

/// When the bucket is full after this request, and how long a refused one has to wait (0: allowed). The Lua below is the same.
fn gcra(quota: Quota, full_at: i64, now: i64, cost: i64) -> (i64, i64) {
    let before = full_at.max(now);
    let after = before.saturating_add(cost.saturating_mul(quota.interval_micros()));
    let wait = after.saturating_sub(quota.window_micros()).saturating_sub(now);
    if wait > 0 { (before, wait) } else { (after.max(now), 0) }
}

fn decision(quota: Quota, full_in: i64, wait: i64) -> Decision {
    let left = (quota.window_micros().saturating_sub(full_in) / quota.interval_micros()).clamp(0, i64::from(quota.limit));
    Decision {
        quota,
        allowed: wait == 0,
        remaining: u32::try_from(left).unwrap_or(0),
        reset_seconds: seconds_up(full_in),
        retry_after_seconds: seconds_up(wait),
    }
}

fn seconds_up(micros: i64) -> u32 {
    u32::try_from(micros.max(0).saturating_add(999_999) / 1_000_000).unwrap_or(u32::MAX)
}

/// One round trip; the server's own clock, so that processes need not agree on the time.
static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local time = redis.call('TIME')
        local now = time[1] * 1000000 + time[2]
        local window, interval, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
        local before = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
        local after = before + cost * interval
        local wait = after - window - now
        if wait > 0 then return {before - now, wait} end
        after = math.max(after, now)
        if after > now then
            redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
        else
            redis.call('DEL', KEYS[1])
        end
        return {after - now, 0}
        ",
    )
});
