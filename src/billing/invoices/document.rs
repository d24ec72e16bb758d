//! An invoice as a document: CSV for spreadsheets, HTML for printing. Amounts are exact to the micro-dollar in both: they have to add up.

use askama::Template;
use chrono::{DateTime, SecondsFormat, Utc};

use super::model::{InvoiceRentalView, InvoiceView, Side, StripeInvoiceView};
use crate::{
    base::{Error, Money, Result},
    ledger::TransferCode,
    web::{
        html::{self, LANGUAGES, Messages},
        inert_text,
    },
};

const COLUMNS: [&str; 18] = [
    "kind",
    "day",
    "code",
    "rental_id",
    "side",
    "machine",
    "with",
    "with_name",
    "started_at",
    "ended_at",
    "seconds",
    "price_per_hour",
    "gross",
    "fee",
    "net",
    "payment",
    "amount",
    "currency",
];

fn instant(at: &DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// One record for the opening, one for each rental, each other line and each tax of Stripe's, and one for the closing. Amounts of opening,
/// rentals and lines add up to the closing; what Stripe billed is beside it.
///
/// # Errors
/// `internal` when the writer fails.
pub(super) fn csv(invoice: &InvoiceView) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |cells: &[(&str, String)]| {
        let record = COLUMNS.map(|column| cells.iter().find(|(name, _)| *name == column).map(|(_, text)| text.clone()).unwrap_or_default());
        writer.write_record(record).map_err(Error::internal)
    };
    let header: Vec<(&str, String)> = COLUMNS.iter().map(|column| (*column, (*column).to_owned())).collect();
    write(&header)?;
    let balance = |kind: &str, at: &DateTime<Utc>, amount: Money| {
        [("kind", kind.to_owned()), ("day", instant(at)), ("amount", amount.to_string()), ("currency", "usd".to_owned())]
    };
    write(&balance("opening", &invoice.from, invoice.opening))?;
    for rental in &invoice.rentals {
        write(&rental_cells(rental))?;
    }
    for line in &invoice.lines {
        write(&[
            ("kind", "line".to_owned()),
            ("day", line.day.to_string()),
            ("code", line.code.as_str().to_owned()),
            ("payment", line.payment.as_deref().map(inert_text).unwrap_or_default()),
            ("amount", line.amount.to_string()),
            ("currency", "usd".to_owned()),
        ])?;
    }
    for billed in &invoice.stripe_invoices {
        for cells in stripe_cells(billed) {
            write(&cells)?;
        }
    }
    write(&balance("closing", &invoice.to, invoice.closing))?;
    let bytes = writer.into_inner().map_err(|error| Error::internal(error.to_string()))?;
    String::from_utf8(bytes).map_err(Error::internal)
}

fn rental_cells(rental: &InvoiceRentalView) -> [(&'static str, String); 16] {
    [
        ("kind", "rental".to_owned()),
        ("code", TransferCode::RentalCharge.as_str().to_owned()),
        ("rental_id", rental.rental_id.to_string()),
        ("side", rental.side.as_str().to_owned()),
        ("machine", inert_text(&rental.machine)),
        ("with", inert_text(&rental.with)),
        ("with_name", inert_text(&rental.with_name)),
        ("started_at", rental.started_at.as_ref().map(instant).unwrap_or_default()),
        ("ended_at", rental.ended_at.as_ref().map(instant).unwrap_or_default()),
        ("seconds", rental.seconds.to_string()),
        ("price_per_hour", rental.price_per_hour.to_string()),
        ("gross", rental.gross.to_string()),
        ("fee", rental.fee.to_string()),
        ("net", rental.net.to_string()),
        ("amount", rental.amount.to_string()),
        ("currency", "usd".to_owned()),
    ]
}

/// What was paid, and each tax of it.
fn stripe_cells(billed: &StripeInvoiceView) -> Vec<Vec<(&'static str, String)>> {
    let cells = |kind: &str, code: &str, amount: Money| {
        vec![
            ("kind", kind.to_owned()),
            ("day", billed.at.date_naive().to_string()),
            ("code", inert_text(code)),
            ("payment", inert_text(billed.number.as_deref().unwrap_or(&billed.invoice))),
            ("gross", amount.to_string()),
            ("currency", "usd".to_owned()),
        ]
    };
    let taxes = billed.taxes.iter().map(|tax| cells("stripe_tax", tax.reason.as_deref().unwrap_or_default(), tax.amount));
    std::iter::once(cells("stripe_invoice", "", billed.paid)).chain(taxes).collect()
}

/// The invoice as a page of its own, without menus, to be printed or saved as PDF.
#[derive(Template)]
#[template(path = "invoice.html")]
pub(super) struct InvoicePage {
    t: Messages,
    css: &'static str,
    invoice: InvoiceView,
    is_sandbox: bool,
}

impl InvoicePage {
    pub fn new(invoice: InvoiceView, is_sandbox: bool) -> Self {
        Self { t: Messages::of(&LANGUAGES[0]), css: html::asset_path("rigmark.css"), invoice, is_sandbox }
    }

    fn amount(&self, amount: &Money) -> String {
        self.t.money(*amount)
    }
    fn instant(&self, at: &DateTime<Utc>) -> String {
        instant(at)
    }
    fn started(&self, rental: &InvoiceRentalView) -> String {
        rental.started_at.as_ref().map_or_else(|| self.t.count(None), instant)
    }
    fn ended(&self, rental: &InvoiceRentalView) -> String {
        rental.ended_at.as_ref().map_or_else(|| self.t.text("invoice-goes-on").into_owned(), instant)
    }
    fn seconds(&self, rental: &InvoiceRentalView) -> String {
        self.t.count(u64::try_from(rental.seconds).ok())
    }
    fn side(&self, rental: &InvoiceRentalView) -> String {
        let (name, handle) = (&rental.with_name, &rental.with);
        match rental.side {
            Side::Renter => self.t.with("invoice-rented-from", &[("name", name.into()), ("handle", handle.into())]),
            Side::Host => self.t.with("invoice-rented-to", &[("name", name.into()), ("handle", handle.into())]),
        }
    }
}
