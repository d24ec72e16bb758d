//! Rows and views of automatic top-up.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, TopUpId},
        money::Currency,
        shape::PriceText,
    },
    db::schema::automatic_top_ups,
};

/// When to top up, and with what.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AutomaticTopUpRequest {
    /// When less than this is available. US dollars, more than zero.
    #[schema(value_type = PriceText)]
    pub threshold: Money,
    /// What each top-up brings in: US dollars in whole cents, at least 5 and at most 10000 where nothing else is configured.
    #[schema(value_type = PriceText)]
    pub amount: Money,
    /// A saved card of the account. Without it: the default.
    #[schema(min_length = 4, max_length = 255, pattern = "^pm_[A-Za-z0-9_]+$")]
    pub payment_method: Option<String>,
    /// The most that automatic top-ups bring in within one UTC month. Without it: no limit.
    #[schema(value_type = Option<PriceText>)]
    pub monthly_max: Option<Money>,
}

/// Whether the account is topped up by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AutomaticState {
    On,
    /// Until it is saved again; the reason says why.
    Paused,
}

/// Why it is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PausedReason {
    /// Several tries in a row.
    PaymentsFailed,
    /// The bank wants to hear from the card's owner.
    AuthenticationRequired,
    PaymentMethodRemoved,
}

impl PausedReason {
    const ALL: [Self; 3] = [Self::PaymentsFailed, Self::AuthenticationRequired, Self::PaymentMethodRemoved];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PaymentsFailed => "payments_failed",
            Self::AuthenticationRequired => "authentication_required",
            Self::PaymentMethodRemoved => "payment_method_removed",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

pub(super) const ON: &str = "on";
pub(super) const PAUSED: &str = "paused";
pub(super) const OFF: &str = "off";

/// One row of `automatic_top_ups`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = automatic_top_ups, primary_key(account_id), treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub(super) struct AutomaticTopUp {
    pub account_id: AccountId,
    pub threshold_micros: Money,
    pub amount_micros: Money,
    pub monthly_max_micros: Option<Money>,
    pub payment_method_id: String,
    pub state: String,
    pub paused_reason: Option<String>,
    pub failure_count: i32,
    pub last_failure_code: Option<String>,
    pub last_failure_at: Option<DateTime<Utc>>,
    pub last_failure_top_up_id: Option<TopUpId>,
    pub last_top_up_id: Option<TopUpId>,
    pub last_try_at: Option<DateTime<Utc>>,
    pub next_try_at: DateTime<Utc>,
    pub is_low: bool,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A try that brought nothing.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AutomaticFailure {
    /// Stripe's code, such as `insufficient_funds` or `authentication_required`.
    pub code: String,
    pub at: DateTime<Utc>,
    pub top_up_id: TopUpId,
}

/// Automatic top-up as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AutomaticTopUpView {
    pub state: AutomaticState,
    pub paused_reason: Option<PausedReason>,
    pub threshold: Money,
    pub amount: Money,
    pub monthly_max: Option<Money>,
    pub currency: Currency,
    #[schema(pattern = "^pm_[A-Za-z0-9_]+$")]
    pub payment_method: String,
    /// Failures in a row.
    pub failures: i32,
    /// The last one, however long ago.
    pub last_failure: Option<AutomaticFailure>,
    /// The last try, among `/api/v1/top-ups`.
    pub last_top_up_id: Option<TopUpId>,
    /// No try before this: at most one an hour, and no more this month when its limit is reached.
    pub next_try_at: DateTime<Utc>,
    /// When it was last saved.
    pub updated_at: DateTime<Utc>,
}

impl AutomaticTopUpView {
    /// `None` while it is off.
    ///
    /// # Errors
    /// `internal` when the row holds a word this program does not know.
    pub(super) fn new(row: AutomaticTopUp) -> Result<Option<Self>> {
        let state = match row.state.as_str() {
            OFF => return Ok(None),
            ON => AutomaticState::On,
            PAUSED => AutomaticState::Paused,
            other => return Err(Error::internal(format!("automatic top-up state {other}"))),
        };
        let failed = row.last_failure_code.zip(row.last_failure_at).zip(row.last_failure_top_up_id);
        Ok(Some(Self {
            state,
            paused_reason: row.paused_reason.as_deref().and_then(PausedReason::parse),
            threshold: row.threshold_micros,
            amount: row.amount_micros,
            monthly_max: row.monthly_max_micros,
            currency: row.amount_micros.currency(),
            payment_method: row.payment_method_id,
            failures: row.failure_count,
            last_failure: failed.map(|((code, at), top_up_id)| AutomaticFailure { code, at, top_up_id }),
            last_top_up_id: row.last_top_up_id,
            next_try_at: row.next_try_at,
            updated_at: row.updated_at,
        }))
    }
}
