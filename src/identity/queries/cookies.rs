//! What browsers that have signed in on the pages send back.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{ExpressionMethods, JoinOnDsl, OptionalExtension, QueryDsl, SelectableHelper};
use diesel_async::RunQueryDsl;

use crate::{
    base::{Result, id::SessionId},
    db::{
        Conn, Tx,
        schema::{accounts, entitlements, session_cookies, sessions},
    },
    identity::model::{ProFact, SessionCaller},
};

pub async fn cookie_insert(tx: &mut Tx<'_>, session: SessionId, sha256: &[u8], now: DateTime<Utc>, valid: TimeDelta) -> Result<()> {
    diesel::insert_into(session_cookies::table)
        .values((
            session_cookies::token_sha256.eq(sha256),
            session_cookies::session_id.eq(session),
            session_cookies::created_at.eq(now),
            session_cookies::expires_at.eq(now + valid),
        ))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The running session of a cookie that has not expired, and its user, whose account is open.
pub async fn cookie_caller(conn: &mut Conn, sha256: &[u8], now: DateTime<Utc>) -> Result<Option<(SessionId, SessionCaller)>> {
    let query = session_cookies::table
        .inner_join(sessions::table.on(sessions::id.eq(session_cookies::session_id)))
        .inner_join(accounts::table.on(accounts::id.eq(sessions::user_id)))
        .left_join(entitlements::table.on(entitlements::account_id.eq(accounts::id)))
        .filter(session_cookies::token_sha256.eq(sha256))
        .filter(session_cookies::expires_at.gt(now))
        .filter(sessions::ended_at.is_null())
        .filter(accounts::closed_at.is_null())
        .select((
            sessions::id,
            (accounts::id, accounts::handle, accounts::is_operator, sessions::last_used_at, Option::<ProFact>::as_select()),
        ));
    Ok(query.first(conn).await.optional()?)
}
