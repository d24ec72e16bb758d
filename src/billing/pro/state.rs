//! The pure rules of a subscription: the order in which it moves, what it gives, and when Stripe is asked again.

use chrono::{DateTime, TimeDelta, Utc};

use super::super::state::ask_next as ask_while_paying;
use crate::integrations::stripe::SubscriptionStatus;

/// Where a subscription stands; from `incomplete` on as Stripe calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProStatus {
    /// Stripe has been asked, and what came of it is not known yet.
    Pending,
    /// Came to nothing: see `failure_code`.
    Failed,
    /// Waits for its first payment.
    Incomplete,
    Trialing,
    Active,
    /// A payment failed and is tried again.
    PastDue,
    Unpaid,
    Paused,
    /// The first payment did not come in time.
    IncompleteExpired,
    Canceled,
}

impl ProStatus {
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Failed,
        Self::Incomplete,
        Self::Trialing,
        Self::Active,
        Self::PastDue,
        Self::Unpaid,
        Self::Paused,
        Self::IncompleteExpired,
        Self::Canceled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Incomplete => "incomplete",
            Self::Trialing => "trialing",
            Self::Active => "active",
            Self::PastDue => "past_due",
            Self::Unpaid => "unpaid",
            Self::Paused => "paused",
            Self::IncompleteExpired => "incomplete_expired",
            Self::Canceled => "canceled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub const fn of(status: SubscriptionStatus) -> Self {
        match status {
            SubscriptionStatus::Incomplete => Self::Incomplete,
            SubscriptionStatus::IncompleteExpired => Self::IncompleteExpired,
            SubscriptionStatus::Trialing => Self::Trialing,
            SubscriptionStatus::Active => Self::Active,
            SubscriptionStatus::PastDue => Self::PastDue,
            SubscriptionStatus::Canceled => Self::Canceled,
            SubscriptionStatus::Unpaid => Self::Unpaid,
            SubscriptionStatus::Paused => Self::Paused,
        }
    }

    pub const fn is_over(self) -> bool {
        matches!(self, Self::Failed | Self::IncompleteExpired | Self::Canceled)
    }

    /// Whether it runs, paid or not.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Trialing | Self::Active | Self::PastDue | Self::Unpaid | Self::Paused)
    }

    /// A living subscription outranks a failure, which may be ours, of a request that never seemed to arrive.
    const fn rank(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Incomplete => 1,
            Self::Failed => 2,
            Self::Trialing | Self::Active | Self::PastDue | Self::Unpaid | Self::Paused => 3,
            Self::IncompleteExpired | Self::Canceled => 4,
        }
    }

    /// Whether what was seen now may follow. `is_newer`: the question was sent later than the one that this status came from.
    pub const fn may_become(self, next: Self, is_newer: bool) -> bool {
        next.rank() > self.rank() || (next.rank() == self.rank() && !self.is_over() && is_newer)
    }
}

/// What a subscription gives by itself: until when, and whether it goes on beyond that until somebody says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    pub until: DateTime<Utc>,
    pub renews: bool,
}

/// What decides about it.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub status: ProStatus,
    pub period_ends_at: Option<DateTime<Utc>>,
    pub is_ending: bool,
    pub past_due_since: Option<DateTime<Utc>>,
    pub paid_until: Option<DateTime<Utc>>,
}

/// Pro is on while active or trialing, past due within the grace, or canceled with time left in the paid period (money.md 23).
pub fn pro_of(facts: &Facts, grace: TimeDelta) -> Option<Given> {
    let until = |until: DateTime<Utc>| Given { until, renews: false };
    match facts.status {
        ProStatus::Active | ProStatus::Trialing => facts.period_ends_at.map(|until| Given { until, renews: !facts.is_ending }),
        ProStatus::PastDue => facts.past_due_since.and_then(|since| since.checked_add_signed(grace)).map(until),
        ProStatus::Canceled => facts.paid_until.map(until),
        ProStatus::Pending
        | ProStatus::Failed
        | ProStatus::Incomplete
        | ProStatus::Unpaid
        | ProStatus::Paused
        | ProStatus::IncompleteExpired => None,
    }
}

const AFTER_PERIOD: TimeDelta = TimeDelta::minutes(10);
const ONCE_A_DAY: TimeDelta = TimeDelta::hours(24);
const WHILE_DUE: TimeDelta = TimeDelta::hours(6);

/// When Stripe is asked next about one that was begun at `created_at`: soon while somebody is likely to be paying, soon after a period has
/// ended, and once a day. Webhooks come sooner; this is for those that do not come.
pub fn ask_next(facts: &Facts, created_at: DateTime<Utc>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let in_ = |pause: TimeDelta| now.checked_add_signed(pause).unwrap_or(now);
    match facts.status {
        status if status.is_over() => None,
        ProStatus::Pending | ProStatus::Incomplete => Some(ask_while_paying(created_at, now)),
        ProStatus::PastDue | ProStatus::Unpaid => Some(in_(WHILE_DUE)),
        _ => {
            let renewed = facts.period_ends_at.and_then(|end| end.checked_add_signed(AFTER_PERIOD)).filter(|at| *at > now);
            Some(renewed.map_or(in_(WHILE_DUE), |at| at.min(in_(ONCE_A_DAY))))
        }
    }
}
