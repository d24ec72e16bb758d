//! All SQL of `payment_methods` and `card_setups`.

use chrono::{DateTime, Utc};
use diesel::{dsl::exists, prelude::*, query_dsl::methods, upsert::excluded};
use diesel_async::RunQueryDsl;

use super::model::{CardSetup, PaymentMethod};
use crate::{
    base::{
        Result,
        id::{AccountId, CardSetupId},
    },
    db::{
        Conn, Tx,
        schema::{card_setups, payment_methods},
    },
};

pub async fn setup_insert(conn: &mut Conn, row: &CardSetup) -> Result<()> {
    diesel::insert_into(card_setups::table).values(row).execute(conn).await?;
    Ok(())
}

pub async fn setup_fetch(conn: &mut Conn, id: CardSetupId) -> Result<Option<CardSetup>> {
    Ok(card_setups::table.find(id.uuid()).select(CardSetup::as_select()).first(conn).await.optional()?)
}

/// Locks the row until the transaction ends.
pub async fn setup_lock(tx: &mut Tx<'_>, id: CardSetupId) -> Result<Option<CardSetup>> {
    Ok(card_setups::table.find(id.uuid()).select(CardSetup::as_select()).for_update().first(&mut **tx).await.optional()?)
}

/// Writes the row back; the caller holds its lock.
pub async fn setup_update(tx: &mut Tx<'_>, row: &CardSetup) -> Result<()> {
    diesel::update(card_setups::table.find(row.id.uuid())).set(row).execute(&mut **tx).await?;
    Ok(())
}

/// Writes what was seen of a card; an earlier view, or one of a removed card, changes nothing. Returns whether something was written.
pub async fn method_upsert(tx: &mut Tx<'_>, row: &PaymentMethod) -> Result<bool> {
    let upsert = diesel::insert_into(payment_methods::table).values(row).on_conflict(payment_methods::id).do_update().set((
        payment_methods::brand.eq(excluded(payment_methods::brand)),
        payment_methods::last4.eq(excluded(payment_methods::last4)),
        payment_methods::expires_month.eq(excluded(payment_methods::expires_month)),
        payment_methods::expires_year.eq(excluded(payment_methods::expires_year)),
        payment_methods::observed_at.eq(excluded(payment_methods::observed_at)),
    ));
    let is_later = payment_methods::account_id
        .eq(row.account_id.uuid())
        .and(payment_methods::removed_at.is_null())
        .and(payment_methods::observed_at.lt(excluded(payment_methods::observed_at)));
    Ok(methods::FilterDsl::filter(upsert, is_later).execute(&mut **tx).await? == 1)
}

/// Makes the card the default where the account has none.
pub async fn method_default_if_none(tx: &mut Tx<'_>, account: AccountId, id: &str) -> Result<()> {
    let others = diesel::alias!(payment_methods as others);
    let has_default =
        others.filter(others.field(payment_methods::account_id).eq(account.uuid())).filter(others.field(payment_methods::is_default));
    diesel::update(payment_methods::table.find(id))
        .filter(payment_methods::removed_at.is_null())
        .filter(diesel::dsl::not(exists(has_default)))
        .set(payment_methods::is_default.eq(true))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn method_fetch(conn: &mut Conn, id: &str) -> Result<Option<PaymentMethod>> {
    Ok(payment_methods::table.find(id).select(PaymentMethod::as_select()).first(conn).await.optional()?)
}

/// The account's default, if it has one.
pub async fn method_default(conn: &mut Conn, account: AccountId) -> Result<Option<PaymentMethod>> {
    let row = payment_methods::table.filter(payment_methods::account_id.eq(account.uuid())).filter(payment_methods::is_default);
    Ok(row.select(PaymentMethod::as_select()).first(conn).await.optional()?)
}

/// Locks every card of the account, so that of two that change the default one waits.
pub async fn methods_lock(tx: &mut Tx<'_>, account: AccountId) -> Result<Vec<PaymentMethod>> {
    let rows = payment_methods::table.filter(payment_methods::account_id.eq(account.uuid())).filter(payment_methods::removed_at.is_null());
    Ok(rows.order(payment_methods::id).select(PaymentMethod::as_select()).for_update().load(&mut **tx).await?)
}

/// Locks one card.
pub async fn method_lock(tx: &mut Tx<'_>, id: &str) -> Result<Option<PaymentMethod>> {
    Ok(payment_methods::table.find(id).select(PaymentMethod::as_select()).for_update().first(&mut **tx).await.optional()?)
}

/// Makes this one the default of its account, whose cards the caller has locked.
pub async fn method_set_default(tx: &mut Tx<'_>, account: AccountId, id: &str) -> Result<()> {
    let of_account = payment_methods::table.filter(payment_methods::account_id.eq(account.uuid()));
    diesel::update(of_account.filter(payment_methods::is_default)).set(payment_methods::is_default.eq(false)).execute(&mut **tx).await?;
    diesel::update(payment_methods::table.find(id)).set(payment_methods::is_default.eq(true)).execute(&mut **tx).await?;
    Ok(())
}

pub async fn method_remove(tx: &mut Tx<'_>, id: &str, now: DateTime<Utc>) -> Result<()> {
    diesel::update(payment_methods::table.find(id))
        .set((payment_methods::removed_at.eq(now), payment_methods::is_default.eq(false)))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The account's cards, the latest saved first, after the one at `after`.
pub async fn method_list(
    conn: &mut Conn,
    account: AccountId,
    after: Option<(DateTime<Utc>, String)>,
    limit: i64,
) -> Result<Vec<PaymentMethod>> {
    let mut query = payment_methods::table
        .filter(payment_methods::account_id.eq(account.uuid()))
        .filter(payment_methods::removed_at.is_null())
        .into_boxed();
    if let Some((at, id)) = after {
        let at_once = payment_methods::created_at.eq(at).and(payment_methods::id.lt(id));
        query = query.filter(payment_methods::created_at.lt(at).or(at_once));
    }
    let query = query.order((payment_methods::created_at.desc(), payment_methods::id.desc())).limit(limit);
    Ok(query.select(PaymentMethod::as_select()).load(conn).await?)
}
