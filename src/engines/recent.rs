//! What engines served a moment ago, so that not every request has to ask first. An answer that is some seconds old is used while a new one is
//! fetched beside it; only an engine never asked before is waited for, and not for long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::future::Cache;
use sha2::{Digest, Sha256};

use super::{EngineClient, Target};
use crate::base::clock;

const FRESH: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(2);
const KEPT_IDLE: Duration = Duration::from_secs(600);
const ENGINES_MAX: u64 = 10_000;

/// Names of served models; `None` for an engine that gave no answer.
type Served = Option<Arc<[String]>>;

#[derive(Clone)]
struct Entry {
    asked_at: Instant,
    served: Served,
}

/// Cheap to clone; clones share what is known.
#[derive(Clone)]
pub(super) struct Recent(Cache<[u8; 32], Entry>);

impl Recent {
    pub fn new() -> Self {
        Self(Cache::builder().max_capacity(ENGINES_MAX).time_to_idle(KEPT_IDLE).build())
    }
}

/// By address and key: with another key an engine may show other models.
fn key(target: &Target) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(target.address.to_string());
    hash.update([0]);
    if let Some(key) = &target.api_key {
        hash.update(key.expose());
    }
    hash.finalize().into()
}

impl EngineClient {
    /// Names of the models that the engine served some seconds ago; `None` when it did not answer.
    pub async fn models_lately(&self, target: &Target) -> Option<Arc<[String]>> {
        let key = key(target);
        let Some(known) = self.recent.0.get(&key).await else { return self.models_now(target).await };
        if known.asked_at.elapsed() >= FRESH {
            // Written first, so that of many requests one asks.
            self.recent.0.insert(key, Entry { asked_at: clock::monotonic(), served: known.served.clone() }).await;
            let (client, target) = (self.clone(), target.clone());
            tokio::spawn(async move { client.models_now(&target).await });
        }
        known.served
    }

    /// The same, asked now.
    pub async fn models_now(&self, target: &Target) -> Option<Arc<[String]>> {
        let asked = tokio::time::timeout(WAIT, self.models(target)).await;
        let served: Served = asked.ok().and_then(Result::ok).map(Arc::from);
        self.recent.0.insert(key(target), Entry { asked_at: clock::monotonic(), served: served.clone() }).await;
        served
    }
}
