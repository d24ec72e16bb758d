//! Sweeps of the ledger: expired holds go back, earnings become payable. That the books are right is looked at by `billing::reconcile`.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::service;
use crate::{base::Result, ctx::Ctx, db::Conn, jobs::Sweep};

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
