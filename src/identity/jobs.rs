//! Work outside requests: letters after a commit, and forgetting what has run out.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{letters, service};
use crate::{
    base::{Error, Result},
    ctx::Ctx,
    jobs::{JobHandler, Sweep},
};

/// Writes the letters that a committed change enqueued.
pub struct Letters;

#[async_trait(?Send)]
impl JobHandler for Letters {
    fn kind(&self) -> &'static str {
        letters::JOB_KIND
    }
    async fn run(&self, ctx: &Ctx, payload: serde_json::Value) -> Result<()> {
        letters::deliver(ctx, serde_json::from_value(payload).map_err(Error::internal)?).await
    }
}

/// Forgets tokens, links and registrations that have run out; wall time, so moving the business clock changes nothing here.
pub struct Cleanup;

#[async_trait(?Send)]
impl Sweep for Cleanup {
    fn name(&self) -> &'static str {
        "identity_cleanup"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(600)
    }
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        service::sweep(ctx).await
    }
}
