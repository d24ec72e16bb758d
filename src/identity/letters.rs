//! The letters of this domain: what is enqueued, and what stands in them.
//!
//! A job's payload holds neither an address nor a token; that of a notice holds its text, which is about nobody else. The token of a link comes from the link's id (`token::mail_token`), so a job
//! that runs twice sends the same letter twice.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    email::Email,
    model::LinkPurpose,
    queries::{
        accounts, invitations,
        mailed::{self, NewLink},
    },
    token,
};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, InvitationId},
    },
    ctx::Ctx,
    db::{Conn, Tx},
    integrations::mail::{self, Mail},
    jobs::{self, Job},
};

pub(super) const JOB_KIND: &str = "identity_letter";
const CONFIRM_VALID: TimeDelta = TimeDelta::days(7);
const RESET_VALID: TimeDelta = TimeDelta::hours(1);

/// A letter to be written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "letter", rename_all = "snake_case")]
pub(super) enum Letter {
    /// Live mode: the link that makes the account, or a word to the owner of a known address.
    Registration {
        id: Uuid,
    },
    ConfirmEmail {
        link: Uuid,
        user: AccountId,
    },
    /// No user: the address is unknown, and there is nobody to write to.
    ResetPassword {
        link: Uuid,
        user: Option<AccountId>,
    },
    PasswordChanged {
        id: Uuid,
        user: AccountId,
    },
    Invitation {
        id: InvitationId,
    },
    /// Something of a later domain that concerns an account.
    Notice {
        id: Uuid,
        user: AccountId,
        subject: String,
        text: String,
    },
}

/// Enqueues a letter; it is written after the transaction has committed.
pub(super) async fn enqueue(ctx: &Ctx, tx: &mut Tx<'_>, letter: Letter) -> Result<()> {
    let payload = serde_json::to_value(&letter).map_err(Error::internal)?;
    jobs::enqueue(tx, Job { kind: JOB_KIND, payload, dedupe_key: None, run_at: ctx.clock.wall_now() }).await
}

/// Writes a letter, if there is still somebody to write to.
///
/// # Errors
/// The database's or the mail's faults; the job is then tried again.
pub(super) async fn deliver(ctx: &Ctx, letter: Letter) -> Result<()> {
    let mut conn = ctx.db.conn().await?;
    let written = match letter {
        Letter::Registration { id } => registration(ctx, &mut conn, id).await?,
        Letter::ConfirmEmail { link, user } => confirm_email(ctx, &mut conn, link, user).await?,
        Letter::ResetPassword { link, user: Some(user) } => reset_password(ctx, &mut conn, link, user).await?,
        Letter::ResetPassword { user: None, .. } => None,
        Letter::PasswordChanged { id, user } => password_changed(ctx, &mut conn, id, user).await?,
        Letter::Invitation { id } => invitation(ctx, &mut conn, id).await?,
        Letter::Notice { id, user, subject, text } => {
            address(&mut conn, user).await?.map(|(email, _)| (id, Mail { to: email.expose().to_owned(), subject, text }))
        }
    };
    drop(conn);
    match written {
        Some((key, letter)) => mail::deliver(&ctx.config.data_dir, &key.to_string(), &letter).await,
        None => Ok(()),
    }
}

type Written = Option<(Uuid, Mail)>;

/// An address in the pages, with the token where no server's log sees it: after the `#`.
fn link(ctx: &Ctx, page: &str, link: Uuid) -> Result<String> {
    let token = token::mail_token(&ctx.config.keys, link)?;
    Ok(format!("{}/en/{page}#token={}", ctx.public_url, token.expose()))
}

async fn registration(ctx: &Ctx, conn: &mut Conn, id: Uuid) -> Result<Written> {
    let Some(waiting) = mailed::registration_fetch(conn, id).await? else { return Ok(None) };
    let email: Email = waiting.email.parse().map_err(Error::internal)?;
    let (subject, text) = if accounts::credentials_fetch_by_email(conn, &email).await?.is_some() {
        let sign_in = format!("{}/en/sign-in", ctx.public_url);
        let text = format!(
            "Somebody, perhaps you, wanted to register at Rigmark with this address, which has an account already.\n\n\
             Sign in, or set a new password there: {sign_in}\n\nIf it was not you, there is nothing to do."
        );
        ("You have a Rigmark account already", text)
    } else {
        let link = link(ctx, "confirm-registration", waiting.id)?;
        let text = format!(
            "Follow this link within 24 hours to open your Rigmark account @{}:\n\n{link}\n\nIf you did not ask for it, do nothing.",
            waiting.handle
        );
        ("Confirm your e-mail address", text)
    };
    Ok(Some((waiting.id, Mail { to: waiting.email, subject: subject.to_owned(), text })))
}

/// The user's address, unless the account has been closed.
async fn address(conn: &mut Conn, user: AccountId) -> Result<Option<(Email, bool)>> {
    let Some(user) = accounts::user_fetch(conn, user).await? else { return Ok(None) };
    let Some(email) = user.email else { return Ok(None) };
    Ok(Some((email.parse().map_err(Error::internal)?, user.email_confirmed_at.is_some())))
}

async fn make_link(
    ctx: &Ctx,
    conn: &mut Conn,
    id: Uuid,
    purpose: LinkPurpose,
    user: AccountId,
    email: &Email,
    valid: TimeDelta,
) -> Result<()> {
    let token = token::mail_token(&ctx.config.keys, id)?;
    let now = ctx.clock.wall_now();
    let sha256 = token::sha256(token.expose());
    mailed::link_insert(conn, NewLink { id, purpose, user, email, token_sha256: &sha256, now, expires_at: now + valid }).await
}

async fn confirm_email(ctx: &Ctx, conn: &mut Conn, id: Uuid, user: AccountId) -> Result<Written> {
    let Some((email, false)) = address(conn, user).await? else { return Ok(None) };
    make_link(ctx, conn, id, LinkPurpose::ConfirmEmail, user, &email, CONFIRM_VALID).await?;
    let text = format!("Follow this link within 7 days to confirm your e-mail address at Rigmark:\n\n{}", link(ctx, "confirm-email", id)?);
    Ok(Some((id, Mail { to: email.expose().to_owned(), subject: "Confirm your e-mail address".to_owned(), text })))
}

async fn reset_password(ctx: &Ctx, conn: &mut Conn, id: Uuid, user: AccountId) -> Result<Written> {
    let Some((email, _)) = address(conn, user).await? else { return Ok(None) };
    make_link(ctx, conn, id, LinkPurpose::ResetPassword, user, &email, RESET_VALID).await?;
    let text = format!(
        "Follow this link within an hour to set a new password at Rigmark:\n\n{}\n\nIf you did not ask for it, do nothing: your password stays.",
        link(ctx, "reset-password", id)?
    );
    Ok(Some((id, Mail { to: email.expose().to_owned(), subject: "Set a new password".to_owned(), text })))
}

async fn password_changed(ctx: &Ctx, conn: &mut Conn, id: Uuid, user: AccountId) -> Result<Written> {
    let Some((email, _)) = address(conn, user).await? else { return Ok(None) };
    let text =
        format!("The password of your Rigmark account was changed. If it was not you, set a new one now: {}/en/sign-in", ctx.public_url);
    Ok(Some((id, Mail { to: email.expose().to_owned(), subject: "Your password was changed".to_owned(), text })))
}

async fn invitation(ctx: &Ctx, conn: &mut Conn, id: InvitationId) -> Result<Written> {
    let Some((invitation, handle, display_name)) = invitations::invitation_fetch(conn, id).await? else { return Ok(None) };
    let email = match (invitation.user_id, invitation.email) {
        (Some(user), _) => address(conn, user).await?.map(|(email, _)| email),
        (None, Some(email)) => Some(email.parse().map_err(Error::internal)?),
        (None, None) => None,
    };
    let Some(email) = email else { return Ok(None) };
    let text = format!(
        "You are invited to {display_name} (@{handle}) at Rigmark as {}. Sign in, or register with this address, and accept within 14 days: \
         {}/en/organizations/{handle}",
        invitation.role, ctx.public_url
    );
    Ok(Some((id.uuid(), Mail { to: email.expose().to_owned(), subject: format!("Invitation to @{handle}"), text })))
}
