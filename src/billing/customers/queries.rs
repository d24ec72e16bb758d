//! All SQL of `stripe_customers`.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use super::model::CustomerRow;
use crate::{
    base::{
        Result,
        id::{AccountId, StripeCustomerId},
    },
    db::{Conn, Tx, schema::stripe_customers},
};

pub async fn customer_fetch(conn: &mut Conn, account: AccountId) -> Result<Option<CustomerRow>> {
    let row = stripe_customers::table.filter(stripe_customers::account_id.eq(account.uuid()));
    Ok(row.select(CustomerRow::as_select()).first(conn).await.optional()?)
}

/// Does nothing when the account has its row.
pub async fn customer_insert(conn: &mut Conn, row: &CustomerRow) -> Result<()> {
    let insert = diesel::insert_into(stripe_customers::table).values(row).on_conflict(stripe_customers::account_id).do_nothing();
    insert.execute(conn).await?;
    Ok(())
}

/// Gives a row that Stripe has not answered a new name; unless somebody else has, or the answer has come.
pub async fn customer_rename(conn: &mut Conn, old: StripeCustomerId, new: StripeCustomerId, now: DateTime<Utc>) -> Result<()> {
    let unanswered = stripe_customers::table.find(old.uuid()).filter(stripe_customers::customer_id.is_null());
    diesel::update(unanswered).set((stripe_customers::id.eq(new), stripe_customers::created_at.eq(now))).execute(conn).await?;
    Ok(())
}

/// Notes what Stripe calls the customer, unless it is noted.
pub async fn customer_set(conn: &mut Conn, id: StripeCustomerId, customer_id: &str) -> Result<()> {
    let unanswered = stripe_customers::table.find(id.uuid()).filter(stripe_customers::customer_id.is_null());
    diesel::update(unanswered).set(stripe_customers::customer_id.eq(customer_id)).execute(conn).await?;
    Ok(())
}

/// Locks the row of a customer until the transaction ends; whose it is.
pub async fn customer_lock(tx: &mut Tx<'_>, customer_id: &str) -> Result<Option<AccountId>> {
    let row = stripe_customers::table.filter(stripe_customers::customer_id.eq(customer_id));
    Ok(row.select(stripe_customers::account_id).for_update().first(&mut **tx).await.optional()?)
}

/// Locks the row of an account, if it has one, until the transaction ends.
pub async fn account_lock(tx: &mut Tx<'_>, account: AccountId) -> Result<()> {
    let row = stripe_customers::table.filter(stripe_customers::account_id.eq(account.uuid()));
    let _: Option<AccountId> = row.select(stripe_customers::account_id).for_update().first(&mut **tx).await.optional()?;
    Ok(())
}

pub async fn customer_forget(tx: &mut Tx<'_>, account: AccountId, new: StripeCustomerId, now: DateTime<Utc>) -> Result<()> {
    diesel::update(stripe_customers::table.filter(stripe_customers::account_id.eq(account.uuid())))
        .set((stripe_customers::id.eq(new), stripe_customers::customer_id.eq(None::<String>), stripe_customers::created_at.eq(now)))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
