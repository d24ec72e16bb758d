//! Who is calling: one indexed query for each request, on rows of now, so that an end of a session, a key or a membership is an end at once.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, OptionalExtension, QueryDsl, SelectableHelper,
};
use diesel_async::RunQueryDsl;

use crate::{
    base::{
        Result,
        id::{AccountId, ApiKeyId, SessionId},
    },
    db::{
        Conn, KeptDsl,
        schema::{accounts, api_keys, entitlements, memberships, sessions},
    },
    identity::{
        handle::Handle,
        model::{KeyCaller, ProFact, SessionCaller},
        scope::Role,
        token::KeyKind,
    },
};

/// Marks of use are at most this old.
const USE_MARK: TimeDelta = TimeDelta::minutes(1);

/// How a key is looked up.
#[derive(Clone, Copy)]
pub enum KeyRef<'a> {
    Sha256(KeyKind, &'a [u8]),
    Id(ApiKeyId),
}

/// The user of a running session of an open account.
pub async fn session_caller(conn: &mut Conn, id: SessionId) -> Result<Option<SessionCaller>> {
    let query = sessions::table
        .inner_join(accounts::table.on(accounts::id.eq(sessions::user_id)))
        .left_join(entitlements::table.on(entitlements::account_id.eq(accounts::id)))
        .filter(sessions::id.eq(id))
        .filter(sessions::ended_at.is_null())
        .filter(accounts::closed_at.is_null())
        .select((accounts::id, accounts::handle, accounts::is_operator, sessions::last_used_at, Option::<ProFact>::as_select()));
    Ok(query.first(conn).await.optional()?)
}

/// The open organization of this handle, the user's role in it, and whether it has Pro.
pub async fn organization_of_member(
    conn: &mut Conn,
    user: AccountId,
    handle: &Handle,
) -> Result<Option<(AccountId, Role, Option<ProFact>)>> {
    let query = accounts::table
        .inner_join(memberships::table.on(memberships::organization_id.eq(accounts::id)))
        .left_join(entitlements::table.on(entitlements::account_id.eq(accounts::id)))
        .filter(accounts::handle.eq(handle.as_str()))
        .filter(accounts::closed_at.is_null())
        .filter(memberships::user_id.eq(user))
        .select((accounts::id, memberships::role, Option::<ProFact>::as_select()));
    let found: Option<(AccountId, String, Option<ProFact>)> = query.first(conn).await.optional()?;
    Ok(found.and_then(|(id, role, pro)| Some((id, Role::parse(&role)?, pro))))
}

/// A key that is neither revoked nor expired, of an open account, whose maker has an open account and, for an organization's key, is a member.
pub async fn key_caller(conn: &mut Conn, key: KeyRef<'_>, now: DateTime<Utc>) -> Result<Option<KeyCaller>> {
    let makers = diesel::alias!(accounts as makers);
    let membership = memberships::organization_id.eq(api_keys::account_id).and(memberships::user_id.eq(api_keys::created_by));
    let query = api_keys::table
        .inner_join(accounts::table.on(accounts::id.eq(api_keys::account_id)))
        .inner_join(makers.on(makers.field(accounts::id).eq(api_keys::created_by)))
        .left_join(memberships::table.on(membership))
        .left_join(entitlements::table.on(entitlements::account_id.eq(accounts::id)))
        .filter(api_keys::revoked_at.is_null())
        .filter(api_keys::expires_at.is_null().or(api_keys::expires_at.gt(now)))
        .filter(accounts::closed_at.is_null())
        .filter(makers.field(accounts::closed_at).is_null())
        .filter(api_keys::account_id.eq(api_keys::created_by).or(memberships::role.nullable().is_not_null()))
        .select((
            api_keys::id,
            accounts::id,
            accounts::handle,
            api_keys::created_by,
            memberships::role.nullable(),
            api_keys::scopes,
            api_keys::last_used_at,
            api_keys::machine_id,
            Option::<ProFact>::as_select(),
        ));
    let found = match key {
        KeyRef::Sha256(kind, sha256) => {
            query.filter(api_keys::key_sha256.eq(sha256)).filter(api_keys::kind.eq(kind.as_str())).first(conn).await
        }
        KeyRef::Id(id) => query.filter(api_keys::id.eq(id)).first(conn).await,
    };
    Ok(found.optional()?)
}

/// Notes that a key is in use, at most once a minute; requests at the same time write once.
pub async fn key_mark_used(conn: &mut Conn, caller: &KeyCaller, now: DateTime<Utc>) -> Result<()> {
    if caller.last_used_at.is_some_and(|at| at > now - USE_MARK) {
        return Ok(());
    }
    let stale = api_keys::last_used_at.is_null().or(api_keys::last_used_at.le(now - USE_MARK));
    diesel::update(api_keys::table.filter(api_keys::id.eq(caller.key_id)).filter(stale))
        .set(api_keys::last_used_at.eq(now))
        .kept()
        .execute(conn)
        .await?;
    Ok(())
}

/// As [`key_mark_used`], for a session.
pub async fn session_mark_used(conn: &mut Conn, id: SessionId, caller: &SessionCaller, now: DateTime<Utc>) -> Result<()> {
    if caller.last_used_at > now - USE_MARK {
        return Ok(());
    }
    diesel::update(sessions::table.filter(sessions::id.eq(id)).filter(sessions::last_used_at.le(now - USE_MARK)))
        .set(sessions::last_used_at.eq(now))
        .kept()
        .execute(conn)
        .await?;
    Ok(())
}
