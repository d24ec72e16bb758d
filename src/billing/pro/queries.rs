//! All SQL of `pro_subscriptions` and `pro_invoices`.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::model::{ProInvoiceRow, ProSubscription};
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, ProSubscriptionId},
    },
    db::{
        Conn, OnConstraint, Tx,
        schema::{pro_invoices, pro_subscriptions},
    },
};

pub fn already_subscribed() -> Error {
    let detail = "The account has a subscription that is not over: change that one, or cancel it first.";
    Error::new(Code::AlreadySubscribed, detail)
}

/// False when the request has its subscription already.
///
/// # Errors
/// `already_subscribed` when the account has another that is open.
pub async fn pro_insert(tx: &mut Tx<'_>, row: &ProSubscription) -> Result<bool> {
    let insert = diesel::insert_into(pro_subscriptions::table).values(row).on_conflict(pro_subscriptions::request_key).do_nothing();
    let inserted = insert.execute(&mut **tx).await.on_constraint("pro_subscriptions_one_open", already_subscribed)?;
    Ok(inserted == 1)
}

/// Lets a key go whose subscription was begun before `before`.
pub async fn pro_release_key(tx: &mut Tx<'_>, request_key: &str, before: DateTime<Utc>) -> Result<()> {
    diesel::update(pro_subscriptions::table.filter(pro_subscriptions::request_key.eq(request_key)))
        .filter(pro_subscriptions::created_at.lt(before))
        .set(pro_subscriptions::request_key.eq(None::<String>))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn pro_by_request(conn: &mut Conn, request_key: &str) -> Result<Option<ProSubscription>> {
    let row = pro_subscriptions::table.filter(pro_subscriptions::request_key.eq(request_key));
    Ok(row.select(ProSubscription::as_select()).first(conn).await.optional()?)
}

pub async fn pro_fetch(conn: &mut Conn, id: ProSubscriptionId) -> Result<Option<ProSubscription>> {
    Ok(pro_subscriptions::table.find(id.uuid()).select(ProSubscription::as_select()).first(conn).await.optional()?)
}

pub async fn pro_by_subscription(conn: &mut Conn, subscription_id: &str) -> Result<Option<ProSubscriptionId>> {
    let row = pro_subscriptions::table.filter(pro_subscriptions::subscription_id.eq(subscription_id));
    Ok(row.select(pro_subscriptions::id).first(conn).await.optional()?)
}

/// The account's newest one.
pub async fn pro_latest(conn: &mut Conn, account: AccountId) -> Result<Option<ProSubscription>> {
    let rows = pro_subscriptions::table.filter(pro_subscriptions::account_id.eq(account.uuid())).order(pro_subscriptions::id.desc());
    Ok(rows.select(ProSubscription::as_select()).first(conn).await.optional()?)
}

/// Locks every row of the account that this one belongs to, oldest first: what the account has of Pro follows from all of them.
pub async fn pro_lock_all(tx: &mut Tx<'_>, id: ProSubscriptionId) -> Result<Vec<ProSubscription>> {
    let of = diesel::alias!(pro_subscriptions as of);
    let account = of.filter(of.field(pro_subscriptions::id).eq(id.uuid())).select(of.field(pro_subscriptions::account_id)).single_value();
    let rows = pro_subscriptions::table.filter(pro_subscriptions::account_id.nullable().eq(account)).order(pro_subscriptions::id);
    Ok(rows.select(ProSubscription::as_select()).for_update().load(&mut **tx).await?)
}

/// Writes the row back; the caller holds its lock.
///
/// # Errors
/// `already_subscribed` when it would be a second one that is open.
pub async fn pro_update(tx: &mut Tx<'_>, row: &ProSubscription) -> Result<()> {
    let update = diesel::update(pro_subscriptions::table.find(row.id.uuid())).set(row);
    update.execute(&mut **tx).await.on_constraint("pro_subscriptions_one_open", already_subscribed)?;
    Ok(())
}

/// Takes a number for a change: none is used twice.
pub async fn pro_count_change(conn: &mut Conn, id: ProSubscriptionId) -> Result<i32> {
    let update = diesel::update(pro_subscriptions::table.find(id.uuid()))
        .set(pro_subscriptions::change_count.eq(pro_subscriptions::change_count + 1))
        .returning(pro_subscriptions::change_count);
    Ok(update.get_result(conn).await?)
}

/// False when the invoice was booked before.
pub async fn invoice_insert(tx: &mut Tx<'_>, row: &ProInvoiceRow) -> Result<bool> {
    let insert = diesel::insert_into(pro_invoices::table).values(row).on_conflict_do_nothing();
    Ok(insert.execute(&mut **tx).await? == 1)
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = sql_types::Uuid)]
    id: uuid::Uuid,
}

/// Takes subscriptions about which Stripe is to be asked by `now`, for as long as `lease`: nobody else asks meanwhile, and somebody does afterwards.
pub async fn pro_take_due(conn: &mut Conn, now: DateTime<Utc>, lease: TimeDelta, limit: i64) -> Result<Vec<ProSubscriptionId>> {
    let until = now.checked_add_signed(lease).unwrap_or(now);
    let taken: Vec<Due> = diesel::sql_query(
        "UPDATE pro_subscriptions SET ask_at = $1, ask_count = ask_count + 1 WHERE id IN (
            SELECT id FROM pro_subscriptions WHERE ask_at <= $2 ORDER BY ask_at LIMIT $3 FOR UPDATE SKIP LOCKED)
         RETURNING id",
    )
    .bind::<sql_types::Timestamptz, _>(until)
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::BigInt, _>(limit)
    .load(conn)
    .await?;
    Ok(taken.into_iter().map(|due| ProSubscriptionId::from_uuid(due.id)).collect())
}
