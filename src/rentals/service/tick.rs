//! The meter's usual step for many rentals at once: an active rental whose machine is there, whose hold lasts and whose renter has money for days
//! is billed through the machine's last sign, and nothing else happens. A few statements for the lot instead of some eighteen for each.
//!
//! Invariants: it does what `settle` would do, or leaves the rental to it. Whatever is not plain (a renewal, a warning, a cap, an end, a silence,
//! a midnight, a rental that somebody else has locked) is left, and so is the whole lot when anything about it fails: then each is settled by
//! itself, and a failing one does not stop the others. No listing is locked, since nothing here ends a rental.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        model::{Rental, SegmentRow},
        queries::{self, Billed},
        state::{self, Funds, Signs, Status, Step},
    },
    money,
};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, HoldId, RentalId},
    },
    config::Tunables,
    db::Tx,
    ledger::{self, Charge, model::Capture},
};

/// More than the longest warning of a short runway, by as much as a hold is kept ahead.
const PLENTY_SECONDS: i64 = 25 * 3_600;

/// Bills those of `ids` that are plain at `now`, and returns which they were.
///
/// # Errors
/// The database's own faults, and the ledger's: nothing was done then.
pub(super) async fn bill_plain(tx: &mut Tx<'_>, ids: &[RentalId], now: DateTime<Utc>, tunables: &Tunables) -> Result<HashSet<RentalId>> {
    let mut rentals = queries::rental_lock_active(tx, ids).await?;
    let rich = rich_renters(tx, &rentals).await?;
    rentals.retain(|rental| rich.contains(&rental.renter_account_id));
    let locked: Vec<RentalId> = rentals.iter().map(|rental| rental.id).collect();
    let signs = queries::machine_signs(tx, &locked).await?;
    let segments = queries::segment_list_open(tx, &locked).await?;
    let segments: HashMap<RentalId, SegmentRow> = segments.into_iter().map(|row| (row.rental_id, row)).collect();
    let holds: Vec<HoldId> = rentals.iter().map(|rental| rental.hold_id).collect();
    let held = ledger::service::holds_lock(tx, &holds).await?;
    let mut billed = Vec::new();
    let mut captures = Vec::new();
    for mut rental in rentals {
        let (Some(row), Some(held)) = (segments.get(&rental.id), held.get(&rental.hold_id)) else { continue };
        let Some((last_seen_at, failing_since)) = signs.get(&rental.id) else { continue };
        let signs = Signs {
            last_seen_at: last_seen_at.unwrap_or(rental.created_at),
            failing_since: *failing_since,
            pause_after: TimeDelta::seconds(tunables.host_silent_pause_seconds),
            end_after: TimeDelta::seconds(tunables.host_silent_end_seconds),
        };
        let Some(due) = plain(&rental, row, *held, &signs, now) else { continue };
        let total = state::segment_gross(rental.price_per_hour_micros, row.started_at, due.through)?;
        let gross = total.minus(row.gross_posted_micros)?;
        rental.settled_through = rental.settled_through.max(Some(due.through));
        rental.next_due_at = due.next;
        let mut segment_gross = row.gross_posted_micros;
        if gross.is_positive() {
            segment_gross = total;
            captures.push((rental.id, charge(&mut rental, gross, due.through)?));
        }
        billed.push(Billed::of(&rental, row.sequence, segment_gross));
    }
    ledger::service::capture_many(tx, &captures).await?;
    queries::rental_update_billed(tx, &billed).await?;
    Ok(billed.iter().map(|billed| billed.id).collect())
}

/// Renters who can pay all their running rentals for so long out of what is available alone that no warning is due, nor was given.
async fn rich_renters(tx: &mut Tx<'_>, rentals: &[Rental]) -> Result<HashSet<AccountId>> {
    let renters: Vec<AccountId> = rentals.iter().map(|rental| rental.renter_account_id).collect::<HashSet<_>>().into_iter().collect();
    let rates = queries::rate_list_running(tx, &renters).await?;
    let available = ledger::service::available_of(tx, &renters).await?;
    let lasts = |(renter, rate): (AccountId, Money)| {
        let seconds = rate.seconds_covered_by(available.get(&renter).copied().unwrap_or(Money::ZERO));
        seconds.is_none_or(|seconds| seconds >= PLENTY_SECONDS).then_some(renter)
    };
    Ok(rates.into_iter().filter_map(lasts).collect())
}

/// Through when a plain rental is billed, and when something is next to be done for it.
struct Due {
    through: DateTime<Utc>,
    next: Option<DateTime<Utc>>,
}

fn plain(rental: &Rental, row: &SegmentRow, held: Money, signs: &Signs, now: DateTime<Utc>) -> Option<Due> {
    let is_running = rental.status().ok()? == Status::Active && rental.paused_at.is_none();
    if !is_running || rental.max_spend_micros.is_some() || rental.runway_warned_seconds.is_some() {
        return None;
    }
    let segment = row.segment();
    let exhausted = state::exhausted_at(rental.price_per_hour_micros, segment, held);
    let renew = exhausted.map(|at| at - money::HOLD_MARGIN);
    if renew.is_some_and(|at| at <= now) {
        return None;
    }
    let Step::Bill { through } = state::step_running(now, &rental.terms(), segment, Funds { held, at_cap: false }, signs) else {
        return None;
    };
    let from = rental.settled_through.map_or(row.started_at, |settled| settled.max(row.started_at));
    if state::midnights(from, through).next().is_some() {
        return None;
    }
    Some(Due { through, next: [renew, rental.ends_at].into_iter().flatten().min() })
}

fn charge(rental: &mut Rental, gross: Money, business_at: DateTime<Utc>) -> Result<Capture> {
    let posted = Charge::new(rental.gross_posted_micros, rental.fee_posted_micros)?;
    let basis_points = u16::try_from(rental.fee_basis_points).map_err(Error::internal)?;
    let charge = Charge::after(posted, gross, basis_points)?;
    let posted = posted.plus(charge)?;
    rental.gross_posted_micros = posted.gross();
    rental.fee_posted_micros = posted.fee();
    let transfer_id = money::next_transfer(rental);
    Ok(Capture { hold: rental.hold_id, transfer_id, charge, host: rental.host_account_id, business_at })
}
