//! All SQL of `payout_accounts` and `payouts`.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::model::{Payout, PayoutAccount};
use crate::{
    base::{
        Result,
        id::{AccountId, PayoutAccountId, PayoutId},
    },
    db::{
        Conn, Tx,
        schema::{payout_accounts, payouts},
    },
};

/// False when the account has one.
pub async fn account_insert(tx: &mut Tx<'_>, row: &PayoutAccount) -> Result<bool> {
    let insert = diesel::insert_into(payout_accounts::table).values(row).on_conflict_do_nothing();
    Ok(insert.execute(&mut **tx).await? == 1)
}

pub async fn account_current(conn: &mut Conn, account: AccountId) -> Result<Option<PayoutAccount>> {
    let query = payout_accounts::table.filter(payout_accounts::account_id.eq(account)).filter(payout_accounts::is_current);
    Ok(query.select(PayoutAccount::as_select()).first(conn).await.optional()?)
}

/// The current one, locked: payouts of an account are begun one after another.
pub async fn account_lock_current(tx: &mut Tx<'_>, account: AccountId) -> Result<Option<PayoutAccount>> {
    let query = payout_accounts::table.filter(payout_accounts::account_id.eq(account)).filter(payout_accounts::is_current);
    Ok(query.select(PayoutAccount::as_select()).for_update().first(&mut **tx).await.optional()?)
}

pub async fn account_lock(tx: &mut Tx<'_>, id: PayoutAccountId) -> Result<Option<PayoutAccount>> {
    Ok(payout_accounts::table.find(id).select(PayoutAccount::as_select()).for_update().first(&mut **tx).await.optional()?)
}

pub async fn account_lock_by_stripe(tx: &mut Tx<'_>, stripe_account_id: &str) -> Result<Option<PayoutAccount>> {
    let query = payout_accounts::table.filter(payout_accounts::stripe_account_id.eq(stripe_account_id));
    Ok(query.select(PayoutAccount::as_select()).for_update().first(&mut **tx).await.optional()?)
}

pub async fn account_fetch(conn: &mut Conn, id: PayoutAccountId) -> Result<Option<PayoutAccount>> {
    Ok(payout_accounts::table.find(id).select(PayoutAccount::as_select()).first(conn).await.optional()?)
}

/// Writes the row back; the caller holds its lock.
pub async fn account_update(tx: &mut Tx<'_>, row: &PayoutAccount) -> Result<()> {
    diesel::update(payout_accounts::table.find(row.id)).set(row).execute(&mut **tx).await?;
    Ok(())
}

/// The account whose weekly payout is due first and that nobody else is looking at, locked.
pub async fn account_lock_weekly(tx: &mut Tx<'_>, now: DateTime<Utc>) -> Result<Option<PayoutAccount>> {
    let query = payout_accounts::table.filter(payout_accounts::weekly_at.le(now)).order(payout_accounts::weekly_at).limit(1);
    Ok(query.select(PayoutAccount::as_select()).for_update().skip_locked().first(&mut **tx).await.optional()?)
}

pub async fn weekly_next(conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    let query = payout_accounts::table.filter(payout_accounts::weekly_at.gt(after)).order(payout_accounts::weekly_at);
    let next: Option<Option<DateTime<Utc>>> = query.select(payout_accounts::weekly_at).first(conn).await.optional()?;
    Ok(next.flatten())
}

/// False when the request, or the week, has its payout.
pub async fn payout_insert(tx: &mut Tx<'_>, row: &Payout) -> Result<bool> {
    let insert = diesel::insert_into(payouts::table).values(row).on_conflict_do_nothing();
    Ok(insert.execute(&mut **tx).await? == 1)
}

/// Lets a key go whose payout is over and was begun before `before`.
pub async fn payout_release_key(tx: &mut Tx<'_>, request_key: &str, before: DateTime<Utc>) -> Result<()> {
    diesel::update(payouts::table.filter(payouts::request_key.eq(request_key)))
        .filter(payouts::created_at.lt(before))
        .filter(payouts::status.ne("pending"))
        .set(payouts::request_key.eq(None::<String>))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn payout_by_request(conn: &mut Conn, request_key: &str) -> Result<Option<Payout>> {
    Ok(payouts::table.filter(payouts::request_key.eq(request_key)).select(Payout::as_select()).first(conn).await.optional()?)
}

pub async fn payout_fetch(conn: &mut Conn, id: PayoutId) -> Result<Option<Payout>> {
    Ok(payouts::table.find(id).select(Payout::as_select()).first(conn).await.optional()?)
}

/// Locks the row until the transaction ends: every change of a payout starts here.
pub async fn payout_lock(tx: &mut Tx<'_>, id: PayoutId) -> Result<Option<Payout>> {
    Ok(payouts::table.find(id).select(Payout::as_select()).for_update().first(&mut **tx).await.optional()?)
}

/// Writes the row back; the caller holds its lock.
pub async fn payout_update(tx: &mut Tx<'_>, row: &Payout) -> Result<()> {
    diesel::update(payouts::table.find(row.id)).set(row).execute(&mut **tx).await?;
    Ok(())
}

/// The account's payouts, newest first, older than `before`.
pub async fn payout_list(
    conn: &mut Conn,
    account: AccountId,
    status: Option<&str>,
    before: Option<PayoutId>,
    limit: i64,
) -> Result<Vec<Payout>> {
    let mut query = payouts::table.filter(payouts::account_id.eq(account)).into_boxed();
    if let Some(status) = status {
        query = query.filter(payouts::status.eq(status.to_owned()));
    }
    if let Some(before) = before {
        query = query.filter(payouts::id.lt(before));
    }
    Ok(query.order(payouts::id.desc()).limit(limit).select(Payout::as_select()).load(conn).await?)
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = sql_types::Uuid)]
    id: uuid::Uuid,
}

/// Takes payouts about which Stripe is to be asked by `now`, for as long as `lease`: nobody else asks meanwhile, and somebody does afterwards.
pub async fn payouts_take_due(conn: &mut Conn, now: DateTime<Utc>, lease: TimeDelta, limit: i64) -> Result<Vec<PayoutId>> {
    let until = now.checked_add_signed(lease).unwrap_or(now);
    let taken: Vec<Due> = diesel::sql_query(
        "UPDATE payouts SET ask_at = $1, ask_count = ask_count + 1 WHERE id IN (
            SELECT id FROM payouts WHERE ask_at <= $2 ORDER BY ask_at LIMIT $3 FOR UPDATE SKIP LOCKED)
         RETURNING id",
    )
    .bind::<sql_types::Timestamptz, _>(until)
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::BigInt, _>(limit)
    .load(conn)
    .await?;
    Ok(taken.into_iter().map(|due| PayoutId::from_uuid(due.id)).collect())
}

/// What Stripe sent on to the bank in one payout of its own has arrived: all that was on the account before it was made. What came in the same
/// second may have been too late; the next payout has it at the latest. Returns how many.
pub async fn payouts_arrived(
    tx: &mut Tx<'_>,
    account: PayoutAccountId,
    bank_payout: &str,
    made_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<usize> {
    let sent = payouts::table
        .filter(payouts::payout_account_id.eq(account))
        .filter(payouts::status.eq("sent"))
        .filter(payouts::transferred_at.lt(made_at));
    let arrived = (
        payouts::status.eq("paid"),
        payouts::bank_payout_id.eq(bank_payout),
        payouts::settled_at.eq(now),
        payouts::ask_at.eq(None::<DateTime<Utc>>),
    );
    Ok(diesel::update(sent).set(arrived).execute(&mut **tx).await?)
}

/// What a bank sent back is to be taken back: what was in that payout of Stripe's, or on the account before it was made. Returns how many.
pub async fn payouts_recall(
    tx: &mut Tx<'_>,
    account: PayoutAccountId,
    bank_payout: &str,
    made_at: DateTime<Utc>,
    failure_code: Option<&str>,
    wall_now: DateTime<Utc>,
) -> Result<usize> {
    let was_in = payouts::status.eq("paid").and(payouts::bank_payout_id.is_not_distinct_from(bank_payout));
    let was_there = payouts::status.eq("sent").and(payouts::transferred_at.is_not_null()).and(payouts::transferred_at.lt(made_at));
    let sent_back = payouts::table
        .filter(payouts::payout_account_id.eq(account))
        .filter(payouts::is_recalled.eq(false))
        .filter(was_in.or(was_there.assume_not_null()));
    let recalled = (
        payouts::is_recalled.eq(true),
        payouts::bank_payout_id.eq(bank_payout),
        payouts::failure_code.eq(failure_code),
        payouts::ask_at.eq(wall_now),
    );
    Ok(diesel::update(sent_back).set(recalled).execute(&mut **tx).await?)
}

/// The account is dead: what waits is tried now, and refused, and what is still on it is to be taken back.
pub async fn payouts_abandon(tx: &mut Tx<'_>, account: PayoutAccountId, wall_now: DateTime<Utc>) -> Result<()> {
    let of_account = payouts::table.filter(payouts::payout_account_id.eq(account));
    let sent = (payouts::is_recalled.eq(true), payouts::ask_at.eq(wall_now));
    diesel::update(of_account.filter(payouts::status.eq("sent"))).set(sent).execute(&mut **tx).await?;
    let pending = of_account.filter(payouts::status.eq("pending"));
    diesel::update(pending).set(payouts::ask_at.eq(wall_now)).execute(&mut **tx).await?;
    Ok(())
}
