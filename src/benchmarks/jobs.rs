//! Measuring again, and noticing that a machine is no longer what was measured.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    remeasure::model::{REMEASURE, RemeasureJob},
    service,
};
use crate::{
    base::{Error, Result, id::MachineId},
    ctx::Ctx,
    jobs::{JobHandler, Lane, Sweep},
};

/// Queues the re-measurements that have fallen due. Measuring takes the real world's time, so moving the sandbox's clock only queues.
pub struct Remeasure;

#[async_trait(?Send)]
impl Sweep for Remeasure {
    fn name(&self) -> &'static str {
        "remeasure"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
        service::enqueue_due(ctx, now).await
    }
}

/// Does one re-measurement.
pub struct RemeasureHandler;

#[async_trait(?Send)]
impl JobHandler for RemeasureHandler {
    fn kind(&self) -> &'static str {
        REMEASURE
    }
    fn lane(&self) -> Lane {
        Lane::Slow
    }
    async fn run(&self, ctx: &Ctx, payload: serde_json::Value) -> Result<()> {
        let job: RemeasureJob = serde_json::from_value(payload).map_err(Error::internal)?;
        service::run_remeasurement(ctx, job.remeasurement_id).await
    }
}

/// Asks the engines of listed machines now and then what they are, and compares with their runs.
#[derive(Default)]
pub struct EngineIdentity {
    /// When each was asked, wall time: a clock that moves asks nobody again.
    asked: Mutex<HashMap<MachineId, DateTime<Utc>>>,
}

const ASKED_EVERY: TimeDelta = TimeDelta::minutes(10);

impl EngineIdentity {
    /// Whether it is the machine's turn; then it counts as asked.
    fn is_due(&self, machine: MachineId, wall_now: DateTime<Utc>) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, at| wall_now - *at < ASKED_EVERY);
        let is_due = !asked.contains_key(&machine);
        asked.entry(machine).or_insert(wall_now);
        is_due
    }
}

#[async_trait(?Send)]
impl Sweep for EngineIdentity {
    fn name(&self) -> &'static str {
        "engine_identity"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        let wall_now = ctx.clock.wall_now();
        service::note_listed_engines(ctx, |machine| self.is_due(machine, wall_now)).await
    }
}
