//! The sweeps: one delivers, one forgets. Both by wall time.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::{
    sync::Mutex,
    task::{JoinError, JoinSet},
};

use super::service::{self, Sent};
use crate::{base::Result, ctx::Ctx, jobs::Sweep};

/// Tries under way in this process.
const FLIGHTS_MAX: usize = 64;
/// How long a run waits for answers. A try that takes longer goes on, and what came of it is written down by a later run.
const PATIENCE: Duration = Duration::from_secs(1);

/// Delivers what is due. Tries are tasks of their own, so that no receiver holds up another.
#[derive(Default)]
pub struct Deliver {
    flights: Mutex<JoinSet<Sent>>,
    is_moving: AtomicBool,
}

#[async_trait(?Send)]
impl Sweep for Deliver {
    fn name(&self) -> &'static str {
        "webhooks_deliver"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }
    /// A move of the clock stops at many instants; receivers are not waited for at each of them.
    async fn before_advance(&self, _ctx: &Ctx) -> Result<()> {
        self.is_moving.store(true, Ordering::Relaxed);
        Ok(())
    }
    async fn after_advance(&self, _ctx: &Ctx) -> Result<()> {
        self.is_moving.store(false, Ordering::Relaxed);
        Ok(())
    }
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        if self.is_moving.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut flights = self.flights.lock().await;
        let over = tokio::time::sleep(PATIENCE);
        tokio::pin!(over);
        loop {
            begin(ctx, &mut flights).await?;
            let first = tokio::select! {
                ended = flights.join_next() => ended,
                () = &mut over => return Ok(()),
            };
            let Some(first) = first else { return Ok(()) };
            note(ctx, first).await;
            while let Some(ended) = flights.try_join_next() {
                note(ctx, ended).await;
            }
        }
    }
}

/// Begins as many tries as there is room for.
async fn begin(ctx: &Ctx, flights: &mut JoinSet<Sent>) -> Result<()> {
    let room = FLIGHTS_MAX.saturating_sub(flights.len());
    if room == 0 {
        return Ok(());
    }
    for due in service::take_due(ctx, i64::try_from(room).unwrap_or(1)).await? {
        flights.spawn(service::send(ctx.clone(), due));
    }
    Ok(())
}

/// One delivery's trouble must not keep the others waiting; its lease brings it back.
async fn note(ctx: &Ctx, ended: Result<Sent, JoinError>) {
    match ended {
        Ok(sent) => {
            if let Err(error) = service::record(ctx, &sent).await {
                tracing::error!(error = ?error, "what came of a webhook could not be written down");
            }
        }
        Err(error) => tracing::error!(error = %error, "a try of a webhook did not end"),
    }
}

/// Forgets what is too old to be of use.
pub struct ForgetEvents;

#[async_trait(?Send)]
impl Sweep for ForgetEvents {
    fn name(&self) -> &'static str {
        "webhooks_forget"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(600)
    }
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        service::forget(ctx).await
    }
}
