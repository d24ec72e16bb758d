//! The toolkit's own SQL: idempotency keys, and whether the database answers.

use chrono::{DateTime, Utc};
use diesel::{ExpressionMethods, Insertable, OptionalExtension, QueryDsl, Queryable, Selectable, SelectableHelper, prelude::AsChangeset};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::{
    base::{Result, id::AccountId},
    db::{
        Conn, KeptDsl,
        schema::idempotency_keys::{self, dsl},
    },
};

/// What a key is unique by.
#[derive(Debug, Clone)]
pub(super) struct KeyName<'a> {
    pub account_id: AccountId,
    pub route: &'a str,
    pub key: &'a str,
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = idempotency_keys)]
pub(super) struct KeyRow {
    pub body_sha256: Vec<u8>,
    pub lease_until: DateTime<Utc>,
    pub status: Option<i16>,
    pub response: Option<String>,
}

#[derive(Insertable)]
#[diesel(table_name = idempotency_keys)]
pub(super) struct NewKey<'a> {
    pub account_id: AccountId,
    pub route: &'a str,
    pub key: &'a str,
    pub body_sha256: &'a [u8],
    pub lease_id: Uuid,
    pub lease_until: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

#[derive(AsChangeset)]
#[diesel(table_name = idempotency_keys)]
pub(super) struct KeyAnswer<'a> {
    pub state: &'static str,
    pub status: i16,
    pub response: &'a str,
}

/// True when there was no such key.
pub(super) async fn key_insert(conn: &mut Conn, new: &NewKey<'_>) -> Result<bool> {
    let inserted = diesel::insert_into(dsl::idempotency_keys).values(new).on_conflict_do_nothing().kept().execute(conn).await?;
    Ok(inserted == 1)
}

/// The row, locked until the transaction ends.
pub(super) async fn key_fetch_locked(conn: &mut Conn, name: &KeyName<'_>) -> Result<Option<KeyRow>> {
    let row = dsl::idempotency_keys
        .filter(dsl::account_id.eq(name.account_id))
        .filter(dsl::route.eq(name.route))
        .filter(dsl::key.eq(name.key))
        .select(KeyRow::as_select())
        .for_update()
        .first(conn)
        .await
        .optional()?;
    Ok(row)
}

/// Hands a running key, whose row the caller has locked, to a new attempt.
pub(super) async fn key_take_over(conn: &mut Conn, name: &KeyName<'_>, lease_id: Uuid, lease_until: DateTime<Utc>) -> Result<()> {
    let row = dsl::idempotency_keys
        .filter(dsl::account_id.eq(name.account_id))
        .filter(dsl::route.eq(name.route))
        .filter(dsl::key.eq(name.key))
        .filter(dsl::state.eq("running"));
    diesel::update(row).set((dsl::lease_id.eq(lease_id), dsl::lease_until.eq(lease_until))).kept().execute(conn).await?;
    Ok(())
}

/// False when the lease is no longer the caller's.
pub(super) async fn key_complete(conn: &mut Conn, name: &KeyName<'_>, lease_id: Uuid, answer: &KeyAnswer<'_>) -> Result<bool> {
    let row = dsl::idempotency_keys
        .filter(dsl::account_id.eq(name.account_id))
        .filter(dsl::route.eq(name.route))
        .filter(dsl::key.eq(name.key))
        .filter(dsl::lease_id.eq(lease_id))
        .filter(dsl::state.eq("running"));
    Ok(diesel::update(row).set(answer).kept().execute(conn).await? == 1)
}

/// Forgets a key that the caller still holds.
pub(super) async fn key_release(conn: &mut Conn, name: &KeyName<'_>, lease_id: Uuid) -> Result<()> {
    let row = dsl::idempotency_keys
        .filter(dsl::account_id.eq(name.account_id))
        .filter(dsl::route.eq(name.route))
        .filter(dsl::key.eq(name.key))
        .filter(dsl::lease_id.eq(lease_id))
        .filter(dsl::state.eq("running"));
    diesel::delete(row).execute(conn).await?;
    Ok(())
}

pub(super) async fn keys_delete_before(conn: &mut Conn, created_before: DateTime<Utc>) -> Result<usize> {
    Ok(diesel::delete(dsl::idempotency_keys.filter(dsl::created_at.lt(created_before))).execute(conn).await?)
}

pub(super) async fn ping(conn: &mut Conn) -> Result<()> {
    diesel::sql_query("SELECT 1").execute(conn).await?;
    Ok(())
}
