//! API keys.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::accounts::account_summaries;
use crate::{
    base::{
        Code, Error, FieldError, Result,
        given::optional_instant,
        id::{AccountId, ApiKeyId},
        shape::NameText,
    },
    ctx::Ctx,
    db::{Conn, Tx},
    identity::{
        audit::{Act, By, audit},
        caller::{Actor, Caller},
        model::{AccountSummary, ApiKey, ApiKeyView, NewApiKey, scope_set},
        names,
        queries::{
            accounts,
            keys::{self, NewKey},
            members,
        },
        scope::{Scope, ScopeSet},
        token,
    },
};

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    /// 1 to 80 characters.
    #[schema(value_type = NameText)]
    pub name: String,
    /// What the key may do. An empty list allows nothing. `x:write` contains `x:read`.
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Vec<String>,
    /// Without it the key lives until it is revoked, or as long as the key that makes it.
    #[serde(default, deserialize_with = "optional_instant")]
    pub expires_at: Option<DateTime<Utc>>,
}

fn view(key: ApiKey, makers: &HashMap<AccountId, AccountSummary>) -> Result<ApiKeyView> {
    let created_by = makers.get(&key.created_by).cloned().ok_or_else(|| Error::internal("a key whose maker has no row"))?;
    Ok(ApiKeyView {
        id: key.id,
        name: key.name,
        prefix: key.prefix,
        scopes: scope_set(&key.scopes).iter().collect(),
        created_by,
        minted_by: key.minted_by,
        created_at: key.created_at,
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
    })
}

/// Live keys of the account, newest first; a member or the billing role sees only their own. Expired keys are listed until they are revoked.
///
/// # Errors
/// The database's own faults.
pub async fn api_keys(conn: &mut Conn, caller: &Caller, before: Option<ApiKeyId>, limit: i64) -> Result<Vec<ApiKeyView>> {
    let made_by = (!caller.role.manages_members()).then_some(caller.user_id);
    let found = keys::key_list(conn, caller.account_id, made_by, before, limit).await?;
    let ids: Vec<AccountId> = found.iter().map(|key| key.created_by).collect();
    let makers = account_summaries(conn, &ids).await?;
    found.into_iter().map(|key| view(key, &makers)).collect()
}

fn check(form: &CreateKey, now: DateTime<Utc>) -> Result<(String, ScopeSet)> {
    let mut faults = Vec::new();
    let name = names::check(&form.name, "/name").map_err(|e| faults.push(e)).unwrap_or_default();
    let mut scopes = Vec::new();
    for (i, text) in form.scopes.iter().enumerate() {
        match Scope::parse(text) {
            Some(scope) => scopes.push(scope),
            None => faults.push(FieldError::new(format!("/scopes/{i}"), "unknown_scope", "There is no such scope.")),
        }
    }
    if form.expires_at.is_some_and(|at| at <= now) {
        faults.push(FieldError::new("/expires_at", "past", "A key cannot expire in the past."));
    }
    if faults.is_empty() { Ok((name, scopes.into_iter().collect())) } else { Err(Error::invalid_fields(faults)) }
}

/// Makes a key for the account the caller acts for. The caller can give it no more than they have themselves; a key made by a key does not
/// outlive that one.
///
/// # Errors
/// `invalid_input`; `insufficient_scope` (a key) or `forbidden` (a role) for scopes the caller does not have.
pub async fn create_key(ctx: &Ctx, caller: &Caller, form: CreateKey) -> Result<NewApiKey> {
    let now = ctx.clock.wall_now();
    let (name, scopes) = check(&form, now)?;
    let (secret, prefix) = token::api_key();
    let sha256 = token::sha256(secret.expose());
    let minted_by = match caller.actor {
        Actor::ApiKey(id) => Some(id),
        Actor::User => None,
    };
    let id = ApiKeyId::new();
    let (name, prefix, sha256) = (&name, &prefix, &sha256);
    let view = ctx
        .db
        .tx("api_key_create", async |tx| {
            if !rights_now(tx, caller).await?.covers(scopes) {
                return Err(too_wide(caller));
            }
            let expires_at = expiry(tx, minted_by, form.expires_at).await?;
            let new = NewKey {
                id,
                account_id: caller.account_id,
                created_by: caller.user_id,
                minted_by,
                name,
                prefix,
                sha256,
                scopes,
                expires_at,
                now,
            };
            let key = keys::key_insert(tx, new).await?;
            let makers = account_summaries(tx, &[key.created_by]).await?;
            let details = json!({ "scopes": form.scopes });
            audit(tx, act(caller, "api_key.create", id, details, now)).await?;
            view(key, &makers)
        })
        .await?;
    Ok(NewApiKey { view, key: secret })
}

fn act<'a>(caller: &'a Caller, action: &'static str, id: ApiKeyId, details: serde_json::Value, at: DateTime<Utc>) -> Act<'a> {
    Act { by: By::Caller(caller), account_id: Some(caller.account_id), action, target: id.to_string(), details, at }
}

fn too_wide(caller: &Caller) -> Error {
    match caller.actor {
        Actor::ApiKey(_) => Error::new(Code::InsufficientScope, "A key cannot make a key that may do more than itself."),
        Actor::User => Error::new(Code::Forbidden, format!("The role {} does not have all of these scopes.", caller.role.as_str())),
    }
}

/// What the caller may do, held against a change of their role or their removal until this transaction ends; so no key is born after its
/// maker's removal has revoked the others.
async fn rights_now(tx: &mut Tx<'_>, caller: &Caller) -> Result<ScopeSet> {
    if !caller.is_organization {
        return Ok(caller.scopes);
    }
    let gone = || Error::not_found("account");
    if !accounts::account_hold(tx, caller.account_id).await? {
        return Err(gone());
    }
    let role = members::member_role(tx, caller.account_id, caller.user_id).await?.ok_or_else(gone)?;
    Ok(caller.scopes.intersection(role.scopes()))
}

/// The asked expiry within that of the key that mints.
async fn expiry(tx: &mut Tx<'_>, minted_by: Option<ApiKeyId>, asked: Option<DateTime<Utc>>) -> Result<Option<DateTime<Utc>>> {
    let Some(id) = minted_by else { return Ok(asked) };
    let revoked = || Error::new(Code::Unauthenticated, "The API key was revoked.");
    let bound = keys::key_lock_expiry(tx, id).await?.ok_or_else(revoked)?;
    match (asked, bound) {
        (Some(at), Some(end)) if at > end => {
            Err(Error::invalid("/expires_at", "outlives_key", "A key cannot make a key that outlives itself."))
        }
        (asked, bound) => Ok(asked.or(bound)),
    }
}

/// Revokes a key and those made with it. Revoking again is no error. A key can revoke itself and what it made; a member or the billing role
/// only their own keys.
///
/// # Errors
/// `not_found` for a key of another account or one the caller does not see; `insufficient_scope` for a key that is not the caller's to revoke.
pub async fn revoke_key(ctx: &Ctx, caller: &Caller, id: ApiKeyId) -> Result<()> {
    let now = ctx.clock.wall_now();
    ctx.db
        .tx("api_key_revoke", async |tx| {
            let not_found = || Error::not_found("API key");
            let key = keys::key_fetch(tx, caller.account_id, id).await?.ok_or_else(not_found)?;
            if !caller.role.manages_members() && key.created_by != caller.user_id {
                return Err(not_found());
            }
            if let Actor::ApiKey(own) = caller.actor
                && key.id != own
                && key.minted_by != Some(own)
            {
                return Err(Error::new(Code::InsufficientScope, "A key can revoke itself and the keys it made."));
            }
            if keys::key_revoke(tx, id, now).await? > 0 {
                audit(tx, act(caller, "api_key.revoke", id, json!({}), now)).await?;
            }
            Ok(())
        })
        .await
}
