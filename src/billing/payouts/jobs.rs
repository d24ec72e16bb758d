//! Sweeps of payouts: the weekly ones are begun, and Stripe is asked about those that are on their way.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::service;
use crate::{base::Result, ctx::Ctx, db::Conn, jobs::Sweep};

/// Begins the weekly payouts; [`AskPayouts`] sends them.
pub struct PayWeekly;

#[async_trait(?Send)]
impl Sweep for PayWeekly {
    fn name(&self) -> &'static str {
        "payouts_weekly"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }
    async fn next_due(&self, _ctx: &Ctx, conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        service::weekly_next_due(conn, after).await
    }
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
        service::pay_weekly(ctx, now).await.map(drop)
    }
}

/// Sends payouts that Stripe has not confirmed, takes back what is recalled, and asks what became of the others, ever less often.
pub struct AskPayouts;

#[async_trait(?Send)]
impl Sweep for AskPayouts {
    fn name(&self) -> &'static str {
        "payouts_ask"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }
    /// By wall time: Stripe's clock does not move with ours.
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        service::ask_due(ctx).await
    }
}
