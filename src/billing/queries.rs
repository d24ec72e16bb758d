//! All SQL of billing's tables.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::model::{StripeEventRow, TopUp};
use crate::{
    base::{
        Result,
        id::{AccountId, TopUpId},
    },
    db::{
        Conn, Tx,
        schema::{stripe_events, top_ups},
    },
};

/// False when the request has its top-up already.
pub async fn top_up_insert(tx: &mut Tx<'_>, row: &TopUp) -> Result<bool> {
    let insert = diesel::insert_into(top_ups::table).values(row).on_conflict(top_ups::request_key).do_nothing();
    Ok(insert.execute(&mut **tx).await? == 1)
}

/// Lets a key go whose top-up is over and was begun before `before`.
pub async fn top_up_release_key(tx: &mut Tx<'_>, request_key: &str, before: DateTime<Utc>) -> Result<()> {
    diesel::update(top_ups::table.filter(top_ups::request_key.eq(request_key)))
        .filter(top_ups::created_at.lt(before))
        .filter(top_ups::settled_at.is_not_null())
        .set(top_ups::request_key.eq(None::<String>))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn top_up_by_request(conn: &mut Conn, request_key: &str) -> Result<Option<TopUp>> {
    Ok(top_ups::table.filter(top_ups::request_key.eq(request_key)).select(TopUp::as_select()).first(conn).await.optional()?)
}

pub async fn top_up_fetch(conn: &mut Conn, id: TopUpId) -> Result<Option<TopUp>> {
    Ok(top_ups::table.find(id.uuid()).select(TopUp::as_select()).first(conn).await.optional()?)
}

/// Locks the row until the transaction ends: every change of a top-up starts here.
pub async fn top_up_lock(tx: &mut Tx<'_>, id: TopUpId) -> Result<Option<TopUp>> {
    Ok(top_ups::table.find(id.uuid()).select(TopUp::as_select()).for_update().first(&mut **tx).await.optional()?)
}

/// Writes the row back; the caller holds its lock.
pub async fn top_up_update(tx: &mut Tx<'_>, row: &TopUp) -> Result<()> {
    diesel::update(top_ups::table.find(row.id.uuid())).set(row).execute(&mut **tx).await?;
    Ok(())
}

/// The account's top-ups, newest first, older than `before`.
pub async fn top_up_list(
    conn: &mut Conn,
    account: AccountId,
    status: Option<&str>,
    before: Option<TopUpId>,
    limit: i64,
) -> Result<Vec<TopUp>> {
    let mut query = top_ups::table.filter(top_ups::account_id.eq(account.uuid())).into_boxed();
    if let Some(status) = status {
        query = query.filter(top_ups::status.eq(status.to_owned()));
    }
    if let Some(before) = before {
        query = query.filter(top_ups::id.lt(before.uuid()));
    }
    Ok(query.order(top_ups::id.desc()).limit(limit).select(TopUp::as_select()).load(conn).await?)
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = sql_types::Uuid)]
    id: uuid::Uuid,
}

/// Takes top-ups about which Stripe is to be asked by `now`, for as long as `lease`: nobody else asks meanwhile, and somebody does afterwards.
pub async fn top_ups_take_due(conn: &mut Conn, now: DateTime<Utc>, lease: TimeDelta, limit: i64) -> Result<Vec<TopUpId>> {
    let until = now.checked_add_signed(lease).unwrap_or(now);
    let taken: Vec<Due> = diesel::sql_query(
        "UPDATE top_ups SET ask_at = $1, ask_count = ask_count + 1 WHERE id IN (
            SELECT id FROM top_ups WHERE ask_at <= $2 ORDER BY ask_at LIMIT $3 FOR UPDATE SKIP LOCKED)
         RETURNING id",
    )
    .bind::<sql_types::Timestamptz, _>(until)
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::BigInt, _>(limit)
    .load(conn)
    .await?;
    Ok(taken.into_iter().map(|due| TopUpId::from_uuid(due.id)).collect())
}

pub async fn event_is_known(conn: &mut Conn, id: &str) -> Result<bool> {
    Ok(diesel::select(diesel::dsl::exists(stripe_events::table.find(id))).get_result(conn).await?)
}

/// False when the event was taken in before. Waits for another that is taking it in.
pub async fn event_insert(tx: &mut Tx<'_>, row: &StripeEventRow<'_>) -> Result<bool> {
    let insert = diesel::insert_into(stripe_events::table).values(row).on_conflict_do_nothing();
    Ok(insert.execute(&mut **tx).await? == 1)
}

/// What came of an event that this transaction has inserted.
pub async fn event_set_outcome(tx: &mut Tx<'_>, id: &str, outcome: &str) -> Result<()> {
    diesel::update(stripe_events::table.find(id)).set(stripe_events::outcome.eq(outcome)).execute(&mut **tx).await?;
    Ok(())
}
