//! Rows and views of disputes.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::refunds::model::RefundView;
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, DisputeId, HoldId, RentalId, TopUpId, TransferId},
        money::Currency,
    },
    db::schema::disputes,
    identity::AccountSummary,
    integrations::stripe::StripeDisputeStatus,
    ledger::TransferCode,
    rentals::model::{RentalView, Usage},
};

/// Where a dispute stands, in Stripe's words. The warnings are inquiries, which take no money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisputeStatus {
    WarningNeedsResponse,
    WarningUnderReview,
    NeedsResponse,
    UnderReview,
    WarningClosed,
    Won,
    Lost,
    /// Settled before it became one.
    Prevented,
}

impl DisputeStatus {
    pub const ALL: [Self; 8] = [
        Self::WarningNeedsResponse,
        Self::WarningUnderReview,
        Self::NeedsResponse,
        Self::UnderReview,
        Self::WarningClosed,
        Self::Won,
        Self::Lost,
        Self::Prevented,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WarningNeedsResponse => "warning_needs_response",
            Self::WarningUnderReview => "warning_under_review",
            Self::NeedsResponse => "needs_response",
            Self::UnderReview => "under_review",
            Self::WarningClosed => "warning_closed",
            Self::Won => "won",
            Self::Lost => "lost",
            Self::Prevented => "prevented",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub const fn is_open(self) -> bool {
        self.rank() < 4
    }

    /// An inquiry may become a dispute; none opens again.
    const fn rank(self) -> u8 {
        match self {
            Self::WarningNeedsResponse => 0,
            Self::WarningUnderReview => 1,
            Self::NeedsResponse => 2,
            Self::UnderReview => 3,
            Self::WarningClosed | Self::Won | Self::Lost | Self::Prevented => 4,
        }
    }

    /// Forward only.
    pub const fn may_become(self, next: Self) -> bool {
        next.rank() > self.rank()
    }
}

impl From<StripeDisputeStatus> for DisputeStatus {
    fn from(status: StripeDisputeStatus) -> Self {
        match status {
            StripeDisputeStatus::WarningNeedsResponse => Self::WarningNeedsResponse,
            StripeDisputeStatus::WarningUnderReview => Self::WarningUnderReview,
            StripeDisputeStatus::NeedsResponse => Self::NeedsResponse,
            StripeDisputeStatus::UnderReview => Self::UnderReview,
            StripeDisputeStatus::WarningClosed => Self::WarningClosed,
            StripeDisputeStatus::Won => Self::Won,
            StripeDisputeStatus::Lost => Self::Lost,
            StripeDisputeStatus::Prevented => Self::Prevented,
        }
    }
}

/// One row of `disputes`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = disputes, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub struct Dispute {
    pub id: DisputeId,
    pub top_up_id: TopUpId,
    pub account_id: AccountId,
    pub stripe_dispute_id: String,
    pub amount_micros: Money,
    pub reason: String,
    pub status: String,
    pub withdrawn_micros: Money,
    pub reinstated_micros: Money,
    pub fee_micros: Money,
    pub hold_id: Option<HoldId>,
    pub evidence_due_at: Option<DateTime<Utc>>,
    pub ask_at: Option<DateTime<Utc>>,
    pub ask_count: i32,
    pub created_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
}

impl Dispute {
    /// # Errors
    /// `internal` when the row holds a status this program does not know.
    pub fn status(&self) -> Result<DisputeStatus> {
        DisputeStatus::parse(&self.status).ok_or_else(|| Error::internal(format!("dispute status {}", self.status)))
    }

    /// What of its payment cannot be refunded on its account: the whole amount while it is open, afterwards what was taken and not given back.
    ///
    /// # Errors
    /// As [`Self::status`].
    pub fn out_of_reach(&self) -> Result<Money> {
        let taken = self.withdrawn_micros.minus(self.reinstated_micros)?;
        Ok(if self.status()?.is_open() { taken.max(self.amount_micros) } else { taken })
    }
}

/// A dispute as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DisputeView {
    pub id: DisputeId,
    pub top_up_id: TopUpId,
    pub status: DisputeStatus,
    /// Why the payer's bank has opened it: Stripe's word, such as `fraudulent`.
    pub reason: String,
    pub amount: Money,
    pub currency: Currency,
    /// Taken from the balance for it in all.
    pub withdrawn: Money,
    /// Given back in all.
    pub reinstated: Money,
    /// Until when evidence can be handed in.
    pub evidence_due_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
}

impl DisputeView {
    /// # Errors
    /// As [`Dispute::status`].
    pub fn new(row: &Dispute) -> Result<Self> {
        Ok(Self {
            id: row.id,
            top_up_id: row.top_up_id,
            status: row.status()?,
            reason: row.reason.clone(),
            amount: row.amount_micros,
            currency: row.amount_micros.currency(),
            withdrawn: row.withdrawn_micros,
            reinstated: row.reinstated_micros,
            evidence_due_at: row.evidence_due_at,
            created_at: row.created_at,
            closed_at: row.closed_at,
        })
    }
}

/// All that shows what a disputed payment was used for, in one document.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DisputeEvidence {
    pub made_at: DateTime<Utc>,
    pub dispute: DisputeView,
    /// Whose payment it was.
    pub account: AccountSummary,
    pub payment: EvidencePayment,
    /// What of the payment was given back.
    pub refunds: Vec<RefundView>,
    /// Every rental of the account that began after the payment was credited, the latest first: a dollar has no marks, so what was rented since
    /// is what it may have paid for.
    pub rentals: Vec<EvidenceRental>,
    /// Every change of the account's balances since the payment was begun, the latest first.
    pub ledger_entries: Vec<EvidenceEntry>,
    /// False when there is more than the document holds: the latest 500 rentals and 5000 entries.
    pub is_complete: bool,
}

/// The payment itself.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EvidencePayment {
    pub top_up_id: TopUpId,
    /// Stripe's PaymentIntent.
    pub payment_intent: Option<String>,
    pub amount: Money,
    pub received: Option<Money>,
    pub currency: Currency,
    pub created_at: DateTime<Utc>,
    /// When it was put on the account's balance.
    pub credited_at: Option<DateTime<Utc>>,
}

/// A rental, what was used of it, and what was promised.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EvidenceRental {
    pub rental: RentalView,
    pub usage: Usage,
    /// The public page of what was offered.
    pub listing_url: String,
    /// The public page of the measurement that backed the offer.
    pub run_url: Option<String>,
    /// The document that this measurement stands on.
    pub run_document_url: Option<String>,
}

/// A change of one of the account's balances.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EvidenceEntry {
    pub transfer_id: TransferId,
    pub code: TransferCode,
    /// `available`, `held`, `earnings` or `payable`.
    #[schema(pattern = "^(?:available|held|earnings|payable)$")]
    pub ledger_account: &'static str,
    pub amount: Money,
    pub balance_after: Money,
    pub rental_id: Option<RentalId>,
    /// The provider's name of the payment.
    pub payment: Option<String>,
    pub at: DateTime<Utc>,
}
