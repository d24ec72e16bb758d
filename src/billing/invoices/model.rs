//! An invoice as it is shown.

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    base::{
        Error, Money, Result,
        id::RentalId,
        money::Currency,
        shape::{AccountIdText, HandleText},
    },
    ledger::{Period, TransferCode},
};

/// A UTC month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Month {
    pub from: DateTime<Utc>,
    /// The first instant of the next month.
    pub to: DateTime<Utc>,
}

impl Month {
    /// Reads exactly `YYYY-MM`.
    ///
    /// # Errors
    /// `not_found` for anything else: there is no such invoice.
    pub fn parse(text: &str) -> Result<Self> {
        let is_plain =
            text.len() == 7 && text.bytes().enumerate().all(|(at, byte)| if at == 4 { byte == b'-' } else { byte.is_ascii_digit() });
        let first = is_plain.then(|| format!("{text}-01").parse::<NaiveDate>().ok()).flatten();
        let next = first.and_then(|first| {
            let (year, month) =
                if first.month() == 12 { (first.year().checked_add(1)?, 1) } else { (first.year(), first.month().checked_add(1)?) };
            NaiveDate::from_ymd_opt(year, month, 1)
        });
        let instant = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        match (first, next) {
            (Some(first), Some(next)) => Ok(Self { from: instant(first), to: instant(next) }),
            _ => Err(Error::not_found("invoice")),
        }
    }

    pub const fn period(self) -> Period {
        Period { from: Some(self.from), to: Some(self.to) }
    }
}

/// Whether the account paid for a rental or was paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Renter,
    Host,
}

impl Side {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Renter => "renter",
            Self::Host => "host",
        }
    }
}

/// What one rental cost or earned in the month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct InvoiceRentalView {
    pub rental_id: RentalId,
    pub side: Side,
    /// Number and name of the machine's GPUs, such as `2 × RTX 3090`.
    pub machine: String,
    /// Handle of the other side, with `@`.
    #[schema(value_type = HandleText)]
    pub with: String,
    /// What the other side is called.
    pub with_name: String,
    /// The first billed second; null when there was none.
    pub started_at: Option<DateTime<Utc>>,
    /// Null while it goes on.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whole seconds used within the month. A least length that was billed beyond them is in `gross` alone.
    pub seconds: i64,
    pub price_per_hour: Money,
    /// What the renter paid, corrections taken off.
    pub gross: Money,
    /// The platform's part of it.
    pub fee: Money,
    /// The host's part of it: gross − fee.
    pub net: Money,
    /// What it changed for this account: −gross for the renter, net for the host.
    pub amount: Money,
}

/// All other transfers of one UTC day, code and payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct InvoiceLineView {
    pub day: NaiveDate,
    pub code: TransferCode,
    pub payment: Option<String>,
    /// Positive for a credit, negative for a charge.
    pub amount: Money,
}

/// A tax, as Stripe gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TaxLineView {
    pub amount: Money,
    /// Whether it is within what was paid for the plan, or on top.
    pub is_inclusive: bool,
    /// Stripe's id of the rate.
    pub rate: Option<String>,
    /// Stripe's word for why so much, such as `standard_rated` or `reverse_charge`.
    pub reason: Option<String>,
}

/// What Stripe billed in the month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct StripeInvoiceView {
    /// Stripe's id.
    pub invoice: String,
    /// As it stands on the invoice.
    pub number: Option<String>,
    pub paid: Money,
    pub taxes: Vec<TaxLineView>,
    pub at: DateTime<Utc>,
}

/// The invoice of a month: opening + credits − charges = closing, and the amounts of `rentals` and `lines` together are credits − charges, to
/// the micro-dollar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct InvoiceView {
    /// `YYYY-MM`, UTC.
    pub month: String,
    #[schema(value_type = AccountIdText)]
    pub account_id: String,
    /// Handle of the account, with `@`.
    #[schema(value_type = HandleText)]
    pub account: String,
    /// What the account is called.
    pub account_name: String,
    pub currency: Currency,
    pub from: DateTime<Utc>,
    /// The first instant that is no longer in it.
    pub to: DateTime<Utc>,
    /// When it was made, business time.
    pub made_at: DateTime<Utc>,
    /// Whether the month is over.
    pub is_complete: bool,
    pub opening: Money,
    pub credits: Money,
    pub charges: Money,
    pub closing: Money,
    pub rentals: Vec<InvoiceRentalView>,
    pub lines: Vec<InvoiceLineView>,
    /// What Stripe billed, with its tax lines; paid to Stripe, so no line of the account's balance.
    pub stripe_invoices: Vec<StripeInvoiceView>,
}
