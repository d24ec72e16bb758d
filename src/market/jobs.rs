//! What keeps listings true while nobody asks.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    saved_searches::{self, model::ListingOffered},
    service,
};
use crate::{
    base::{Error, Result},
    benchmarks::{self, model::RunChanged},
    ctx::Ctx,
    db::Conn,
    jobs::{JobHandler, Sweep},
    machines::{self, model::MachineChanged},
};

/// Takes listings off the market whose evidence has expired, was rejected or withdrawn, or whose time is over, and moves others on to a newer
/// run. The net under the jobs: it needs none of them to have run.
pub struct ListingEvidence;

#[async_trait(?Send)]
impl Sweep for ListingEvidence {
    fn name(&self) -> &'static str {
        "listing_evidence"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }
    async fn next_due(&self, _ctx: &Ctx, conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        service::next_due(conn, after).await
    }
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
        service::reassess_changed(ctx, now).await
    }
}

/// A machine's hardware, endpoint or region changed, or it was deleted.
pub struct MachineChangedHandler;

#[async_trait(?Send)]
impl JobHandler for MachineChangedHandler {
    fn kind(&self) -> &'static str {
        machines::CHANGED
    }
    async fn run(&self, ctx: &Ctx, payload: serde_json::Value) -> Result<()> {
        let changed: MachineChanged = serde_json::from_value(payload).map_err(Error::internal)?;
        // First what it means for the runs, since the listing stands on them.
        benchmarks::service::note_machine(ctx, changed.machine_id).await?;
        service::reassess_machine(ctx, changed.machine_id).await
    }
}

/// A run was reviewed, made unlisted, marked stale, or re-measured.
pub struct RunChangedHandler;

#[async_trait(?Send)]
impl JobHandler for RunChangedHandler {
    fn kind(&self) -> &'static str {
        benchmarks::RUN_CHANGED
    }
    async fn run(&self, ctx: &Ctx, payload: serde_json::Value) -> Result<()> {
        let changed: RunChanged = serde_json::from_value(payload).map_err(Error::internal)?;
        service::reassess_run(ctx, changed.run_id).await
    }
}

/// A listing came on the market or changed there: saved searches that it fits tell of it.
pub struct ListingOfferedHandler;

#[async_trait(?Send)]
impl JobHandler for ListingOfferedHandler {
    fn kind(&self) -> &'static str {
        saved_searches::LISTING_OFFERED
    }
    async fn run(&self, ctx: &Ctx, payload: serde_json::Value) -> Result<()> {
        let offered: ListingOffered = serde_json::from_value(payload).map_err(Error::internal)?;
        saved_searches::tell(ctx, offered.listing_id).await
    }
}
