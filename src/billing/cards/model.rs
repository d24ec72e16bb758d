//! Rows and views of saved cards.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::{
        Error, Result,
        id::{AccountId, CardSetupId},
    },
    db::schema::{card_setups, payment_methods},
    integrations::stripe::{SavedMethod, SetupStatus},
};

/// A card to be saved. With neither field a browser gives it to Stripe, with the `client_secret` of the answer.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CardSetupRequest {
    /// One of Stripe's payment methods (`pm_…`) that belongs to nobody yet. It is saved at once, unless its bank wants to hear from its owner.
    #[schema(min_length = 4, max_length = 255, pattern = "^pm_[A-Za-z0-9_]+$")]
    pub payment_method: Option<String>,
    /// An http or https address. Then the answer has a `checkout_url`, a page of Stripe's, which sends the browser there afterwards.
    #[schema(min_length = 1, max_length = 2000)]
    pub return_url: Option<String>,
}

/// What may be changed of a saved card.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdatePaymentMethod {
    /// True makes it the default, and the former default another card like the others.
    pub is_default: bool,
}

/// Where the saving of a card stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CardSetupStatus {
    /// Stripe has been asked, and what came of it is not known yet.
    Pending,
    RequiresPaymentMethod,
    /// Waits for the card's owner, who has to authenticate.
    RequiresAction,
    Processing,
    Canceled,
    /// The card is saved.
    Succeeded,
}

impl CardSetupStatus {
    const ALL: [Self; 6] =
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

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub const fn is_over(self) -> bool {
        matches!(self, Self::Canceled | Self::Succeeded)
    }

    /// As with a top-up: steps go back and forth, ends stay, and a card that was saved after all outranks a cancellation.
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

    pub const fn of(status: SetupStatus) -> Self {
        match status {
            SetupStatus::RequiresPaymentMethod | SetupStatus::RequiresConfirmation => Self::RequiresPaymentMethod,
            SetupStatus::RequiresAction => Self::RequiresAction,
            SetupStatus::Processing => Self::Processing,
            SetupStatus::Canceled => Self::Canceled,
            SetupStatus::Succeeded => Self::Succeeded,
        }
    }
}

/// One row of `card_setups`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = card_setups, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub(in crate::billing) struct CardSetup {
    pub id: CardSetupId,
    pub account_id: AccountId,
    pub payment_method: Option<String>,
    pub return_url: Option<String>,
    pub status: String,
    pub setup_intent_id: Option<String>,
    pub checkout_session_id: Option<String>,
    pub saved_payment_method: Option<String>,
    pub failure_code: Option<String>,
    pub observed_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

impl CardSetup {
    /// # Errors
    /// `internal` when the row holds a status this program does not know.
    pub fn status(&self) -> Result<CardSetupStatus> {
        CardSetupStatus::parse(&self.status).ok_or_else(|| Error::internal(format!("card setup status {}", self.status)))
    }
}

/// The saving of a card as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CardSetupView {
    pub id: CardSetupId,
    pub status: CardSetupStatus,
    /// The card that was saved, in `/api/v1/payment-methods`.
    pub payment_method: Option<String>,
    /// Why the last try failed: Stripe's code, such as `card_declined`.
    pub failure_code: Option<String>,
    /// Lets a browser give Stripe a card, or its owner authenticate; only while there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The page to give a card on; only while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout_url: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// One row of `payment_methods`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = payment_methods, check_for_backend(diesel::pg::Pg))]
pub(in crate::billing) struct PaymentMethod {
    pub id: String,
    pub account_id: AccountId,
    pub brand: String,
    pub last4: Option<String>,
    pub expires_month: Option<i16>,
    pub expires_year: Option<i16>,
    pub is_default: bool,
    pub observed_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
    pub removed_at: Option<DateTime<Utc>>,
}

impl PaymentMethod {
    pub fn seen(account: AccountId, method: &SavedMethod, asked_at: DateTime<Utc>) -> Self {
        Self {
            id: method.id.clone(),
            account_id: account,
            brand: method.card.brand.clone(),
            last4: method.card.last4.clone(),
            expires_month: method.card.expires.map(|(month, _)| month),
            expires_year: method.card.expires.map(|(_, year)| year),
            is_default: false,
            observed_at: asked_at,
            created_at: asked_at,
            removed_at: None,
        }
    }
}

/// A saved card as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PaymentMethodView {
    /// Stripe's.
    #[schema(pattern = "^pm_[A-Za-z0-9_]+$")]
    pub id: String,
    /// Of the card, as Stripe writes it (`visa`); of what is no card, its kind.
    pub brand: String,
    /// The last four digits; null for what is no card.
    pub last4: Option<String>,
    #[schema(minimum = 1, maximum = 12)]
    pub expires_month: Option<i16>,
    pub expires_year: Option<i16>,
    /// What automatic top-up takes where it is not told another.
    pub is_default: bool,
    pub created_at: DateTime<Utc>,
}

impl From<PaymentMethod> for PaymentMethodView {
    fn from(row: PaymentMethod) -> Self {
        Self {
            id: row.id,
            brand: row.brand,
            last4: row.last4,
            expires_month: row.expires_month,
            expires_year: row.expires_year,
            is_default: row.is_default,
            created_at: row.created_at,
        }
    }
}
