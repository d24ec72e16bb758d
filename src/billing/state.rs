//! The pure rules of a top-up: the order in which it moves, and when Stripe is asked again.

use chrono::{DateTime, TimeDelta, Utc};

/// Where a top-up stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TopUpStatus {
    /// Stripe has been asked to make the payment, and what came of it is not known yet.
    Pending,
    /// Waits for a payment method, or for another after a declined one.
    RequiresPaymentMethod,
    /// Waits for the payer, who has to authenticate.
    RequiresAction,
    Processing,
    Canceled,
    /// Paid and credited.
    Succeeded,
}

impl TopUpStatus {
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::RequiresPaymentMethod, Self::RequiresAction, Self::Processing, Self::Canceled, Self::Succeeded];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::RequiresPaymentMethod => "requires_payment_method",
            Self::RequiresAction => "requires_action",
            Self::Processing => "processing",
            Self::Canceled => "canceled",
            Self::Succeeded => "succeeded",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub const fn is_over(self) -> bool {
        matches!(self, Self::Canceled | Self::Succeeded)
    }

    /// A payer may go back and forth between the steps of one rank: paying fails and is tried otherwise. Money that came after all outranks a
    /// cancellation, which may be ours, of a request that never seemed to arrive.
    const fn rank(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::RequiresPaymentMethod | Self::RequiresAction | Self::Processing => 1,
            Self::Canceled => 2,
            Self::Succeeded => 3,
        }
    }

    /// Whether what was seen now may follow. `is_newer`: the question was sent later than the one that this status came from.
    pub const fn may_become(self, next: Self, is_newer: bool) -> bool {
        next.rank() > self.rank() || (next.rank() == self.rank() && !self.is_over() && is_newer)
    }
}

const ASK_SOONEST: TimeDelta = TimeDelta::seconds(10);
const ASK_LATEST: TimeDelta = TimeDelta::hours(24);

/// When Stripe is asked next about a top-up that is as old as this: soon while somebody is likely to be paying, once a day in the end. Webhooks
/// come sooner; this is for those that do not come.
pub fn ask_next(created_at: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
    let age = now.signed_duration_since(created_at);
    let pause = age.checked_div(2).unwrap_or(ASK_LATEST).clamp(ASK_SOONEST, ASK_LATEST);
    now.checked_add_signed(pause).unwrap_or(now)
}
