//! Changing a password, and setting a new one through a mailed link.

use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{mailed::bad_token, registration::Mailed, sessions::verified};
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, account_text},
        secret::Secret,
        shape::TokenText,
    },
    ctx::Ctx,
    db::Tx,
    identity::{
        audit::{Act, By, audit},
        caller::Caller,
        email::Email,
        letters::{self, Letter},
        model::{EndReason, LinkPurpose},
        password,
        queries::{accounts, mailed, sessions},
        token,
    },
};

/// A new password for who knows the old one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePassword {
    #[schema(value_type = String)]
    pub current_password: Secret<String>,
    /// 8 to 256 characters.
    #[schema(value_type = String, min_length = 8, max_length = 256)]
    pub new_password: Secret<String>,
}

/// Changes the caller's password and ends their other sessions.
///
/// # Errors
/// `invalid_credentials` for a wrong current password, `invalid_input` for a bad new one.
pub async fn change_password(ctx: &Ctx, caller: &Caller, form: ChangePassword) -> Result<()> {
    password::check_new(ctx, &form.new_password, "/new_password").map_err(|e| Error::invalid_fields(vec![e]))?;
    let known = accounts::credentials_fetch(&mut *ctx.db.conn().await?, caller.user_id).await?;
    let user = &verified(ctx, known, &form.current_password).await?;
    let hash = &password::hash(ctx, &form.new_password).await?;
    ctx.db
        .tx("password_change", async |tx| {
            if !accounts::user_replace_password(tx, user.account_id, &user.password_hash, hash).await? {
                return Err(Error::new(Code::InvalidState, "The password has just been changed by another request."));
            }
            let reason = EndReason::PasswordChanged;
            sessions::session_end_all(tx, user.account_id, caller.session_id, reason, ctx.clock.wall_now()).await?;
            after_change(ctx, tx, By::Caller(caller), user.account_id, "password.change").await
        })
        .await
}

/// Links that were sent for the old password end, the act is written down, and the person is told.
async fn after_change(ctx: &Ctx, tx: &mut Tx<'_>, by: By<'_>, user: AccountId, action: &'static str) -> Result<()> {
    let at = ctx.clock.wall_now();
    mailed::link_use_up(tx, user, LinkPurpose::ResetPassword, at).await?;
    let act = Act { by, account_id: Some(user), action, target: account_text(user, false), details: json!({}), at };
    audit(tx, act).await?;
    letters::enqueue(ctx, tx, Letter::PasswordChanged { id: Uuid::now_v7(), user }).await
}

/// Somebody who has forgotten a password.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestReset {
    #[schema(value_type = String, format = "email")]
    pub email: Secret<String>,
}

/// Has a link mailed to a known address. The answer and the work are the same for an unknown one: the job then has nobody to write to.
///
/// # Errors
/// `invalid_input` for what is no address.
pub async fn request_reset(ctx: &Ctx, form: RequestReset) -> Result<Mailed> {
    let email: Email = form.email.expose().parse().map_err(|e| Error::invalid("/email", "email", format!("{e}.")))?;
    let email = &email;
    ctx.db
        .tx("password_reset_request", async |tx| {
            let user = accounts::credentials_fetch_by_email(tx, email).await?.map(|user| user.account_id);
            letters::enqueue(ctx, tx, Letter::ResetPassword { link: Uuid::now_v7(), user }).await
        })
        .await?;
    Ok(Mailed { status: "mailed", detail: "If the address has an account, a letter with a link is on its way." })
}

/// A new password for who holds a mailed link.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetPassword {
    /// From the mailed link.
    #[schema(value_type = TokenText)]
    pub token: Secret<String>,
    /// 8 to 256 characters.
    #[schema(value_type = String, min_length = 8, max_length = 256)]
    pub password: Secret<String>,
}

/// Sets a password and ends every session of the user. The link has shown that the address is theirs, so it counts as confirmed.
///
/// # Errors
/// `invalid_input` for a bad password, or a token that is unknown, used or has run out.
pub async fn reset_password(ctx: &Ctx, form: ResetPassword) -> Result<()> {
    password::check_new(ctx, &form.password, "/password").map_err(|e| Error::invalid_fields(vec![e]))?;
    let sha256 = &token::sha256(form.token.expose());
    let now = ctx.clock.wall_now();
    // Looked at first, so that a guess costs no hash; taken below, so that it works once.
    if !mailed::link_is_open(&mut *ctx.db.conn().await?, LinkPurpose::ResetPassword, sha256, now).await? {
        return Err(bad_token());
    }
    let hash = &password::hash(ctx, &form.password).await?;
    ctx.db
        .tx("password_reset", async |tx| {
            let taken = mailed::link_take(tx, LinkPurpose::ResetPassword, sha256, now).await?;
            let (user, email) = taken.ok_or_else(bad_token)?;
            if !accounts::user_confirm_email(tx, user, &email, now).await? {
                return Err(bad_token());
            }
            accounts::user_set_password(tx, user, hash).await?;
            sessions::session_end_all(tx, user, None, EndReason::PasswordReset, now).await?;
            after_change(ctx, tx, By::User(user), user, "password.reset").await
        })
        .await
}
