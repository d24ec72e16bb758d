//! The pollers: find out what became of what no webhook came about.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{pro, service};
use crate::{base::Result, ctx::Ctx, jobs::Sweep};

/// Asks Stripe about top-ups that are not over, ever less often.
pub struct AskTopUps;

#[async_trait(?Send)]
impl Sweep for AskTopUps {
    fn name(&self) -> &'static str {
        "top_ups_ask"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }
    /// By wall time: Stripe's clock does not move with ours.
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        service::ask_due(ctx).await
    }
}

/// Asks Stripe about Pro's subscriptions: often while one is being paid, after each period, and once a day.
pub struct AskPro;

#[async_trait(?Send)]
impl Sweep for AskPro {
    fn name(&self) -> &'static str {
        "pro_ask"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }
    /// By wall time: Stripe's clock does not move with ours.
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        pro::service::pro_ask_due(ctx).await
    }
}
