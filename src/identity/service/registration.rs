//! Registering.
//!
//! Sandbox and test mode make the account at once. In live mode an account begins with its confirmed address: registering writes a row that
//! reserves nothing and answers the same for a known address; the letter, written by a job, differs.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::sessions;
use crate::{
    base::{
        Error, FieldError, Result,
        id::AccountId,
        secret::Secret,
        shape::{HandleText, NameText, TokenText},
    },
    config::Mode,
    ctx::Ctx,
    db::Tx,
    identity::{
        audit::{Act, By, audit},
        email::Email,
        handle::Handle,
        letters::{self, Letter},
        model::{Registration, SignIn},
        names, password,
        queries::{
            accounts::{self, NewAccount},
            mailed,
        },
        token,
    },
};

const REGISTRATION_VALID: TimeDelta = TimeDelta::hours(24);

/// A person who registers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    #[schema(value_type = String, format = "email")]
    pub email: Secret<String>,
    /// 8 to 256 characters.
    #[schema(value_type = String, min_length = 8, max_length = 256)]
    pub password: Secret<String>,
    /// 3 to 39 letters a-z, digits and single hyphens.
    #[schema(value_type = HandleText)]
    pub handle: String,
    /// Default: the handle.
    #[schema(value_type = Option<NameText>)]
    pub display_name: Option<String>,
}

/// What registering leads to.
pub enum Registered {
    SignedIn(Box<SignIn>),
    /// Live mode: a letter is on its way, whoever the address belongs to.
    Mailed(Mailed),
}

/// The answer when a letter has to be read first.
#[derive(Debug, Serialize, ToSchema)]
pub struct Mailed {
    /// Always `mailed`.
    #[schema(pattern = "^mailed$")]
    pub status: &'static str,
    pub detail: &'static str,
}

struct Checked {
    email: Email,
    handle: Handle,
    display_name: String,
}

/// The handle of a new account.
///
/// # Errors
/// `invalid_input` at `/handle` for a bad form; `handle_taken` for a reserved one.
pub(super) fn checked_handle(ctx: &Ctx, text: &str) -> Result<Handle> {
    let handle: Handle = text.parse().map_err(|e| Error::invalid("/handle", "handle", format!("{e}.")))?;
    if handle.is_reserved(&ctx.reserved_handles) {
        return Err(accounts::handle_taken());
    }
    Ok(handle)
}

pub(super) fn new_account_name(name: Option<&str>, handle: &Handle) -> std::result::Result<String, FieldError> {
    name.map_or_else(|| Ok(handle.as_str().to_owned()), |name| names::check(name, "/display_name"))
}

/// All faults of the form at once; that a handle is reserved only when there is no other.
fn check(ctx: &Ctx, form: &Register) -> Result<Checked> {
    let mut faults = Vec::new();
    let email = form.email.expose().parse::<Email>().map_err(|e| faults.push(FieldError::new("/email", "email", format!("{e}."))));
    let handle = form.handle.parse::<Handle>().map_err(|e| faults.push(FieldError::new("/handle", "handle", format!("{e}."))));
    faults.extend(password::check_new(ctx, &form.password, "/password").err());
    if let Some(name) = &form.display_name {
        faults.extend(names::check(name, "/display_name").err());
    }
    let (Ok(email), Ok(handle), true) = (email, handle, faults.is_empty()) else { return Err(Error::invalid_fields(faults)) };
    let display_name = new_account_name(form.display_name.as_deref(), &handle).map_err(|e| Error::invalid_fields(vec![e]))?;
    if handle.is_reserved(&ctx.reserved_handles) {
        return Err(accounts::handle_taken());
    }
    Ok(Checked { email, handle, display_name })
}

/// # Errors
/// `invalid_input`, `handle_taken`; outside live mode `email_taken`.
pub async fn register(ctx: &Ctx, form: Register) -> Result<Registered> {
    let checked = check(ctx, &form)?;
    let hash = password::hash(ctx, &form.password).await?;
    if ctx.config.mode == Mode::Live {
        return register_by_mail(ctx, checked, hash).await.map(Registered::Mailed);
    }
    let (checked, hash) = (&checked, &hash);
    ctx.db
        .tx("user_register", async |tx| {
            let id = AccountId::new();
            let signed_in = open_account(ctx, tx, id, checked, hash, false).await?;
            letters::enqueue(ctx, tx, Letter::ConfirmEmail { link: Uuid::now_v7(), user: id }).await?;
            Ok(Registered::SignedIn(Box::new(signed_in)))
        })
        .await
}

async fn open_account(ctx: &Ctx, tx: &mut Tx<'_>, id: AccountId, checked: &Checked, hash: &str, confirmed: bool) -> Result<SignIn> {
    let now = ctx.clock.wall_now();
    let new = NewAccount { id, is_organization: false, handle: &checked.handle, display_name: &checked.display_name, now };
    let account = accounts::account_insert(tx, new).await?;
    accounts::user_insert(tx, account.id, &checked.email, hash, confirmed.then_some(now)).await?;
    let act = Act {
        by: By::User(account.id),
        account_id: Some(account.id),
        action: "account.register",
        target: account.id_text(),
        details: json!({}),
        at: now,
    };
    audit(tx, act).await?;
    sessions::open(ctx, tx, account.id).await
}

/// Work and answer do not depend on whether the address is known: the row is written either way and the job finds out.
async fn register_by_mail(ctx: &Ctx, checked: Checked, hash: String) -> Result<Mailed> {
    let now = ctx.clock.wall_now();
    let waiting = Registration {
        id: Uuid::now_v7(),
        email: checked.email.expose().to_owned(),
        handle: checked.handle.as_str().to_owned(),
        display_name: checked.display_name,
        password_hash: hash,
        expires_at: now + REGISTRATION_VALID,
    };
    let token = token::mail_token(&ctx.config.keys, waiting.id)?;
    let (waiting, handle, sha256) = (&waiting, &checked.handle, &token::sha256(token.expose()));
    ctx.db
        .tx("registration_create", async |tx| {
            if accounts::handle_is_taken(tx, handle).await? {
                return Err(accounts::handle_taken());
            }
            mailed::registration_insert(tx, waiting, sha256, now).await?;
            letters::enqueue(ctx, tx, Letter::Registration { id: waiting.id }).await
        })
        .await?;
    Ok(Mailed { status: "mailed", detail: "A letter with the next step is on its way to the address." })
}

/// The end of a registration in live mode.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmRegistration {
    /// From the mailed link.
    #[schema(value_type = TokenText)]
    pub token: Secret<String>,
    /// Another handle, when the first one has been taken meanwhile.
    #[schema(value_type = Option<HandleText>)]
    pub handle: Option<String>,
}

/// Makes the account that a mailed link stands for, and signs in.
///
/// # Errors
/// `invalid_input` for a token that is unknown, used or has run out; `handle_taken`: the link can then be used with another handle.
pub async fn confirm_registration(ctx: &Ctx, form: ConfirmRegistration) -> Result<SignIn> {
    let other = form.handle.as_deref().map(|text| checked_handle(ctx, text)).transpose()?;
    let (sha256, other) = (&token::sha256(form.token.expose()), &other);
    ctx.db
        .tx("registration_confirm", async |tx| {
            let found = mailed::registration_lock_by_token(tx, sha256, ctx.clock.wall_now()).await?;
            let waiting = found.ok_or_else(super::mailed::bad_token)?;
            let handle = match other {
                Some(handle) => handle.clone(),
                None => waiting.handle.parse().map_err(Error::internal)?,
            };
            let email: Email = waiting.email.parse().map_err(Error::internal)?;
            let checked = Checked { email, handle, display_name: waiting.display_name };
            let signed_in = open_account(ctx, tx, AccountId::new(), &checked, &waiting.password_hash, true).await?;
            mailed::registration_delete_by_email(tx, &waiting.email).await?;
            Ok(signed_in)
        })
        .await
}
