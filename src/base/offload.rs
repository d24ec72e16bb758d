//! CPU-heavy work off the async threads, a bounded number at a time.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Semaphore;

use super::{Code, Error, Result};

/// A gate for one kind of heavy work. Clones share it.
#[derive(Clone, Debug)]
pub struct Offload {
    running: Arc<Semaphore>,
    admitted: Arc<Semaphore>,
    started: Arc<AtomicU64>,
}

impl Offload {
    /// At most `running` at once and `waiting` behind them; who comes later is told to try again instead of waiting for seconds.
    pub fn new(running: usize, waiting: usize) -> Self {
        Self {
            running: Arc::new(Semaphore::new(running)),
            admitted: Arc::new(Semaphore::new(running.saturating_add(waiting))),
            started: Arc::default(),
        }
    }

    /// As many at once as there are cores.
    pub fn per_core(waiting: usize) -> Self {
        Self::new(std::thread::available_parallelism().map_or(2, usize::from), waiting)
    }

    /// Runs `work` on a thread for blocking work. When the caller goes away `work` still ends, and its place is held until then.
    ///
    /// # Errors
    /// `unavailable` when too many wait already, `internal` when `work` panics.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let busy = || Error::new(Code::Unavailable, "Too much of this is going on right now.").with_retry_after(1);
        let admitted = Arc::clone(&self.admitted).try_acquire_owned().map_err(|_| busy())?;
        let running = Arc::clone(&self.running).acquire_owned().await.map_err(Error::internal)?;
        self.started.fetch_add(1, Ordering::Relaxed);
        let span = tracing::Span::current();
        let task = tokio::task::spawn_blocking(move || {
            let outcome = span.in_scope(work);
            drop((running, admitted));
            outcome
        });
        task.await.map_err(Error::internal)
    }

    /// How many were started since the process began; tests count work with it instead of measuring time.
    pub fn started_count(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }
}
