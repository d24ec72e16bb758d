//! The poller of refunds: takes up those that were left halfway, and finds those about which no webhook came.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::service;
use crate::{base::Result, ctx::Ctx, jobs::Sweep};

/// Sends refunds that may not have arrived, asks about those that may still change, and reads Stripe's list for those made there.
pub struct AskRefunds;

#[async_trait(?Send)]
impl Sweep for AskRefunds {
    fn name(&self) -> &'static str {
        "refunds_ask"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }
    /// By wall time: Stripe's clock does not move with ours.
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        service::ask_due(ctx).await
    }
}
