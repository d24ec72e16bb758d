//! Who calls and for whom: credentials become a [`Caller`].
//!
//! Invariants: nothing but the credentials, the `Rigmark-Account` header and rows of now decide; nothing is cached, so that the end of a
//! session, a key, a membership or an account counts from the next request on.

use super::{
    handle::Handle,
    model::{Account, KeyCaller, ProFact, scope_set},
    queries::{
        callers::{self, KeyRef},
        members,
    },
    scope::{Need, Role, ScopeSet},
    token::{self, KeyKind},
};
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, ApiKeyId, MachineId, SessionId},
    },
    ctx::Ctx,
    db::Conn,
};

/// What the caller came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A person with an access token.
    User,
    ApiKey(ApiKeyId),
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The account the call acts for: the person's own, an organization named by `Rigmark-Account`, or the key's.
    pub account_id: AccountId,
    pub account_handle: String,
    pub is_organization: bool,
    /// The person behind the call: who signed in, or who made the key.
    pub user_id: AccountId,
    pub actor: Actor,
    /// The session of an access token.
    pub session_id: Option<SessionId>,
    /// The person's role in the account: owner of their own.
    pub role: Role,
    /// Whether the person is an operator *and* has signed in; a key never is.
    pub is_operator: bool,
    /// What the credentials and the role allow together.
    pub scopes: ScopeSet,
    /// Rate limits by account are this many times those of a free one.
    pub rate_factor: u32,
}

impl Caller {
    /// A person with an access token, acting for themselves.
    pub(super) fn signed_in(user: AccountId, handle: String, is_operator: bool, session: SessionId) -> Self {
        Self {
            account_id: user,
            account_handle: handle,
            is_organization: false,
            user_id: user,
            actor: Actor::User,
            session_id: Some(session),
            role: Role::Owner,
            is_operator,
            scopes: Role::Owner.scopes(),
            rate_factor: 1,
        }
    }

    /// # Errors
    /// `insufficient_scope` when a key does not have it, `forbidden` when the person's role does not.
    pub fn require(&self, need: Need) -> Result<()> {
        let (allowed, what) = match need {
            Need::Scope(scope) => (self.scopes.allows(scope), scope.as_str()),
            Need::Any => (!self.scopes.is_empty(), "any scope"),
            Need::Session => (self.actor == Actor::User, "a signed-in person"),
        };
        if allowed {
            return Ok(());
        }
        Err(match self.actor {
            Actor::ApiKey(_) => Error::new(Code::InsufficientScope, format!("This needs {what}.")),
            Actor::User => Error::new(Code::Forbidden, format!("The role {} does not allow this; it needs {what}.", self.role.as_str())),
        })
    }

    /// # Errors
    /// `forbidden` for a person who is no operator, `insufficient_scope` for a key: no key ever is one.
    pub fn require_operator(&self) -> Result<()> {
        match (self.is_operator, self.actor) {
            (true, Actor::User) => Ok(()),
            (_, Actor::ApiKey(_)) => Err(Error::new(Code::InsufficientScope, "This is for operators who have signed in.")),
            (false, Actor::User) => Err(Error::new(Code::Forbidden, "This is for operators.")),
        }
    }
}

fn unauthenticated() -> Error {
    Error::new(Code::Unauthenticated, "The access token or the API key is unknown, has expired or was revoked.")
}
fn no_token() -> Error {
    Error::new(Code::Unauthenticated, "The upload token is unknown, has expired or was revoked.")
}
fn no_account() -> Error {
    Error::not_found("account")
}

/// Finds out who calls. `secret` is an access token or an API key; `acting_for` the value of `Rigmark-Account`.
///
/// # Errors
/// `unauthenticated` for credentials that are not good now; `not_found` for an account that is unknown or not the caller's.
pub async fn authenticate(ctx: &Ctx, conn: &mut Conn, secret: &str, acting_for: Option<&str>) -> Result<Caller> {
    if secret.starts_with(KeyKind::Api.prefix()) {
        return Ok(by_key(ctx, conn, KeyKind::Api, secret, acting_for).await?.0);
    }
    let session = token::access_token_session(&ctx.config.keys, secret, ctx.clock.wall_now()).ok_or_else(unauthenticated)?;
    of_session(ctx, conn, session, acting_for).await
}

/// Finds out whose upload token `secret` is, and the machine it is bound to.
///
/// # Errors
/// As [`authenticate`].
pub async fn authenticate_uploader(
    ctx: &Ctx,
    conn: &mut Conn,
    secret: &str,
    acting_for: Option<&str>,
) -> Result<(Caller, Option<MachineId>)> {
    by_key(ctx, conn, KeyKind::Upload, secret, acting_for).await
}

async fn by_key(ctx: &Ctx, conn: &mut Conn, kind: KeyKind, secret: &str, acting_for: Option<&str>) -> Result<(Caller, Option<MachineId>)> {
    let now = ctx.clock.wall_now();
    let found = callers::key_caller(conn, KeyRef::Sha256(kind, &token::sha256(secret)), now).await?;
    let key = found.ok_or_else(|| if kind == KeyKind::Upload { no_token() } else { unauthenticated() })?;
    callers::key_mark_used(conn, &key, now).await?;
    let machine_id = key.machine_id;
    let factor = rate_factor(ctx, conn, key.pro).await?;
    let caller = of_key(key, factor)?;
    match acting_for {
        Some(name) if !is_handle(name, &caller.account_handle) => Err(no_account()),
        _ => Ok((caller, machine_id)),
    }
}

/// Asks again who `caller` is now; long answers (streams) do so every second.
///
/// # Errors
/// `unauthenticated` or `not_found` when the session, the key, the membership or the account has ended.
pub async fn caller_refresh(ctx: &Ctx, conn: &mut Conn, caller: &Caller) -> Result<Caller> {
    match (caller.actor, caller.session_id) {
        (Actor::ApiKey(id), _) => {
            let key = callers::key_caller(conn, KeyRef::Id(id), ctx.clock.wall_now()).await?.ok_or_else(unauthenticated)?;
            let factor = rate_factor(ctx, conn, key.pro).await?;
            of_key(key, factor)
        }
        (Actor::User, Some(session)) => {
            let acting_for = caller.is_organization.then_some(caller.account_handle.as_str());
            of_session(ctx, conn, session, acting_for).await
        }
        (Actor::User, None) => Err(unauthenticated()),
    }
}

async fn of_session(ctx: &Ctx, conn: &mut Conn, session: SessionId, acting_for: Option<&str>) -> Result<Caller> {
    let user = callers::session_caller(conn, session).await?.ok_or_else(unauthenticated)?;
    callers::session_mark_used(conn, session, &user, ctx.clock.wall_now()).await?;
    let mut pro = user.pro;
    let mut caller = Caller::signed_in(user.user_id, user.handle, user.is_operator, session);
    if let Some(name) = acting_for.filter(|name| !is_handle(name, &caller.account_handle)) {
        let handle: Handle = name.parse().map_err(|_| no_account())?;
        let (id, role, of_organization) = callers::organization_of_member(conn, caller.user_id, &handle).await?.ok_or_else(no_account)?;
        pro = of_organization;
        caller = Caller {
            account_id: id,
            account_handle: handle.as_str().to_owned(),
            is_organization: true,
            role,
            scopes: role.scopes(),
            ..caller
        };
    }
    caller.rate_factor = rate_factor(ctx, conn, pro).await?;
    Ok(caller)
}

/// Business time is asked for only where there is something to compare it with.
async fn rate_factor(ctx: &Ctx, conn: &mut Conn, pro: Option<ProFact>) -> Result<u32> {
    let Some(pro) = pro else { return Ok(1) };
    let now = ctx.business_now(conn).await?;
    Ok(if pro.is_on(now) { ctx.config.tunables.pro_rate_factor } else { 1 })
}

/// A person who has signed in, acting for `account`: their own, or an organization they belong to.
///
/// # Errors
/// `not_found` when they do not.
pub async fn caller_for(conn: &mut Conn, caller: &Caller, account: AccountId) -> Result<Caller> {
    if account == caller.account_id {
        return Ok(caller.clone());
    }
    let role = members::member_role(conn, account, caller.user_id).await?.ok_or_else(no_account)?;
    let summary = super::service::account_summary(conn, account).await?;
    Ok(Caller { account_id: account, account_handle: summary.handle, is_organization: true, role, scopes: role.scopes(), ..caller.clone() })
}

fn of_key(key: KeyCaller, rate_factor: u32) -> Result<Caller> {
    let is_organization = key.account_id != key.created_by;
    let role = match key.role.as_deref() {
        None => Role::Owner,
        Some(text) => Role::parse(text).ok_or_else(|| Error::internal("a role that is not known"))?,
    };
    Ok(Caller {
        account_id: key.account_id,
        account_handle: key.account_handle,
        is_organization,
        user_id: key.created_by,
        actor: Actor::ApiKey(key.key_id),
        session_id: None,
        role,
        is_operator: false,
        scopes: scope_set(&key.scopes).intersection(role.scopes()),
        rate_factor,
    })
}

fn is_handle(name: &str, handle: &str) -> bool {
    name.parse::<Handle>().is_ok_and(|name| name.as_str() == handle)
}

/// The caller's role in an organization named in a path. A key belongs to its own account only.
///
/// # Errors
/// `not_found` when the caller does not belong to it.
pub(super) async fn role_in(conn: &mut Conn, caller: &Caller, organization: &Account) -> Result<Role> {
    let role = match caller.actor {
        Actor::ApiKey(_) => (caller.account_id == organization.id).then_some(caller.role),
        Actor::User => members::member_role(conn, organization.id, caller.user_id).await?,
    };
    role.ok_or_else(|| Error::not_found("organization"))
}
