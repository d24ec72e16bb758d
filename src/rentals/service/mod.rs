//! What can be done with rentals. Each function is one use case; those that change something run in one transaction.

mod accept;
mod settle;
mod start;
mod view;

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    model::{Rental, RentalEvent, RentalView, Usage},
    queries,
    state::{EndReason, Status},
};
use crate::{
    base::{
        Code, Error, Money, Result,
        id::{AccountId, RentalId},
    },
    ctx::Ctx,
    db::{Conn, Tx},
    identity::Caller,
};

pub use accept::{RentRequest, accept};
pub use start::start_waiting;

/// What `extend` may change.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    /// Hours to add to the deadline.
    pub hours: Option<i32>,
    /// The new deadline, later than the old one.
    pub ends_at: Option<DateTime<Utc>>,
    /// The new cap, higher than the old one.
    pub max_spend: Option<Money>,
}

/// Which rentals to list.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    pub status: Option<Status>,
    pub before: Option<RentalId>,
    pub limit: i64,
}

/// The rental, when the account is its renter or its host; otherwise it does not exist for them.
async fn fetch_visible(conn: &mut Conn, account: AccountId, id: RentalId) -> Result<Rental> {
    let rental = queries::rental_fetch(conn, id).await?;
    rental.filter(|r| r.renter_account_id == account || r.host_account_id == account).ok_or_else(|| Error::not_found("rental"))
}

/// Locks the rental and brings it up to `now`.
async fn lock_and_settle(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId, id: RentalId, now: DateTime<Utc>) -> Result<Rental> {
    let rental = queries::rental_lock(tx, id).await?;
    let visible = rental.filter(|r| r.renter_account_id == account || r.host_account_id == account);
    let mut rental = visible.ok_or_else(|| Error::not_found("rental"))?;
    settle::settle(tx, &mut rental, now, &ctx.config.tunables).await?;
    Ok(rental)
}

/// # Errors
/// `not_found` when there is none for this account.
pub async fn fetch(ctx: &Ctx, account: AccountId, id: RentalId) -> Result<RentalView> {
    let mut conn = ctx.db.conn().await?;
    let rental = fetch_visible(&mut conn, account, id).await?;
    view::one(ctx, &mut conn, rental).await
}

/// # Errors
/// The database's own faults.
pub async fn list(ctx: &Ctx, account: AccountId, filter: &ListFilter) -> Result<Vec<RentalView>> {
    let mut conn = ctx.db.conn().await?;
    let status = filter.status.map(Status::as_str);
    let rentals = queries::rental_list(&mut conn, account, status, filter.before, filter.limit).await?;
    view::many(ctx, &mut conn, rentals).await
}

/// Ends the rental now, whatever it is doing; a rental that is over stays as it is (money.md 13).
///
/// # Errors
/// `not_found` when there is none for this account.
pub async fn stop(ctx: &Ctx, caller: &Caller, id: RentalId) -> Result<RentalView> {
    let account = caller.account_id;
    ctx.db
        .tx("rental_stop", async |tx| {
            // The clock is read after the lock: a stop that waited for another step must not end before what that step billed.
            let found = queries::rental_lock(tx, id).await?;
            if found.is_none() {
                return Err(Error::not_found("rental"));
            }
            let now = ctx.business_now(tx).await?;
            let mut rental = lock_and_settle(ctx, tx, account, id, now).await?;
            if !rental.status()?.is_over() {
                let reason = if rental.renter_account_id == account { EndReason::RenterStopped } else { EndReason::HostStopped };
                settle::stop(tx, &mut rental, reason, now).await?;
            }
            Ok(())
        })
        .await?;
    fetch(ctx, account, id).await
}

/// Moves the deadline or raises the cap of a running rental. Only the renter may.
///
/// # Errors
/// `already_rented` when the machine is taken later, `invalid_state` when the rental is over or has no deadline to move, `invalid_input`.
pub async fn extend(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId, id: RentalId, request: &ExtendRequest) -> Result<RentalView> {
    if request.hours.is_none() && request.ends_at.is_none() && request.max_spend.is_none() {
        return Err(Error::invalid("", "missing_field", "Give hours, ends_at or max_spend."));
    }
    if request.hours.is_some() && request.ends_at.is_some() {
        return Err(Error::invalid("/ends_at", "conflicting_field", "Give hours or ends_at, not both."));
    }
    let now = ctx.business_now(tx).await?;
    let mut rental = lock_and_settle(ctx, tx, account, id, now).await?;
    if rental.renter_account_id != account {
        return Err(Error::new(Code::Forbidden, "Only the renter can extend a rental."));
    }
    if rental.status()?.is_over() {
        return Err(Error::new(Code::InvalidState, "The rental is over."));
    }
    extend_deadline(&mut rental, request, now)?;
    if let Some(cap) = request.max_spend {
        if rental.max_spend_micros.is_none_or(|old| cap <= old) {
            return Err(Error::invalid("/max_spend", "too_small", "max_spend can only be raised."));
        }
        rental.max_spend_micros = Some(cap);
    }
    rental.next_due_at = Some(now);
    let detail = json!({"ends_at": rental.ends_at, "max_spend": rental.max_spend_micros});
    queries::event_insert(tx, rental.id, "extended", detail, now).await?;
    queries::rental_update(tx, &rental).await?;
    settle::settle(tx, &mut rental, now, &ctx.config.tunables).await?;
    view::one(ctx, tx, rental).await
}

fn extend_deadline(rental: &mut Rental, request: &ExtendRequest, now: DateTime<Utc>) -> Result<()> {
    let no_deadline = || Error::new(Code::InvalidState, "The rental has no deadline to move.");
    let ends_at = match (request.hours, request.ends_at) {
        (None, None) => return Ok(()),
        (Some(hours), _) if !(1..=8_760).contains(&hours) => {
            return Err(Error::invalid("/hours", "out_of_range", "hours is from 1 to 8760."));
        }
        (Some(hours), _) => match (rental.ends_at, rental.hours) {
            (Some(ends_at), _) => {
                rental.hours = rental.hours.map(|h| h.saturating_add(hours));
                ends_at + chrono::TimeDelta::hours(i64::from(hours))
            }
            (None, _) => return Err(no_deadline()),
        },
        (None, Some(ends_at)) => {
            let old = rental.ends_at.ok_or_else(no_deadline)?;
            if ends_at <= old || ends_at <= now {
                return Err(Error::invalid("/ends_at", "too_early", "ends_at must be later than the present deadline."));
            }
            ends_at
        }
    };
    let start = rental.active_at.unwrap_or(rental.starts_at);
    if let Some(max_hours) = rental.max_hours
        && ends_at - start > chrono::TimeDelta::hours(i64::from(max_hours))
    {
        return Err(Error::invalid("/ends_at", "too_long", format!("This listing is rented for at most {max_hours} hours.")));
    }
    rental.ends_at = Some(ends_at);
    rental.period = super::model::period(rental.starts_at, Some(ends_at));
    Ok(())
}

/// What the rental has cost and why.
///
/// # Errors
/// `not_found` when there is none for this account.
pub async fn usage(ctx: &Ctx, account: AccountId, id: RentalId) -> Result<Usage> {
    let mut conn = ctx.db.conn().await?;
    let rental = fetch_visible(&mut conn, account, id).await?;
    view::usage(&mut conn, &rental).await
}

/// Events of the rental after `after`, and whether more may come.
///
/// # Errors
/// `not_found` when there is none for this account.
pub async fn events(ctx: &Ctx, account: AccountId, id: RentalId, after: i64) -> Result<(Vec<RentalEvent>, bool)> {
    let mut conn = ctx.db.conn().await?;
    let rental = fetch_visible(&mut conn, account, id).await?;
    let over = rental.status()?.is_over();
    Ok((queries::event_list(&mut conn, id, after).await?, !over))
}

/// The renter's active rentals, for the endpoint.
///
/// # Errors
/// The database's own faults.
pub async fn active_of_renter(conn: &mut Conn, renter: AccountId) -> Result<Vec<Rental>> {
    queries::rental_list_active(conn, renter).await
}

/// Whether the rental still gives access.
///
/// # Errors
/// The database's own faults.
pub async fn is_active(conn: &mut Conn, id: RentalId) -> Result<bool> {
    queries::rental_is_active(conn, id).await
}

/// Brings every rental with something due up to `now`; safe to run at any time, in several processes at once.
///
/// # Errors
/// The first fault; the others have been tried all the same.
pub async fn settle_due(ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
    const TICK_SECONDS: i64 = 60;
    const BATCH: i64 = 500;
    let tunables = &ctx.config.tunables;
    let pause_after = chrono::TimeDelta::seconds(tunables.host_silent_pause_seconds);
    let due = {
        let mut conn = ctx.db.conn().await?;
        queries::rental_list_due(&mut conn, now, chrono::TimeDelta::seconds(TICK_SECONDS), pause_after, BATCH).await?
    };
    let mut first_fault = None;
    for id in due {
        let settled = ctx
            .db
            .tx("rental_settle", async |tx| match queries::rental_lock(tx, id).await? {
                Some(mut rental) => settle::settle(tx, &mut rental, now, tunables).await,
                None => Ok(()),
            })
            .await;
        if let Err(fault) = settled {
            tracing::error!(rental.id = %id, error = ?fault, "a rental could not be settled");
            first_fault.get_or_insert(fault);
        }
    }
    first_fault.map_or(Ok(()), Err)
}

/// The next instant at which `settle_due` has something to do.
///
/// # Errors
/// The database's own faults.
pub async fn next_due(conn: &mut Conn, ctx: &Ctx, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    let tunables = &ctx.config.tunables;
    let pause_after = chrono::TimeDelta::seconds(tunables.host_silent_pause_seconds);
    let end_after = chrono::TimeDelta::seconds(tunables.host_silent_end_seconds);
    queries::rental_next_due(conn, after, pause_after, end_after).await
}
