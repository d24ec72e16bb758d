//! Making an invoice out of the ledger.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::model::{InvoiceLineView, InvoiceRentalView, InvoiceView, Month, Side, StripeInvoiceView};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, RentalId, account_text},
        money::Currency,
    },
    ctx::Ctx,
    db::Conn,
    identity::{self, Caller},
    ledger::{self, TransferCode, model::RentalFold},
    rentals,
};

/// The most rentals, and the most lines, that one invoice has.
const ROWS_MAX: i64 = 20_000;

/// The invoice of the caller's account.
///
/// # Errors
/// `not_found` for what is no month or has not begun, `invalid_input` for one with too many rows; `internal` when it does not add up: then the
/// books are wrong, and nothing is shown.
pub async fn invoice(ctx: &Ctx, caller: &Caller, month_text: &str) -> Result<InvoiceView> {
    let month = Month::parse(month_text)?;
    let mut conn = ctx.db.conn().await?;
    let made_at = ctx.business_now(&mut conn).await?;
    if month.from > made_at {
        return Err(Error::not_found("invoice"));
    }
    let account = caller.account_id;
    let too_long =
        || Error::invalid("/month", "too_long", format!("This month has more than {ROWS_MAX} rows; read its statement in pages."));
    let statement = ledger::service::statement(&mut conn, account, month.period(), None, ROWS_MAX).await?;
    let folds = ledger::service::rental_folds(&mut conn, account, month.period(), ROWS_MAX.saturating_add(1)).await?;
    if statement.next.is_some() || i64::try_from(folds.len()).map_err(Error::internal)? > ROWS_MAX {
        return Err(too_long());
    }
    let is_of_rental = |line: &ledger::model::StatementLine| {
        line.rental.is_some() && matches!(line.code, TransferCode::RentalCharge | TransferCode::Correction)
    };
    let by_line = statement.lines.iter().filter(|line| is_of_rental(line)).try_fold(Money::ZERO, |sum, line| sum.plus(line.amount))?;
    let by_rental = folds.iter().try_fold(Money::ZERO, |sum, fold| sum.plus(fold.own))?;
    if by_line != by_rental {
        return Err(Error::internal(format!("the rentals of an invoice are {by_rental:?} instead of {by_line:?}")));
    }
    let line = |line: ledger::model::StatementLine| InvoiceLineView {
        day: line.key.day,
        code: line.code,
        payment: line.payment,
        amount: line.amount,
    };
    let own = identity::service::account_summary(&mut conn, account).await?;
    Ok(InvoiceView {
        month: month_text.to_owned(),
        account_id: account_text(account, caller.is_organization),
        account: format!("@{}", caller.account_handle),
        account_name: own.display_name,
        currency: Currency::Usd,
        from: month.from,
        to: month.to,
        made_at,
        is_complete: made_at >= month.to,
        opening: statement.opening,
        credits: statement.credits,
        charges: statement.charges,
        closing: statement.closing,
        rentals: rental_rows(&mut conn, &folds, month).await?,
        lines: statement.lines.into_iter().filter(|line| !is_of_rental(line)).map(line).collect(),
        stripe_invoices: stripe_invoices(&mut conn, account, month.from, month.to).await?,
    })
}

async fn rental_rows(conn: &mut Conn, folds: &[RentalFold], month: Month) -> Result<Vec<InvoiceRentalView>> {
    let ids: Vec<RentalId> = folds.iter().map(|fold| fold.rental).collect();
    let named = rentals::service::on_statement(conn, &ids, month.from, month.to).await?;
    let parties: Vec<AccountId> = named.values().flat_map(|rental| [rental.renter_account_id, rental.host_account_id]).collect();
    let accounts = identity::service::account_summaries(conn, &parties).await?;
    let names: HashMap<AccountId, (String, String)> =
        accounts.into_iter().map(|(id, account)| (id, (format!("@{}", account.handle), account.display_name))).collect();
    folds
        .iter()
        .map(|fold| {
            let rental = named.get(&fold.rental).ok_or_else(|| Error::internal(format!("no rental {}", fold.rental)))?;
            let (side, other) =
                if fold.is_renter { (Side::Renter, rental.host_account_id) } else { (Side::Host, rental.renter_account_id) };
            let (with, with_name) = names.get(&other).cloned().ok_or_else(|| Error::internal("an account id without a row"))?;
            Ok(InvoiceRentalView {
                rental_id: fold.rental,
                side,
                machine: rental.machine.clone(),
                with,
                with_name,
                started_at: rental.started_at,
                ended_at: rental.ended_at,
                seconds: rental.billed_seconds,
                price_per_hour: rental.price_per_hour,
                gross: fold.gross,
                fee: fold.fee,
                net: fold.gross.minus(fold.fee)?,
                amount: fold.own,
            })
        })
        .collect()
}

/// What Stripe billed the account by invoices of its own. Nothing does so yet: Pro's paid invoices, with their tax lines, come in here.
async fn stripe_invoices(_: &mut Conn, _: AccountId, _: DateTime<Utc>, _: DateTime<Utc>) -> Result<Vec<StripeInvoiceView>> {
    Ok(Vec::new())
}
