//! Addresses from which users have proved who they are.

use chrono::{DateTime, Utc};
use diesel::{ExpressionMethods, JoinOnDsl, QueryDsl, dsl::exists, sql_types};
use diesel_async::RunQueryDsl;

use crate::{
    base::Result,
    db::{
        Conn, Tx,
        schema::{sign_in_addresses, users},
    },
    identity::email::Email,
};

/// The same work whether the e-mail address is known or not.
pub async fn address_is_known(conn: &mut Conn, email: &Email, hmac: &[u8], since: DateTime<Utc>) -> Result<bool> {
    let found = sign_in_addresses::table
        .inner_join(users::table.on(users::account_id.eq(sign_in_addresses::user_id)))
        .filter(users::email.eq(email.expose()))
        .filter(sign_in_addresses::address_hmac.eq(hmac))
        .filter(sign_in_addresses::last_used_at.ge(since));
    Ok(diesel::select(exists(found)).get_result(conn).await?)
}

/// Of the user who has the e-mail address; nothing when nobody has.
pub async fn address_remember(tx: &mut Tx<'_>, email: &Email, hmac: &[u8], now: DateTime<Utc>) -> Result<()> {
    diesel::sql_query(
        "INSERT INTO sign_in_addresses AS a (user_id, address_hmac, last_used_at) SELECT u.account_id, $2, $3 FROM users u WHERE u.email = $1
         ON CONFLICT (user_id, address_hmac) DO UPDATE SET last_used_at = excluded.last_used_at",
    )
    .bind::<sql_types::Text, _>(email.expose())
    .bind::<sql_types::Binary, _>(hmac)
    .bind::<sql_types::Timestamptz, _>(now)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

pub async fn address_sweep(tx: &mut Tx<'_>, before: DateTime<Utc>) -> Result<()> {
    diesel::delete(sign_in_addresses::table.filter(sign_in_addresses::last_used_at.lt(before))).execute(&mut **tx).await?;
    Ok(())
}
