//! All SQL of `automatic_top_ups`, and what it reads of `top_ups`.

use chrono::{DateTime, Utc};
use diesel::{dsl::exists, prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::model::{AutomaticTopUp, ON, PAUSED};
use crate::{
    base::{Money, Result, id::AccountId},
    db::{
        Conn, Tx,
        schema::{automatic_top_ups, top_ups},
    },
};

pub async fn automatic_fetch(conn: &mut Conn, account: AccountId) -> Result<Option<AutomaticTopUp>> {
    Ok(automatic_top_ups::table.find(account.uuid()).select(AutomaticTopUp::as_select()).first(conn).await.optional()?)
}

/// Locks the row until the transaction ends.
pub async fn automatic_lock(tx: &mut Tx<'_>, account: AccountId) -> Result<Option<AutomaticTopUp>> {
    let row = automatic_top_ups::table.find(account.uuid()).select(AutomaticTopUp::as_select());
    Ok(row.for_update().first(&mut **tx).await.optional()?)
}

/// As [`automatic_lock`], for a row that is due; `None` when another has it in hand, or it is not due any more.
pub async fn automatic_lock_due(tx: &mut Tx<'_>, account: AccountId, now: DateTime<Utc>) -> Result<Option<AutomaticTopUp>> {
    let due = automatic_top_ups::table
        .filter(automatic_top_ups::account_id.eq(account.uuid()))
        .filter(automatic_top_ups::state.eq(ON))
        .filter(automatic_top_ups::is_low)
        .filter(automatic_top_ups::next_try_at.le(now));
    Ok(due.select(AutomaticTopUp::as_select()).for_update().skip_locked().first(&mut **tx).await.optional()?)
}

/// False when the account has its row.
pub async fn automatic_insert(tx: &mut Tx<'_>, row: &AutomaticTopUp) -> Result<bool> {
    let insert = diesel::insert_into(automatic_top_ups::table).values(row).on_conflict_do_nothing();
    Ok(insert.execute(&mut **tx).await? == 1)
}

/// Writes the row back; the caller holds its lock.
pub async fn automatic_update(tx: &mut Tx<'_>, row: &AutomaticTopUp) -> Result<()> {
    diesel::update(automatic_top_ups::table.find(row.account_id.uuid())).set(row).execute(&mut **tx).await?;
    Ok(())
}

/// Accounts whose balance may be below their threshold and who may be tried, those that wait longest first.
pub async fn automatic_list_due(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<Vec<AccountId>> {
    let due = automatic_top_ups::table
        .filter(automatic_top_ups::state.eq(ON))
        .filter(automatic_top_ups::is_low)
        .filter(automatic_top_ups::next_try_at.le(now));
    Ok(due.order(automatic_top_ups::next_try_at).limit(limit).select(automatic_top_ups::account_id).load(conn).await?)
}

/// Pauses what charges a card; whose it was.
pub async fn automatic_pause_of_card(tx: &mut Tx<'_>, payment_method: &str, reason: &str) -> Result<Vec<AccountId>> {
    let on =
        automatic_top_ups::table.filter(automatic_top_ups::payment_method_id.eq(payment_method)).filter(automatic_top_ups::state.eq(ON));
    let pause = (automatic_top_ups::state.eq(PAUSED), automatic_top_ups::paused_reason.eq(reason));
    Ok(diesel::update(on).set(pause).returning(automatic_top_ups::account_id).get_results(&mut **tx).await?)
}

/// Whether nobody knows yet what becomes of an automatic top-up of the account.
pub async fn is_under_way(tx: &mut Tx<'_>, account: AccountId) -> Result<bool> {
    let open = top_ups::table
        .filter(top_ups::account_id.eq(account.uuid()))
        .filter(top_ups::means.eq("automatic"))
        .filter(top_ups::status.eq_any(["pending", "processing"]));
    Ok(diesel::select(exists(open)).get_result(&mut **tx).await?)
}

/// What automatic top-ups have brought in since `from`, or may yet.
pub async fn brought_in_since(tx: &mut Tx<'_>, account: AccountId, from: DateTime<Utc>) -> Result<Money> {
    let sum = top_ups::table
        .filter(top_ups::account_id.eq(account.uuid()))
        .filter(top_ups::means.eq("automatic"))
        .filter(top_ups::created_at.ge(from))
        .filter(top_ups::status.eq_any(["pending", "processing", "succeeded"]))
        .select(diesel::dsl::sql::<sql_types::BigInt>("coalesce(sum(amount_micros), 0)::bigint"));
    let micros: i64 = sum.first(&mut **tx).await?;
    Ok(Money::usd_micros(micros))
}
