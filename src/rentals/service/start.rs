//! Starting a rental: one token through the whole path to the machine's engine makes it active (money.md 12).

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::{
    super::{
        model::{Rental, period},
        queries,
        state::Status,
    },
    announce, settle,
};
use crate::{
    base::{
        Code, Error, Result,
        id::{MachineId, RentalId},
    },
    ctx::Ctx,
    db::Tx,
    machines,
};

/// Rentals that wait at once; more than that wait for the older ones to start or fail.
const WAITING_MAX: i64 = 1_000;

/// A rental that waits for its machine's first answer.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub rental_id: RentalId,
    pub machine_id: MachineId,
    /// The machine was asked before.
    pub is_provisioning: bool,
}

/// Rentals that wait for their machine's first answer, oldest first.
///
/// # Errors
/// The database's own faults.
pub async fn list_waiting(ctx: &Ctx) -> Result<Vec<Waiting>> {
    let mut conn = ctx.db.conn().await?;
    let rentals = queries::rental_list_starting(&mut conn, WAITING_MAX).await?;
    let waiting =
        |r: &Rental| Ok(Waiting { rental_id: r.id, machine_id: r.machine_id, is_provisioning: r.status()? == Status::Provisioning });
    rentals.iter().map(waiting).collect()
}

/// Writes down that the machine is being asked.
///
/// # Errors
/// The database's own faults.
pub async fn note_provisioning(ctx: &Ctx, id: RentalId) -> Result<()> {
    ctx.db
        .tx("rental_provision", async |tx| {
            let Some(mut rental) = queries::rental_lock(tx, id).await? else { return Ok(()) };
            if rental.status()? != Status::Held {
                return Ok(());
            }
            rental.move_to(Status::Provisioning)?;
            let now = ctx.business_now(tx).await?;
            queries::event_insert(tx, id, "provisioning", json!({}), now).await?;
            queries::rental_update(tx, &rental).await
        })
        .await
}

/// The model that answered one token, or none. A machine may take its time: no transaction is open and nothing waits for it.
pub async fn first_answer(ctx: Ctx, id: MachineId) -> Option<String> {
    let answer = async {
        let machine = {
            let mut conn = ctx.db.conn().await?;
            machines::service::fetch(&mut conn, id).await?
        };
        let target = machines::service::target(&ctx, &machine)?;
        let models = ctx.engines.models(&target).await?;
        let model = models.into_iter().next().ok_or_else(|| Error::new(Code::EngineError, "The engine names no model."))?;
        ctx.engines.one_token_probe(&target, &model).await?;
        Ok::<_, Error>(model)
    };
    match answer.await {
        Ok(model) => Some(model),
        Err(error) => {
            tracing::info!(machine.id = %id, code = error.code().as_str(), "the machine has not answered yet");
            None
        }
    }
}

/// The first billed second. A rental that was stopped meanwhile stays as it is: a late "ready" changes nothing.
///
/// # Errors
/// The database's own faults.
pub async fn activate(ctx: &Ctx, id: RentalId, model: &str) -> Result<()> {
    ctx.db
        .tx("rental_activate", async |tx| {
            let Some(mut rental) = settle::lock(tx, id).await? else { return Ok(()) };
            let now = ctx.business_now(tx).await?;
            // Its time may have run out while the machine was asked.
            settle::settle(ctx, tx, &mut rental, now).await?;
            if !matches!(rental.status()?, Status::Held | Status::Provisioning) {
                return Ok(());
            }
            begin(tx, &mut rental, model, now).await?;
            announce::started(ctx, tx, &rental).await?;
            machines::service::note_seen(tx, rental.machine_id, now).await?;
            settle::settle(ctx, tx, &mut rental, now).await
        })
        .await
}

async fn begin(tx: &mut Tx<'_>, rental: &mut Rental, model: &str, now: DateTime<Utc>) -> Result<()> {
    if rental.status()? == Status::Held {
        rental.move_to(Status::Provisioning)?;
    }
    rental.move_to(Status::Active)?;
    rental.active_at = Some(now);
    rental.settled_through = Some(now);
    rental.model = Some(model.to_owned());
    if let Some(hours) = rental.hours {
        // The length is counted from the first billed second, unless somebody has the machine after that or the host wants it back.
        let wanted = now + TimeDelta::hours(i64::from(hours));
        let next = queries::rental_next_start(tx, rental.machine_id, rental.starts_at, rental.id).await?;
        let ends_at = [Some(wanted), next, rental.latest_end_at].into_iter().flatten().min().unwrap_or(wanted);
        rental.ends_at = Some(ends_at);
        rental.period = period(rental.starts_at, Some(ends_at));
    }
    settle::open_new_segment(tx, rental, now).await?;
    queries::event_insert(tx, rental.id, "active", json!({"model": model}), now).await?;
    queries::rental_update(tx, rental).await
}
