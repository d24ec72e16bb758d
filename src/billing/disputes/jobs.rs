//! The poller of disputes.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::service;
use crate::{base::Result, ctx::Ctx, jobs::Sweep};

/// Asks Stripe about open disputes, ever less often, and reads its list for those about which no webhook came.
pub struct AskDisputes;

#[async_trait(?Send)]
impl Sweep for AskDisputes {
    fn name(&self) -> &'static str {
        "disputes_ask"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }
    /// By wall time: Stripe's clock does not move with ours.
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        service::ask_due(ctx).await
    }
}
