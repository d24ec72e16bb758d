//! Bringing one rental up to the present: the step that `state` names, its charge, its hold and its end, in the transaction that holds the
//! rental's lock.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::{
    super::{
        model::{Rental, SegmentRow},
        queries,
        state::{self, EndReason, Signs, Status, Step},
    },
    announce, money,
};
use crate::{
    base::{Error, Money, Result, id::RentalId},
    config::Tunables,
    ctx::Ctx,
    db::{Conn, Tx},
    machines, market,
};

/// A rental takes at most this many steps at once (silence, recovery, end …); more means a rule that does not come to rest.
const STEPS_MAX: usize = 8;

/// What one step leaves to do.
enum Progress {
    /// Another step may be due at the same instant.
    Again,
    /// Nothing more until then; `None` for a rental that is over.
    Rest(Option<DateTime<Utc>>),
}

/// Locks a rental for a change, the listing before it: `end` writes to the listing, and accepting locks the listing first.
///
/// # Errors
/// The database's own faults.
pub(super) async fn lock(tx: &mut Tx<'_>, id: RentalId) -> Result<Option<Rental>> {
    let Some(found) = queries::rental_fetch(tx, id).await? else { return Ok(None) };
    market::service::lock(tx, found.listing_id).await?;
    queries::rental_lock(tx, id).await
}

/// Brings the rental up to `now`. The caller holds its lock ([`lock`]); the row is written back before this returns.
///
/// # Errors
/// The database's own faults; `internal` when the rules do not come to rest.
pub(super) async fn settle(ctx: &Ctx, tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>) -> Result<()> {
    for _ in 0..STEPS_MAX {
        let progress = match rental.status()? {
            Status::Reserved => begin_when_due(tx, rental, now, &ctx.config.tunables).await?,
            Status::Held | Status::Provisioning => end_when_late(ctx, tx, rental, now).await?,
            Status::Active => step_active(ctx, tx, rental, now).await?,
            Status::Stopping | Status::Ended | Status::Failed => Progress::Rest(None),
        };
        if let Progress::Rest(due) = progress {
            rental.next_due_at = due;
            return queries::rental_update(tx, rental).await;
        }
    }
    Err(Error::internal(format!("rental {} does not come to rest", rental.id)))
}

async fn begin_when_due(tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>, tunables: &Tunables) -> Result<Progress> {
    if rental.starts_at > now {
        return Ok(Progress::Rest(Some(rental.starts_at)));
    }
    rental.move_to(Status::Held)?;
    rental.boot_deadline_at = rental.starts_at + TimeDelta::seconds(tunables.boot_timeout_seconds);
    queries::event_insert(tx, rental.id, "started", json!({}), rental.starts_at).await?;
    Ok(Progress::Again)
}

/// A start that takes too long fails; one whose deadline comes before that just ends. Neither costs anything.
async fn end_when_late(ctx: &Ctx, tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>) -> Result<Progress> {
    let boot_timeout = (rental.boot_deadline_at, EndReason::BootTimeout);
    let (at, reason) = rental.ends_at.map(|at| (at, EndReason::Deadline)).filter(|(at, _)| *at < boot_timeout.0).unwrap_or(boot_timeout);
    if at > now {
        return Ok(Progress::Rest(Some(at)));
    }
    // One that nobody asked (the service was down) did not fail.
    let was_asked = rental.status()? == Status::Provisioning;
    if was_asked && reason == EndReason::BootTimeout {
        machines::service::note_start_failure(tx, rental.machine_id).await?;
    }
    end(ctx, tx, rental, reason, at).await?;
    Ok(Progress::Rest(None))
}

/// What is known of the machine.
async fn signs(conn: &mut Conn, rental: &Rental, tunables: &Tunables) -> Result<Signs> {
    let machine = machines::service::fetch(conn, rental.machine_id).await?;
    Ok(Signs {
        last_seen_at: machine.last_seen_at.unwrap_or(rental.created_at),
        failing_since: machine.probe_failed_at,
        pause_after: TimeDelta::seconds(tunables.host_silent_pause_seconds),
        end_after: TimeDelta::seconds(tunables.host_silent_end_seconds),
    })
}

async fn step_active(ctx: &Ctx, tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>) -> Result<Progress> {
    let signs = signs(tx, rental, &ctx.config.tunables).await?;
    if let Some(paused_at) = rental.paused_at {
        return step_paused(ctx, tx, rental, now, paused_at, &signs).await;
    }
    let mut row = open_segment(tx, rental).await?;
    let funds = money::renew_hold(tx, rental, row.segment(), now).await?;
    match state::step_running(now, &rental.terms(), row.segment(), funds, &signs) {
        Step::End { bill_through, at, reason } => {
            close_segment(tx, rental, &mut row, bill_through).await?;
            end(ctx, tx, rental, reason, at).await?;
            Ok(Progress::Rest(None))
        }
        Step::Pause { at } => {
            close_segment(tx, rental, &mut row, at).await?;
            rental.paused_at = Some(at);
            queries::event_insert(tx, rental.id, "paused", json!({"last_seen_at": at}), now).await?;
            Ok(Progress::Again)
        }
        Step::Bill { through } => {
            money::charge_through(tx, rental, &mut row, through).await?;
            if let Some(runway_seconds) = money::warn_of_short_runway(tx, rental, row.segment(), now).await? {
                announce::low_funds(ctx, tx, rental, runway_seconds).await?;
            }
            let renew = money::next_renewal(tx, rental, row.segment(), funds.at_cap, now).await?;
            Ok(Progress::Rest([renew, rental.ends_at].into_iter().flatten().min()))
        }
        Step::Resume { .. } | Step::Wait => Err(Error::internal("a running rental can neither resume nor wait")),
    }
}

async fn step_paused(
    ctx: &Ctx,
    tx: &mut Tx<'_>,
    rental: &mut Rental,
    now: DateTime<Utc>,
    paused_at: DateTime<Utc>,
    signs: &Signs,
) -> Result<Progress> {
    match state::step_paused(now, &rental.terms(), paused_at, signs) {
        Step::Resume { at } => {
            open_new_segment(tx, rental, at).await?;
            rental.paused_at = None;
            queries::event_insert(tx, rental.id, "resumed", json!({}), at).await?;
            Ok(Progress::Again)
        }
        Step::End { at, reason, .. } => {
            end(ctx, tx, rental, reason, at).await?;
            Ok(Progress::Rest(None))
        }
        Step::Wait => Ok(Progress::Rest([Some(signs.lost_at(paused_at)), rental.ends_at].into_iter().flatten().min())),
        Step::Bill { .. } | Step::Pause { .. } => Err(Error::internal("a paused rental can neither bill nor pause")),
    }
}

async fn open_segment(tx: &mut Tx<'_>, rental: &Rental) -> Result<SegmentRow> {
    let rows = queries::segment_list(tx, rental.id).await?;
    rows.into_iter().find(|r| r.ended_at.is_none()).ok_or_else(|| Error::internal(format!("rental {} has no open segment", rental.id)))
}

/// Starts a new span of billed time.
pub(super) async fn open_new_segment(tx: &mut Tx<'_>, rental: &Rental, at: DateTime<Utc>) -> Result<()> {
    let sequence = i32::try_from(queries::segment_list(tx, rental.id).await?.len()).map_err(Error::internal)?;
    let row = SegmentRow { rental_id: rental.id, sequence, started_at: at, ended_at: None, gross_posted_micros: Money::ZERO };
    queries::segment_insert(tx, &row).await
}

/// Bills the span through `at`, its end.
async fn close_segment(tx: &mut Tx<'_>, rental: &mut Rental, row: &mut SegmentRow, at: DateTime<Utc>) -> Result<()> {
    // money.md 10: an end before the start costs nothing and raises an alarm.
    if at < row.started_at {
        tracing::error!(rental.id = %row.rental_id, "a billed span would end before it starts");
        metrics::counter!("rigmark_clock_alarms_total").increment(1);
    }
    let at = at.max(row.started_at);
    money::charge_through(tx, rental, row, at).await?;
    row.ended_at = Some(at);
    queries::segment_update(tx, row).await
}

/// Ends the rental as of `at`: the rest of the hold back, the machine free. The caller holds the listing's
/// lock: a reservation that is just being accepted is either counted here or sees the machine free.
async fn end(ctx: &Ctx, tx: &mut Tx<'_>, rental: &mut Rental, reason: EndReason, at: DateTime<Utc>) -> Result<()> {
    money::release(tx, rental, at).await?;
    let status = if reason == EndReason::BootTimeout { Status::Failed } else { Status::Ended };
    rental.move_to(status)?;
    rental.end_reason = Some(reason.as_str().to_owned());
    rental.ended_at = Some(at);
    rental.paused_at = None;
    rental.next_due_at = None;
    if at > rental.starts_at {
        rental.period = super::super::model::period(rental.starts_at, Some(at));
    }
    queries::event_insert(tx, rental.id, status.as_str(), json!({"reason": reason.as_str()}), at).await?;
    machines::service::unwatch(tx, rental.machine_id, &watch_reason(rental)).await?;
    let others = queries::rental_count_live_of_machine(tx, rental.machine_id, rental.id).await?;
    if others == 0 {
        market::service::set_taken(tx, rental.listing_id, false).await?;
    }
    announce::over(ctx, tx, rental).await
}

/// Why signs of life of the machine are wanted: this rental.
pub(super) fn watch_reason(rental: &Rental) -> String {
    rental.id.to_string()
}

/// Stops a rental whose stop came in at `received_at`, in any state but over, after it has been settled through `at`: the same instant unless
/// another step was faster. What was used is billed while the machine was there: through its last sign when it fails, else through `at`.
pub(super) async fn stop(
    ctx: &Ctx,
    tx: &mut Tx<'_>,
    rental: &mut Rental,
    reason: EndReason,
    received_at: DateTime<Utc>,
    at: DateTime<Utc>,
) -> Result<()> {
    rental.stop_requested_at.get_or_insert(received_at);
    if rental.status()? == Status::Active && rental.paused_at.is_none() {
        let mut row = open_segment(tx, rental).await?;
        let signs = signs(tx, rental, &ctx.config.tunables).await?;
        let is_there = signs.failing_since.is_none();
        let there_until = if is_there { at } else { at.min(signs.last_seen_at).max(row.started_at) };
        close_segment(tx, rental, &mut row, there_until).await?;
        // Not for a machine that is not there, nor when the first token came after the stop.
        if is_there && rental.active_at.is_some_and(|active_at| active_at <= received_at) {
            money::charge_least_length(tx, rental, reason, at).await?;
        }
    }
    end(ctx, tx, rental, reason, at).await?;
    queries::rental_update(tx, rental).await
}
