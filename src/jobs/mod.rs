//! Work outside requests, of two kinds.
//!
//! A *job* follows a committed change: it is a row written in the same transaction, taken by lease (wall time), run at least once, tried again
//! with back-off, and kept as `dead` after its last try, with an alarm; it is never dropped.
//!
//! A *sweep* takes no input: it looks at persisted state for what has fallen due at `now` and does it, so that restart and normal running are
//! the same code. It must be safe to run at any time, any number of times, in several processes at once.
//!
//! Their futures need not be `Send` (closures of `Db::tx` borrow freely), so the workers run on a thread of their own.

mod advance;
mod queue;
mod runner;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::{base::Result, ctx::Ctx, db::Conn};

pub use advance::advance_business_clock;
pub use queue::{Job, enqueue, jobs_open_count};
pub use runner::{Workers, run_due_jobs, run_slow_jobs, run_sweeps};

/// A reconciler: see the module's head.
#[async_trait(?Send)]
pub trait Sweep: Send + Sync {
    fn name(&self) -> &'static str;

    /// How often it runs while nothing moves the clock.
    fn every(&self) -> Duration;

    /// The next instant of business time after `after` at which this sweep has something to do, if one is known. Moving the sandbox's clock
    /// stops there.
    async fn next_due(&self, ctx: &Ctx, conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        let _ = (ctx, conn, after);
        Ok(None)
    }

    /// Does what is due at `now` (business time).
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()>;

    /// Called once before the sandbox's clock moves: what depends on the real world (is the machine there?) is asked here, not at each step.
    async fn before_advance(&self, ctx: &Ctx) -> Result<()> {
        let _ = ctx;
        Ok(())
    }

    /// Called once after the move, whether it succeeded or not, if `before_advance` was called.
    async fn after_advance(&self, ctx: &Ctx) -> Result<()> {
        let _ = ctx;
        Ok(())
    }
}

/// Who runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// The workers, and whoever moves the sandbox's clock. At most a lease long.
    Quick,
    /// One worker of a thread of its own, one job at a time: what takes minutes of the real world. Its lease is renewed while it runs; when the
    /// process stops it is let go, and begun again by another.
    Slow,
}

/// Runs the jobs of one kind.
#[async_trait(?Send)]
pub trait JobHandler: Send + Sync {
    fn kind(&self) -> &'static str;
    fn lane(&self) -> Lane {
        Lane::Quick
    }
    /// At least once: a second run with the same payload must change nothing more.
    async fn run(&self, ctx: &Ctx, payload: serde_json::Value) -> Result<()>;
}

/// Every sweep, in the order they run, and every job handler. Built by `worker`.
#[derive(Clone, Default)]
pub struct Registry {
    pub sweeps: Vec<Arc<dyn Sweep>>,
    pub handlers: Vec<Arc<dyn JobHandler>>,
}
