//! Answers to public reads, kept for a moment, so that a search that many make at once is made once.
//!
//! Invariants: an answer is served for at most the time given, and never after a change that this process has made to what is shown (every
//! such change begins another generation). Nothing that decides about money reads from here.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use moka::future::Cache;

use super::Result;

/// Bodies and keys together; the least asked for leave first.
const BYTES_MAX: u64 = 8 << 20;

/// Cheap to clone; clones share what is kept.
#[derive(Clone)]
pub struct Answers(Option<Cache<(u64, String), Bytes>>);

impl Answers {
    /// Keeps answers this long; not at all for zero.
    pub fn new(kept: Duration) -> Self {
        let weight = |key: &(u64, String), body: &Bytes| u32::try_from(key.1.len() + body.len()).unwrap_or(u32::MAX);
        let cache = || Cache::builder().max_capacity(BYTES_MAX).weigher(weight).time_to_live(kept).build();
        Self((!kept.is_zero()).then(cache))
    }

    /// The answer kept under `key` since `generation` began, or a fresh one. `generation` was read before anything else was.
    ///
    /// # Errors
    /// Those of `fresh`, which are not kept.
    pub async fn get_or<F>(&self, generation: u64, key: String, fresh: F) -> Result<Bytes>
    where
        F: Future<Output = Result<Bytes>>,
    {
        let Some(cache) = &self.0 else { return fresh.await };
        let key = (generation, key);
        if let Some(kept) = cache.get(&key).await {
            return Ok(kept);
        }
        let body = fresh.await?;
        cache.insert(key, body.clone()).await;
        Ok(body)
    }
}
