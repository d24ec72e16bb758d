//! The reconciler.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::service;
use crate::{base::Result, ctx::Ctx, jobs::Sweep};

/// Reconciles every ten minutes, whichever process comes first.
pub struct Reconcile;

/// It reads all postings, so there is a rest between two, also while the sandbox's clock moves in many steps.
const REST: TimeDelta = TimeDelta::minutes(5);

#[async_trait(?Send)]
impl Sweep for Reconcile {
    fn name(&self) -> &'static str {
        "reconcile"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(600)
    }
    /// By wall time: Stripe's clock does not move with ours.
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        service::run(ctx, REST).await.map(drop)
    }
}
