//! Signing in on the pages: a session whose only credential is a cookie.
//!
//! The cookie is no refresh token and no access token: nothing of the API takes it, and what the API takes is in no cookie, so that a page of
//! somebody else's can make a browser do nothing there. It expires as a refresh token does, and ends with its session, at once and whatever ends
//! that (signing out, another password, a closed account). Signing in always makes a new one.

use super::sessions::begin;
use crate::{
    base::{Result, id::SessionId, secret::Secret},
    ctx::Ctx,
    db::{Conn, Tx},
    identity::{
        caller::Caller,
        email::Email,
        handle::Handle,
        model::{Credentials, EndReason},
        queries::{accounts, callers, cookies, sessions},
        token,
    },
};

/// What a person typed to say who they are: an e-mail address, or a handle with or without its `@`.
pub struct TypedName {
    known: Option<Credentials>,
    /// What failed tries are counted by: the same for an account's handle and its address.
    pub counted_by: String,
}

/// # Errors
/// The database's own faults; a name that nobody has is no error.
pub async fn typed_name(ctx: &Ctx, typed: &str) -> Result<TypedName> {
    let mut conn = ctx.db.conn().await?;
    if let Ok(email) = typed.parse::<Email>() {
        let known = accounts::credentials_fetch_by_email(&mut conn, &email).await?;
        return Ok(TypedName { known, counted_by: email.expose().to_owned() });
    }
    let found = match typed.parse::<Handle>() {
        Ok(handle) => accounts::credentials_fetch_by_handle(&mut conn, &handle).await?,
        Err(_) => None,
    };
    Ok(match found {
        Some((known, email)) => TypedName { known: Some(known), counted_by: email.unwrap_or_else(|| typed.to_owned()) },
        None => TypedName { known: None, counted_by: typed.to_owned() },
    })
}

/// Begins a session and returns the secret of its cookie; the session that the browser had until now ends.
///
/// # Errors
/// `invalid_credentials`, after the same work whether the name is known or not.
pub async fn sign_in(ctx: &Ctx, name: TypedName, password: &Secret<String>, until_now: Option<SessionId>) -> Result<Secret<String>> {
    let secret = token::cookie();
    let sha256 = token::sha256(secret.expose());
    begin(ctx, name.known, password, async |tx, user| {
        let now = ctx.clock.wall_now();
        let session = SessionId::new();
        sessions::session_insert(tx, session, user, now).await?;
        cookies::cookie_insert(tx, session, &sha256, now, token::REFRESH_VALID).await?;
        match until_now {
            Some(old) => sessions::session_end(tx, old, EndReason::Logout, now).await.map(drop),
            None => Ok(()),
        }
    })
    .await?;
    Ok(secret)
}

/// Who sent this cookie, acting for themselves; `None` when it is good no more.
pub(in super::super) async fn of_cookie(ctx: &Ctx, conn: &mut Conn, secret: &str) -> Result<Option<Caller>> {
    let now = ctx.clock.wall_now();
    let Some((session, user)) = cookies::cookie_caller(conn, &token::sha256(secret), now).await? else { return Ok(None) };
    callers::session_mark_used(conn, session, &user, now).await?;
    Ok(Some(Caller::signed_in(user.user_id, user.handle, user.is_operator, session)))
}

/// Ends the session of a cookie.
///
/// # Errors
/// The database's own faults.
pub async fn sign_out(ctx: &Ctx, session: SessionId) -> Result<()> {
    let end = async |tx: &mut Tx<'_>| sessions::session_end(tx, session, EndReason::Logout, ctx.clock.wall_now()).await.map(drop);
    ctx.db.tx("session_close", end).await
}
