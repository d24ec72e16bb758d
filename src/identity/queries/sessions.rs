//! Sessions and their refresh tokens. Lock order: the session, then its tokens.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, dsl::exists};
use diesel_async::RunQueryDsl;

use crate::{
    base::{
        Result,
        id::{AccountId, SessionId},
    },
    db::{
        Conn, Tx,
        schema::{refresh_tokens, session_cookies, sessions},
    },
    identity::model::{EndReason, RefreshToken, Session},
};

pub async fn session_insert(tx: &mut Tx<'_>, id: SessionId, user: AccountId, now: DateTime<Utc>) -> Result<()> {
    diesel::insert_into(sessions::table)
        .values((sessions::id.eq(id), sessions::user_id.eq(user), sessions::created_at.eq(now), sessions::last_used_at.eq(now)))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn refresh_token_insert(tx: &mut Tx<'_>, session: SessionId, sha256: &[u8], now: DateTime<Utc>, valid: TimeDelta) -> Result<()> {
    diesel::insert_into(refresh_tokens::table)
        .values((
            refresh_tokens::token_sha256.eq(sha256),
            refresh_tokens::session_id.eq(session),
            refresh_tokens::created_at.eq(now),
            refresh_tokens::expires_at.eq(now + valid),
        ))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn refresh_token_fetch(conn: &mut Conn, sha256: &[u8]) -> Result<Option<RefreshToken>> {
    let query = refresh_tokens::table.filter(refresh_tokens::token_sha256.eq(sha256));
    let columns = (refresh_tokens::session_id, refresh_tokens::expires_at, refresh_tokens::rotated_at);
    Ok(query.select(columns).first(conn).await.optional()?)
}

/// Locks the row: the tokens of a session change one after the other.
pub async fn session_lock(tx: &mut Tx<'_>, id: SessionId) -> Result<Option<Session>> {
    let query = sessions::table.filter(sessions::id.eq(id)).select((sessions::id, sessions::user_id, sessions::end_reason));
    Ok(query.for_update().first(&mut **tx).await.optional()?)
}

/// Marks a token as used. `false`: somebody was faster.
pub async fn refresh_token_rotate(tx: &mut Tx<'_>, sha256: &[u8], now: DateTime<Utc>) -> Result<bool> {
    let unused = refresh_tokens::table.filter(refresh_tokens::token_sha256.eq(sha256)).filter(refresh_tokens::rotated_at.is_null());
    Ok(diesel::update(unused).set(refresh_tokens::rotated_at.eq(now)).execute(&mut **tx).await? == 1)
}

/// Ends a session. `false`: it has ended already, for another reason perhaps.
pub async fn session_end(tx: &mut Tx<'_>, id: SessionId, reason: EndReason, now: DateTime<Utc>) -> Result<bool> {
    let running = sessions::table.filter(sessions::id.eq(id)).filter(sessions::ended_at.is_null());
    let ended = diesel::update(running).set((sessions::ended_at.eq(now), sessions::end_reason.eq(reason.as_str())));
    Ok(ended.execute(&mut **tx).await? == 1)
}

/// Ends a user's sessions, all of them or all but one.
pub async fn session_end_all(
    tx: &mut Tx<'_>,
    user: AccountId,
    but: Option<SessionId>,
    reason: EndReason,
    now: DateTime<Utc>,
) -> Result<usize> {
    let spared = but.unwrap_or(SessionId::from_uuid(uuid::Uuid::nil()));
    let running = sessions::table.filter(sessions::user_id.eq(user)).filter(sessions::ended_at.is_null()).filter(sessions::id.ne(spared));
    let ended = diesel::update(running).set((sessions::ended_at.eq(now), sessions::end_reason.eq(reason.as_str())));
    Ok(ended.execute(&mut **tx).await?)
}

/// Forgets tokens and cookies that nobody can use any more, and ends the sessions that are left with none.
pub async fn session_sweep(tx: &mut Tx<'_>, now: DateTime<Utc>) -> Result<()> {
    diesel::delete(refresh_tokens::table.filter(refresh_tokens::expires_at.le(now))).execute(&mut **tx).await?;
    diesel::delete(session_cookies::table.filter(session_cookies::expires_at.le(now))).execute(&mut **tx).await?;
    let has_token = exists(refresh_tokens::table.filter(refresh_tokens::session_id.eq(sessions::id)));
    let has_cookie = exists(session_cookies::table.filter(session_cookies::session_id.eq(sessions::id)));
    let running = sessions::table.filter(sessions::ended_at.is_null());
    diesel::update(running.filter(diesel::dsl::not(has_token)).filter(diesel::dsl::not(has_cookie)))
        .set((sessions::ended_at.eq(now), sessions::end_reason.eq(EndReason::Expired.as_str())))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
