//! All SQL of disputes.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::model::Dispute;
use crate::{
    base::{
        Result,
        id::{AccountId, DisputeId, TopUpId},
    },
    db::{Conn, Tx, schema::disputes},
};

pub async fn dispute_insert(tx: &mut Tx<'_>, row: &Dispute) -> Result<()> {
    diesel::insert_into(disputes::table).values(row).execute(&mut **tx).await?;
    Ok(())
}

/// Writes the row back; the caller holds the lock of its top-up.
pub async fn dispute_update(tx: &mut Tx<'_>, row: &Dispute) -> Result<()> {
    diesel::update(disputes::table.find(row.id.uuid())).set(row).execute(&mut **tx).await?;
    Ok(())
}

pub async fn dispute_by_stripe_id(conn: &mut Conn, stripe_dispute_id: &str) -> Result<Option<Dispute>> {
    let of_stripe = disputes::table.filter(disputes::stripe_dispute_id.eq(stripe_dispute_id));
    Ok(of_stripe.select(Dispute::as_select()).first(conn).await.optional()?)
}

pub async fn dispute_fetch(conn: &mut Conn, id: DisputeId) -> Result<Option<Dispute>> {
    Ok(disputes::table.find(id.uuid()).select(Dispute::as_select()).first(conn).await.optional()?)
}

pub async fn disputes_of_top_up(conn: &mut Conn, top_up: TopUpId) -> Result<Vec<Dispute>> {
    let of_top_up = disputes::table.filter(disputes::top_up_id.eq(top_up.uuid())).order(disputes::id);
    Ok(of_top_up.select(Dispute::as_select()).load(conn).await?)
}

/// The account's disputes, newest first, older than `before`.
pub async fn dispute_list(
    conn: &mut Conn,
    account: AccountId,
    status: Option<&str>,
    before: Option<DisputeId>,
    limit: i64,
) -> Result<Vec<Dispute>> {
    let mut query = disputes::table.filter(disputes::account_id.eq(account.uuid())).into_boxed();
    if let Some(status) = status {
        query = query.filter(disputes::status.eq(status.to_owned()));
    }
    if let Some(before) = before {
        query = query.filter(disputes::id.lt(before.uuid()));
    }
    Ok(query.order(disputes::id.desc()).limit(limit).select(Dispute::as_select()).load(conn).await?)
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = sql_types::Text)]
    payment_intent_id: String,
}

/// Takes disputes about which Stripe is to be asked by `now`, for as long as `lease`; their payments.
pub async fn disputes_take_due(conn: &mut Conn, now: DateTime<Utc>, lease: TimeDelta, limit: i64) -> Result<Vec<String>> {
    let until = now.checked_add_signed(lease).unwrap_or(now);
    let taken: Vec<Due> = diesel::sql_query(
        "UPDATE disputes d SET ask_at = $1, ask_count = d.ask_count + 1 FROM top_ups t WHERE t.id = d.top_up_id AND d.id IN (
            SELECT id FROM disputes WHERE ask_at <= $2 ORDER BY ask_at LIMIT $3 FOR UPDATE SKIP LOCKED)
         RETURNING t.payment_intent_id",
    )
    .bind::<sql_types::Timestamptz, _>(until)
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::BigInt, _>(limit)
    .load(conn)
    .await?;
    Ok(taken.into_iter().map(|due| due.payment_intent_id).collect())
}
