//! Weekly payouts: one a week and account, on Mondays by business time.

use chrono::{DateTime, Utc};

use super::{
    super::{
        model::{Payout, PayoutAccount, PayoutAccountStatus},
        queries,
        state::{next_week, week_of, withdrawable},
    },
    accounts::minimums,
    payouts::take,
};
use crate::{
    base::Result,
    ctx::Ctx,
    db::{Conn, Tx},
    ledger::{self, model::Actor},
};

/// Begins the payout of every account that is due, each in a transaction of its own; the poller sends them. Returns how many.
///
/// # Errors
/// The database's own faults; what was begun before stays.
pub async fn pay_weekly(ctx: &Ctx, now: DateTime<Utc>) -> Result<usize> {
    if ctx.stripe.is_none() {
        return Ok(0);
    }
    let mut count: usize = 0;
    while let Some(is_paid) = ctx.db.tx("payout_weekly", async |tx| pay_next(ctx, tx, now).await).await? {
        count = count.saturating_add(usize::from(is_paid));
    }
    Ok(count)
}

/// The next account that is due; `None` when none is. Returns whether it is paid.
async fn pay_next(ctx: &Ctx, tx: &mut Tx<'_>, now: DateTime<Utc>) -> Result<Option<bool>> {
    let Some(mut account) = queries::account_lock_weekly(tx, now).await? else { return Ok(None) };
    let is_paid = pay(ctx, tx, &account, now).await?;
    account.weekly_at = Some(next_week(now));
    queries::account_update(tx, &account).await?;
    Ok(Some(is_paid))
}

/// All that is payable, if it is enough. After weeks in which nobody ran the sweep, one payout makes up for them.
async fn pay(ctx: &Ctx, tx: &mut Tx<'_>, account: &PayoutAccount, now: DateTime<Utc>) -> Result<bool> {
    if account.status()? != PayoutAccountStatus::Enabled || account.paused_reason.is_some() {
        return Ok(false);
    }
    let (_, min) = minimums(ctx)?;
    let amount = withdrawable(&ledger::service::balance_lock(tx, account.account_id).await?)?.floor_to_cents();
    if amount < min || !amount.is_positive() {
        return Ok(false);
    }
    let wall_now = ctx.clock.wall_now();
    let mut row = Payout::new(account, amount, wall_now, Some(wall_now));
    row.week = Some(week_of(now));
    take(ctx, tx, &row, Actor::System).await
}

/// When the next weekly payout is due after `after`.
///
/// # Errors
/// The database's own faults.
pub async fn weekly_next_due(conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    queries::weekly_next(conn, after).await
}
