//! Rows and views of refunds.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, RefundId, TopUpId},
        money::Currency,
        shape::PriceText,
    },
    db::schema::refunds,
};

/// Money to give back to where it came from.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RefundRequest {
    /// A top-up that has succeeded.
    pub top_up_id: TopUpId,
    /// US dollars in whole cents: at most what is left of the payment, and at most what is available.
    #[schema(value_type = PriceText)]
    pub amount: Money,
}

/// Where a refund stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefundStatus {
    /// On its way: the money has left the balance.
    Pending,
    /// Given back. It may still fail when the payer's bank returns it.
    Succeeded,
    /// The money is on the balance again.
    Failed,
}

impl RefundStatus {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Succeeded, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Succeeded => 1,
            Self::Failed => 2,
        }
    }

    /// Forward only: what has failed stays so, and a late answer of before is no news.
    pub const fn may_become(self, next: Self) -> bool {
        next.rank() > self.rank()
    }
}

/// Who made a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefundOrigin {
    /// A request to Rigmark.
    Request,
    /// Somebody at Stripe, in its dashboard.
    Stripe,
}

impl RefundOrigin {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Stripe => "stripe",
        }
    }
}

/// One row of `refunds`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = refunds, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub struct Refund {
    pub id: RefundId,
    pub top_up_id: TopUpId,
    pub account_id: AccountId,
    pub origin: String,
    pub request_key: Option<String>,
    pub amount_micros: Money,
    pub status: String,
    pub stripe_refund_id: Option<String>,
    pub failure_code: Option<String>,
    pub alarm: Option<String>,
    pub ask_at: Option<DateTime<Utc>>,
    pub ask_count: i32,
    pub created_at: DateTime<Utc>,
    pub settled_at: Option<DateTime<Utc>>,
}

impl Refund {
    /// # Errors
    /// `internal` when the row holds a status this program does not know.
    pub fn status(&self) -> Result<RefundStatus> {
        RefundStatus::parse(&self.status).ok_or_else(|| Error::internal(format!("refund status {}", self.status)))
    }

    /// Whether the request that made it asked for the same.
    pub fn is_of(&self, request: &RefundRequest) -> bool {
        self.top_up_id == request.top_up_id && self.amount_micros == request.amount
    }

    /// Whether Stripe may or may not have it.
    pub fn is_unknown(&self) -> bool {
        self.stripe_refund_id.is_none() && self.status == RefundStatus::Pending.as_str()
    }

    pub fn origin(&self) -> RefundOrigin {
        if self.origin == RefundOrigin::Stripe.as_str() { RefundOrigin::Stripe } else { RefundOrigin::Request }
    }
}

/// A refund as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RefundView {
    pub id: RefundId,
    pub top_up_id: TopUpId,
    pub origin: RefundOrigin,
    pub status: RefundStatus,
    pub amount: Money,
    pub currency: Currency,
    /// Why it failed: Stripe's code, such as `expired_or_canceled_card` or `charge_disputed`, or `never_arrived`.
    pub failure_code: Option<String>,
    pub created_at: DateTime<Utc>,
    /// When it succeeded or failed.
    pub settled_at: Option<DateTime<Utc>>,
}

impl RefundView {
    /// # Errors
    /// As [`Refund::status`].
    pub fn new(row: &Refund) -> Result<Self> {
        Ok(Self {
            id: row.id,
            top_up_id: row.top_up_id,
            origin: row.origin(),
            status: row.status()?,
            amount: row.amount_micros,
            currency: row.amount_micros.currency(),
            failure_code: row.failure_code.clone(),
            created_at: row.created_at,
            settled_at: row.settled_at,
        })
    }
}
