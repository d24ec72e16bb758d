//! The pure rules of a rental: which moves are legal, how much is billed through when, and what falls due next (money.md 3, 10–17).
//!
//! Nothing here reads a clock or a database: `service` gathers the facts, asks, and writes the answer in one transaction.
#![deny(clippy::float_arithmetic, clippy::as_conversions)]

use chrono::{DateTime, TimeDelta, Utc};

use crate::base::{Money, Result};

/// Where a rental stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Reserved,
    Held,
    Provisioning,
    Active,
    Stopping,
    Ended,
    Failed,
}

impl Status {
    pub const ALL: [Self; 7] = [Self::Reserved, Self::Held, Self::Provisioning, Self::Active, Self::Stopping, Self::Ended, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Held => "held",
            Self::Provisioning => "provisioning",
            Self::Active => "active",
            Self::Stopping => "stopping",
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed)
    }

    /// Whether `next` may follow. A late "ready" from a machine finds no legal move and changes nothing.
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Reserved => matches!(next, Self::Held | Self::Provisioning | Self::Ended),
            Self::Held => matches!(next, Self::Provisioning | Self::Ended | Self::Failed),
            Self::Provisioning => matches!(next, Self::Active | Self::Ended | Self::Failed),
            Self::Active => matches!(next, Self::Stopping | Self::Ended),
            Self::Stopping => matches!(next, Self::Ended),
            Self::Ended | Self::Failed => false,
        }
    }
}

/// Why a rental is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    RenterStopped,
    HostStopped,
    Deadline,
    SpendCap,
    InsufficientFunds,
    HostLost,
    BootTimeout,
    Operator,
}

impl EndReason {
    pub const ALL: [Self; 8] = [
        Self::RenterStopped,
        Self::HostStopped,
        Self::Deadline,
        Self::SpendCap,
        Self::InsufficientFunds,
        Self::HostLost,
        Self::BootTimeout,
        Self::Operator,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RenterStopped => "renter_stopped",
            Self::HostStopped => "host_stopped",
            Self::Deadline => "deadline",
            Self::SpendCap => "spend_cap",
            Self::InsufficientFunds => "insufficient_funds",
            Self::HostLost => "host_lost",
            Self::BootTimeout => "boot_timeout",
            Self::Operator => "operator",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }

    /// Whether the least length of the contract is billed although fewer seconds were used: only when the renter stopped. A deadline is never
    /// before that length, and the first hold covers it, so with any other reason the missing seconds are the host's silence.
    pub const fn bills_min_hours(self) -> bool {
        matches!(self, Self::RenterStopped)
    }
}

/// The frozen terms that bear on money and time.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub price_per_hour: Money,
    pub min_hours: i64,
    pub max_spend: Option<Money>,
    pub ends_at: Option<DateTime<Utc>>,
}

/// The open span of billed time.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub started_at: DateTime<Utc>,
    pub gross_posted: Money,
}

/// Longest time between two probes of one machine, with room to spare: a first failed probe says nothing about the time further back.
pub const PROBE_GAP: TimeDelta = TimeDelta::seconds(30);

/// Signs of life of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Signs {
    pub last_seen_at: DateTime<Utc>,
    /// The first failed probe since then; none while it answers or nobody asks. A machine nobody asked is not silent.
    pub failing_since: Option<DateTime<Utc>>,
    pub pause_after: TimeDelta,
    pub end_after: TimeDelta,
}

impl Signs {
    /// The beginning of the silence, if there is one: the last sign, but no further back than probes can tell. After an outage of ours, one
    /// failed probe is no silence as long as the outage.
    pub fn silent_since(&self) -> Option<DateTime<Utc>> {
        self.failing_since.map(|failed| self.last_seen_at.max(failed - PROBE_GAP))
    }

    /// Until when the machine is taken to have been there: its last sign when it fails; otherwise a little beyond it, since a sign is always
    /// some seconds old. When the last sign is older than that, what happened since is not known before somebody asks.
    fn there_until(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let known = if self.failing_since.is_some() { self.last_seen_at } else { self.last_seen_at + self.pause_after };
        now.min(known)
    }

    /// When a rental that stands since `paused_at` ends if nothing more is heard.
    pub fn lost_at(&self, paused_at: DateTime<Utc>) -> DateTime<Utc> {
        self.silent_since().unwrap_or(self.last_seen_at).max(paused_at) + self.end_after
    }
}

/// Money still in the hold, beyond what has been charged.
#[derive(Debug, Clone, Copy)]
pub struct Funds {
    pub held: Money,
    /// The hold can grow no more because `max_spend` is reached, not because the balance is empty.
    pub at_cap: bool,
}

/// What to do with an active rental now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Bill through this instant and go on.
    Bill { through: DateTime<Utc> },
    /// Bill through the last sign of life and stop the clock there.
    Pause { at: DateTime<Utc> },
    /// Start the clock again at the sign of life that ended the silence.
    Resume { at: DateTime<Utc> },
    /// Bill through `bill_through` and end, as of `at`.
    End { bill_through: DateTime<Utc>, at: DateTime<Utc>, reason: EndReason },
    /// Paused, and nothing is due yet.
    Wait,
}

/// The instant at which the hold is used up: the last one whose charge, cumulative from the segment's start, the hold covers. `None` when the
/// price is zero.
pub fn exhausted_at(price_per_hour: Money, segment: Segment, held: Money) -> Option<DateTime<Utc>> {
    let budget = segment.gross_posted.plus(held).ok()?;
    let seconds = price_per_hour.seconds_covered_by(budget)?;
    segment.started_at.checked_add_signed(TimeDelta::try_seconds(seconds)?)
}

/// The next step of an active rental whose clock runs.
///
/// Order of what may end it: whatever comes first among deadline and funds, as long as the machine was there until then; silence of the
/// machine otherwise.
pub fn step_running(now: DateTime<Utc>, terms: &Terms, segment: Segment, funds: Funds, signs: &Signs) -> Step {
    let there_until = signs.there_until(now).max(segment.started_at);
    let exhausted = exhausted_at(terms.price_per_hour, segment, funds.held);
    let reason_of_funds = if funds.at_cap { EndReason::SpendCap } else { EndReason::InsufficientFunds };
    let end = match (terms.ends_at, exhausted) {
        // What lasts to the deadline's last whole second lasts to the deadline.
        (Some(deadline), Some(exhausted)) if deadline - exhausted >= TimeDelta::seconds(1) => Some((exhausted, reason_of_funds)),
        (Some(deadline), _) => Some((deadline, EndReason::Deadline)),
        (None, Some(exhausted)) => Some((exhausted, reason_of_funds)),
        (None, None) => None,
    };
    if let Some((at, reason)) = end
        && at <= there_until
    {
        return Step::End { bill_through: at, at, reason };
    }
    if signs.silent_since().is_some_and(|since| now - since >= signs.pause_after) {
        return Step::Pause { at: there_until };
    }
    // Only as far as the machine is known to have been there: a later failed probe then has nothing to take back.
    Step::Bill { through: now.min(signs.last_seen_at).max(segment.started_at) }
}

/// The next step of an active rental whose clock stands since `paused_at`.
pub fn step_paused(now: DateTime<Utc>, terms: &Terms, paused_at: DateTime<Utc>, signs: &Signs) -> Step {
    let lost_at = signs.lost_at(paused_at);
    let resumed = signs.failing_since.is_none() && signs.last_seen_at > paused_at;
    let limit = if resumed { signs.last_seen_at } else { now };
    if let Some(at) = terms.ends_at.filter(|deadline| *deadline <= limit)
        && (resumed || at <= lost_at)
    {
        return Step::End { bill_through: paused_at, at, reason: EndReason::Deadline };
    }
    if resumed {
        return Step::Resume { at: signs.last_seen_at };
    }
    if now >= lost_at {
        return Step::End { bill_through: paused_at, at: lost_at, reason: EndReason::HostLost };
    }
    Step::Wait
}

/// The UTC midnights after `from`, up to and with `through`: a charge is posted by the day, so that a statement's day has what was used in it.
pub fn midnights(from: DateTime<Utc>, through: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    let next = |day: DateTime<Utc>| day.date_naive().succ_opt().map(|date| date.and_time(chrono::NaiveTime::MIN).and_utc());
    std::iter::successors(next(from), move |midnight| next(*midnight)).take_while(move |midnight| *midnight <= through)
}

/// What a segment has cost in all when billed through `through`; nothing when `through` is before its start (money.md 10).
///
/// # Errors
/// `internal` when the charge leaves 64 bits.
pub fn segment_gross(price_per_hour: Money, started_at: DateTime<Utc>, through: DateTime<Utc>) -> Result<Money> {
    price_per_hour.charge_for_seconds((through - started_at).num_seconds())
}

/// What the hold is to be when the contract begins: min(max_spend, max(1 h, min_hours) × rate, whole length × rate) (money.md 17).
///
/// # Errors
/// `internal` when an amount leaves 64 bits.
pub fn first_hold(terms: &Terms, whole_seconds: Option<i64>) -> Result<Money> {
    let hours = terms.min_hours.max(1);
    let mut hold = terms.price_per_hour.charge_for_seconds(hours.saturating_mul(3_600))?;
    if let Some(seconds) = whole_seconds {
        hold = hold.min(terms.price_per_hour.charge_for_seconds(seconds)?);
    }
    if let Some(cap) = terms.max_spend {
        hold = hold.min(cap);
    }
    Ok(hold)
}

/// How much to add to the hold so that it lasts `ahead` from `now`, within the cap and the deadline. Zero when it does already.
///
/// # Errors
/// `internal` when an amount leaves 64 bits.
pub fn renewal(now: DateTime<Utc>, ahead: TimeDelta, terms: &Terms, segment: Segment, gross_posted: Money, held: Money) -> Result<Money> {
    let until = terms.ends_at.map_or(now + ahead, |d| d.min(now + ahead));
    let wanted = segment_gross(terms.price_per_hour, segment.started_at, until)?.minus(segment.gross_posted)?;
    let mut more = wanted.minus(held)?;
    if let Some(cap) = terms.max_spend {
        more = more.min(cap.minus(gross_posted)?.minus(held)?);
    }
    Ok(more.max(Money::ZERO))
}

/// The least the renter owes at the end beyond what the seconds cost: the contract's least length, less the seconds (`idle_seconds`) for which
/// the machine was silent, never above the cap.
///
/// # Errors
/// `internal` when an amount leaves 64 bits.
pub fn min_hours_remainder(terms: &Terms, reason: EndReason, idle_seconds: i64, gross_posted: Money) -> Result<Money> {
    if !reason.bills_min_hours() {
        return Ok(Money::ZERO);
    }
    let least_seconds = terms.min_hours.saturating_mul(3_600).saturating_sub(idle_seconds.max(0));
    let mut least = terms.price_per_hour.charge_for_seconds(least_seconds)?;
    if let Some(cap) = terms.max_spend {
        least = least.min(cap);
    }
    Ok(least.minus(gross_posted)?.max(Money::ZERO))
}
