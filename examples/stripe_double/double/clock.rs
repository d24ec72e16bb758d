//! The double's time: the system's, plus what `/_double/clock` added. The only place here that reads the system's clock.

use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Default)]
pub struct Clock {
    ahead_seconds: i64,
}

impl Clock {
    /// Unix seconds.
    pub fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX) + self.ahead_seconds
    }

    pub fn advance(&mut self, seconds: i64) {
        self.ahead_seconds += seconds;
    }
}
