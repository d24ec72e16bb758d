//! Signing in, staying signed in, signing out.

use serde::Deserialize;
use utoipa::ToSchema;

use super::accounts::signed_in_account;
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, SessionId},
        secret::Secret,
        shape::TokenText,
    },
    ctx::Ctx,
    db::Tx,
    identity::{
        caller::Caller,
        email::Email,
        model::{Credentials, EndReason, SignIn},
        password,
        queries::{accounts, sessions},
        token,
    },
};

/// Begins a session. The whole answer is made in the transaction, so that what another request does to the session afterwards cannot turn a
/// success into an error.
pub(super) async fn open(ctx: &Ctx, tx: &mut Tx<'_>, user: AccountId) -> Result<SignIn> {
    let session = SessionId::new();
    sessions::session_insert(tx, session, user, ctx.clock.wall_now()).await?;
    hand_out(ctx, tx, user, session).await
}

/// A new pair of tokens for a session.
async fn hand_out(ctx: &Ctx, tx: &mut Tx<'_>, user: AccountId, session: SessionId) -> Result<SignIn> {
    let now = ctx.clock.wall_now();
    let refresh_token = token::refresh_token();
    sessions::refresh_token_insert(tx, session, &token::sha256(refresh_token.expose()), now, token::REFRESH_VALID).await?;
    let access_token = Secret::new(token::access_token(&ctx.config.keys, user, session, now)?);
    let account = signed_in_account(ctx, tx, user, session).await?;
    Ok(SignIn { account, access_token, refresh_token, expires_in: token::ACCESS_SECONDS })
}

/// A person who signs in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    #[schema(value_type = String, format = "email")]
    pub email: Secret<String>,
    #[schema(value_type = String)]
    pub password: Secret<String>,
}

/// # Errors
/// `invalid_credentials`, after the same work whether the address is known or not.
pub async fn login(ctx: &Ctx, form: Login) -> Result<SignIn> {
    let known = match form.email.expose().parse::<Email>() {
        Ok(email) => accounts::credentials_fetch_by_email(&mut *ctx.db.conn().await?, &email).await?,
        Err(_) => None,
    };
    begin(ctx, known, &form.password, async |tx, user| open(ctx, tx, user).await).await
}

/// Proves the password, then does `open` for the user in the transaction that begins the session.
///
/// # Errors
/// `invalid_credentials`, after the same work whether the user is known or not.
pub(super) async fn begin<T>(
    ctx: &Ctx,
    known: Option<Credentials>,
    password: &Secret<String>,
    open: impl AsyncFn(&mut Tx<'_>, AccountId) -> Result<T>,
) -> Result<T> {
    let user = verified(ctx, known, password).await?;
    let renewed = if password::is_outdated(ctx, &user.password_hash) { Some(password::hash(ctx, password).await?) } else { None };
    let (user, renewed) = (&user, &renewed);
    ctx.db
        .tx("session_open", async |tx| {
            let unchanged = match renewed {
                Some(hash) => accounts::user_replace_password(tx, user.account_id, &user.password_hash, hash).await?,
                None => accounts::user_hold_password(tx, user.account_id, &user.password_hash).await?,
            };
            if unchanged { open(tx, user.account_id).await } else { Err(wrong_credentials()) }
        })
        .await
}

/// The user whose password this is.
///
/// # Errors
/// `invalid_credentials`.
pub(super) async fn verified(ctx: &Ctx, known: Option<Credentials>, password: &Secret<String>) -> Result<Credentials> {
    let stored = known.as_ref().map(|user| user.password_hash.clone());
    match (password::verify(ctx, password, stored).await?, known) {
        (true, Some(user)) => Ok(user),
        _ => Err(wrong_credentials()),
    }
}

fn wrong_credentials() -> Error {
    Error::new(Code::InvalidCredentials, "The e-mail address or the password is wrong.")
}

/// A refresh token to be exchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    #[schema(value_type = TokenText)]
    pub refresh_token: Secret<String>,
}

enum Refreshed {
    SignedIn(Box<SignIn>),
    Reused,
    Unknown,
}

/// Exchanges a refresh token for a new pair. A token works once: seeing it again ends the session, since one of the two who showed it is not
/// the one it was given to. There is no time of grace; of two exchanges at once one succeeds, and the session has ended.
///
/// # Errors
/// `refresh_token_reused`, then and ever after for the session; `unauthenticated` for a token that is unknown or whose session has ended.
pub async fn refresh(ctx: &Ctx, form: Refresh) -> Result<SignIn> {
    let sha256 = &token::sha256(form.refresh_token.expose());
    // The end of a family must be committed, so it is an outcome here and an error only afterwards.
    let outcome = ctx.db.tx("session_refresh", async |tx| exchange(ctx, tx, sha256).await).await?;
    match outcome {
        Refreshed::SignedIn(signed_in) => Ok(*signed_in),
        Refreshed::Reused => {
            Err(Error::new(Code::RefreshTokenReused, "The refresh token was used before; the session has ended. Sign in."))
        }
        Refreshed::Unknown => Err(Error::new(Code::Unauthenticated, "The refresh token is unknown or has expired. Sign in.")),
    }
}

async fn exchange(ctx: &Ctx, tx: &mut Tx<'_>, sha256: &[u8]) -> Result<Refreshed> {
    let now = ctx.clock.wall_now();
    let Some(seen) = sessions::refresh_token_fetch(tx, sha256).await? else { return Ok(Refreshed::Unknown) };
    let Some(session) = sessions::session_lock(tx, seen.session_id).await? else { return Ok(Refreshed::Unknown) };
    if let Some(reason) = session.end_reason {
        let reused = reason == EndReason::RefreshTokenReused.as_str();
        return Ok(if reused { Refreshed::Reused } else { Refreshed::Unknown });
    }
    if seen.rotated_at.is_none() && seen.expires_at <= now {
        return Ok(Refreshed::Unknown);
    }
    // Read before the lock, `rotated_at` may be old; the update says what is.
    if !sessions::refresh_token_rotate(tx, sha256, now).await? {
        sessions::session_end(tx, session.id, EndReason::RefreshTokenReused, now).await?;
        tracing::warn!(target: "audit", session = %session.id, "a refresh token was used twice");
        return Ok(Refreshed::Reused);
    }
    let signed_in = hand_out(ctx, tx, session.user_id, session.id).await?;
    Ok(Refreshed::SignedIn(Box::new(signed_in)))
}

/// Which session to end, when the access token has expired.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Logout {
    #[schema(value_type = Option<TokenText>)]
    pub refresh_token: Option<Secret<String>>,
}

/// Ends the caller's session and the one of the refresh token. Ending what has ended is no error.
///
/// # Errors
/// `unauthenticated` with neither a session's access token nor a known refresh token.
pub async fn logout(ctx: &Ctx, caller: Option<&Caller>, form: Logout) -> Result<()> {
    let sha256 = &form.refresh_token.map(|token| token::sha256(token.expose()));
    let own = caller.and_then(|caller| caller.session_id);
    let known = ctx
        .db
        .tx("session_close", async |tx| {
            let named = match sha256 {
                Some(sha256) => sessions::refresh_token_fetch(tx, sha256).await?.map(|token| token.session_id),
                None => None,
            };
            for session in own.iter().chain(&named) {
                sessions::session_end(tx, *session, EndReason::Logout, ctx.clock.wall_now()).await?;
            }
            Ok(own.is_some() || named.is_some())
        })
        .await?;
    if known { Ok(()) } else { Err(Error::new(Code::Unauthenticated, "Send the access token or the refresh token of the session.")) }
}
