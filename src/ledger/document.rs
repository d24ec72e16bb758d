//! A statement as a document: CSV for spreadsheets, HTML for printing. Amounts are exact to the micro-dollar in both: they have to add up.

use askama::Template;
use chrono::{DateTime, SecondsFormat, Utc};

use super::model::{Statement, StatementLine};
use crate::{
    base::{Error, Money, Result},
    web::{
        html::{self, LANGUAGES, Messages},
        inert_text,
    },
};

/// Whose statement it is.
#[derive(Debug, Clone)]
pub(super) struct Heading {
    /// The handle, with its `@`.
    pub account: String,
    pub account_id: String,
    pub made_at: DateTime<Utc>,
    pub is_sandbox: bool,
}

const COLUMNS: [&str; 12] =
    ["kind", "day", "code", "rental_id", "payment", "transfers", "credits", "charges", "balance", "currency", "gross", "fee"];

/// One record for the opening, one for each line, and one with the sums for the closing.
///
/// # Errors
/// `internal` for an amount without an opposite.
pub(super) fn csv(statement: &Statement) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(Error::internal)?;
    let day = |at: Option<DateTime<Utc>>| at.map(instant).unwrap_or_default();
    let none = String::new;
    let sums = |kind: &str, at: String, [credits, charges, gross, fee]: [String; 4], balance: Money| {
        [kind.to_owned(), at, none(), none(), none(), none(), credits, charges, balance.to_string(), "usd".to_owned(), gross, fee]
    };
    let opening = sums("opening", day(statement.period.from), [none(), none(), none(), none()], statement.opening);
    writer.write_record(opening).map_err(Error::internal)?;
    for line in &statement.lines {
        writer.write_record(record(line)?).map_err(Error::internal)?;
    }
    let totals = [statement.credits, statement.charges, statement.earned_gross, statement.earned_fee].map(|amount| amount.to_string());
    writer.write_record(sums("closing", day(statement.period.to), totals, statement.closing)).map_err(Error::internal)?;
    let bytes = writer.into_inner().map_err(|error| Error::internal(error.to_string()))?;
    String::from_utf8(bytes).map_err(Error::internal)
}

fn record(line: &StatementLine) -> Result<[String; 12]> {
    let (credit, charge) = sides(line.amount)?;
    Ok([
        "line".to_owned(),
        line.key.day.to_string(),
        line.code.as_str().to_owned(),
        line.rental.map(|id| id.to_string()).unwrap_or_default(),
        line.payment.as_deref().map(inert_text).unwrap_or_default(),
        line.transfer_count.to_string(),
        credit.map(|amount| amount.to_string()).unwrap_or_default(),
        charge.map(|amount| amount.to_string()).unwrap_or_default(),
        line.balance_after.to_string(),
        "usd".to_owned(),
        line.gross()?.map(|amount| amount.to_string()).unwrap_or_default(),
        line.fee.map(|amount| amount.to_string()).unwrap_or_default(),
    ])
}

/// The amount as a credit or as a charge, positive either way.
fn sides(amount: Money) -> Result<(Option<Money>, Option<Money>)> {
    Ok(if amount.is_negative() { (None, Some(amount.negated()?)) } else { (Some(amount), None) })
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// The statement as a page of its own, without menus, to be printed or saved as PDF.
#[derive(Template)]
#[template(path = "statement.html")]
pub(super) struct StatementPage {
    t: Messages,
    css: &'static str,
    heading: Heading,
    statement: Statement,
}

impl StatementPage {
    pub fn new(statement: Statement, heading: Heading) -> Self {
        Self { t: Messages::of(&LANGUAGES[0]), css: html::asset_path("rigmark.css"), heading, statement }
    }

    fn from(&self) -> String {
        self.statement.period.from.map_or_else(|| self.t.text("statement-from-beginning").into_owned(), instant)
    }
    fn to(&self) -> String {
        self.statement.period.to.map_or_else(|| self.t.text("statement-until-now").into_owned(), instant)
    }
    fn credit(&self, line: &StatementLine) -> String {
        sides(line.amount).ok().and_then(|(credit, _)| credit).map(|credit| self.t.money(credit)).unwrap_or_default()
    }
    fn charge(&self, line: &StatementLine) -> String {
        sides(line.amount).ok().and_then(|(_, charge)| charge).map(|charge| self.t.money(charge)).unwrap_or_default()
    }
    fn gross(&self, line: &StatementLine) -> String {
        line.gross().ok().flatten().map(|gross| self.t.money(gross)).unwrap_or_default()
    }
    fn fee(&self, line: &StatementLine) -> String {
        line.fee.map(|fee| self.t.money(fee)).unwrap_or_default()
    }
    /// Whether it is a host's: then gross and fee have columns of their own.
    fn has_earned(&self) -> bool {
        self.statement.lines.iter().any(|line| line.fee.is_some())
    }
    fn amount(&self, amount: &Money) -> String {
        self.t.money(*amount)
    }
    fn made_at(&self) -> String {
        self.heading.made_at.to_rfc3339_opts(SecondsFormat::Secs, true)
    }
}
