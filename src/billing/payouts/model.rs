//! Rows and views of payouts.

use chrono::{DateTime, NaiveDate, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use super::state::{PayoutAccountStatus, PayoutSchedule, PayoutStatus};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, PayoutAccountId, PayoutId},
        money::Currency,
        shape::PriceText,
    },
    db::schema::{payout_accounts, payouts},
    integrations::stripe::OnboardingLink,
};

/// Where the host comes from and goes back to.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnboardingRequest {
    /// ISO 3166-1 code of the country the host is paid in, such as `US`; fixed once the account is there. Without it: that of the platform.
    #[schema(min_length = 2, max_length = 2, pattern = "^[A-Za-z]{2}$")]
    pub country: Option<String>,
    /// An http or https address, to which Stripe sends the host's browser when it is done there.
    #[schema(min_length = 1, max_length = 2000)]
    pub return_url: String,
    /// Where it goes when the page has expired; that address should ask for another. Without it: `return_url`.
    #[schema(min_length = 1, max_length = 2000)]
    pub refresh_url: Option<String>,
}

/// What to change of a payout account.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdatePayoutAccount {
    /// `weekly`: on Mondays (UTC) all that is payable is paid out, if it is enough. Setting it also takes up payouts that a bank's refusal
    /// had stopped.
    pub schedule: PayoutSchedule,
}

/// A payout to make.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PayoutRequest {
    /// US dollars in whole cents, at least 1 where nothing else is configured. Without it: all that is payable, to the cent.
    #[schema(value_type = Option<PriceText>)]
    pub amount: Option<Money>,
}

/// One row of `payout_accounts`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = payout_accounts, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub struct PayoutAccount {
    pub id: PayoutAccountId,
    pub account_id: AccountId,
    pub is_current: bool,
    pub country: Option<String>,
    pub stripe_account_id: Option<String>,
    pub status: String,
    pub disabled_reason: Option<String>,
    pub requirements_due: Vec<String>,
    pub payouts_enabled: bool,
    pub schedule: String,
    pub weekly_at: Option<DateTime<Utc>>,
    pub paused_reason: Option<String>,
    pub observed_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// Why an account that Stripe no longer shows us is disabled; it never comes back.
pub const GONE: &str = "gone";

impl PayoutAccount {
    pub fn new(account: AccountId, country: Option<String>, now: DateTime<Utc>) -> Self {
        Self {
            id: PayoutAccountId::new(),
            account_id: account,
            is_current: true,
            country,
            stripe_account_id: None,
            status: PayoutAccountStatus::Onboarding.as_str().to_owned(),
            disabled_reason: None,
            requirements_due: Vec::new(),
            payouts_enabled: false,
            schedule: PayoutSchedule::Manual.as_str().to_owned(),
            weekly_at: None,
            paused_reason: None,
            observed_at: None,
            created_at: now,
        }
    }

    /// # Errors
    /// `internal` when the row holds a status this program does not know.
    pub fn status(&self) -> Result<PayoutAccountStatus> {
        PayoutAccountStatus::parse(&self.status).ok_or_else(|| Error::internal(format!("payout account status {}", self.status)))
    }

    /// # Errors
    /// `internal` when the row holds a schedule this program does not know.
    pub fn schedule(&self) -> Result<PayoutSchedule> {
        PayoutSchedule::parse(&self.schedule).ok_or_else(|| Error::internal(format!("payout schedule {}", self.schedule)))
    }

    pub fn is_gone(&self) -> bool {
        self.disabled_reason.as_deref() == Some(GONE)
    }
}

/// One row of `payouts`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = payouts, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub struct Payout {
    pub id: PayoutId,
    pub account_id: AccountId,
    pub payout_account_id: PayoutAccountId,
    pub request_key: Option<String>,
    pub requested_micros: Option<Money>,
    pub week: Option<NaiveDate>,
    pub amount_micros: Money,
    pub reversed_micros: Money,
    pub status: String,
    pub stripe_transfer_id: Option<String>,
    pub transferred_at: Option<DateTime<Utc>>,
    pub bank_payout_id: Option<String>,
    pub failure_code: Option<String>,
    pub alarm: Option<String>,
    pub is_recalled: bool,
    pub attempt: i32,
    pub attempted_at: Option<DateTime<Utc>>,
    pub ask_at: Option<DateTime<Utc>>,
    pub ask_count: i32,
    pub created_at: DateTime<Utc>,
    pub settled_at: Option<DateTime<Utc>>,
}

impl Payout {
    /// One that Stripe has not heard of. `now` is wall time.
    pub fn new(account: &PayoutAccount, amount: Money, now: DateTime<Utc>, ask_at: Option<DateTime<Utc>>) -> Self {
        Self {
            id: PayoutId::new(),
            account_id: account.account_id,
            payout_account_id: account.id,
            request_key: None,
            requested_micros: None,
            week: None,
            amount_micros: amount,
            reversed_micros: Money::ZERO,
            status: PayoutStatus::Pending.as_str().to_owned(),
            stripe_transfer_id: None,
            transferred_at: None,
            bank_payout_id: None,
            failure_code: None,
            alarm: None,
            is_recalled: false,
            attempt: 0,
            attempted_at: Some(now),
            ask_at,
            ask_count: 0,
            created_at: now,
            settled_at: None,
        }
    }

    /// # Errors
    /// `internal` when the row holds a status this program does not know.
    pub fn status(&self) -> Result<PayoutStatus> {
        PayoutStatus::parse(&self.status).ok_or_else(|| Error::internal(format!("payout status {}", self.status)))
    }
}

/// The payout account as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PayoutAccountView {
    pub status: PayoutAccountStatus,
    pub country: Option<String>,
    /// Whether Stripe pays to the bank now.
    pub payouts_enabled: bool,
    /// Names of what Stripe wants to know, as it calls them.
    pub requirements_due: Vec<String>,
    /// Why it is restricted or disabled: Stripe's code, or `gone`.
    pub disabled_reason: Option<String>,
    /// Why payouts have stopped although the account is enabled: the bank sent one back, for this reason of Stripe's.
    pub paused_reason: Option<String>,
    pub schedule: PayoutSchedule,
    /// When the weekly payout is made next, business time.
    pub weekly_at: Option<DateTime<Utc>>,
    /// What can be paid out now: what is payable less what the account owes, in whole cents.
    pub payable: Money,
    /// The least that can be asked for.
    pub amount_min: Money,
    /// The least that the weekly payout pays.
    pub weekly_amount_min: Money,
    pub currency: Currency,
}

/// The page on which Stripe asks what it has to know.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OnboardingView {
    /// A page of Stripe's, good for one visit.
    pub onboarding_url: String,
    pub expires_at: DateTime<Utc>,
    #[serde(flatten)]
    pub payout_account: PayoutAccountView,
}

impl OnboardingView {
    pub fn new(link: OnboardingLink, payout_account: PayoutAccountView) -> Self {
        Self { onboarding_url: link.url, expires_at: link.expires_at, payout_account }
    }
}

/// A payout as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PayoutView {
    pub id: PayoutId,
    pub status: PayoutStatus,
    pub amount: Money,
    /// What of it was taken back and is payable again.
    pub reversed: Money,
    pub currency: Currency,
    /// The Monday of a weekly payout; null for one that was asked for.
    pub week: Option<NaiveDate>,
    /// Why it failed, came back, or waits: Stripe's code, such as `balance_insufficient` or `account_closed`.
    pub failure_code: Option<String>,
    pub created_at: DateTime<Utc>,
    /// When Stripe took it on.
    pub sent_at: Option<DateTime<Utc>>,
    /// When it was paid, failed or was reversed.
    pub settled_at: Option<DateTime<Utc>>,
}

impl PayoutView {
    /// # Errors
    /// As [`Payout::status`].
    pub fn new(row: &Payout) -> Result<Self> {
        Ok(Self {
            id: row.id,
            status: row.status()?,
            amount: row.amount_micros,
            reversed: row.reversed_micros,
            currency: row.amount_micros.currency(),
            week: row.week,
            failure_code: row.failure_code.clone(),
            created_at: row.created_at,
            sent_at: row.transferred_at,
            settled_at: row.settled_at,
        })
    }
}
