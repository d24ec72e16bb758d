//! Disputes: a bank asks about a payment, or takes it back.

use chrono::{DateTime, Utc};
use miniserde::Deserialize;
use stripe_core::dispute::{ListDispute, RetrieveDispute};

use super::{
    client::{Stripe, StripeFault},
    objects::{Listed, statuses},
    payments::PAGE_ROWS,
    refunds::since,
};

statuses! {
    /// Where a dispute is. The warnings are inquiries, which take no money.
    StripeDisputeStatus {
        WarningNeedsResponse "warning_needs_response",
        WarningUnderReview "warning_under_review",
        WarningClosed "warning_closed",
        NeedsResponse "needs_response",
        UnderReview "under_review",
        Won "won",
        Lost "lost",
        Prevented "prevented",
    }
}

/// A dispute at Stripe.
#[derive(Debug, Clone)]
pub struct StripeDispute {
    pub id: String,
    pub status: StripeDisputeStatus,
    pub reason: String,
    /// Three letters, lower case; whatever currency it is.
    pub currency: String,
    pub minor_units: i64,
    /// The PaymentIntent that is disputed.
    pub payment_id: Option<String>,
    /// Taken from our balance at Stripe for it in all, without fees.
    pub withdrawn_minor_units: i64,
    /// Given back in all.
    pub reinstated_minor_units: i64,
    /// Stripe's fees for it, less those given back.
    pub fee_minor_units: i64,
    pub evidence_due_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct DisputeFields {
    id: String,
    status: String,
    reason: String,
    currency: String,
    amount: i64,
    payment_intent: Option<String>,
    balance_transactions: Vec<MovementFields>,
    evidence_details: Option<EvidenceFields>,
}

#[derive(Deserialize)]
struct MovementFields {
    amount: i64,
    fee: i64,
}

#[derive(Deserialize)]
struct EvidenceFields {
    due_by: Option<i64>,
}

impl TryFrom<DisputeFields> for StripeDispute {
    type Error = StripeFault;
    fn try_from(fields: DisputeFields) -> Result<Self, StripeFault> {
        let sum = |amount: fn(&MovementFields) -> i64| {
            let mut amounts = fields.balance_transactions.iter().map(amount);
            let sum = amounts.try_fold(0_i64, i64::checked_add);
            sum.ok_or_else(|| StripeFault::Unreadable("a dispute's amounts leave 64 bits".to_owned()))
        };
        Ok(Self {
            withdrawn_minor_units: sum(|movement| movement.amount.saturating_neg().max(0))?,
            reinstated_minor_units: sum(|movement| movement.amount.max(0))?,
            fee_minor_units: sum(|movement| movement.fee)?,
            status: StripeDisputeStatus::parse(&fields.status)?,
            evidence_due_at: fields.evidence_details.and_then(|details| details.due_by).and_then(|at| DateTime::from_timestamp(at, 0)),
            id: fields.id,
            reason: fields.reason,
            currency: fields.currency,
            minor_units: fields.amount,
            payment_id: fields.payment_intent,
        })
    }
}

impl Listed for DisputeFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, _: &str) -> bool {
        false
    }
}

impl Stripe {
    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn dispute_fetch(&self, id: &str) -> Result<StripeDispute, StripeFault> {
        self.read::<DisputeFields>(&RetrieveDispute::new(id)).await?.try_into()
    }

    /// All disputes of a payment, the newest first.
    ///
    /// # Errors
    /// No answer.
    pub async fn disputes_of(&self, payment_id: &str) -> Result<Vec<StripeDispute>, StripeFault> {
        let request = |after: Option<String>| {
            let request = ListDispute::new().payment_intent(payment_id).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListDispute::starting_after)
        };
        let rows = self.list_all::<DisputeFields, _>(request).await?;
        rows.into_iter().map(StripeDispute::try_from).collect()
    }

    /// All disputes that were opened at `from` or later.
    ///
    /// # Errors
    /// No answer.
    pub async fn disputes_since(&self, from: DateTime<Utc>) -> Result<Vec<StripeDispute>, StripeFault> {
        let request = |after: Option<String>| {
            let request = ListDispute::new().created(since(from)).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListDispute::starting_after)
        };
        let rows = self.list_all::<DisputeFields, _>(request).await?;
        rows.into_iter().map(StripeDispute::try_from).collect()
    }
}
