//! Bringing one rental up to the present: the step that `state` names, its charge, its hold and its end, in the transaction that holds the
//! rental's lock.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::super::{
    model::{Rental, SegmentRow},
    queries,
    state::{self, EndReason, Funds, Segment, Signs, Status, Step},
};
use crate::{
    base::{Error, Money, Result},
    config::Tunables,
    db::Tx,
    ledger::{
        self, Charge,
        model::{Capture, derived_id},
    },
    machines, market,
};

/// While active the hold is kept ahead of use by this much …
const HOLD_AHEAD: TimeDelta = TimeDelta::hours(1);
/// … and renewed when less than this is left.
const HOLD_MARGIN: TimeDelta = TimeDelta::minutes(10);
/// Runway at which the renter is warned, longest first (money.md 17).
const RUNWAY_WARNINGS_SECONDS: [i32; 3] = [24 * 3_600, 2 * 3_600, 15 * 60];
/// A rental takes at most this many steps at once (silence, recovery, end …); more means a rule that does not come to rest.
const STEPS_MAX: usize = 8;

/// Brings the rental up to `now`. The caller holds its lock; the row is written back before this returns.
///
/// # Errors
/// The database's own faults; `internal` when the rules do not come to rest.
pub(in super::super) async fn settle(tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>, tunables: &Tunables) -> Result<()> {
    for _ in 0..STEPS_MAX {
        let goes_on = match rental.status()? {
            Status::Reserved => begin_when_due(tx, rental, now, tunables).await?,
            Status::Held | Status::Provisioning => fail_when_late(tx, rental, now).await?,
            Status::Active => step_active(tx, rental, now, tunables).await?,
            Status::Stopping | Status::Ended | Status::Failed => false,
        };
        if !goes_on {
            return queries::rental_update(tx, rental).await;
        }
    }
    Err(Error::internal(format!("rental {} does not come to rest", rental.id)))
}

async fn begin_when_due(tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>, tunables: &Tunables) -> Result<bool> {
    if rental.starts_at > now {
        return Ok(false);
    }
    rental.status = Status::Held.as_str().to_owned();
    rental.boot_deadline_at = rental.starts_at + TimeDelta::seconds(tunables.boot_timeout_seconds);
    rental.next_due_at = Some(rental.boot_deadline_at);
    queries::event_insert(tx, rental.id, "started", json!({}), rental.starts_at).await?;
    Ok(true)
}

async fn fail_when_late(tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>) -> Result<bool> {
    if rental.boot_deadline_at > now {
        return Ok(false);
    }
    let at = rental.boot_deadline_at;
    machines::service::note_start_failure(tx, rental.machine_id).await?;
    end(tx, rental, EndReason::BootTimeout, at).await?;
    Ok(false)
}

async fn step_active(tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>, tunables: &Tunables) -> Result<bool> {
    let machine = machines::service::fetch(tx, rental.machine_id).await?;
    let signs = Signs {
        last_seen_at: machine.last_seen_at.unwrap_or(rental.created_at),
        is_failing: machine.probe_failed_at.is_some(),
        pause_after: TimeDelta::seconds(tunables.host_silent_pause_seconds),
        end_after: TimeDelta::seconds(tunables.host_silent_end_seconds),
    };
    if let Some(paused_at) = rental.paused_at {
        return step_paused(tx, rental, now, paused_at, &signs).await;
    }
    let mut row = open_segment(tx, rental).await?;
    let funds = renew_hold(tx, rental, row.segment(), now).await?;
    match state::step_running(now, &rental.terms(), row.segment(), funds, &signs) {
        Step::End { bill_through, at, reason } => {
            charge_through(tx, rental, &mut row, bill_through).await?;
            close_segment(tx, &mut row, bill_through).await?;
            end(tx, rental, reason, at).await?;
            Ok(false)
        }
        Step::Pause { at } => {
            charge_through(tx, rental, &mut row, at).await?;
            close_segment(tx, &mut row, at).await?;
            rental.paused_at = Some(at);
            rental.next_due_at = rental.ends_at;
            queries::event_insert(tx, rental.id, "paused", json!({"last_seen_at": at}), now).await?;
            Ok(true)
        }
        Step::Bill { through } => {
            charge_through(tx, rental, &mut row, through).await?;
            let held = ledger::service::hold_remaining(tx, rental.hold_id).await?;
            rental.next_due_at = next_due(rental, row.segment(), held, funds.at_cap, now);
            Ok(false)
        }
        Step::Resume { .. } | Step::Wait => Err(Error::internal("a running rental can neither resume nor wait")),
    }
}

async fn step_paused(tx: &mut Tx<'_>, rental: &mut Rental, now: DateTime<Utc>, paused_at: DateTime<Utc>, signs: &Signs) -> Result<bool> {
    match state::step_paused(now, &rental.terms(), paused_at, signs) {
        Step::Resume { at } => {
            open_new_segment(tx, rental, at).await?;
            rental.paused_at = None;
            rental.next_due_at = Some(at);
            queries::event_insert(tx, rental.id, "resumed", json!({}), at).await?;
            Ok(true)
        }
        Step::End { at, reason, .. } => {
            end(tx, rental, reason, at).await?;
            Ok(false)
        }
        Step::Wait => Ok(false),
        Step::Bill { .. } | Step::Pause { .. } => Err(Error::internal("a paused rental can neither bill nor pause")),
    }
}

/// Adds to the hold when it does not last long enough, in part where only a part is left, and warns of a short runway.
async fn renew_hold(tx: &mut Tx<'_>, rental: &mut Rental, segment: Segment, now: DateTime<Utc>) -> Result<Funds> {
    let terms = rental.terms();
    let mut held = ledger::service::hold_remaining(tx, rental.hold_id).await?;
    let lasts = state::exhausted_at(terms.price_per_hour, segment, held).is_none_or(|at| at >= now + HOLD_MARGIN);
    if !lasts {
        let more = state::renewal(now, HOLD_AHEAD, &terms, segment, rental.gross_posted_micros, held)?;
        if more.is_positive() {
            let id = next_transfer(rental);
            let added = ledger::service::hold_increase(tx, rental.hold_id, id, more, now).await?;
            held = held.plus(added)?;
        }
    }
    let committed = rental.gross_posted_micros.plus(held)?;
    let at_cap = terms.max_spend.is_some_and(|cap| committed >= cap);
    warn_of_short_runway(tx, rental, segment, held, now).await?;
    Ok(Funds { held, at_cap })
}

/// One event for each threshold crossed; forgotten again when money came in.
async fn warn_of_short_runway(tx: &mut Tx<'_>, rental: &mut Rental, segment: Segment, held: Money, now: DateTime<Utc>) -> Result<()> {
    let terms = rental.terms();
    let available = ledger::service::balance(tx, rental.renter_account_id).await?.available;
    let mut funds = held.plus(available.max(Money::ZERO))?;
    if let Some(cap) = terms.max_spend {
        funds = funds.min(cap.minus(rental.gross_posted_micros)?);
    }
    let Some(until) = state::exhausted_at(terms.price_per_hour, segment, funds) else { return Ok(()) };
    if terms.ends_at.is_some_and(|ends_at| ends_at <= until) {
        rental.runway_warned_seconds = None;
        return Ok(());
    }
    let runway_seconds = (until - now).num_seconds();
    let crossed = RUNWAY_WARNINGS_SECONDS.into_iter().filter(|t| runway_seconds <= i64::from(*t)).min();
    match (crossed, rental.runway_warned_seconds) {
        (Some(threshold), warned) if warned.is_none_or(|w| threshold < w) => {
            rental.runway_warned_seconds = Some(threshold);
            let detail = json!({"threshold_seconds": threshold, "runway_seconds": runway_seconds});
            queries::event_insert(tx, rental.id, "runway", detail, now).await
        }
        (None, Some(_)) => {
            rental.runway_warned_seconds = None;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// When to look again: before the hold runs out, when it has run out, or at the deadline.
fn next_due(rental: &Rental, segment: Segment, held: Money, at_cap: bool, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let exhausted = state::exhausted_at(rental.price_per_hour_micros, segment, held);
    let renew = exhausted.map(|at| if at_cap || at - HOLD_MARGIN <= now { at } else { at - HOLD_MARGIN });
    [renew, rental.ends_at].into_iter().flatten().min()
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

async fn close_segment(tx: &mut Tx<'_>, row: &mut SegmentRow, at: DateTime<Utc>) -> Result<()> {
    // money.md 10: an end before the start costs nothing and raises an alarm.
    if at < row.started_at {
        tracing::error!(rental.id = %row.rental_id, "a billed span would end before it starts");
        metrics::counter!("rigmark_clock_alarms_total").increment(1);
    }
    row.ended_at = Some(at.max(row.started_at));
    queries::segment_update(tx, row).await
}

/// Posts what the segment costs through `through` beyond what is posted already (money.md 3).
async fn charge_through(tx: &mut Tx<'_>, rental: &mut Rental, row: &mut SegmentRow, through: DateTime<Utc>) -> Result<()> {
    let total = state::segment_gross(rental.price_per_hour_micros, row.started_at, through)?;
    let gross = total.minus(row.gross_posted_micros)?;
    rental.settled_through = rental.settled_through.max(Some(through));
    if !gross.is_positive() {
        return Ok(());
    }
    row.gross_posted_micros = total;
    queries::segment_update(tx, row).await?;
    capture(tx, rental, gross, through).await
}

/// Moves `gross` from the hold to the host and the platform. The fee is cumulative too, so that rounding never adds up (money.md 4).
async fn capture(tx: &mut Tx<'_>, rental: &mut Rental, gross: Money, at: DateTime<Utc>) -> Result<()> {
    let posted = Charge::new(rental.gross_posted_micros, rental.fee_posted_micros)?;
    let basis_points = u16::try_from(rental.fee_basis_points).map_err(Error::internal)?;
    let charge = Charge::after(posted, gross, basis_points)?;
    let capture =
        Capture { hold: rental.hold_id, transfer_id: next_transfer(rental), charge, host: rental.host_account_id, business_at: at };
    ledger::service::capture(tx, capture).await?;
    let posted = posted.plus(charge)?;
    rental.gross_posted_micros = posted.gross();
    rental.fee_posted_micros = posted.fee();
    Ok(())
}

/// The id of the rental's next transfer. The counter moves in the same transaction, so a step that is repeated after a crash finds its own.
fn next_transfer(rental: &mut Rental) -> crate::base::id::TransferId {
    rental.transfer_sequence = rental.transfer_sequence.saturating_add(1);
    derived_id(&["rental", &rental.id.to_string(), &rental.transfer_sequence.to_string()])
}

/// Ends the rental as of `at`: the least length where it is owed, the rest of the hold back, the machine free.
pub(super) async fn end(tx: &mut Tx<'_>, rental: &mut Rental, reason: EndReason, at: DateTime<Utc>) -> Result<()> {
    let started = rental.active_at.is_some();
    if started && rental.paused_at.is_none() {
        let rest = state::min_hours_remainder(&rental.terms(), reason, rental.gross_posted_micros)?;
        let held = ledger::service::hold_remaining(tx, rental.hold_id).await?;
        let rest = rest.min(held);
        if rest.is_positive() {
            capture(tx, rental, rest, at).await?;
        }
    }
    let id = next_transfer(rental);
    ledger::service::release(tx, rental.hold_id, id, at).await?;
    let status = if reason == EndReason::BootTimeout { Status::Failed } else { Status::Ended };
    rental.status = status.as_str().to_owned();
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
    Ok(())
}

/// Why signs of life of the machine are wanted: this rental.
pub(super) fn watch_reason(rental: &Rental) -> String {
    rental.id.to_string()
}

/// Stops a rental as of `now`, in any state but over. What was used through `now` is billed while the machine was there.
pub(super) async fn stop(tx: &mut Tx<'_>, rental: &mut Rental, reason: EndReason, now: DateTime<Utc>) -> Result<()> {
    rental.stop_requested_at.get_or_insert(now);
    if rental.status()? == Status::Active && rental.paused_at.is_none() {
        let mut row = open_segment(tx, rental).await?;
        let machine = machines::service::fetch(tx, rental.machine_id).await?;
        let there_until = match (machine.probe_failed_at, machine.last_seen_at) {
            (Some(_), Some(seen)) => now.min(seen).max(row.started_at),
            _ => now,
        };
        charge_through(tx, rental, &mut row, there_until).await?;
        close_segment(tx, &mut row, there_until).await?;
        if machine.probe_failed_at.is_some() {
            rental.paused_at = Some(there_until);
        }
    }
    end(tx, rental, reason, now).await?;
    queries::rental_update(tx, rental).await
}
