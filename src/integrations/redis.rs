//! Redis or Valkey: a multiplexed connection made on first use, behind a breaker.
//!
//! Invariant: a Redis that is slow or away costs a caller at most [`ANSWER_WITHIN`] now and then, and never an error. After a failure it is left
//! alone for [`PAUSE`]; an outage is logged once when it begins and once when it ends.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use redis::{
    Client, RedisResult,
    aio::{ConnectionManager, ConnectionManagerConfig, PubSub},
};
use tokio::time::timeout;

use crate::base::{Error, Result, clock, secret::Secret};

const ANSWER_WITHIN: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_secs(1);
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// A handle; clones share the connection and the breaker.
#[derive(Clone)]
pub struct Redis(Arc<Inner>);

struct Inner {
    client: Client,
    manager: ConnectionManager,
    key_prefix: String,
    started: Instant,
    /// Milliseconds after `started` until which it is left alone.
    paused_until: AtomicU64,
    is_down: AtomicBool,
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("is_down", &self.0.is_down).finish_non_exhaustive()
    }
}

impl Redis {
    /// Needs a tokio runtime, but no server: nothing is connected yet. `key_prefix` stands before every key and channel.
    ///
    /// # Errors
    /// `internal` when `url` is no Redis address.
    pub fn new(url: &Secret<String>, key_prefix: &str) -> Result<Self> {
        let client = Client::open(url.expose().as_str()).map_err(Error::internal)?;
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(CONNECT_WITHIN))
            .set_response_timeout(Some(ANSWER_WITHIN))
            .set_pipeline_buffer_size(1_024);
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), config).map_err(Error::internal)?;
        Ok(Self(Arc::new(Inner {
            client,
            manager,
            key_prefix: key_prefix.to_owned(),
            started: clock::monotonic(),
            paused_until: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
        })))
    }

    pub fn key(&self, name: &str) -> String {
        format!("{}{name}", self.0.key_prefix)
    }

    /// What `work` returns; `None` when Redis is away, too slow, or left alone after a failure.
    pub async fn run<T>(&self, work: impl AsyncFnOnce(&mut ConnectionManager) -> RedisResult<T>) -> Option<T> {
        if self.elapsed_ms() < self.0.paused_until.load(Ordering::Relaxed) {
            return None;
        }
        let mut connection = self.0.manager.clone();
        match timeout(ANSWER_WITHIN, work(&mut connection)).await {
            Ok(Ok(value)) => {
                if self.0.is_down.swap(false, Ordering::Relaxed) {
                    tracing::info!("Redis answers again");
                }
                Some(value)
            }
            Ok(Err(error)) => self.pause(&error.to_string()),
            Err(_elapsed) => self.pause("no answer in time"),
        }
    }

    fn pause<T>(&self, error: &str) -> Option<T> {
        let pause_ms = u64::try_from(PAUSE.as_millis()).unwrap_or(u64::MAX);
        self.0.paused_until.store(self.elapsed_ms().saturating_add(pause_ms), Ordering::Relaxed);
        if !self.0.is_down.swap(true, Ordering::Relaxed) {
            tracing::warn!(error, "Redis does not answer; rate limits and live events are per process until it does");
        }
        None
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A connection of its own for subscriptions.
    pub(super) async fn subscriber(&self) -> RedisResult<PubSub> {
        self.0.client.get_async_pubsub().await
    }
}
