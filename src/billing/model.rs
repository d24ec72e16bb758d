//! Rows and views of billing.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use super::state::TopUpStatus;
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, TopUpId},
        money::Currency,
        shape::PriceText,
    },
    db::schema::{stripe_events, top_ups},
    integrations::stripe::{Checkout, Payment},
};

/// Money to bring in. With neither `payment_method` nor `return_url` a browser pays with the `client_secret` of the answer.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TopUpRequest {
    /// US dollars in whole cents, at least 5 and at most 10000 where nothing else is configured.
    #[schema(value_type = PriceText)]
    pub amount: Money,
    /// A saved card of the account, or another of Stripe's payment methods (`pm_…`) that is nobody's yet; it is charged at once.
    #[schema(min_length = 4, max_length = 255, pattern = "^pm_[A-Za-z0-9_]+$")]
    pub payment_method: Option<String>,
    /// An http or https address. Then the answer has a `checkout_url`, a page of Stripe's, which sends the payer's browser there afterwards.
    #[schema(min_length = 1, max_length = 2000)]
    pub return_url: Option<String>,
}

/// How a top-up is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// By a browser with the client secret.
    Client,
    PaymentMethod,
    /// On a page of Stripe's.
    Checkout,
    /// By automatic top-up, while nobody is there.
    Automatic,
}

impl Means {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::PaymentMethod => "payment_method",
            Self::Checkout => "checkout",
            Self::Automatic => "automatic",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Client, Self::PaymentMethod, Self::Checkout, Self::Automatic].into_iter().find(|means| means.as_str() == text)
    }
}

/// One row of `top_ups`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = top_ups, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub struct TopUp {
    pub id: TopUpId,
    pub account_id: AccountId,
    pub request_key: Option<String>,
    pub amount_micros: Money,
    pub means: String,
    pub payment_method: Option<String>,
    pub return_url: Option<String>,
    pub status: String,
    pub payment_intent_id: Option<String>,
    pub checkout_session_id: Option<String>,
    pub failure_code: Option<String>,
    pub alarm: Option<String>,
    pub received_micros: Option<Money>,
    pub observed_at: Option<DateTime<Utc>>,
    pub ask_at: Option<DateTime<Utc>>,
    pub ask_count: i32,
    pub created_at: DateTime<Utc>,
    pub settled_at: Option<DateTime<Utc>>,
    /// The Customer that is charged; the same for every repeat of the request.
    pub customer_id: Option<String>,
    pub card_brand: Option<String>,
    pub card_last4: Option<String>,
}

impl TopUp {
    /// # Errors
    /// `internal` when the row holds a status this program does not know.
    pub fn status(&self) -> Result<TopUpStatus> {
        TopUpStatus::parse(&self.status).ok_or_else(|| Error::internal(format!("top-up status {}", self.status)))
    }

    /// # Errors
    /// `internal`, as [`Self::status`].
    pub fn means(&self) -> Result<Means> {
        Means::parse(&self.means).ok_or_else(|| Error::internal(format!("top-up means {}", self.means)))
    }

    pub fn is_checkout(&self) -> bool {
        self.means == Means::Checkout.as_str()
    }

    /// Whether the request that made it asked for the same.
    pub fn is_of(&self, request: &TopUpRequest) -> bool {
        self.amount_micros == request.amount && self.payment_method == request.payment_method && self.return_url == request.return_url
    }
}

/// What Stripe said when it was asked.
#[derive(Debug, Clone)]
pub struct Observation {
    /// When the question was sent, wall time.
    pub asked_at: DateTime<Utc>,
    pub checkout: Option<Checkout>,
    pub payment: Option<Payment>,
}

/// What an observation changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Applied,
    Unchanged,
    /// Of no concern to us.
    Noted,
    /// An operator has to look at it.
    Alarm,
}

impl Outcome {
    /// Of two things that one event has led to.
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Alarm, _) | (_, Self::Alarm) => Self::Alarm,
            (Self::Applied, _) | (_, Self::Applied) => Self::Applied,
            (Self::Unchanged, _) | (_, Self::Unchanged) => Self::Unchanged,
            (Self::Noted, Self::Noted) => Self::Noted,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Noted => "noted",
            Self::Alarm => "alarm",
        }
    }
}

/// One row of `stripe_events`.
#[derive(Debug, Clone, Insertable)]
#[diesel(table_name = stripe_events)]
pub struct StripeEventRow<'a> {
    pub id: &'a str,
    pub event_type: &'a str,
    pub object_id: Option<&'a str>,
    pub outcome: &'static str,
    pub received_at: DateTime<Utc>,
}

/// A top-up as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TopUpView {
    pub id: TopUpId,
    pub status: TopUpStatus,
    pub amount: Money,
    pub currency: Currency,
    pub means: Means,
    /// What was paid and credited.
    pub received: Option<Money>,
    /// Why the last try to pay failed: Stripe's code, such as `insufficient_funds` or `authentication_required`.
    pub failure_code: Option<String>,
    /// Lets a browser pay or authenticate with Stripe's own script; only while there is something to do, and not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The page to pay on; only while it is open, and not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout_url: Option<String>,
    pub created_at: DateTime<Utc>,
    /// When it was credited or canceled.
    pub settled_at: Option<DateTime<Utc>>,
}

impl TopUpView {
    /// # Errors
    /// As [`TopUp::status`].
    pub fn new(row: &TopUp, seen: Option<&Observation>) -> Result<Self> {
        let status = row.status()?;
        let open = seen.filter(|_| !status.is_over());
        let payment = open.filter(|_| !row.is_checkout()).and_then(|seen| seen.payment.as_ref());
        let secret = payment.and_then(|payment| payment.client_secret.as_ref());
        Ok(Self {
            id: row.id,
            status,
            amount: row.amount_micros,
            currency: row.amount_micros.currency(),
            means: row.means()?,
            received: row.received_micros,
            failure_code: row.failure_code.clone().filter(|_| status != TopUpStatus::Succeeded),
            client_secret: secret.map(|secret| secret.expose().clone()),
            checkout_url: open.and_then(|seen| seen.checkout.as_ref()).and_then(|checkout| checkout.url.clone()),
            created_at: row.created_at,
            settled_at: row.settled_at,
        })
    }
}
