//! Sweeps of the ledger: expired holds go back, earnings become payable, and the books are recomputed.

use std::{
    sync::Mutex,
    sync::PoisonError,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::service;
use crate::{
    base::{Result, clock},
    ctx::Ctx,
    db::Conn,
    jobs::Sweep,
};

/// Gives back what is left in holds that have expired.
pub struct ExpireHolds;

#[async_trait(?Send)]
impl Sweep for ExpireHolds {
    fn name(&self) -> &'static str {
        "ledger_expire_holds"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }
    async fn next_due(&self, _ctx: &Ctx, conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        service::hold_next_expiry(conn, after).await
    }
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
        service::expire_due(ctx, now).await.map(drop)
    }
}

/// Makes earnings payable whose hold is over.
pub struct MatureEarnings;

#[async_trait(?Send)]
impl Sweep for MatureEarnings {
    fn name(&self) -> &'static str {
        "ledger_mature_earnings"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }
    async fn next_due(&self, _ctx: &Ctx, conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        service::mature_next_due(conn, after).await
    }
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
        service::mature_due(ctx, now).await.map(drop)
    }
}

/// Recomputes every balance and hold from the postings, and raises an alarm for each difference (money.md 9).
///
/// It reads all postings, so it rests between two runs, also while the sandbox's clock moves in many steps.
#[derive(Default)]
pub struct Reconcile {
    last: Mutex<Option<Instant>>,
}

const RECONCILE_EVERY: Duration = Duration::from_secs(600);
/// The least time between two runs.
const RECONCILE_REST: Duration = Duration::from_secs(300);

#[async_trait(?Send)]
impl Sweep for Reconcile {
    fn name(&self) -> &'static str {
        "ledger_reconcile"
    }
    fn every(&self) -> Duration {
        RECONCILE_EVERY
    }
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        let started = clock::monotonic();
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_some_and(|last| started.duration_since(last) < RECONCILE_REST) {
                return Ok(());
            }
            *last = Some(started);
        }
        let report = {
            let mut conn = ctx.db.conn().await?;
            service::reconcile(&mut conn).await?
        };
        for difference in &report.differences {
            tracing::error!(
                target: "audit",
                what = difference.what,
                subject = difference.subject,
                expected = difference.expected,
                found = difference.found,
                "the books differ from the postings"
            );
        }
        let count = u32::try_from(report.differences.len()).unwrap_or(u32::MAX);
        metrics::gauge!("rigmark_ledger_differences").set(count);
        Ok(())
    }
}
