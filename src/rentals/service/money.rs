//! The money of one rental: its hold, its charges, and how long they last. All in the transaction that holds the rental's lock.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::super::{
    model::{Rental, Running, SegmentRow},
    queries,
    state::{self, EndReason, Funds, Segment},
};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, HoldId, TransferId},
    },
    db::{Conn, Tx},
    ledger::{
        self, Charge,
        model::{Capture, derived_id},
    },
};

/// While active the hold is kept ahead of use by this much …
const HOLD_AHEAD: TimeDelta = TimeDelta::hours(1);
/// … and renewed when less than this is left.
pub(super) const HOLD_MARGIN: TimeDelta = TimeDelta::minutes(10);
/// Runway at which the renter is warned, longest first (money.md 17).
pub(super) const RUNWAY_WARNINGS_SECONDS: [i32; 3] = [24 * 3_600, 2 * 3_600, 15 * 60];

/// Long enough to be no reason to worry; a limit for instants.
const RUNWAY_SECONDS_MAX: i64 = 10 * 365 * 86_400;

/// The id of the rental's next transfer. The counter moves in the same transaction, so a step that is repeated after a crash finds its own.
pub(super) fn next_transfer(rental: &mut Rental) -> TransferId {
    rental.transfer_sequence = rental.transfer_sequence.saturating_add(1);
    derived_id(&["rental", &rental.id.to_string(), &rental.transfer_sequence.to_string()])
}

/// Adds to the hold when it does not last long enough, in part where only a part is left.
pub(super) async fn renew_hold(tx: &mut Tx<'_>, rental: &mut Rental, segment: Segment, now: DateTime<Utc>) -> Result<Funds> {
    let terms = rental.terms();
    let mut held = ledger::service::hold_remaining(tx, rental.hold_id).await?;
    let lasts = state::exhausted_at(terms.price_per_hour, segment, held).is_none_or(|at| at > now + HOLD_MARGIN);
    if !lasts {
        let more = state::renewal(now, HOLD_AHEAD, &terms, segment, rental.gross_posted_micros, held)?;
        if more.is_positive() {
            let id = next_transfer(rental);
            let added = ledger::service::hold_increase(tx, rental.hold_id, id, more, now).await?;
            held = held.plus(added)?;
        }
    }
    let committed = rental.gross_posted_micros.plus(held)?;
    Ok(Funds { held, at_cap: terms.max_spend.is_some_and(|cap| committed >= cap) })
}

/// When to look at the hold again: before it runs out, or when it has because it cannot grow.
pub(super) async fn next_renewal(
    conn: &mut Conn,
    rental: &Rental,
    segment: Segment,
    at_cap: bool,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>> {
    let held = ledger::service::hold_remaining(conn, rental.hold_id).await?;
    let exhausted = state::exhausted_at(rental.price_per_hour_micros, segment, held);
    Ok(exhausted.map(|at| if at_cap || at - HOLD_MARGIN <= now { at } else { at - HOLD_MARGIN }))
}

/// Posts what the segment costs through `through` beyond what is posted already (money.md 3), each UTC day's part by itself.
pub(super) async fn charge_through(tx: &mut Tx<'_>, rental: &mut Rental, row: &mut SegmentRow, through: DateTime<Utc>) -> Result<()> {
    let from = rental.settled_through.map_or(row.started_at, |settled| settled.max(row.started_at));
    for midnight in state::midnights(from, through) {
        // The last instant of the day that ends there.
        charge(tx, rental, row, midnight, midnight - TimeDelta::microseconds(1)).await?;
    }
    charge(tx, rental, row, through, through).await
}

async fn charge(
    tx: &mut Tx<'_>,
    rental: &mut Rental,
    row: &mut SegmentRow,
    through: DateTime<Utc>,
    business_at: DateTime<Utc>,
) -> Result<()> {
    let total = state::segment_gross(rental.price_per_hour_micros, row.started_at, through)?;
    let gross = total.minus(row.gross_posted_micros)?;
    rental.settled_through = rental.settled_through.max(Some(through));
    if !gross.is_positive() {
        return Ok(());
    }
    row.gross_posted_micros = total;
    queries::segment_update(tx, row).await?;
    capture(tx, rental, gross, business_at).await
}

/// Moves `gross` from the hold to the host and the platform. The fee is cumulative too, so that rounding never adds up (money.md 4).
async fn capture(tx: &mut Tx<'_>, rental: &mut Rental, gross: Money, business_at: DateTime<Utc>) -> Result<()> {
    let posted = Charge::new(rental.gross_posted_micros, rental.fee_posted_micros)?;
    let basis_points = u16::try_from(rental.fee_basis_points).map_err(Error::internal)?;
    let charge = Charge::after(posted, gross, basis_points)?;
    let capture = Capture { hold: rental.hold_id, transfer_id: next_transfer(rental), charge, host: rental.host_account_id, business_at };
    ledger::service::capture(tx, capture).await?;
    let posted = posted.plus(charge)?;
    rental.gross_posted_micros = posted.gross();
    rental.fee_posted_micros = posted.fee();
    Ok(())
}

/// Bills what is missing to the contract's least length, where it is owed.
pub(super) async fn charge_least_length(tx: &mut Tx<'_>, rental: &mut Rental, reason: EndReason, at: DateTime<Utc>) -> Result<()> {
    let idle_seconds = idle_seconds(&queries::segment_list(tx, rental.id).await?);
    let rest = state::min_hours_remainder(&rental.terms(), reason, idle_seconds, rental.gross_posted_micros)?;
    let rest = rest.min(ledger::service::hold_remaining(tx, rental.hold_id).await?);
    if rest.is_positive() { capture(tx, rental, rest, at).await } else { Ok(()) }
}

/// Seconds between billed spans: the machine was silent.
fn idle_seconds(rows: &[SegmentRow]) -> i64 {
    let gap = |(earlier, later): (&SegmentRow, &SegmentRow)| earlier.ended_at.map_or(0, |ended| (later.started_at - ended).num_seconds());
    rows.iter().zip(rows.iter().skip(1)).map(gap).sum()
}

/// Gives back what is left in the hold, for good.
pub(super) async fn release(tx: &mut Tx<'_>, rental: &mut Rental, at: DateTime<Utc>) -> Result<()> {
    let id = next_transfer(rental);
    ledger::service::release(tx, rental.hold_id, id, at).await.map(drop)
}

/// One event for each threshold crossed; forgotten again when money came in. Returns the seconds that the money lasts, when one was.
pub(super) async fn warn_of_short_runway(
    tx: &mut Tx<'_>,
    rental: &mut Rental,
    segment: Segment,
    now: DateTime<Utc>,
) -> Result<Option<i64>> {
    let terms = rental.terms();
    // This rental as it is here, the others as they were last settled.
    let mut together = queries::rental_list_running(tx, Some(rental.renter_account_id)).await?;
    together.retain(|other| other.id != rental.id);
    together.push(Running::of(rental));
    let shared_seconds = runways(tx, &together, now).await?.get(&rental.renter_account_id).copied();
    let mut until = now + TimeDelta::seconds(shared_seconds.unwrap_or(RUNWAY_SECONDS_MAX));
    if let Some(cap) = terms.max_spend {
        let left = cap.minus(rental.gross_posted_micros)?;
        until = state::exhausted_at(terms.price_per_hour, segment, left).map_or(until, |at| at.min(until));
    }
    if terms.ends_at.is_some_and(|ends_at| ends_at <= until) {
        rental.runway_warned_seconds = None;
        return Ok(None);
    }
    let runway_seconds = (until - now).num_seconds();
    let crossed = RUNWAY_WARNINGS_SECONDS.into_iter().filter(|t| runway_seconds <= i64::from(*t)).min();
    match (crossed, rental.runway_warned_seconds) {
        (Some(threshold), warned) if warned.is_none_or(|w| threshold < w) => {
            rental.runway_warned_seconds = Some(threshold);
            let detail = json!({"threshold_seconds": threshold, "runway_seconds": runway_seconds});
            queries::event_insert(tx, rental.id, "runway", detail, now).await?;
            Ok(Some(runway_seconds))
        }
        (None, Some(_)) => {
            rental.runway_warned_seconds = None;
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// For each renter of `running`, which holds all running rentals of each: how many seconds the money lasts that is held for these rentals and
/// available to all of them together. A rental that has reached its cap takes no more of it.
pub(super) async fn runways(conn: &mut Conn, running: &[Running], now: DateTime<Utc>) -> Result<HashMap<AccountId, i64>> {
    let holds: Vec<HoldId> = running.iter().map(|r| r.hold_id).collect();
    let held = ledger::service::holds_remaining(conn, &holds).await?;
    let mut sums: HashMap<AccountId, (Money, Money)> = HashMap::new();
    for rental in running {
        let held = held.get(&rental.hold_id).copied().unwrap_or(Money::ZERO);
        let used_seconds = rental.settled_through.map_or(0, |settled| (now - settled).num_seconds());
        let mut used = rental.price_per_hour.charge_for_seconds(used_seconds)?;
        if let Some(cap) = rental.max_spend {
            let beyond_posted = cap.minus(rental.gross_posted)?;
            if held >= beyond_posted {
                continue;
            }
            used = used.min(beyond_posted);
        }
        let left = held.minus(used)?;
        let (funds, rate) = sums.entry(rental.renter_account_id).or_insert((Money::ZERO, Money::ZERO));
        *funds = funds.plus(left)?;
        *rate = rate.plus(rental.price_per_hour)?;
    }
    let mut runways = HashMap::new();
    for (renter, (funds, rate)) in sums {
        let available = ledger::service::balance(conn, renter).await?.available.max(Money::ZERO);
        if let Some(seconds) = rate.seconds_covered_by(funds.plus(available)?) {
            runways.insert(renter, seconds.min(RUNWAY_SECONDS_MAX));
        }
    }
    Ok(runways)
}
