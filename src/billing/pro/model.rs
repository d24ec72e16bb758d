//! Rows and views of Pro.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::state::Facts;
pub use super::state::ProStatus;
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, ProSubscriptionId, TransferId},
        money::Currency,
    },
    billing::model::Means,
    db::{
        JsonText,
        schema::{pro_invoices, pro_subscriptions},
    },
    integrations::stripe::{Checkout, Invoice, Subscription},
};

/// How Pro is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProPlan {
    Monthly,
    Yearly,
}

impl ProPlan {
    pub const ALL: [Self; 2] = [Self::Monthly, Self::Yearly];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Monthly => "monthly",
            Self::Yearly => "yearly",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plan| plan.as_str() == text)
    }
}

/// A subscription to begin. With neither `payment_method` nor `return_url` a browser pays with the `client_secret` of the answer.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscribeRequest {
    pub plan: ProPlan,
    /// Members of the organization that it is for, at least as many as there are: so many when absent. A person has one.
    #[schema(minimum = 1, maximum = 500)]
    pub seats: Option<i32>,
    /// One of Stripe's payment methods (`pm_…`), which is kept and charged at once.
    #[schema(min_length = 4, max_length = 255, pattern = "^pm_[A-Za-z0-9_]+$")]
    pub payment_method: Option<String>,
    /// An http or https address. Then the answer has a `checkout_url`, a page of Stripe's, which sends the payer's browser there afterwards.
    #[schema(min_length = 1, max_length = 2000)]
    pub return_url: Option<String>,
}

/// Another plan.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    pub plan: ProPlan,
}

/// Another number of members.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeatsRequest {
    #[schema(minimum = 1, maximum = 500)]
    pub seats: i32,
}

/// Where the browser goes from Stripe's pages.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortalRequest {
    /// An http or https address.
    #[schema(min_length = 1, max_length = 2000)]
    pub return_url: String,
}

/// A page of Stripe's, for a few minutes.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PortalView {
    pub url: String,
}

/// One row of `pro_subscriptions`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = pro_subscriptions, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub struct ProSubscription {
    pub id: ProSubscriptionId,
    pub account_id: AccountId,
    pub request_key: Option<String>,
    pub plan: String,
    pub seats: i32,
    pub means: String,
    pub payment_method: Option<String>,
    pub return_url: Option<String>,
    pub status: String,
    pub customer_id: Option<String>,
    pub subscription_id: Option<String>,
    pub item_id: Option<String>,
    pub checkout_session_id: Option<String>,
    pub is_ending: bool,
    pub period_ends_at: Option<DateTime<Utc>>,
    pub past_due_since: Option<DateTime<Utc>>,
    pub paid_until: Option<DateTime<Utc>>,
    pub pro_until: Option<DateTime<Utc>>,
    pub renews: bool,
    pub failure_code: Option<String>,
    pub alarm: Option<String>,
    pub change_count: i32,
    pub observed_at: Option<DateTime<Utc>>,
    pub ask_at: Option<DateTime<Utc>>,
    pub ask_count: i32,
    pub created_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

impl ProSubscription {
    /// # Errors
    /// `internal` when the row holds a status this program does not know.
    pub fn status(&self) -> Result<ProStatus> {
        ProStatus::parse(&self.status).ok_or_else(|| Error::internal(format!("Pro status {}", self.status)))
    }

    /// # Errors
    /// `internal` when the row holds a plan this program does not know.
    pub fn plan(&self) -> Result<ProPlan> {
        ProPlan::parse(&self.plan).ok_or_else(|| Error::internal(format!("Pro plan {}", self.plan)))
    }

    /// One that nothing is known of.
    pub(super) fn blank(id: ProSubscriptionId, account_id: AccountId, seats: i32, now: DateTime<Utc>) -> Self {
        Self {
            id,
            account_id,
            request_key: None,
            plan: ProPlan::Monthly.as_str().to_owned(),
            seats,
            means: Means::Client.as_str().to_owned(),
            payment_method: None,
            return_url: None,
            status: ProStatus::Pending.as_str().to_owned(),
            customer_id: None,
            subscription_id: None,
            item_id: None,
            checkout_session_id: None,
            is_ending: false,
            period_ends_at: None,
            past_due_since: None,
            paid_until: None,
            pro_until: None,
            renews: false,
            failure_code: None,
            alarm: None,
            change_count: 0,
            observed_at: None,
            ask_at: None,
            ask_count: 0,
            created_at: now,
            ended_at: None,
        }
    }

    /// It came to nothing.
    pub(super) fn fail(&mut self, code: &str, at: DateTime<Utc>) {
        ProStatus::Failed.as_str().clone_into(&mut self.status);
        self.failure_code = Some(code.to_owned());
        self.ask_at = None;
        self.ended_at = Some(at);
    }

    pub fn is_checkout(&self) -> bool {
        self.means == Means::Checkout.as_str()
    }

    /// Whether the request that made it asked for the same.
    pub fn is_of(&self, request: &SubscribeRequest) -> bool {
        self.plan == request.plan.as_str() && self.payment_method == request.payment_method && self.return_url == request.return_url
    }

    /// # Errors
    /// As [`Self::status`].
    pub(super) fn facts(&self) -> Result<Facts> {
        Ok(Facts {
            status: self.status()?,
            period_ends_at: self.period_ends_at,
            is_ending: self.is_ending,
            past_due_since: self.past_due_since,
            paid_until: self.paid_until,
        })
    }
}

/// One row of `pro_invoices`.
#[derive(Debug, Clone, Insertable)]
#[diesel(table_name = pro_invoices)]
pub struct ProInvoiceRow {
    pub invoice_id: String,
    pub pro_subscription_id: ProSubscriptionId,
    pub number: Option<String>,
    pub reason: Option<String>,
    pub paid_micros: Money,
    pub tax_micros: Money,
    pub taxes: JsonText,
    pub transfer_id: Option<TransferId>,
    pub created_at: DateTime<Utc>,
    pub booked_at: DateTime<Utc>,
}

/// What Stripe said when it was asked.
#[derive(Debug, Clone)]
pub struct ProSeen {
    /// When the question was sent, wall time.
    pub asked_at: DateTime<Utc>,
    pub checkout: Option<Checkout>,
    pub subscription: Option<Subscription>,
    /// Of the subscription, newest first.
    pub invoices: Vec<Invoice>,
    /// The invoice that waits to be paid, with its secret.
    pub payable: Option<Invoice>,
}

/// A subscription as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ProSubscriptionView {
    pub id: ProSubscriptionId,
    pub status: ProStatus,
    pub plan: ProPlan,
    /// Members of the organization that it is for; 1 for a person.
    pub seats: i32,
    /// Whether it goes on after its period.
    pub renews: bool,
    pub period_ends_at: Option<DateTime<Utc>>,
    /// Until when it gives Pro, as far as is known now.
    pub pro_until: Option<DateTime<Utc>>,
    /// Why it came to nothing: Stripe's code, or `checkout_expired`, `canceled`, `never_arrived`.
    pub failure_code: Option<String>,
    /// Lets a browser pay or authenticate the first payment with Stripe's own script; only while there is something to do, and not where Pro is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The page to subscribe on; only while it is open, and not where Pro is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout_url: Option<String>,
    pub created_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

impl ProSubscriptionView {
    /// # Errors
    /// As [`ProSubscription::status`].
    pub fn new(row: &ProSubscription, seen: Option<&ProSeen>) -> Result<Self> {
        let status = row.status()?;
        let open = seen.filter(|_| !status.is_over());
        let secret = open.and_then(|seen| seen.payable.as_ref()).and_then(|invoice| invoice.client_secret.as_ref());
        Ok(Self {
            id: row.id,
            status,
            plan: row.plan()?,
            seats: row.seats,
            renews: status.is_live() && !row.is_ending,
            period_ends_at: row.period_ends_at,
            pro_until: row.pro_until,
            failure_code: row.failure_code.clone(),
            client_secret: secret.map(|secret| secret.expose().clone()),
            checkout_url: open.and_then(|seen| seen.checkout.as_ref()).and_then(|checkout| checkout.url.clone()),
            created_at: row.created_at,
            ended_at: row.ended_at,
        })
    }
}

/// A plan that is for sale.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ProPlanView {
    pub plan: ProPlan,
    /// Of one seat for one month or year, before taxes.
    pub price: Money,
    pub currency: Currency,
}

/// What an account gets, without Pro or with it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PerksView {
    /// The platform's share of what a host earns, in hundredths of a percent; fixed when a rental is accepted.
    pub fee_basis_points: u16,
    /// Requests a minute.
    pub requests_per_minute: u32,
    /// How many hours ahead a rental may start.
    pub reservation_hours_ahead: i64,
    /// Runs that only who knows their address sees.
    pub unlisted_runs: bool,
    /// `GET /api/v1/cells.csv` and `/api/v1/cells.parquet`.
    pub bulk_export: bool,
    /// Searches of the market that write when something new fits.
    pub saved_searches: bool,
}

/// Pro: what it costs, what it gives, and whether the caller has it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ProView {
    /// Empty where it is not for sale.
    pub plans: Vec<ProPlanView>,
    pub free: PerksView,
    pub pro: PerksView,
    /// False for a caller who is not signed in, or may not read the account's billing.
    pub is_pro: bool,
    /// As far as is known now.
    pub pro_until: Option<DateTime<Utc>>,
    /// The caller's newest one, as it was last seen.
    pub subscription: Option<ProSubscriptionView>,
}
