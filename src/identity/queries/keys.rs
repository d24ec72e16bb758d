//! Keys of every kind.

use chrono::{DateTime, Utc};
use diesel::{BoolExpressionMethods, ExpressionMethods, OptionalExtension, QueryDsl, SelectableHelper, sql_types};
use diesel_async::RunQueryDsl;

use crate::{
    base::{
        Result,
        id::{AccountId, ApiKeyId, MachineId},
    },
    db::{Conn, Tx, schema::api_keys},
    identity::{model::ApiKey, scope::ScopeSet, token::KeyKind},
};

/// What a new key is made of.
pub struct NewKey<'a> {
    pub id: ApiKeyId,
    pub kind: KeyKind,
    pub account_id: AccountId,
    pub created_by: AccountId,
    pub minted_by: Option<ApiKeyId>,
    pub name: &'a str,
    pub prefix: &'a str,
    pub sha256: &'a [u8],
    pub scopes: ScopeSet,
    pub machine_id: Option<MachineId>,
    pub expires_at: Option<DateTime<Utc>>,
    pub now: DateTime<Utc>,
}

pub async fn key_insert(tx: &mut Tx<'_>, new: NewKey<'_>) -> Result<ApiKey> {
    let scopes: Vec<&str> = new.scopes.iter().map(|scope| scope.as_str()).collect();
    let key = diesel::insert_into(api_keys::table)
        .values((
            api_keys::id.eq(new.id),
            api_keys::kind.eq(new.kind.as_str()),
            api_keys::account_id.eq(new.account_id),
            api_keys::created_by.eq(new.created_by),
            api_keys::minted_by.eq(new.minted_by),
            api_keys::name.eq(new.name),
            api_keys::prefix.eq(new.prefix),
            api_keys::key_sha256.eq(new.sha256),
            api_keys::scopes.eq(scopes),
            api_keys::machine_id.eq(new.machine_id),
            api_keys::expires_at.eq(new.expires_at),
            api_keys::created_at.eq(new.now),
        ))
        .returning(ApiKey::as_returning())
        .get_result(&mut **tx)
        .await?;
    Ok(key)
}

/// When the key that mints another ends, locked so that it cannot be revoked before the new one is there. `None`: it is revoked.
pub async fn key_lock_expiry(tx: &mut Tx<'_>, id: ApiKeyId) -> Result<Option<Option<DateTime<Utc>>>> {
    let query = api_keys::table.filter(api_keys::id.eq(id)).filter(api_keys::revoked_at.is_null()).select(api_keys::expires_at);
    Ok(query.for_share().first(&mut **tx).await.optional()?)
}

/// Newest first. `made_by`: only that user's keys. Revoked keys are left out.
pub async fn key_list(
    conn: &mut Conn,
    kind: KeyKind,
    account: AccountId,
    made_by: Option<AccountId>,
    before: Option<ApiKeyId>,
    limit: i64,
) -> Result<Vec<ApiKey>> {
    let mut query = api_keys::table
        .filter(api_keys::account_id.eq(account))
        .filter(api_keys::kind.eq(kind.as_str()))
        .filter(api_keys::revoked_at.is_null())
        .order(api_keys::id.desc())
        .limit(limit)
        .select(ApiKey::as_select())
        .into_boxed();
    if let Some(maker) = made_by {
        query = query.filter(api_keys::created_by.eq(maker));
    }
    if let Some(before) = before {
        query = query.filter(api_keys::id.lt(before));
    }
    Ok(query.load(conn).await?)
}

pub async fn key_fetch(conn: &mut Conn, kind: KeyKind, account: AccountId, id: ApiKeyId) -> Result<Option<ApiKey>> {
    let own = api_keys::account_id.eq(account).and(api_keys::kind.eq(kind.as_str()));
    let query = api_keys::table.filter(api_keys::id.eq(id)).filter(own);
    Ok(query.select(ApiKey::as_select()).first(conn).await.optional()?)
}

/// Revokes a key and every key that was minted with it, directly or not. Returns how many were live.
pub async fn key_revoke(tx: &mut Tx<'_>, id: ApiKeyId, now: DateTime<Utc>) -> Result<usize> {
    let revoked = diesel::sql_query(
        "WITH RECURSIVE family AS (
            SELECT id FROM api_keys WHERE id = $1
            UNION SELECT child.id FROM api_keys child JOIN family ON child.minted_by = family.id)
         UPDATE api_keys SET revoked_at = $2 FROM family WHERE api_keys.id = family.id AND revoked_at IS NULL",
    )
    .bind::<sql_types::Uuid, _>(id)
    .bind::<sql_types::Timestamptz, _>(now)
    .execute(&mut **tx)
    .await?;
    Ok(revoked)
}

/// Revokes the keys that a user made for an organization.
pub async fn key_revoke_of_member(tx: &mut Tx<'_>, organization: AccountId, user: AccountId, now: DateTime<Utc>) -> Result<usize> {
    let keys = api_keys::table
        .filter(api_keys::account_id.eq(organization))
        .filter(api_keys::created_by.eq(user))
        .filter(api_keys::revoked_at.is_null());
    Ok(diesel::update(keys).set(api_keys::revoked_at.eq(now)).execute(&mut **tx).await?)
}

/// Revokes the keys of an account and those its user made for organizations.
pub async fn key_revoke_of_account(tx: &mut Tx<'_>, account: AccountId, now: DateTime<Utc>) -> Result<usize> {
    let keys = api_keys::table
        .filter(api_keys::account_id.eq(account).or(api_keys::created_by.eq(account)))
        .filter(api_keys::revoked_at.is_null());
    Ok(diesel::update(keys).set(api_keys::revoked_at.eq(now)).execute(&mut **tx).await?)
}
