//! Subscriptions, their prices and invoices, and the portal where customers look after them.

use std::{collections::BTreeMap, sync::PoisonError};

use chrono::{DateTime, Utc};
use miniserde::Deserialize;
use serde::Serialize;
use stripe_billing::{
    billing_portal_session::CreateBillingPortalSession,
    invoice::{ListInvoice, RetrieveInvoice},
    subscription::{
        CancelSubscription, CreateSubscription, CreateSubscriptionItems, CreateSubscriptionPaymentBehavior, ListSubscription,
        ListSubscriptionStatus, RetrieveSubscription, UpdateSubscription, UpdateSubscriptionItems, UpdateSubscriptionPaymentBehavior,
        UpdateSubscriptionProrationBehavior,
    },
};
use stripe_checkout::checkout_session::{
    CreateCheckoutSession, CreateCheckoutSessionLineItems, CreateCheckoutSessionSubscriptionData, ExpireCheckoutSession,
};
use stripe_client_core::{RequestBuilder, StripeMethod, StripeRequest};
use stripe_payment::payment_method::AttachPaymentMethod;
use stripe_shared::CheckoutSessionMode;

use super::{
    client::{Stripe, StripeFault},
    objects::{self, Checkout, CheckoutFields, Listed, PageFields, statuses},
    payments::{PAGE_ROWS, metadata},
};
use crate::base::secret::Secret;

statuses! {
    /// Where a Subscription is.
    SubscriptionStatus {
        Incomplete "incomplete",
        IncompleteExpired "incomplete_expired",
        Trialing "trialing",
        Active "active",
        PastDue "past_due",
        Canceled "canceled",
        Unpaid "unpaid",
        Paused "paused",
    }
}

statuses! {
    /// Where an Invoice is.
    InvoiceStatus { Draft "draft", Open "open", Paid "paid", Void "void", Uncollectible "uncollectible" }
}

/// A Price that repeats.
#[derive(Debug, Clone)]
pub struct Price {
    pub id: String,
    pub currency: String,
    /// Of one seat for one interval; none for a price of several tiers.
    pub minor_units: Option<i64>,
    /// `month`, `year`; none for a price that is paid once.
    pub interval: Option<String>,
    pub interval_count: i64,
    pub is_active: bool,
}

/// A Subscription with one item.
#[derive(Debug, Clone)]
pub struct Subscription {
    pub id: String,
    pub status: SubscriptionStatus,
    pub customer_id: String,
    pub currency: String,
    pub item_id: String,
    pub price_id: String,
    pub quantity: i64,
    pub period_ends_at: DateTime<Utc>,
    /// Whether it ends by itself.
    pub is_ending: bool,
    pub latest_invoice_id: Option<String>,
    pub row_id: Option<String>,
}

/// A tax of an invoice, in the smallest units of its currency.
#[derive(Debug, Clone, Serialize)]
pub struct TaxLine {
    pub minor_units: i64,
    /// Within the price, not on top of it.
    pub is_inclusive: bool,
    pub tax_rate_id: Option<String>,
    pub reason: Option<String>,
}

/// An Invoice.
#[derive(Debug, Clone)]
pub struct Invoice {
    pub id: String,
    pub status: InvoiceStatus,
    pub number: Option<String>,
    pub reason: Option<String>,
    pub currency: String,
    pub paid_minor_units: i64,
    pub created_at: DateTime<Utc>,
    /// The latest end of what its lines charge for; what is given back does not count.
    pub covers_until: Option<DateTime<Utc>>,
    pub taxes: Vec<TaxLine>,
    pub subscription_id: Option<String>,
    /// Lets a browser pay it; only where it was asked for.
    pub client_secret: Option<Secret<String>>,
}

/// A subscription to be made.
#[derive(Debug, Clone)]
pub struct NewSubscription<'a> {
    /// Our own row: the idempotency keys follow from it, and the object's metadata names it.
    pub row_id: &'a str,
    pub customer_id: &'a str,
    pub price_id: &'a str,
    pub quantity: u64,
    /// One of the customer's, which pays at once. None: a browser pays with the client secret of the first invoice.
    pub payment_method: Option<&'a str>,
}

/// A change of a subscription; made whole or not at all.
#[derive(Debug, Clone)]
pub enum Change<'a> {
    /// Another price or quantity, what is left of the period settled at once.
    Item { item_id: &'a str, price_id: &'a str, quantity: u64 },
    /// Whether it ends with its period.
    Ending(bool),
}

#[derive(Deserialize)]
struct PriceFields {
    id: String,
    currency: String,
    unit_amount: Option<i64>,
    recurring: Option<RecurringFields>,
    active: bool,
}

#[derive(Deserialize)]
struct RecurringFields {
    interval: String,
    interval_count: i64,
}

#[derive(Deserialize)]
struct ItemFields {
    id: String,
    price: PriceFields,
    quantity: Option<i64>,
    current_period_end: i64,
}

#[derive(Deserialize)]
struct SubscriptionFields {
    id: String,
    status: String,
    customer: String,
    currency: String,
    items: PageFields<ItemFields>,
    cancel_at_period_end: bool,
    cancel_at: Option<i64>,
    latest_invoice: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct PeriodFields {
    end: i64,
}

#[derive(Deserialize)]
struct LineFields {
    amount: i64,
    period: PeriodFields,
}

#[derive(Deserialize)]
struct TaxRateFields {
    tax_rate: Option<String>,
}

#[derive(Deserialize)]
struct TaxFields {
    amount: i64,
    tax_behavior: Option<String>,
    tax_rate_details: Option<TaxRateFields>,
    taxability_reason: Option<String>,
}

#[derive(Deserialize)]
struct OfSubscriptionFields {
    subscription: Option<String>,
}

#[derive(Deserialize)]
struct ParentFields {
    subscription_details: Option<OfSubscriptionFields>,
}

#[derive(Deserialize)]
struct SecretFields {
    client_secret: String,
}

#[derive(Deserialize)]
struct InvoiceFields {
    id: String,
    status: Option<String>,
    number: Option<String>,
    billing_reason: Option<String>,
    currency: String,
    amount_paid: i64,
    created: i64,
    lines: PageFields<LineFields>,
    total_taxes: Option<Vec<TaxFields>>,
    parent: Option<ParentFields>,
    confirmation_secret: Option<SecretFields>,
}

#[derive(Deserialize)]
struct IdFields {
    id: String,
}

#[derive(Deserialize)]
struct PortalFields {
    url: String,
}

#[derive(Deserialize)]
struct InvoicePaymentFields {
    invoice: String,
}

fn instant(seconds: i64) -> Result<DateTime<Utc>, StripeFault> {
    DateTime::from_timestamp(seconds, 0).ok_or_else(|| StripeFault::Unreadable(format!("no instant: {seconds}")))
}

impl From<PriceFields> for Price {
    fn from(fields: PriceFields) -> Self {
        let (interval, interval_count) = fields.recurring.map_or((None, 0), |every| (Some(every.interval), every.interval_count));
        Self {
            id: fields.id,
            currency: fields.currency,
            minor_units: fields.unit_amount,
            interval,
            interval_count,
            is_active: fields.active,
        }
    }
}

impl TryFrom<SubscriptionFields> for Subscription {
    type Error = StripeFault;
    fn try_from(fields: SubscriptionFields) -> Result<Self, StripeFault> {
        let [item] = <[ItemFields; 1]>::try_from(fields.items.data)
            .map_err(|items| StripeFault::Unreadable(format!("a subscription of {} items", items.len())))?;
        Ok(Self {
            id: fields.id,
            status: SubscriptionStatus::parse(&fields.status)?,
            customer_id: fields.customer,
            currency: fields.currency,
            item_id: item.id,
            price_id: item.price.id,
            quantity: item.quantity.unwrap_or(1),
            period_ends_at: instant(item.current_period_end)?,
            is_ending: fields.cancel_at_period_end || fields.cancel_at.is_some(),
            latest_invoice_id: fields.latest_invoice,
            row_id: objects::row_id(fields.metadata),
        })
    }
}

impl Listed for SubscriptionFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, row_id: &str) -> bool {
        objects::is_of(self.metadata.as_ref(), row_id)
    }
}

impl TryFrom<InvoiceFields> for Invoice {
    type Error = StripeFault;
    fn try_from(fields: InvoiceFields) -> Result<Self, StripeFault> {
        let charged = fields.lines.data.iter().filter(|line| line.amount >= 0).map(|line| line.period.end).max();
        let tax = |tax: TaxFields| TaxLine {
            minor_units: tax.amount,
            is_inclusive: tax.tax_behavior.as_deref() == Some("inclusive"),
            tax_rate_id: tax.tax_rate_details.and_then(|details| details.tax_rate),
            reason: tax.taxability_reason,
        };
        Ok(Self {
            id: fields.id,
            status: InvoiceStatus::parse(fields.status.as_deref().unwrap_or_default())?,
            number: fields.number,
            reason: fields.billing_reason,
            currency: fields.currency,
            paid_minor_units: fields.amount_paid,
            created_at: instant(fields.created)?,
            covers_until: charged.map(instant).transpose()?,
            taxes: fields.total_taxes.unwrap_or_default().into_iter().map(tax).collect(),
            subscription_id: fields.parent.and_then(|parent| parent.subscription_details).and_then(|details| details.subscription),
            client_secret: fields.confirmation_secret.map(|secret| Secret::new(secret.client_secret)),
        })
    }
}

/// `GET /v1/prices/{id}`, which the split crates have in one more crate of its own.
struct RetrievePrice<'a>(&'a str);

impl StripeRequest for RetrievePrice<'_> {
    type Output = PriceFields;
    fn build(&self) -> RequestBuilder {
        RequestBuilder::new(StripeMethod::Get, format!("/prices/{}", self.0))
    }
}

/// `GET /v1/invoice_payments` of one PaymentIntent.
struct ListInvoicePayments<'a>(&'a str);

#[derive(Serialize)]
struct OfPayment<'a> {
    payment: PaymentFilter<'a>,
}

#[derive(Serialize)]
struct PaymentFilter<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    payment_intent: &'a str,
}

impl StripeRequest for ListInvoicePayments<'_> {
    type Output = PageFields<InvoicePaymentFields>;
    fn build(&self) -> RequestBuilder {
        let of = OfPayment { payment: PaymentFilter { kind: "payment_intent", payment_intent: self.0 } };
        RequestBuilder::new(StripeMethod::Get, "/invoice_payments").query(&of)
    }
}

impl Stripe {
    /// A price, as it was read first.
    ///
    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn price(&self, id: &str) -> Result<Price, StripeFault> {
        let kept = self.prices.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some(price) = kept {
            return Ok(price);
        }
        let price = self.read::<PriceFields>(&RetrievePrice(id)).await.map(Price::from)?;
        self.prices.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), price.clone());
        Ok(price)
    }

    /// Gives the customer a payment method of a browser's, to be used again; its id.
    ///
    /// # Errors
    /// `Declined`, `Refused`, or no answer.
    pub async fn method_attach(&self, row_id: &str, method: &str, customer_id: &str) -> Result<String, StripeFault> {
        let request = AttachPaymentMethod::new(method).customer(customer_id);
        Ok(self.change::<IdFields>(&request, &format!("{row_id}:attach")).await?.id)
    }

    /// Makes a subscription. Sent again for the same row it gives the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::subscription_find`].
    pub async fn subscription_create(&self, new: &NewSubscription<'_>) -> Result<Subscription, StripeFault> {
        let mut item = CreateSubscriptionItems::new();
        item.price = Some(new.price_id.to_owned());
        item.quantity = Some(new.quantity);
        let mut request = CreateSubscription::new().customer(new.customer_id).items(vec![item]).metadata(metadata(new.row_id));
        // A payment that fails or asks its payer leaves the subscription incomplete, to be paid within a day.
        request = match new.payment_method {
            Some(method) => request.default_payment_method(method).payment_behavior(CreateSubscriptionPaymentBehavior::AllowIncomplete),
            None => request.payment_behavior(CreateSubscriptionPaymentBehavior::DefaultIncomplete),
        };
        self.change::<SubscriptionFields>(&request, &format!("{}:subscription", new.row_id)).await?.try_into()
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn subscription_fetch(&self, id: &str) -> Result<Subscription, StripeFault> {
        self.read::<SubscriptionFields>(&RetrieveSubscription::new(id)).await?.try_into()
    }

    /// The customer's subscription that names the row, if one was made, ended ones too.
    ///
    /// # Errors
    /// No answer.
    pub async fn subscription_find(&self, row_id: &str, customer_id: &str) -> Result<Option<Subscription>, StripeFault> {
        let page = |after: Option<String>| {
            let request = ListSubscription::new().customer(customer_id).status(ListSubscriptionStatus::All).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListSubscription::starting_after)
        };
        self.find::<SubscriptionFields, _>(row_id, page).await?.map(Subscription::try_from).transpose()
    }

    /// Changes a subscription; `key` names the change. A payment that fails undoes it.
    ///
    /// # Errors
    /// `Declined`, `Refused`; `Unknown`: ask what it is now.
    pub async fn subscription_change(&self, id: &str, key: &str, change: &Change<'_>) -> Result<Subscription, StripeFault> {
        let request = UpdateSubscription::new(id);
        let request = match change {
            Change::Ending(is_ending) => request.cancel_at_period_end(*is_ending),
            Change::Item { item_id, price_id, quantity } => {
                let mut item = UpdateSubscriptionItems::new();
                item.id = Some((*item_id).to_owned());
                item.price = Some((*price_id).to_owned());
                item.quantity = Some(*quantity);
                request
                    .items(vec![item])
                    .proration_behavior(UpdateSubscriptionProrationBehavior::AlwaysInvoice)
                    .payment_behavior(UpdateSubscriptionPaymentBehavior::ErrorIfIncomplete)
            }
        };
        self.change::<SubscriptionFields>(&request, key).await?.try_into()
    }

    /// Ends a subscription now.
    ///
    /// # Errors
    /// `NotFound` when it has ended; `Unknown`: ask what it is now.
    pub async fn subscription_cancel(&self, id: &str, key: &str) -> Result<Subscription, StripeFault> {
        self.change::<SubscriptionFields>(&CancelSubscription::new(id), key).await?.try_into()
    }

    /// Makes a hosted page on which the customer subscribes. Sent again for the same row it gives the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::checkout_find`].
    pub async fn subscription_checkout_create(&self, new: &NewSubscription<'_>, return_url: &str) -> Result<Checkout, StripeFault> {
        let mut item = CreateCheckoutSessionLineItems::new();
        item.price = Some(new.price_id.to_owned());
        item.quantity = Some(new.quantity);
        let mut data = CreateCheckoutSessionSubscriptionData::new();
        data.metadata = Some(metadata(new.row_id));
        let request = CreateCheckoutSession::new()
            .mode(CheckoutSessionMode::Subscription)
            .customer(new.customer_id)
            .line_items(vec![item])
            .success_url(return_url)
            .cancel_url(return_url)
            .client_reference_id(new.row_id)
            .metadata(metadata(new.row_id))
            .subscription_data(data);
        self.change::<CheckoutFields>(&request, &format!("{}:checkout", new.row_id)).await?.try_into()
    }

    /// Closes a hosted page, so that nobody pays there any more.
    ///
    /// # Errors
    /// `Refused` when it is not open; `Unknown`: ask what it is now.
    pub async fn checkout_expire(&self, id: &str, key: &str) -> Result<Checkout, StripeFault> {
        self.change::<CheckoutFields>(&ExpireCheckoutSession::new(id), key).await?.try_into()
    }

    /// With the secret that lets a browser pay it.
    ///
    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn invoice_fetch(&self, id: &str) -> Result<Invoice, StripeFault> {
        let request = RetrieveInvoice::new(id).expand(vec!["confirmation_secret".to_owned()]);
        self.read::<InvoiceFields>(&request).await?.try_into()
    }

    /// The newest hundred invoices of a subscription, newest first.
    ///
    /// # Errors
    /// No answer.
    pub async fn invoices_of(&self, subscription_id: &str) -> Result<Vec<Invoice>, StripeFault> {
        let request = ListInvoice::new().subscription(subscription_id).limit(PAGE_ROWS);
        let page: PageFields<InvoiceFields> = self.read(&request).await?;
        page.data.into_iter().map(Invoice::try_from).collect()
    }

    /// The invoice that a PaymentIntent pays, if any.
    ///
    /// # Errors
    /// No answer.
    pub async fn invoice_of_payment(&self, payment_id: &str) -> Result<Option<String>, StripeFault> {
        let page: PageFields<InvoicePaymentFields> = self.read(&ListInvoicePayments(payment_id)).await?;
        Ok(page.data.into_iter().next().map(|part| part.invoice))
    }

    /// The address of a page where the customer looks after card, plan and invoices.
    ///
    /// # Errors
    /// `Refused`, or no answer.
    pub async fn portal_create(&self, customer_id: &str, return_url: &str, key: &str) -> Result<String, StripeFault> {
        let request = CreateBillingPortalSession::new().customer(customer_id).return_url(return_url);
        Ok(self.change::<PortalFields>(&request, key).await?.url)
    }
}
