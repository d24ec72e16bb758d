//! All SQL of refunds, and finding a top-up by its payment.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::{super::model::TopUp, model::Refund};
use crate::{
    base::{
        Result,
        id::{AccountId, RefundId, TopUpId},
    },
    db::{
        Conn, Tx,
        schema::{refunds, stripe_scans, top_ups},
    },
};

/// Locks the top-up that this PaymentIntent has paid.
pub async fn top_up_lock_by_payment(tx: &mut Tx<'_>, payment_id: &str) -> Result<Option<TopUp>> {
    let of_payment = top_ups::table.filter(top_ups::payment_intent_id.eq(payment_id));
    Ok(of_payment.select(TopUp::as_select()).for_update().first(&mut **tx).await.optional()?)
}

/// False when the request has its refund already.
pub async fn refund_insert(tx: &mut Tx<'_>, row: &Refund) -> Result<bool> {
    let insert = diesel::insert_into(refunds::table).values(row).on_conflict(refunds::request_key).do_nothing();
    Ok(insert.execute(&mut **tx).await? == 1)
}

/// Lets a key go whose refund is over and was begun before `before`.
pub async fn refund_release_key(tx: &mut Tx<'_>, request_key: &str, before: DateTime<Utc>) -> Result<()> {
    diesel::update(refunds::table.filter(refunds::request_key.eq(request_key)))
        .filter(refunds::created_at.lt(before))
        .filter(refunds::settled_at.is_not_null())
        .set(refunds::request_key.eq(None::<String>))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn refund_by_request(conn: &mut Conn, request_key: &str) -> Result<Option<Refund>> {
    Ok(refunds::table.filter(refunds::request_key.eq(request_key)).select(Refund::as_select()).first(conn).await.optional()?)
}

pub async fn refund_fetch(conn: &mut Conn, id: RefundId) -> Result<Option<Refund>> {
    Ok(refunds::table.find(id.uuid()).select(Refund::as_select()).first(conn).await.optional()?)
}

/// The refunds of a top-up, in the order in which they became known. The caller holds the top-up's lock, or only looks.
pub async fn refunds_of_top_up(conn: &mut Conn, top_up: TopUpId) -> Result<Vec<Refund>> {
    let of_top_up = refunds::table.filter(refunds::top_up_id.eq(top_up.uuid())).order(refunds::id);
    Ok(of_top_up.select(Refund::as_select()).load(conn).await?)
}

/// Writes the row back; the caller holds the lock of its top-up.
pub async fn refund_update(tx: &mut Tx<'_>, row: &Refund) -> Result<()> {
    diesel::update(refunds::table.find(row.id.uuid())).set(row).execute(&mut **tx).await?;
    Ok(())
}

/// The account's refunds, newest first, older than `before`.
pub async fn refund_list(
    conn: &mut Conn,
    account: AccountId,
    status: Option<&str>,
    top_up: Option<TopUpId>,
    before: Option<RefundId>,
    limit: i64,
) -> Result<Vec<Refund>> {
    let mut query = refunds::table.filter(refunds::account_id.eq(account.uuid())).into_boxed();
    if let Some(status) = status {
        query = query.filter(refunds::status.eq(status.to_owned()));
    }
    if let Some(top_up) = top_up {
        query = query.filter(refunds::top_up_id.eq(top_up.uuid()));
    }
    if let Some(before) = before {
        query = query.filter(refunds::id.lt(before.uuid()));
    }
    Ok(query.order(refunds::id.desc()).limit(limit).select(Refund::as_select()).load(conn).await?)
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = sql_types::Uuid)]
    id: uuid::Uuid,
}

/// Takes refunds about which Stripe is to be asked by `now`, for as long as `lease`: nobody else asks meanwhile, and somebody does afterwards.
pub async fn refunds_take_due(conn: &mut Conn, now: DateTime<Utc>, lease: TimeDelta, limit: i64) -> Result<Vec<RefundId>> {
    let until = now.checked_add_signed(lease).unwrap_or(now);
    let taken: Vec<Due> = diesel::sql_query(
        "UPDATE refunds SET ask_at = $1, ask_count = ask_count + 1 WHERE id IN (
            SELECT id FROM refunds WHERE ask_at <= $2 ORDER BY ask_at LIMIT $3 FOR UPDATE SKIP LOCKED)
         RETURNING id",
    )
    .bind::<sql_types::Timestamptz, _>(until)
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::BigInt, _>(limit)
    .load(conn)
    .await?;
    Ok(taken.into_iter().map(|due| RefundId::from_uuid(due.id)).collect())
}

#[derive(QueryableByName)]
struct Through {
    #[diesel(sql_type = sql_types::Timestamptz)]
    through: DateTime<Utc>,
}

/// Takes the reading of one of Stripe's lists when it is due, and puts the next one off to `next`. Returns through when the list was read;
/// the first time that is `first`.
pub async fn scan_take(
    conn: &mut Conn,
    kind: &str,
    now: DateTime<Utc>,
    next: DateTime<Utc>,
    first: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>> {
    let taken: Option<Through> = diesel::sql_query(
        "INSERT INTO stripe_scans (kind, through, due_at) VALUES ($1, $4, $3)
         ON CONFLICT (kind) DO UPDATE SET due_at = excluded.due_at WHERE stripe_scans.due_at <= $2 RETURNING through",
    )
    .bind::<sql_types::Text, _>(kind)
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::Timestamptz, _>(next)
    .bind::<sql_types::Timestamptz, _>(first)
    .get_result(conn)
    .await
    .optional()?;
    Ok(taken.map(|row| row.through))
}

pub async fn scan_finish(conn: &mut Conn, kind: &str, through: DateTime<Utc>) -> Result<()> {
    diesel::update(stripe_scans::table.find(kind)).set(stripe_scans::through.eq(through)).execute(conn).await?;
    Ok(())
}
