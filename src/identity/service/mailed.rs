//! Confirming an address through a mailed link, and forgetting what has run out.

use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{addresses::KNOWN_FOR, registration::Mailed};
use crate::{
    base::{Error, Result, id::AccountId, secret::Secret, shape::TokenText},
    ctx::Ctx,
    db::Tx,
    identity::{
        caller::Caller,
        letters::{self, Letter},
        model::LinkPurpose,
        queries::{accounts, addresses, mailed, members, sessions},
        token,
    },
};

pub(super) fn bad_token() -> Error {
    Error::invalid("/token", "invalid_token", "The link is unknown, was used, or has run out.")
}

/// Has a link mailed to the caller's own address.
///
/// # Errors
/// The database's own faults.
pub async fn request_confirmation(ctx: &Ctx, caller: &Caller) -> Result<Mailed> {
    let letter = &Letter::ConfirmEmail { link: Uuid::now_v7(), user: caller.user_id };
    ctx.db.tx("confirmation_request", async |tx| letters::enqueue(ctx, tx, letter.clone()).await).await?;
    Ok(Mailed { status: "mailed", detail: "A letter with a link is on its way, unless the address is confirmed already." })
}

/// The mailed link of an address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmEmail {
    /// From the mailed link.
    #[schema(value_type = TokenText)]
    pub token: Secret<String>,
}

/// # Errors
/// `invalid_input` for a token that is unknown, used or has run out.
pub async fn confirm_email(ctx: &Ctx, form: ConfirmEmail) -> Result<()> {
    let sha256 = &token::sha256(form.token.expose());
    let now = ctx.clock.wall_now();
    ctx.db
        .tx("email_confirm", async |tx| {
            let (user, email) = mailed::link_take(tx, LinkPurpose::ConfirmEmail, sha256, now).await?.ok_or_else(bad_token)?;
            if accounts::user_confirm_email(tx, user, &email, now).await? { Ok(()) } else { Err(bad_token()) }
        })
        .await
}

/// Forgets tokens, links and registrations that have run out (wall time).
///
/// # Errors
/// The database's own faults.
pub async fn sweep(ctx: &Ctx) -> Result<()> {
    let now = ctx.clock.wall_now();
    ctx.db
        .tx("identity_sweep", async |tx| {
            sessions::session_sweep(tx, now).await?;
            addresses::address_sweep(tx, now - KNOWN_FOR).await?;
            mailed::mailed_sweep(tx, now).await
        })
        .await
}

/// Writes to whoever looks after an account, once the transaction has committed.
///
/// # Errors
/// The database's own faults.
pub async fn notify(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId, subject: &str, text: &str) -> Result<()> {
    for user in members::notice_readers(tx, account).await? {
        let letter = Letter::Notice { id: Uuid::now_v7(), user, subject: subject.to_owned(), text: text.to_owned() };
        letters::enqueue(ctx, tx, letter).await?;
    }
    Ok(())
}
