//! Paying many charges in one transaction, for the meter.

use std::collections::HashMap;

use super::{
    super::{
        code::TransferCode,
        model::{Actor, Capture, LedgerAccount, Posting, TransferRequest},
        queries::{many, write},
    },
    post::checked,
};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, HoldId, RentalId},
    },
    db::{Conn, Tx},
};

/// Locks these open holds until the transaction ends and says what is left in each: nothing is said of one that is closed or unknown. The caller
/// holds the rentals' locks.
///
/// # Errors
/// The database's own faults.
pub async fn holds_lock(tx: &mut Tx<'_>, ids: &[HoldId]) -> Result<HashMap<HoldId, Money>> {
    Ok(many::hold_lock(tx, ids).await?.into_iter().map(|(id, _, remaining)| (id, remaining)).collect())
}

/// What each of these accounts has available.
///
/// # Errors
/// The database's own faults.
pub async fn available_of(conn: &mut Conn, accounts: &[AccountId]) -> Result<HashMap<AccountId, Money>> {
    Ok(many::available_list(conn, accounts).await?.into_iter().collect())
}

/// As [`super::capture`], for many rentals, all or none. All ledger accounts are locked at once, in the order of their ids.
///
/// # Errors
/// `internal` when one charge is more than its hold has, or was posted before; then none is posted, and the caller goes on one by one.
pub async fn capture_many(tx: &mut Tx<'_>, captures: &[(RentalId, Capture)]) -> Result<()> {
    let ids: Vec<HoldId> = captures.iter().map(|(_, capture)| capture.hold).collect();
    let owners: HashMap<HoldId, AccountId> = many::hold_lock(tx, &ids).await?.into_iter().map(|(id, owner, _)| (id, owner)).collect();
    let mut transfers = Vec::with_capacity(captures.len());
    let mut accounts = Vec::with_capacity(captures.len().saturating_mul(4));
    for (rental, capture) in captures.iter().filter(|(_, capture)| !capture.charge.is_nothing()) {
        let owner = *owners.get(&capture.hold).ok_or_else(|| Error::internal(format!("hold {} is not open", capture.hold)))?;
        let mut request = TransferRequest {
            id: capture.transfer_id,
            code: TransferCode::RentalCharge,
            postings: vec![
                Posting::new(LedgerAccount::Held(owner), capture.charge.gross().negated()?),
                Posting::new(LedgerAccount::Earnings(capture.host), capture.charge.host_share()?),
                Posting::new(LedgerAccount::PlatformFees, capture.charge.fee()),
            ],
            rental: Some(*rental),
            payment: None,
            actor: Actor::System,
            business_at: capture.business_at,
            linked: None,
        };
        request.postings = checked(&request)?;
        accounts.push(LedgerAccount::Available(owner));
        accounts.extend(request.postings.iter().map(|posting| posting.account));
        transfers.push((request, capture.hold));
    }
    if transfers.is_empty() {
        return Ok(());
    }
    write::ledger_account_lock(tx, &accounts).await?;
    many::transfer_insert(tx, &transfers).await?;
    many::posting_insert(tx, &transfers).await
}
