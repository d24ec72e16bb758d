//! What waits for a mailed link: registrations in live mode, confirmations, password resets.

use chrono::{DateTime, Utc};
use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, SelectableHelper};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::{
    base::{Result, id::AccountId},
    db::{
        Conn, Tx,
        schema::{mail_links, registrations},
    },
    identity::{
        email::Email,
        model::{LinkPurpose, Registration},
    },
};

pub async fn registration_insert(tx: &mut Tx<'_>, new: &Registration, token_sha256: &[u8], now: DateTime<Utc>) -> Result<()> {
    diesel::insert_into(registrations::table)
        .values((
            registrations::id.eq(new.id),
            registrations::email.eq(&new.email),
            registrations::handle.eq(&new.handle),
            registrations::display_name.eq(&new.display_name),
            registrations::password_hash.eq(&new.password_hash),
            registrations::token_sha256.eq(token_sha256),
            registrations::created_at.eq(now),
            registrations::expires_at.eq(new.expires_at),
        ))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn registration_fetch(conn: &mut Conn, id: Uuid) -> Result<Option<Registration>> {
    Ok(registrations::table.filter(registrations::id.eq(id)).select(Registration::as_select()).first(conn).await.optional()?)
}

/// Takes a registration that has not run out, held by this transaction.
pub async fn registration_lock_by_token(tx: &mut Tx<'_>, token_sha256: &[u8], now: DateTime<Utc>) -> Result<Option<Registration>> {
    let query = registrations::table.filter(registrations::token_sha256.eq(token_sha256)).filter(registrations::expires_at.gt(now));
    Ok(query.select(Registration::as_select()).for_update().first(&mut **tx).await.optional()?)
}

/// Removes every registration of an address, once one of them has become an account.
pub async fn registration_delete_by_email(tx: &mut Tx<'_>, email: &str) -> Result<()> {
    diesel::delete(registrations::table.filter(registrations::email.eq(email))).execute(&mut **tx).await?;
    Ok(())
}

/// A link to be made, or made already by an earlier run of the same job.
pub struct NewLink<'a> {
    pub id: Uuid,
    pub purpose: LinkPurpose,
    pub user: AccountId,
    pub email: &'a Email,
    pub token_sha256: &'a [u8],
    pub now: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

pub async fn link_insert(conn: &mut Conn, new: NewLink<'_>) -> Result<()> {
    diesel::insert_into(mail_links::table)
        .values((
            mail_links::id.eq(new.id),
            mail_links::purpose.eq(new.purpose.as_str()),
            mail_links::user_id.eq(new.user),
            mail_links::email.eq(new.email.expose()),
            mail_links::token_sha256.eq(new.token_sha256),
            mail_links::created_at.eq(new.now),
            mail_links::expires_at.eq(new.expires_at),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn link_is_open(conn: &mut Conn, purpose: LinkPurpose, token_sha256: &[u8], now: DateTime<Utc>) -> Result<bool> {
    let open = mail_links::table
        .filter(mail_links::token_sha256.eq(token_sha256))
        .filter(mail_links::purpose.eq(purpose.as_str()))
        .filter(mail_links::used_at.is_null())
        .filter(mail_links::expires_at.gt(now));
    Ok(diesel::select(diesel::dsl::exists(open)).get_result(conn).await?)
}

/// Uses an unused link up. Returns whose it is and the address it went to; `None`: unknown, used or run out.
pub async fn link_take(
    tx: &mut Tx<'_>,
    purpose: LinkPurpose,
    token_sha256: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<(AccountId, String)>> {
    let unused = mail_links::table
        .filter(mail_links::token_sha256.eq(token_sha256))
        .filter(mail_links::purpose.eq(purpose.as_str()))
        .filter(mail_links::used_at.is_null())
        .filter(mail_links::expires_at.gt(now));
    let taken = diesel::update(unused).set(mail_links::used_at.eq(now)).returning((mail_links::user_id, mail_links::email));
    Ok(taken.get_result(&mut **tx).await.optional()?)
}

/// Uses up what is left of a user's links of one purpose.
pub async fn link_use_up(tx: &mut Tx<'_>, user: AccountId, purpose: LinkPurpose, now: DateTime<Utc>) -> Result<()> {
    let unused = mail_links::table
        .filter(mail_links::user_id.eq(user))
        .filter(mail_links::purpose.eq(purpose.as_str()))
        .filter(mail_links::used_at.is_null());
    diesel::update(unused).set(mail_links::used_at.eq(now)).execute(&mut **tx).await?;
    Ok(())
}

pub async fn link_delete_of_user(tx: &mut Tx<'_>, user: AccountId) -> Result<()> {
    diesel::delete(mail_links::table.filter(mail_links::user_id.eq(user))).execute(&mut **tx).await?;
    Ok(())
}

/// Forgets what has run out.
pub async fn mailed_sweep(tx: &mut Tx<'_>, now: DateTime<Utc>) -> Result<()> {
    diesel::delete(registrations::table.filter(registrations::expires_at.le(now))).execute(&mut **tx).await?;
    diesel::delete(mail_links::table.filter(mail_links::expires_at.le(now))).execute(&mut **tx).await?;
    Ok(())
}
