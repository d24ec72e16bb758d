//! Starting a rental: one token through the whole path to the machine's engine makes it active (money.md 12).

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;
use serde_json::json;

use super::{
    super::{
        model::{Rental, period},
        queries,
        state::Status,
    },
    settle,
};
use crate::{
    base::{Code, Result, id::RentalId},
    ctx::Ctx,
    db::Tx,
    machines,
};

const BATCH: i64 = 100;
const AT_ONCE: usize = 16;

/// Asks the machine of every rental that waits for its first answer. Nothing here is in a transaction: a machine may take its time.
///
/// # Errors
/// The database's own faults. A machine that does not answer is asked again later.
pub async fn start_waiting(ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
    let waiting = {
        let mut conn = ctx.db.conn().await?;
        queries::rental_list_starting(&mut conn, now, BATCH).await?
    };
    let outcomes: Vec<Result<()>> =
        futures::stream::iter(waiting).map(|rental| start_one(ctx, rental)).buffer_unordered(AT_ONCE).collect().await;
    outcomes.into_iter().collect()
}

async fn start_one(ctx: &Ctx, rental: Rental) -> Result<()> {
    if rental.status()? == Status::Held {
        note_provisioning(ctx, rental.id).await?;
    }
    let machine = {
        let mut conn = ctx.db.conn().await?;
        machines::service::fetch(&mut conn, rental.machine_id).await?
    };
    let Some(model) = first_answer(ctx, &machine).await else { return Ok(()) };
    ctx.db
        .tx("rental_activate", async |tx| {
            let Some(locked) = queries::rental_lock(tx, rental.id).await? else { return Ok(()) };
            activate(ctx, tx, locked, &model).await
        })
        .await
}

async fn note_provisioning(ctx: &Ctx, id: RentalId) -> Result<()> {
    ctx.db
        .tx("rental_provision", async |tx| {
            let Some(mut rental) = queries::rental_lock(tx, id).await? else { return Ok(()) };
            if rental.status()? != Status::Held {
                return Ok(());
            }
            rental.status = Status::Provisioning.as_str().to_owned();
            let now = ctx.business_now(tx).await?;
            queries::event_insert(tx, id, "provisioning", json!({}), now).await?;
            queries::rental_update(tx, &rental).await
        })
        .await
}

/// The model that answered one token, or none.
async fn first_answer(ctx: &Ctx, machine: &machines::model::Machine) -> Option<String> {
    let answer = async {
        let target = machines::service::target(ctx, machine)?;
        let models = ctx.engines.models(&target).await?;
        let model = models.into_iter().next().ok_or_else(|| crate::base::Error::new(Code::EngineError, "The engine names no model."))?;
        ctx.engines.one_token_probe(&target, &model).await?;
        Ok::<_, crate::base::Error>(model)
    };
    match answer.await {
        Ok(model) => Some(model),
        Err(error) => {
            tracing::info!(machine.id = %machine.id, code = error.code().as_str(), "the machine has not answered yet");
            None
        }
    }
}

/// The first billed second. A rental that was stopped meanwhile stays as it is: a late "ready" changes nothing.
async fn activate(ctx: &Ctx, tx: &mut Tx<'_>, mut rental: Rental, model: &str) -> Result<()> {
    if !matches!(rental.status()?, Status::Held | Status::Provisioning) {
        return Ok(());
    }
    let now = ctx.business_now(tx).await?;
    if now >= rental.boot_deadline_at {
        return settle::settle(tx, &mut rental, now, &ctx.config.tunables).await;
    }
    rental.status = Status::Active.as_str().to_owned();
    rental.active_at = Some(now);
    rental.settled_through = Some(now);
    rental.model = Some(model.to_owned());
    if let Some(hours) = rental.hours {
        // The length is counted from the first billed second, unless somebody has the machine after that.
        let wanted = now + TimeDelta::hours(i64::from(hours));
        let next = queries::rental_next_start(tx, rental.machine_id, rental.starts_at, rental.id).await?;
        let ends_at = next.map_or(wanted, |n| n.min(wanted));
        rental.ends_at = Some(ends_at);
        rental.period = period(rental.starts_at, Some(ends_at));
    }
    rental.next_due_at = Some(now);
    machines::service::note_seen(tx, rental.machine_id, now).await?;
    settle::open_new_segment(tx, &rental, now).await?;
    queries::event_insert(tx, rental.id, "active", json!({"model": model}), now).await?;
    queries::rental_update(tx, &rental).await?;
    settle::settle(tx, &mut rental, now, &ctx.config.tunables).await
}
