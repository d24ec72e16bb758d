//! Signs of life: whether machines that are listed or rented answer.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::service::{self, Probed};
use crate::{base::Result, ctx::Ctx, jobs::Sweep};

/// Probes every watched machine. While the sandbox's clock is being moved it asks each once, before the first step, and lets that answer stand
/// at each step: an hour that passes in a moment must neither be an hour of silence nor an hour of probes.
#[derive(Default)]
pub struct SignsOfLife {
    /// What the probes before a move found; none while nothing moves the clock in this process.
    moving: Mutex<Option<Probed>>,
}

impl SignsOfLife {
    fn moving(&self) -> Option<Probed> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Unless the move has ended meanwhile.
    fn remember(&self, probed: Probed) {
        if let Some(known) = self.moving.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            known.extend(probed);
        }
    }
    fn set_moving(&self, probed: Option<Probed>) {
        *self.moving.lock().unwrap_or_else(PoisonError::into_inner) = probed;
    }
}

/// What is found before a move stands for all of it, so a machine that did not answer is asked once more: a busy computer may have missed it.
async fn probe_twice(ctx: &Ctx, known: &Probed) -> Result<Probed> {
    let mut answered = service::probe_watched(ctx, known).await?;
    answered.silent.clear();
    let mut known = known.clone();
    known.extend(answered.clone());
    let again = service::probe_watched(ctx, &known).await?;
    answered.extend(again);
    Ok(answered)
}

#[async_trait(?Send)]
impl Sweep for SignsOfLife {
    fn name(&self) -> &'static str {
        "signs_of_life"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(15)
    }
    async fn before_advance(&self, ctx: &Ctx) -> Result<()> {
        let probed = probe_twice(ctx, &Probed::default()).await?;
        self.set_moving(Some(probed));
        Ok(())
    }
    async fn after_advance(&self, _ctx: &Ctx) -> Result<()> {
        self.set_moving(None);
        Ok(())
    }
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
        let Some(mut known) = self.moving() else {
            let probed = service::probe_watched(ctx, &Probed::default()).await?;
            return service::note_probed(ctx, &probed, now).await;
        };
        // Machines that came under watch during the move.
        let new = probe_twice(ctx, &known).await?;
        known.extend(new);
        service::note_probed(ctx, &known, now).await?;
        self.remember(known);
        Ok(())
    }
}
