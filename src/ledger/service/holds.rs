//! Money set aside for a rental: made, increased, used and given back (money.md 7, 17).

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::super::{
    code::TransferCode,
    model::{Actor, Capture, Hold, HoldRequest, LedgerAccount, Posted, Posting, TransferRequest, derived_id},
    queries::write,
};
use super::post::{insufficient, post_locking};
use crate::{
    base::{
        Code, Error, Money, Result,
        id::{AccountId, HoldId, TransferId},
    },
    ctx::Ctx,
    db::{Conn, Tx},
};

/// The ledger accounts that every step of a hold locks, whether it moves both or not: see the lock order in `ledger`.
const fn pair(account: AccountId) -> [LedgerAccount; 2] {
    [LedgerAccount::Available(account), LedgerAccount::Held(account)]
}

fn step(
    hold: &Hold,
    code: TransferCode,
    id: TransferId,
    postings: Vec<Posting>,
    actor: Actor,
    business_at: DateTime<Utc>,
) -> TransferRequest {
    TransferRequest { id, code, postings, rental: hold.rental, payment: None, actor, business_at, linked: None }
}

/// Sets money aside. Nothing may be asked for (a free machine); then too an account in debt is refused.
///
/// # Errors
/// `insufficient_funds` when the available balance is less than the amount or below zero; `account_frozen` for a rental of a frozen account.
pub async fn hold(tx: &mut Tx<'_>, request: HoldRequest) -> Result<Hold> {
    if request.amount.is_negative() {
        return Err(Error::internal("a hold of less than nothing"));
    }
    write::hold_insert(tx, &request).await?;
    let hold = write::hold_lock(tx, request.id).await?;
    if (hold.account, hold.rental) != (request.account, request.rental) {
        return Err(Error::internal(format!("hold {} is of another account or rental", request.id)));
    }
    let available = LedgerAccount::Available(hold.account);
    let balances = write::ledger_account_lock(tx, &pair(hold.account)).await?;
    if hold.rental.is_some() && hold.amount.is_zero() && write::freeze_exists(tx, hold.account).await? {
        let detail = "A payment of this account is disputed. It can rent again when that is decided.";
        return Err(Error::new(Code::AccountFrozen, detail));
    }
    if request.amount.is_zero() {
        let balance = balances.iter().find(|(account, _)| *account == available).map_or(Money::ZERO, |(_, balance)| *balance);
        return if balance.is_negative() { Err(insufficient(Money::ZERO, balance)) } else { Ok(hold) };
    }
    let postings = Posting::between(available, LedgerAccount::Held(hold.account), request.amount)?;
    let transfer = step(&hold, TransferCode::Hold, request.transfer_id, postings, request.actor, request.business_at);
    post_locking(tx, transfer, Some(hold.id), &[]).await?;
    write::hold_fetch(tx, hold.id).await
}

/// Sets aside as much of the amount as is available, which may be nothing, and returns how much that was.
///
/// # Errors
/// The database's own faults.
pub async fn hold_at_most(tx: &mut Tx<'_>, request: HoldRequest) -> Result<Money> {
    write::hold_insert(tx, &request).await?;
    hold_increase(tx, request.id, request.transfer_id, request.amount, request.business_at).await
}

/// Locks what the account has available and held until the transaction ends, and says what is available: the first step of a transaction that
/// posts to the account more than once, so that no ledger account of the platform is locked before.
///
/// # Errors
/// The database's own faults.
pub async fn available_lock(tx: &mut Tx<'_>, account: AccountId) -> Result<Money> {
    let balances = write::ledger_account_lock(tx, &pair(account)).await?;
    let available = LedgerAccount::Available(account);
    Ok(balances.iter().find(|(other, _)| *other == available).map_or(Money::ZERO, |(_, balance)| *balance))
}

/// From now on the account may rent nothing new, for this reason. The caller holds [`available_lock`].
///
/// # Errors
/// The database's own faults.
pub async fn freeze(tx: &mut Tx<'_>, account: AccountId, subject: &str) -> Result<()> {
    write::freeze_insert(tx, account, subject).await
}

/// Takes one reason away.
///
/// # Errors
/// The database's own faults.
pub async fn unfreeze(tx: &mut Tx<'_>, account: AccountId, subject: &str) -> Result<()> {
    write::freeze_delete(tx, account, subject).await
}

/// Adds up to `wanted` to an open hold, as far as the available balance goes, and returns how much that was. Repeated with the same id it
/// returns what was added then.
///
/// # Errors
/// `internal` when the hold is closed.
pub async fn hold_increase(
    tx: &mut Tx<'_>,
    hold: HoldId,
    transfer_id: TransferId,
    wanted: Money,
    business_at: DateTime<Utc>,
) -> Result<Money> {
    let hold = write::hold_lock(tx, hold).await?;
    let (available, held) = (LedgerAccount::Available(hold.account), LedgerAccount::Held(hold.account));
    let balances = write::ledger_account_lock(tx, &pair(hold.account)).await?;
    if let Some(stored) = write::transfer_fetch(tx, transfer_id).await? {
        let added = stored.postings.iter().find(|(id, _)| *id == held.id()).map(|(_, amount)| *amount);
        return match added {
            Some(added) if stored.code == TransferCode::HoldIncrease.as_str() && stored.hold == Some(hold.id) => Ok(added),
            _ => Err(Error::internal(format!("transfer {transfer_id} was posted with other content: {stored:?}"))),
        };
    }
    let balance = balances.iter().find(|(account, _)| *account == available).map_or(Money::ZERO, |(_, balance)| *balance);
    let added = wanted.min(balance).max(Money::ZERO);
    if added.is_zero() {
        return Ok(Money::ZERO);
    }
    let transfer =
        step(&hold, TransferCode::HoldIncrease, transfer_id, Posting::between(available, held, added)?, Actor::System, business_at);
    post_locking(tx, transfer, Some(hold.id), &[]).await?;
    Ok(added)
}

/// Pays a charge out of an open hold: the host's share to the host's earnings, the fee to the platform. A charge of nothing moves nothing.
///
/// # Errors
/// `internal` when the charge is more than the hold has or the hold is closed; the caller asks [`hold_remaining`] first, under the rental's
/// lock.
pub async fn capture(tx: &mut Tx<'_>, capture: Capture) -> Result<()> {
    if capture.charge.is_nothing() {
        return Ok(());
    }
    let hold = write::hold_lock(tx, capture.hold).await?;
    let postings = vec![
        Posting::new(LedgerAccount::Held(hold.account), capture.charge.gross().negated()?),
        Posting::new(LedgerAccount::Earnings(capture.host), capture.charge.host_share()?),
        Posting::new(LedgerAccount::PlatformFees, capture.charge.fee()),
    ];
    let transfer = step(&hold, TransferCode::RentalCharge, capture.transfer_id, postings, Actor::System, capture.business_at);
    post_locking(tx, transfer, Some(hold.id), &pair(hold.account)).await?;
    Ok(())
}

/// Gives what is left in a hold back to its owner and closes it. Returns how much that was; nothing when it is closed already.
///
/// # Errors
/// The database's own faults.
pub async fn release(tx: &mut Tx<'_>, hold: HoldId, transfer_id: TransferId, business_at: DateTime<Utc>) -> Result<Money> {
    give_back(tx, hold, TransferCode::HoldRelease, transfer_id, business_at).await
}

async fn give_back(
    tx: &mut Tx<'_>,
    hold: HoldId,
    code: TransferCode,
    transfer_id: TransferId,
    business_at: DateTime<Utc>,
) -> Result<Money> {
    let hold = write::hold_lock(tx, hold).await?;
    if !hold.is_open {
        return Ok(Money::ZERO);
    }
    let rest = hold.remaining()?;
    if rest.is_positive() {
        let postings = Posting::between(LedgerAccount::Held(hold.account), LedgerAccount::Available(hold.account), rest)?;
        let transfer = step(&hold, code, transfer_id, postings, Actor::System, business_at);
        if post_locking(tx, transfer, Some(hold.id), &[]).await? == Posted::AlreadyPosted {
            return Err(Error::internal(format!("hold {} is open although transfer {transfer_id} gave it back", hold.id)));
        }
    }
    write::hold_close(tx, hold.id).await?;
    Ok(rest)
}

/// Gives back what is left in every hold that has expired by `now`, each in a transaction of its own, and returns how many there were.
///
/// # Errors
/// The database's own faults; what was given back before stays given back.
pub async fn expire_due(ctx: &Ctx, now: DateTime<Utc>) -> Result<usize> {
    const BATCH: i64 = 500;
    let due = {
        let mut conn = ctx.db.conn().await?;
        write::hold_list_expired(&mut conn, now, BATCH).await?
    };
    for id in &due {
        let transfer_id = derived_id(&["hold_expire", &id.to_string()]);
        ctx.db.tx("hold_expire", async |tx| give_back(tx, *id, TransferCode::HoldExpire, transfer_id, now).await).await?;
    }
    Ok(due.len())
}

/// When the next open hold expires after `after`.
///
/// # Errors
/// The database's own faults.
pub async fn hold_next_expiry(conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    write::hold_next_expiry(conn, after).await
}

/// # Errors
/// `internal` when there is none.
pub async fn hold_fetch(conn: &mut Conn, id: HoldId) -> Result<Hold> {
    write::hold_fetch(conn, id).await
}

/// What is left in a hold.
///
/// # Errors
/// `internal` when there is none.
pub async fn hold_remaining(conn: &mut Conn, id: HoldId) -> Result<Money> {
    write::hold_fetch(conn, id).await?.remaining()
}

/// What is left in each of these holds.
///
/// # Errors
/// The database's own faults.
pub async fn holds_remaining(conn: &mut Conn, ids: &[HoldId]) -> Result<HashMap<HoldId, Money>> {
    let holds = write::hold_list(conn, ids).await?;
    holds.iter().map(|hold| Ok((hold.id, hold.remaining()?))).collect()
}
