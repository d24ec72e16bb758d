//! Refunds, and the charges that they are of.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use miniserde::Deserialize;
use stripe_client_core::StripeRequest;
use stripe_core::{
    charge::{ListCharge, RetrieveCharge},
    refund::{CreateRefund, ListRefund, RetrieveRefund},
};
use stripe_types::{RangeBoundsTs, RangeQueryTs};

use super::{
    client::{Stripe, StripeFault},
    objects::{Listed, PageFields, is_of, row_id, statuses},
    payments::{PAGE_ROWS, PAGES_MAX, metadata, minor_units},
};
use crate::base::Money;

statuses! {
    /// Where a refund is at Stripe.
    StripeRefundStatus {
        Pending "pending",
        RequiresAction "requires_action",
        Succeeded "succeeded",
        Failed "failed",
        Canceled "canceled",
    }
}

/// A refund at Stripe, whoever made it.
#[derive(Debug, Clone)]
pub struct StripeRefund {
    pub id: String,
    pub status: StripeRefundStatus,
    /// Three letters, lower case; whatever currency it is.
    pub currency: String,
    pub minor_units: i64,
    /// The PaymentIntent whose money it gives back.
    pub payment_id: Option<String>,
    /// Our own row, as its metadata names it.
    pub row_id: Option<String>,
    pub failure_code: Option<String>,
}

impl StripeRefund {
    /// Whether Stripe counts it in the charge's refunded amount.
    pub const fn counts(&self) -> bool {
        !matches!(self.status, StripeRefundStatus::Failed | StripeRefundStatus::Canceled)
    }
}

/// A charge: what a payment took from a card.
#[derive(Debug, Clone)]
pub struct Charge {
    pub payment_id: Option<String>,
    pub captured_minor_units: i64,
    /// Refunded in all, as Stripe adds it up.
    pub refunded_minor_units: i64,
}

/// A refund to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewRefund<'a> {
    /// Our own row: the idempotency key follows from it, and the object's metadata names it.
    pub row_id: &'a str,
    /// The PaymentIntent whose money goes back.
    pub payment_id: &'a str,
    pub amount: Money,
}

#[derive(Deserialize)]
struct RefundFields {
    id: String,
    status: Option<String>,
    currency: String,
    amount: i64,
    payment_intent: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    failure_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChargeFields {
    id: String,
    payment_intent: Option<String>,
    amount_captured: i64,
    amount_refunded: i64,
}

impl TryFrom<RefundFields> for StripeRefund {
    type Error = StripeFault;
    fn try_from(fields: RefundFields) -> Result<Self, StripeFault> {
        Ok(Self {
            status: StripeRefundStatus::parse(fields.status.as_deref().unwrap_or_default())?,
            id: fields.id,
            currency: fields.currency,
            minor_units: fields.amount,
            payment_id: fields.payment_intent,
            row_id: row_id(fields.metadata),
            failure_code: fields.failure_reason,
        })
    }
}

impl From<ChargeFields> for Charge {
    fn from(fields: ChargeFields) -> Self {
        Self {
            payment_id: fields.payment_intent,
            captured_minor_units: fields.amount_captured,
            refunded_minor_units: fields.amount_refunded,
        }
    }
}

impl Listed for RefundFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, row_id: &str) -> bool {
        is_of(self.metadata.as_ref(), row_id)
    }
}

impl Listed for ChargeFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, _: &str) -> bool {
        false
    }
}

/// Objects that were made at `from` or later.
pub(super) fn since(from: DateTime<Utc>) -> RangeQueryTs {
    RangeQueryTs::Bounds(RangeBoundsTs { gte: Some(from.timestamp()), ..RangeBoundsTs::default() })
}

impl Stripe {
    /// Makes a refund. Sent again for the same row it gives the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::refund_find`].
    pub async fn refund_create(&self, new: &NewRefund<'_>) -> Result<StripeRefund, StripeFault> {
        let (units, _) = minor_units(new.amount)?;
        let request = CreateRefund::new().payment_intent(new.payment_id).amount(units).metadata(metadata(new.row_id));
        self.change::<RefundFields>(&request, &format!("{}:refund", new.row_id)).await?.try_into()
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn refund_fetch(&self, id: &str) -> Result<StripeRefund, StripeFault> {
        self.read::<RefundFields>(&RetrieveRefund::new(id)).await?.try_into()
    }

    /// The refund of the payment that names the row, if one was made.
    ///
    /// # Errors
    /// No answer.
    pub async fn refund_find(&self, payment_id: &str, row_id: &str) -> Result<Option<StripeRefund>, StripeFault> {
        let refunds = self.refunds_of(payment_id).await?;
        Ok(refunds.into_iter().find(|refund| refund.row_id.as_deref() == Some(row_id)))
    }

    /// All refunds of a payment, the newest first.
    ///
    /// # Errors
    /// No answer.
    pub async fn refunds_of(&self, payment_id: &str) -> Result<Vec<StripeRefund>, StripeFault> {
        let request = |after: Option<String>| {
            let request = ListRefund::new().payment_intent(payment_id).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListRefund::starting_after)
        };
        let rows = self.list_all::<RefundFields, _>(request).await?;
        rows.into_iter().map(StripeRefund::try_from).collect()
    }

    /// All refunds that were made at `from` or later.
    ///
    /// # Errors
    /// No answer.
    pub async fn refunds_since(&self, from: DateTime<Utc>) -> Result<Vec<StripeRefund>, StripeFault> {
        let request = |after: Option<String>| {
            let request = ListRefund::new().created(since(from)).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListRefund::starting_after)
        };
        let rows = self.list_all::<RefundFields, _>(request).await?;
        rows.into_iter().map(StripeRefund::try_from).collect()
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn charge_fetch(&self, id: &str) -> Result<Charge, StripeFault> {
        Ok(self.read::<ChargeFields>(&RetrieveCharge::new(id)).await?.into())
    }

    /// All charges of a payment; of several tries at most one has captured anything.
    ///
    /// # Errors
    /// No answer.
    pub async fn charges_of(&self, payment_id: &str) -> Result<Vec<Charge>, StripeFault> {
        let request = |after: Option<String>| {
            let request = ListCharge::new().payment_intent(payment_id).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListCharge::starting_after)
        };
        let rows = self.list_all::<ChargeFields, _>(request).await?;
        Ok(rows.into_iter().map(Charge::from).collect())
    }

    /// Reads all pages of a list.
    pub(super) async fn list_all<T, R>(&self, page: impl Fn(Option<String>) -> R) -> Result<Vec<T>, StripeFault>
    where
        T: Listed + miniserde::Deserialize,
        R: StripeRequest,
    {
        let mut all = Vec::new();
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let rows: PageFields<T> = self.read(&page(after)).await?;
            after = rows.data.last().map(|last| last.id().to_owned());
            all.extend(rows.data);
            if !rows.has_more || after.is_none() {
                return Ok(all);
            }
        }
        Err(StripeFault::Unknown("the list is too long to be read to its end".to_owned()))
    }
}
