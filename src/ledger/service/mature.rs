//! Earnings become payable (money.md 22).
//!
//! A host's earnings move to `payable` once they have stood for the hold, by business time. What was given back is not there to be moved, and a
//! debt comes first: as much stays in `earnings` as is still young, so that later earnings pay the debt before anything is payable.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        code::TransferCode,
        model::{Actor, Balance, LedgerAccount, Posting, TransferRequest, derived_id},
        queries::{mature, write},
    },
    post::post,
};
use crate::{
    base::{Money, Result, id::AccountId},
    ctx::Ctx,
    db::{Conn, Tx},
};

/// A meter charges every minute; an hour's charges become payable together, with the last of them.
const TOGETHER: TimeDelta = TimeDelta::hours(1);

/// Makes all earnings payable that are so by `now`, each host in a transaction of its own, and returns how many transfers that took.
///
/// # Errors
/// The database's own faults; what became payable before stays so.
pub async fn mature_due(ctx: &Ctx, now: DateTime<Utc>) -> Result<usize> {
    {
        let mut conn = ctx.db.conn().await?;
        mature::hosts_insert(&mut conn, now).await?;
    }
    let hold = TimeDelta::days(ctx.config.tunables.earnings_hold_days.max(0));
    let mut count: usize = 0;
    while let Some(moved) = ctx.db.tx("earnings_mature", async |tx| mature_next(tx, now, hold).await).await? {
        count = count.saturating_add(usize::from(moved));
    }
    Ok(count)
}

/// The next host that is due; `None` when nobody is. Returns whether money moved.
async fn mature_next(tx: &mut Tx<'_>, now: DateTime<Utc>, hold: TimeDelta) -> Result<Option<bool>> {
    let Some((account, after)) = mature::host_lock_due(tx, now).await? else { return Ok(None) };
    let (earnings, payable) = (LedgerAccount::Earnings(account), LedgerAccount::Payable(account));
    // From here on nothing can be charged or given back.
    let balances = write::ledger_account_lock(tx, &[earnings, payable]).await?;
    let balance = balances.iter().find(|(other, _)| *other == earnings).map_or(Money::ZERO, |(_, balance)| *balance);
    let cut = now.checked_sub_signed(hold).unwrap_or(now);
    let window = mature::window(tx, account, after, cut, TOGETHER).await?;
    let through = window.through.unwrap_or(after);
    let mature = balance.minus(window.young)?;
    let moves = window.has_income && mature.is_positive();
    if moves {
        let transfer = TransferRequest {
            id: derived_id(&["earnings_matured", &account.to_string(), &through.to_string()]),
            code: TransferCode::EarningsMatured,
            postings: Posting::between(earnings, payable, mature)?,
            rental: None,
            payment: None,
            actor: Actor::System,
            business_at: now,
            linked: None,
        };
        post(tx, transfer).await?;
    }
    // With nothing young, what is earned from now on is mature no sooner than this.
    let due_at = window.next.unwrap_or(now).checked_add_signed(hold.max(TimeDelta::seconds(1))).unwrap_or(DateTime::<Utc>::MAX_UTC);
    mature::host_update(tx, account, through, due_at).await?;
    Ok(Some(moves))
}

/// When earnings become payable next after `after`.
///
/// # Errors
/// The database's own faults.
pub async fn mature_next_due(conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    mature::next_due(conn, after).await
}

/// What the account has now, of which nothing but `held` can change before the transaction ends.
///
/// # Errors
/// The database's own faults.
pub async fn balance_lock(tx: &mut Tx<'_>, account: AccountId) -> Result<Balance> {
    let accounts = [LedgerAccount::Available(account), LedgerAccount::Earnings(account), LedgerAccount::Payable(account)];
    write::ledger_account_lock(tx, &accounts).await?;
    super::balance(tx, account).await
}
