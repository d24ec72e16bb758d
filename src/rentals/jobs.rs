//! The sweeps of rentals: the meter brings them up to the present, the starter asks machines for their first answer.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, Shared},
    stream::FuturesUnordered,
};

use super::service::{self, Waiting};
use crate::{
    base::{Result, id::RentalId},
    ctx::Ctx,
    db::Conn,
    jobs::Sweep,
};

/// Runs after the signs of life and before the market's sweeps.
pub struct Meter;

#[async_trait(?Send)]
impl Sweep for Meter {
    fn name(&self) -> &'static str {
        "rentals"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }
    async fn next_due(&self, ctx: &Ctx, conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        service::next_due(conn, ctx, after).await
    }
    async fn run(&self, ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
        service::settle_due(ctx, now).await
    }
}

/// What a machine says when it is asked for one token: the model that answered.
type FirstAnswer = Shared<BoxFuture<'static, Option<String>>>;

/// How long a run waits for answers. One that takes longer goes on and is picked up by a later run, so that no machine holds up another.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same while the clock is being moved: a machine that is there should not miss its start because of that.
const PATIENCE_MOVING: Duration = Duration::from_secs(3);

/// Asks the machines of accepted rentals, each again and again until it answers or its time is over. Apart from the meter, which must not wait
/// for machines.
#[derive(Default)]
pub struct Starter {
    asked: Mutex<HashMap<RentalId, FirstAnswer>>,
    is_moving: AtomicBool,
}

impl Starter {
    fn asked(&self) -> MutexGuard<'_, HashMap<RentalId, FirstAnswer>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer that is on its way, or a new question.
    fn ask(&self, ctx: &Ctx, waiting: Waiting) -> FirstAnswer {
        let ask = || {
            let task = tokio::spawn(service::first_answer(ctx.clone(), waiting.machine_id));
            // A task that ended in another way than by answering is asked again.
            task.map(|joined| joined.ok().flatten()).boxed().shared()
        };
        self.asked().entry(waiting.rental_id).or_insert_with(ask).clone()
    }

    /// Questions about rentals that are over are of no interest.
    fn forget_all_but(&self, waiting: &[Waiting]) {
        let ids: Vec<RentalId> = waiting.iter().map(|w| w.rental_id).collect();
        self.asked().retain(|id, _| ids.contains(id));
    }
}

#[async_trait(?Send)]
impl Sweep for Starter {
    fn name(&self) -> &'static str {
        "rental_starts"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }
    async fn before_advance(&self, _ctx: &Ctx) -> Result<()> {
        self.is_moving.store(true, Ordering::Relaxed);
        Ok(())
    }
    async fn after_advance(&self, _ctx: &Ctx) -> Result<()> {
        self.is_moving.store(false, Ordering::Relaxed);
        Ok(())
    }
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        let waiting = service::list_waiting(ctx).await?;
        self.forget_all_but(&waiting);
        for rental in waiting.iter().filter(|w| !w.is_provisioning) {
            service::note_provisioning(ctx, rental.rental_id).await?;
        }
        let mut answers: FuturesUnordered<_> =
            waiting.into_iter().map(|w| self.ask(ctx, w).map(move |model| (w.rental_id, model))).collect();
        let patience = if self.is_moving.load(Ordering::Relaxed) { PATIENCE_MOVING } else { PATIENCE };
        let over = tokio::time::sleep(patience);
        tokio::pin!(over);
        let mut first_fault = None;
        loop {
            let (id, model) = tokio::select! {
                answer = answers.next() => match answer {
                    Some(answer) => answer,
                    None => break,
                },
                () = &mut over => break,
            };
            self.asked().remove(&id);
            let Some(model) = model else { continue };
            if let Err(fault) = service::activate(ctx, id, &model).await {
                tracing::error!(rental.id = %id, error = ?fault, "a rental could not be started");
                first_fault.get_or_insert(fault);
            }
        }
        first_fault.map_or(Ok(()), Err)
    }
}
