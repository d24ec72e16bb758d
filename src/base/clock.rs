//! The only place that reads the system's clock.
//!
//! Two clocks (design.md, Decisions): *wall time* never moves by hand and drives tokens, leases and rate limits; *business time* drives
//! rentals, quotes, evidence and earnings, and is wall time plus an offset that lives in one PostgreSQL row (`db::business_now`), so that
//! every process of a sandbox agrees on it. A test may shift wall time through [`Clock::shift_wall`]; business time follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

/// A handle on wall time. Clones share the test shift.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    shift_seconds: Arc<AtomicI64>,
    business_moves: bool,
}

impl Clock {
    /// `business_moves` is true in the sandbox, where business time has an offset in the database.
    pub fn new(business_moves: bool) -> Self {
        Self { shift_seconds: Arc::default(), business_moves }
    }

    pub const fn business_moves(&self) -> bool {
        self.business_moves
    }

    /// Wall time, to the microsecond: what PostgreSQL can store, so that a value written and read back is equal.
    pub fn wall_now(&self) -> DateTime<Utc> {
        let shift = TimeDelta::try_seconds(self.shift_seconds.load(Ordering::Relaxed)).unwrap_or_default();
        (Utc::now() + shift).trunc_subsecs(6)
    }

    /// Moves wall time of this process; for tests of expiring tokens and leases.
    pub fn shift_wall(&self, seconds: i64) {
        self.shift_seconds.fetch_add(seconds, Ordering::Relaxed);
    }
}

/// A steady clock for measuring durations; never for instants.
pub fn monotonic() -> Instant {
    Instant::now()
}
