//! What can be done with rentals. Each function is one use case; those that change something run in one transaction.

mod accept;
mod announce;
mod extend;
mod money;
mod settle;
mod start;
mod tick;
mod view;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    model::{Rental, RentalEvent, RentalOnStatement, RentalView, Usage},
    queries,
    state::{EndReason, Status},
};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, RentalId},
    },
    config::Tunables,
    ctx::Ctx,
    db::Conn,
    identity::Caller,
    machines,
};

pub use accept::{RentRequest, accept, served_model};
pub use extend::{ExtendRequest, extend};
pub use start::{Waiting, activate, first_answer, list_waiting, note_provisioning};

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
    let (found, received_at) = {
        let mut conn = ctx.db.conn().await?;
        (fetch_visible(&mut conn, account, id).await?, ctx.business_now(&mut conn).await?)
    };
    let reason = if found.renter_account_id == account { EndReason::RenterStopped } else { EndReason::HostStopped };
    if found.status()? == Status::Active && found.paused_at.is_none() {
        // Nobody has asked the machine for a while (the workers were away): whether it was there decides what is billed.
        machines::service::refresh_signs(ctx, found.machine_id, pause_after(&ctx.config.tunables)).await?;
    }
    ctx.db
        .tx("rental_stop", async |tx| {
            let mut rental = settle::lock(tx, id).await?.ok_or_else(|| Error::not_found("rental"))?;
            // Billing ends at the receipt, unless another step has billed further while this one waited for the lock.
            let at = rental.settled_through.map_or(received_at, |settled| settled.max(received_at));
            settle::settle(ctx, tx, &mut rental, at).await?;
            if rental.status()?.is_over() {
                return Ok(());
            }
            settle::stop(ctx, tx, &mut rental, reason, received_at, at).await
        })
        .await?;
    fetch(ctx, account, id).await
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

/// These rentals as a statement over `from` until before `to` names them.
///
/// # Errors
/// The database's own faults.
pub async fn on_statement(
    conn: &mut Conn,
    ids: &[RentalId],
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<HashMap<RentalId, RentalOnStatement>> {
    view::on_statement(conn, ids, from, to).await
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

/// The renter's active rentals, for the endpoint. Those for which something is due are settled first, so that none gives access beyond its end
/// even while no worker runs.
///
/// # Errors
/// The database's own faults.
pub async fn active_of_renter(ctx: &Ctx, renter: AccountId) -> Result<Vec<Rental>> {
    let (rentals, now) = {
        let mut conn = ctx.db.conn().await?;
        (queries::rental_list_active(&mut conn, renter).await?, ctx.business_now(&mut conn).await?)
    };
    let mut active = Vec::with_capacity(rentals.len());
    for rental in rentals {
        if rental.next_due_at.is_none_or(|due| due > now) {
            active.push(rental);
        } else if let Some(settled) = settle_one(ctx, rental.id, now).await?
            && gives_access(settled.status()?, settled.next_due_at, now)
        {
            active.push(settled);
        }
    }
    Ok(active)
}

/// Something that is still due after settling is the end, which waits for the machine's next sign to tell how much of it is billed.
fn gives_access(status: Status, next_due_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    status == Status::Active && next_due_at.is_none_or(|due| due > now)
}

/// Whether the rental still gives access, as [`active_of_renter`] says.
///
/// # Errors
/// The database's own faults.
pub async fn is_active(ctx: &Ctx, id: RentalId) -> Result<bool> {
    let (found, now) = {
        let mut conn = ctx.db.conn().await?;
        (queries::rental_status(&mut conn, id).await?, ctx.business_now(&mut conn).await?)
    };
    let Some((status, next_due_at)) = found else { return Ok(false) };
    let status = Status::parse(&status).ok_or_else(|| Error::internal(format!("rental status {status}")))?;
    if status != Status::Active || gives_access(status, next_due_at, now) {
        return Ok(status == Status::Active);
    }
    let settled = settle_one(ctx, id, now).await?;
    settled.map_or(Ok(false), |rental| Ok(gives_access(rental.status()?, rental.next_due_at, now)))
}

fn pause_after(tunables: &Tunables) -> TimeDelta {
    TimeDelta::seconds(tunables.host_silent_pause_seconds)
}

async fn settle_one(ctx: &Ctx, id: RentalId, now: DateTime<Utc>) -> Result<Option<Rental>> {
    ctx.db
        .tx("rental_settle", async |tx| {
            let Some(mut rental) = settle::lock(tx, id).await? else { return Ok(None) };
            settle::settle(ctx, tx, &mut rental, now).await?;
            Ok(Some(rental))
        })
        .await
}

/// Bills the plain ones of a lot in one transaction. None when that fails: each is settled by itself then.
async fn bill_plain(ctx: &Ctx, lot: &[RentalId], now: DateTime<Utc>) -> HashSet<RentalId> {
    let billed = ctx.db.tx("rental_bill", async |tx| tick::bill_plain(tx, lot, now, &ctx.config.tunables).await).await;
    billed.unwrap_or_else(|fault| {
        tracing::warn!(error = ?fault, "rentals could not be billed together");
        HashSet::new()
    })
}

/// Brings every rental with something due up to `now`; safe to run at any time, in several processes at once.
///
/// # Errors
/// The first fault; the others have been tried all the same.
pub async fn settle_due(ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
    const TICK: TimeDelta = TimeDelta::seconds(60);
    const BATCH: i64 = 500;
    /// The platform's own ledger accounts are locked for as long as a lot takes.
    const LOT: usize = 50;
    let mut first_fault = None;
    let mut after = None;
    loop {
        let due = {
            let mut conn = ctx.db.conn().await?;
            queries::rental_list_due(&mut conn, now, TICK, pause_after(&ctx.config.tunables), after, BATCH).await?
        };
        let Some(last) = due.last().copied() else { break };
        after = Some(last);
        for lot in due.chunks(LOT) {
            let billed = bill_plain(ctx, lot, now).await;
            for id in lot.iter().filter(|id| !billed.contains(id)) {
                if let Err(fault) = settle_one(ctx, *id, now).await {
                    tracing::error!(rental.id = %id, error = ?fault, "a rental could not be settled");
                    first_fault.get_or_insert(fault);
                }
            }
        }
    }
    first_fault.map_or(Ok(()), Err)
}

/// The next instant after `after` at which `settle_due` must run for everything to come out as if it ran all the time. That a hold has to be
/// renewed is no reason to stop while the renter's money lasts for long; the instants of the warnings are.
///
/// # Errors
/// The database's own faults.
pub async fn next_due(conn: &mut Conn, ctx: &Ctx, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    let tunables = &ctx.config.tunables;
    let end_after = TimeDelta::seconds(tunables.host_silent_end_seconds);
    let by_itself = queries::rental_next_due(conn, after, pause_after(tunables), end_after).await?;
    let running = queries::rental_list_running(conn, None).await?;
    let runways = money::runways(conn, &running, after).await?;
    let renewals = running.iter().filter_map(|rental| {
        let due = rental.next_due_at.filter(|due| *due > after)?;
        let runway_seconds = runways.get(&rental.renter_account_id).copied().unwrap_or(0);
        Some(renewal_due(after, due, runway_seconds))
    });
    let caps = running.iter().filter_map(|rental| rental.reaches_cap_at().filter(|due| *due > after));
    Ok(by_itself.into_iter().chain(renewals).chain(caps).min())
}

/// Down to the second warning nothing can go wrong between two looks; from there on the holds are renewed one by one.
fn renewal_due(after: DateTime<Utc>, due: DateTime<Utc>, runway_seconds: i64) -> DateTime<Utc> {
    let [day, hours, minutes] = money::RUNWAY_WARNINGS_SECONDS.map(i64::from);
    let later = |threshold: i64| after + TimeDelta::seconds(runway_seconds.saturating_sub(threshold));
    match runway_seconds {
        long if long > day => due.max(later(day)),
        medium if medium > hours => due.max(later(hours)),
        short if short > minutes => due.min(later(minutes)),
        _ => due,
    }
}
