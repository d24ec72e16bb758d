//! The meter: a sweep that brings rentals up to the present and starts those that wait for their machine.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::service;
use crate::{base::Result, ctx::Ctx, jobs::Sweep};

/// Runs after the signs of life and before the market's sweeps.
pub struct Meter;

#[async_trait(?Send)]
impl Sweep for Meter {
    fn name(&self) -> &'static str {
        "rentals"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }
    async fn next_due(&self, ctx: &Ctx, conn: &mut crate::db::Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        service::next_due(conn, ctx, after).await
    }
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
        let settled = service::settle_due(ctx, now).await;
        service::start_waiting(ctx, now).await?;
        settled
    }
}
