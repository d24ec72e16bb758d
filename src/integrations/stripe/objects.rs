//! Stripe's objects: the fields that are read, and what they are to the rest of the program.

use std::collections::BTreeMap;

use miniserde::Deserialize;

use super::client::StripeFault;
use crate::base::secret::Secret;

/// The name in an object's metadata under which the id of our own row stands.
pub(super) const ROW_KEY: &str = "rigmark_id";

macro_rules! statuses {
    ($(#[doc = $doc:literal])* $name:ident { $($variant:ident $text:literal),* $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($variant),* }

        impl $name {
            /// # Errors
            /// `Unreadable` for one that is not known: what it means for money is not guessed.
            pub(super) fn parse(text: &str) -> Result<Self, StripeFault> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    other => Err(StripeFault::Unreadable(format!("a status that is not known: {other:?}"))),
                }
            }
        }
    };
}
pub(super) use statuses;

statuses! {
    /// Where a PaymentIntent is.
    PaymentStatus {
        RequiresPaymentMethod "requires_payment_method",
        RequiresConfirmation "requires_confirmation",
        RequiresAction "requires_action",
        RequiresCapture "requires_capture",
        Processing "processing",
        Canceled "canceled",
        Succeeded "succeeded",
    }
}

statuses! {
    /// Where a SetupIntent is.
    SetupStatus {
        RequiresPaymentMethod "requires_payment_method",
        RequiresConfirmation "requires_confirmation",
        RequiresAction "requires_action",
        Processing "processing",
        Canceled "canceled",
        Succeeded "succeeded",
    }
}

statuses! {
    /// Where a hosted checkout is.
    CheckoutStatus { Open "open", Complete "complete", Expired "expired" }
}

statuses! {
    /// Where a connected account's payout to its bank is.
    BankPayoutStatus {
        Pending "pending",
        InTransit "in_transit",
        Paid "paid",
        Failed "failed",
        Canceled "canceled",
    }
}

/// A PaymentIntent.
#[derive(Debug, Clone)]
pub struct Payment {
    pub id: String,
    pub status: PaymentStatus,
    /// Three letters, lower case; whatever currency it is.
    pub currency: String,
    /// What was paid, in the smallest units of the currency.
    pub received_minor_units: i64,
    /// What lets a browser pay it.
    pub client_secret: Option<Secret<String>>,
    /// Our own row, as its metadata names it.
    pub row_id: Option<String>,
    /// Why the last try failed: the issuer's code where there is one.
    pub failure_code: Option<String>,
}

/// A checkout that Stripe hosts.
#[derive(Debug, Clone)]
pub struct Checkout {
    pub id: String,
    pub status: CheckoutStatus,
    /// Where the payer goes; none once it is over.
    pub url: Option<String>,
    /// The PaymentIntent, once there is one.
    pub payment_id: Option<String>,
    /// The SetupIntent, where the checkout saves a card and has done so.
    pub setup_id: Option<String>,
    /// The Subscription that was begun there.
    pub subscription_id: Option<String>,
    pub row_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct PaymentFields {
    id: String,
    status: String,
    currency: String,
    amount_received: i64,
    client_secret: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    last_payment_error: Option<PaymentErrorFields>,
}

#[derive(Deserialize)]
struct PaymentErrorFields {
    code: Option<String>,
    decline_code: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CheckoutFields {
    id: String,
    status: Option<String>,
    url: Option<String>,
    payment_intent: Option<String>,
    setup_intent: Option<String>,
    subscription: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
}

/// One page of a list.
#[derive(Deserialize)]
pub(super) struct PageFields<T> {
    pub data: Vec<T>,
    pub has_more: bool,
}

impl TryFrom<PaymentFields> for Payment {
    type Error = StripeFault;
    fn try_from(fields: PaymentFields) -> Result<Self, StripeFault> {
        Ok(Self {
            status: PaymentStatus::parse(&fields.status)?,
            id: fields.id,
            currency: fields.currency,
            received_minor_units: fields.amount_received,
            client_secret: fields.client_secret.map(Secret::new),
            row_id: row_id(fields.metadata),
            failure_code: fields.last_payment_error.and_then(|error| error.decline_code.or(error.code)),
        })
    }
}

impl TryFrom<CheckoutFields> for Checkout {
    type Error = StripeFault;
    fn try_from(fields: CheckoutFields) -> Result<Self, StripeFault> {
        Ok(Self {
            status: CheckoutStatus::parse(fields.status.as_deref().unwrap_or_default())?,
            id: fields.id,
            url: fields.url,
            payment_id: fields.payment_intent,
            setup_id: fields.setup_intent,
            subscription_id: fields.subscription,
            row_id: row_id(fields.metadata),
        })
    }
}

/// An object of a list, as far as it is compared.
pub(super) trait Listed {
    fn id(&self) -> &str;
    fn is_of(&self, row_id: &str) -> bool;
}

impl Listed for PaymentFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, row_id: &str) -> bool {
        is_of(self.metadata.as_ref(), row_id)
    }
}

impl Listed for CheckoutFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, row_id: &str) -> bool {
        is_of(self.metadata.as_ref(), row_id)
    }
}

pub(super) fn is_of(metadata: Option<&BTreeMap<String, String>>, row_id: &str) -> bool {
    metadata.and_then(|metadata| metadata.get(ROW_KEY)).is_some_and(|id| id == row_id)
}

pub(super) fn row_id(metadata: Option<BTreeMap<String, String>>) -> Option<String> {
    metadata.and_then(|mut metadata| metadata.remove(ROW_KEY))
}
