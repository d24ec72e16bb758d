//! The pure rules of payouts: in which order one moves, what a connected account's state means, and when weeks begin.

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveTime, TimeDelta, Utc};

use crate::{
    base::{Money, Result},
    integrations::stripe::ConnectedAccount,
    ledger::model::Balance,
};

/// Where a payout stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayoutStatus {
    /// Taken from what is payable; Stripe has not confirmed it yet.
    Pending,
    /// On the payout account at Stripe.
    Sent,
    /// At the bank.
    Paid,
    /// Refused; the money is payable again.
    Failed,
    /// Taken back as a whole; the money is payable again.
    Reversed,
}

impl PayoutStatus {
    pub const ALL: [Self; 5] = [Self::Pending, Self::Sent, Self::Paid, Self::Failed, Self::Reversed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent => "sent",
            Self::Paid => "paid",
            Self::Failed => "failed",
            Self::Reversed => "reversed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Whether money can be paid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayoutAccountStatus {
    /// There is no payout account.
    None,
    /// Stripe's questions have not been answered.
    Onboarding,
    Enabled,
    /// Stripe wants to know more before it pays.
    Restricted,
    /// Rejected by Stripe, closed, or taken away from us.
    Disabled,
}

impl PayoutAccountStatus {
    const STORED: [Self; 4] = [Self::Onboarding, Self::Enabled, Self::Restricted, Self::Disabled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Onboarding => "onboarding",
            Self::Enabled => "enabled",
            Self::Restricted => "restricted",
            Self::Disabled => "disabled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::STORED.into_iter().find(|status| status.as_str() == text)
    }

    pub fn of(account: &ConnectedAccount) -> Self {
        let is_rejected = account.disabled_reason.as_deref().is_some_and(|reason| reason.starts_with("rejected."));
        match account {
            _ if account.is_deleted || is_rejected => Self::Disabled,
            _ if account.payouts_enabled && account.may_receive => Self::Enabled,
            _ if !account.details_submitted => Self::Onboarding,
            _ => Self::Restricted,
        }
    }
}

/// When a host is paid without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayoutSchedule {
    /// Never.
    Manual,
    /// On Mondays, UTC.
    Weekly,
}

impl PayoutSchedule {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Weekly => "weekly",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Manual, Self::Weekly].into_iter().find(|schedule| schedule.as_str() == text)
    }
}

/// What may be paid out: what is payable less what the account owes, as a host or as a renter.
pub fn withdrawable(balance: &Balance) -> Result<Money> {
    let debts = balance.earnings.min(Money::ZERO).plus(balance.available.min(Money::ZERO))?;
    Ok(balance.payable.plus(debts)?.max(Money::ZERO))
}

/// The Monday of this instant's week.
pub fn week_of(at: DateTime<Utc>) -> NaiveDate {
    let day = at.date_naive();
    day.checked_sub_days(Days::new(day.weekday().num_days_from_monday().into())).unwrap_or(day)
}

/// The first instant of the next Monday.
pub fn next_week(at: DateTime<Utc>) -> DateTime<Utc> {
    let monday = week_of(at).checked_add_days(Days::new(7));
    monday.map_or(DateTime::<Utc>::MAX_UTC, |monday| monday.and_time(NaiveTime::MIN).and_utc())
}

/// A refusal that may pass (Stripe has too little of ours) is tried again no sooner than this: every request of the last attempt has ended.
const AGAIN_SOONEST: TimeDelta = TimeDelta::minutes(2);

/// When a payout is tried again that Stripe could not make now.
pub fn again_at(created_at: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
    let soonest = now.checked_add_signed(AGAIN_SOONEST).unwrap_or(now);
    super::super::state::ask_next(created_at, now).max(soonest)
}
