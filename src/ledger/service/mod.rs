//! What can be done with the books. Each function that writes takes the caller's transaction, so that money moves together with the reason
//! for it or not at all.
//!
//! Money comes in and goes out by [`post`]. A rental's money goes [`hold`] → [`hold_increase`] → [`capture`] → [`release`], and back by
//! [`correct`]; what a host has earned becomes payable by [`mature_due`]. All of them may be repeated with the same transfer id.

mod correct;
mod holds;
mod many;
mod mature;
mod post;

use crate::{
    base::{Result, id::AccountId},
    db::Conn,
};

pub use super::model::derived_id;
pub use super::model::{Capture, Correction, HoldRequest, Posting, TransferRequest};
use super::{
    model::{Balance, Entry, EntryFilter, EntryKey, LineKey, RentalFold, Report, Statement},
    period::Period,
    queries::{audit, fold, read},
};
use crate::base::Error;
pub use correct::correct;
pub use holds::{
    available_lock, capture, expire_due, freeze, hold, hold_at_most, hold_fetch, hold_increase, hold_next_expiry, hold_remaining,
    holds_remaining, release, unfreeze,
};
pub use many::{available_of, capture_many, holds_lock};
pub use mature::{balance_lock, mature_due, mature_next_due};
pub use post::post;

/// What the account has now. An account that never had money has nothing.
///
/// # Errors
/// The database's own faults.
pub async fn balance(conn: &mut Conn, account: AccountId) -> Result<Balance> {
    read::balance_fetch(conn, account).await
}

/// At most `limit` entries of the account, the latest first; those after the entry at `after` in this order.
///
/// # Errors
/// The database's own faults.
pub async fn entries(conn: &mut Conn, account: AccountId, filter: &EntryFilter, after: Option<EntryKey>, limit: i64) -> Result<Vec<Entry>> {
    read::entry_list(conn, account, filter, after, limit).await
}

/// The account's statement over `period`, with at most `limit` lines after the line at `after`. The sums are always those of the whole period.
///
/// # Errors
/// `internal` when opening + credits − charges is not closing: then the books are wrong, and nothing is shown.
pub async fn statement(conn: &mut Conn, account: AccountId, period: Period, after: Option<LineKey>, limit: i64) -> Result<Statement> {
    let statement = read::statement_fetch(conn, account, period, after, limit).await?;
    let folded = statement.opening.plus(statement.credits)?.minus(statement.charges)?;
    if folded != statement.closing {
        return Err(Error::internal(format!("a statement closes at {:?} instead of {folded:?}", statement.closing)));
    }
    Ok(statement)
}

/// What each rental cost or earned the account over `period`, at most `limit` of them.
///
/// # Errors
/// `internal` when host share + fee is not the gross of one: then the books are wrong, and nothing is shown.
pub async fn rental_folds(conn: &mut Conn, account: AccountId, period: Period, limit: i64) -> Result<Vec<RentalFold>> {
    let folds = fold::rental_list(conn, account, period, limit).await?;
    for fold in &folds {
        let expected = if fold.is_renter { fold.gross.negated()? } else { fold.gross.minus(fold.fee)? };
        if fold.own != expected {
            return Err(Error::internal(format!("rental {} changed {:?} instead of {expected:?}", fold.rental, fold.own)));
        }
    }
    Ok(folds)
}

/// Recomputes every balance and hold from the postings and lists what differs; nothing should.
///
/// # Errors
/// The database's own faults.
pub async fn reconcile(conn: &mut Conn) -> Result<Report> {
    audit::report_fetch(conn).await
}
