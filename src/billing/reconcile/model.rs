//! What a reconciliation finds.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use diesel::{
    Insertable, Queryable, QueryableByName, Selectable,
    sql_types::{BigInt, Text},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::{Money, Result, money::Currency},
    db::schema::{reconciliation_findings, stripe_balance_transactions},
    integrations::stripe::BalanceTransaction,
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $text:literal),* $(,)?) => {
        /// What is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum FindingKind { $($(#[$doc])* $variant),* }

        impl FindingKind {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }
    };
}

kinds! {
    /// The ledger does not agree with its postings; the subject begins with which comparison found it.
    Books "books",
    /// A rental that is not over, without an open hold.
    RentalWithoutHold "rental_without_hold",
    /// A rental that is not over, whose listing is not marked as taken.
    RentalWithoutMachine "rental_without_machine",
    /// A rental that is not over, whose machine nobody asks for signs of life on its behalf.
    RentalWithoutWatch "rental_without_watch",
    /// An active rental whose clock runs without an open span, or stands with one.
    RentalWithoutSpan "rental_without_span",
    /// A rental that the meter has not looked at for too long.
    RentalNotMetered "rental_not_metered",
    /// Money held for a rental that is over or does not exist.
    HoldWithoutRental "hold_without_rental",
    /// A listing marked as taken, although no rental has its machine.
    MachineWithoutRental "machine_without_rental",
    /// A machine is asked for signs of life for a rental that is over or does not exist.
    WatchWithoutRental "watch_without_rental",
    /// An open span of billed time of a rental that is not active.
    SpanWithoutRental "span_without_rental",
    /// Money that moved at Stripe and not in the books.
    StripeOnly "stripe_only",
    /// Money that moved in the books and not at Stripe.
    BooksOnly "books_only",
    /// Money that moved in both, by other amounts.
    AmountDiffers "amount_differs",
    /// Money at Stripe in a currency that the books do not have.
    OtherCurrency "other_currency",
}

impl FindingKind {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }

    /// Whether it comes of comparing with Stripe: kept as it was while Stripe cannot be asked.
    pub const fn is_of_stripe(self) -> bool {
        matches!(self, Self::StripeOnly | Self::BooksOnly | Self::AmountDiffers | Self::OtherCurrency)
    }
}

/// One row of `stripe_balance_transactions`.
#[derive(Debug, Insertable)]
#[diesel(table_name = stripe_balance_transactions)]
pub(super) struct BalanceRow {
    id: String,
    kind: String,
    source_id: Option<String>,
    parent_id: Option<String>,
    row_id: Option<String>,
    currency: String,
    amount_minor_units: i64,
    fee_minor_units: i64,
    net_minor_units: i64,
    amount_micros: Option<Money>,
    fee_micros: Option<Money>,
    available_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
}

impl BalanceRow {
    /// # Errors
    /// `internal` for an amount that leaves 64 bits as micro-dollars.
    pub fn of(seen: BalanceTransaction) -> Result<Self> {
        let currency = Currency::parse(&seen.currency);
        let micros = |units| currency.map(|currency| Money::from_minor_units(units, currency)).transpose();
        Ok(Self {
            amount_micros: micros(seen.amount_minor_units)?,
            fee_micros: micros(seen.fee_minor_units)?,
            id: seen.id,
            kind: seen.kind,
            source_id: seen.source_id,
            parent_id: seen.parent_id,
            row_id: seen.row_id,
            currency: seen.currency,
            amount_minor_units: seen.amount_minor_units,
            fee_minor_units: seen.fee_minor_units,
            net_minor_units: seen.net_minor_units,
            available_at: seen.available_at,
            created_at: seen.created_at,
        })
    }
}

/// A finding as a comparison returns it, with how many of its kind there are; the rest of them are not listed.
#[derive(Debug, Clone, QueryableByName)]
pub(super) struct Found {
    #[diesel(sql_type = Text)]
    pub kind: String,
    #[diesel(sql_type = Text)]
    pub subject: String,
    #[diesel(sql_type = Text)]
    pub expected: String,
    #[diesel(sql_type = Text)]
    pub found: String,
    #[diesel(sql_type = BigInt)]
    pub of_kind: i64,
}

/// One row of `reconciliation_findings`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = reconciliation_findings, check_for_backend(diesel::pg::Pg))]
pub(super) struct FindingRow {
    pub kind: String,
    pub subject: String,
    pub expected: String,
    pub found: String,
    pub first_seen_at: DateTime<Utc>,
    pub last_seen_at: DateTime<Utc>,
}

/// What Stripe has for the platform and what the books say that it has. `books` less `stripe` is `waiting` and the findings together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct StripeSums {
    /// By the books: what is owed to accounts and was earned, less what is not at Stripe.
    pub books: Money,
    /// By Stripe's balance transactions about payments, refunds, disputes and transfers, before Stripe's fees.
    pub stripe: Money,
    /// Stripe's fees for these; the platform's cost, in no ledger account.
    pub fees: Money,
    /// What else moved at Stripe, fees of its own taken off: the platform's payouts to its bank, what Stripe bills, reserves.
    pub own: Money,
    /// Differences that are younger than the grace.
    pub waiting: Money,
    /// How many balance transactions were read so far.
    pub transactions: i64,
}

/// The same as it is stored: micro-dollars, since an amount that is read from a text is never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredSums {
    pub books_micros: i64,
    pub stripe_micros: i64,
    pub fees_micros: i64,
    pub own_micros: i64,
    pub waiting_micros: i64,
    pub transactions: i64,
}

impl StoredSums {
    pub const fn view(self) -> StripeSums {
        StripeSums {
            books: Money::usd_micros(self.books_micros),
            stripe: Money::usd_micros(self.stripe_micros),
            fees: Money::usd_micros(self.fees_micros),
            own: Money::usd_micros(self.own_micros),
            waiting: Money::usd_micros(self.waiting_micros),
            transactions: self.transactions,
        }
    }
}

/// What a reconciliation looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub ledger_accounts: i64,
    pub transfers: i64,
    pub holds: i64,
    /// Rentals that are not over.
    pub rentals: i64,
    /// How many findings there are of each kind.
    pub counts: BTreeMap<FindingKind, i64>,
    pub stripe: Option<StoredSums>,
    /// Stripe could not be asked: what was found about it before stands.
    pub stripe_unanswered: bool,
}

/// Something that is wrong.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FindingView {
    pub kind: FindingKind,
    /// A rental, a hold, a payment …
    pub subject: String,
    pub expected: String,
    pub found: String,
    /// By the first of the reconciliations that found it one after the other.
    pub first_seen_at: DateTime<Utc>,
}

/// The latest reconciliation.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReconciliationView {
    /// Null before the first one.
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub ledger_accounts: i64,
    pub transfers: i64,
    pub holds: i64,
    /// Rentals that are not over.
    pub rentals: i64,
    /// Null where there is no Stripe.
    pub stripe: Option<StripeSums>,
    /// Stripe could not be asked: what was found about it before stands.
    pub stripe_unanswered: bool,
    /// How many findings there are in all; of each kind the first hundred are listed.
    pub finding_count: i64,
    pub findings: Vec<FindingView>,
}
