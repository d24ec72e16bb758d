//! PaymentIntents and hosted checkouts.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use stripe_checkout::checkout_session::{
    CreateCheckoutSession, CreateCheckoutSessionLineItems, CreateCheckoutSessionLineItemsPriceData, CreateCheckoutSessionPaymentIntentData,
    ListCheckoutSession, ProductData, RetrieveCheckoutSession,
};
use stripe_client_core::StripeRequest;
use stripe_core::payment_intent::{
    CancelPaymentIntent, CancelPaymentIntentCancellationReason, CreatePaymentIntent, CreatePaymentIntentAutomaticPaymentMethods,
    CreatePaymentIntentAutomaticPaymentMethodsAllowRedirects, CreatePaymentIntentOffSession, ListPaymentIntent, RetrievePaymentIntent,
};
use stripe_shared::CheckoutSessionMode;
use stripe_types::{RangeBoundsTs, RangeQueryTs};

use super::{
    client::{Stripe, StripeFault},
    objects::{Checkout, CheckoutFields, Listed, PageFields, Payment, PaymentFields, ROW_KEY},
};
use crate::base::{Money, money::Currency};

pub(super) const PAGE_ROWS: i64 = 100;
/// Lists longer than this many pages are not read to the end.
pub(super) const PAGES_MAX: usize = 200;
/// How far Stripe's clock may be from ours.
const CLOCK_GAP: TimeDelta = TimeDelta::minutes(5);

/// A payment to be made.
#[derive(Debug, Clone)]
pub struct NewPayment<'a> {
    /// Our own row: the idempotency key follows from it, and the object's metadata names it.
    pub row_id: &'a str,
    pub amount: Money,
    /// Paid with this at once. None: by a browser with the client secret.
    pub payment_method: Option<&'a str>,
    /// Whose saved payment method it is.
    pub customer: Option<&'a str>,
    /// The payer is not there: whoever wants to hear from them declines.
    pub off_session: bool,
    pub description: &'a str,
}

/// A checkout to be made.
#[derive(Debug, Clone)]
pub struct NewCheckout<'a> {
    pub row_id: &'a str,
    pub amount: Money,
    /// Where the payer's browser goes afterwards, paid or not.
    pub return_url: &'a str,
    pub description: &'a str,
}

/// An object to look for.
#[derive(Debug, Clone, Copy)]
pub struct Find<'a> {
    pub row_id: &'a str,
    /// The request that may have made it was sent within this span.
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

impl Find<'_> {
    pub(super) fn created(&self) -> RangeQueryTs {
        let gte = self.from.checked_sub_signed(CLOCK_GAP).map(|at| at.timestamp());
        let lte = self.until.checked_add_signed(CLOCK_GAP).map(|at| at.timestamp());
        RangeQueryTs::Bounds(RangeBoundsTs { gte, lte, ..RangeBoundsTs::default() })
    }
}

impl Stripe {
    /// Makes a PaymentIntent; with a payment method it is confirmed too. Sent again for the same row it gives the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::payment_find`].
    pub async fn payment_create(&self, new: &NewPayment<'_>) -> Result<Payment, StripeFault> {
        let (units, currency) = minor_units(new.amount)?;
        let mut methods = CreatePaymentIntentAutomaticPaymentMethods::new(true);
        let mut request = CreatePaymentIntent::new(units, currency).metadata(metadata(new.row_id)).description(new.description.to_owned());
        if let Some(method) = new.payment_method {
            // Nobody is there to be sent elsewhere and back.
            methods.allow_redirects = Some(CreatePaymentIntentAutomaticPaymentMethodsAllowRedirects::Never);
            request = request.payment_method(method).confirm(true);
        }
        if let Some(customer) = new.customer {
            request = request.customer(customer);
        }
        if new.off_session {
            request = request.off_session(CreatePaymentIntentOffSession::Bool(true));
        }
        let request = request.automatic_payment_methods(methods);
        self.change::<PaymentFields>(&request, &format!("{}:payment", new.row_id)).await?.try_into()
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn payment_fetch(&self, id: &str) -> Result<Payment, StripeFault> {
        self.read::<PaymentFields>(&RetrievePaymentIntent::new(id)).await?.try_into()
    }

    /// Ends a payment that nobody has paid.
    ///
    /// # Errors
    /// `Refused` when it is being paid, or over.
    pub async fn payment_cancel(&self, id: &str) -> Result<Payment, StripeFault> {
        let request = CancelPaymentIntent::new(id).cancellation_reason(CancelPaymentIntentCancellationReason::Abandoned);
        self.change::<PaymentFields>(&request, &format!("{id}:cancel")).await?.try_into()
    }

    /// The PaymentIntent that names the row, if one was made.
    ///
    /// # Errors
    /// No answer.
    pub async fn payment_find(&self, find: Find<'_>) -> Result<Option<Payment>, StripeFault> {
        let page = |after: Option<String>| {
            let request = ListPaymentIntent::new().created(find.created()).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListPaymentIntent::starting_after)
        };
        self.find::<PaymentFields, _>(find.row_id, page).await?.map(Payment::try_from).transpose()
    }

    /// Makes a checkout. Sent again for the same row it gives the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::checkout_find`].
    pub async fn checkout_create(&self, new: &NewCheckout<'_>) -> Result<Checkout, StripeFault> {
        let (units, currency) = minor_units(new.amount)?;
        let mut price = CreateCheckoutSessionLineItemsPriceData::new(currency);
        price.unit_amount = Some(units);
        price.product_data = Some(ProductData::new(new.description));
        let mut item = CreateCheckoutSessionLineItems::new();
        item.price_data = Some(price);
        item.quantity = Some(1);
        let mut payment = CreateCheckoutSessionPaymentIntentData::new();
        payment.metadata = Some(metadata(new.row_id));
        payment.description = Some(new.description.to_owned());
        let request = CreateCheckoutSession::new()
            .mode(CheckoutSessionMode::Payment)
            .line_items(vec![item])
            .success_url(new.return_url)
            .cancel_url(new.return_url)
            .client_reference_id(new.row_id)
            .metadata(metadata(new.row_id))
            .payment_intent_data(payment);
        self.change::<CheckoutFields>(&request, &format!("{}:checkout", new.row_id)).await?.try_into()
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn checkout_fetch(&self, id: &str) -> Result<Checkout, StripeFault> {
        self.read::<CheckoutFields>(&RetrieveCheckoutSession::new(id)).await?.try_into()
    }

    /// The checkout that names the row, if one was made.
    ///
    /// # Errors
    /// No answer.
    pub async fn checkout_find(&self, find: Find<'_>) -> Result<Option<Checkout>, StripeFault> {
        let page = |after: Option<String>| {
            let request = ListCheckoutSession::new().created(find.created()).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListCheckoutSession::starting_after)
        };
        self.find::<CheckoutFields, _>(find.row_id, page).await?.map(Checkout::try_from).transpose()
    }

    /// Reads the pages of a list, the newest first, until an object of the row comes. Stripe's search would be shorter, but lags behind.
    pub(super) async fn find<T, R>(&self, row_id: &str, page: impl Fn(Option<String>) -> R) -> Result<Option<T>, StripeFault>
    where
        T: Listed + miniserde::Deserialize,
        R: StripeRequest,
    {
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let rows: PageFields<T> = self.read(&page(after)).await?;
            after = rows.data.last().map(|last| last.id().to_owned());
            if let Some(found) = rows.data.into_iter().find(|row| row.is_of(row_id)) {
                return Ok(Some(found));
            }
            if !rows.has_more || after.is_none() {
                return Ok(None);
            }
        }
        Err(StripeFault::Unknown("the list is too long to be read to its end".to_owned()))
    }
}

pub(super) fn metadata(row_id: &str) -> HashMap<String, String> {
    HashMap::from([(ROW_KEY.to_owned(), row_id.to_owned())])
}

pub(super) fn minor_units(amount: Money) -> Result<(i64, stripe_types::Currency), StripeFault> {
    let currency = match amount.currency() {
        Currency::Usd => stripe_types::Currency::USD,
    };
    let units = amount.minor_units().filter(|units| *units > 0);
    units.map(|units| (units, currency)).ok_or_else(|| StripeFault::Unreadable(format!("{amount} is no amount that can be paid")))
}
