//! The sweep that tops up.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::service;
use crate::{base::Result, ctx::Ctx, jobs::Sweep};

/// Tops up the accounts that have little left.
pub struct TopUpAutomatically;

#[async_trait(?Send)]
impl Sweep for TopUpAutomatically {
    fn name(&self) -> &'static str {
        "automatic_top_ups"
    }
    /// A hold is renewed well over this long before it is used up, so the money comes before a rental ends for want of it.
    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }
    /// By wall time: Stripe's clock does not move with ours.
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        service::top_up_due(ctx).await
    }
}
