//! Keys: API keys and the benchmark tool's upload tokens, which are made, listed and revoked by the same rules.

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
        id::{AccountId, ApiKeyId, MachineId, UploadTokenId},
        secret::Secret,
        shape::NameText,
    },
    ctx::Ctx,
    db::{Conn, Tx},
    identity::{
        audit::{Act, By, audit},
        caller::{Actor, Caller},
        model::{AccountSummary, ApiKey, ApiKeyView, NewApiKey, NewUploadToken, UploadTokenView, scope_set},
        names,
        queries::{
            accounts,
            keys::{self, NewKey},
            members,
        },
        scope::{Scope, ScopeSet},
        token::{self, KeyKind},
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

/// An upload token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateUploadToken {
    /// 1 to 80 characters.
    #[schema(value_type = NameText)]
    pub name: String,
    /// A machine of the account, to which every run that comes with the token is bound.
    pub machine_id: Option<MachineId>,
    /// Without it the token lives until it is revoked, or as long as the key that makes it.
    #[serde(default, deserialize_with = "optional_instant")]
    pub expires_at: Option<DateTime<Utc>>,
}

/// A key with its maker, as a view wants them.
type Made = (ApiKey, AccountSummary);

fn made(key: ApiKey, makers: &HashMap<AccountId, AccountSummary>) -> Result<Made> {
    let maker = makers.get(&key.created_by).cloned().ok_or_else(|| Error::internal("a key whose maker has no row"))?;
    Ok((key, maker))
}

fn view((key, created_by): Made) -> ApiKeyView {
    ApiKeyView {
        id: key.id,
        name: key.name,
        prefix: key.prefix,
        scopes: scope_set(&key.scopes).iter().collect(),
        created_by,
        minted_by: key.minted_by,
        created_at: key.created_at,
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
    }
}

fn token_view((key, created_by): Made) -> UploadTokenView {
    UploadTokenView {
        id: UploadTokenId::from_uuid(key.id.uuid()),
        name: key.name,
        prefix: key.prefix,
        machine_id: key.machine_id,
        created_by,
        minted_by: key.minted_by,
        created_at: key.created_at,
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
    }
}

/// Live keys of the account, newest first; a member or the billing role sees only their own. Expired keys are listed until they are revoked.
///
/// # Errors
/// The database's own faults.
pub async fn api_keys(conn: &mut Conn, caller: &Caller, before: Option<ApiKeyId>, limit: i64) -> Result<Vec<ApiKeyView>> {
    Ok(list(conn, KeyKind::Api, caller, before, limit).await?.into_iter().map(view).collect())
}

/// [`api_keys`] for upload tokens.
///
/// # Errors
/// As there.
pub async fn upload_tokens(conn: &mut Conn, caller: &Caller, before: Option<UploadTokenId>, limit: i64) -> Result<Vec<UploadTokenView>> {
    let before = before.map(|id| ApiKeyId::from_uuid(id.uuid()));
    Ok(list(conn, KeyKind::Upload, caller, before, limit).await?.into_iter().map(token_view).collect())
}

async fn list(conn: &mut Conn, kind: KeyKind, caller: &Caller, before: Option<ApiKeyId>, limit: i64) -> Result<Vec<Made>> {
    let made_by = (!caller.role.manages_members()).then_some(caller.user_id);
    let found = keys::key_list(conn, kind, caller.account_id, made_by, before, limit).await?;
    let ids: Vec<AccountId> = found.iter().map(|key| key.created_by).collect();
    let makers = account_summaries(conn, &ids).await?;
    found.into_iter().map(|key| made(key, &makers)).collect()
}

fn check_name(name: &str, expires_at: Option<DateTime<Utc>>, now: DateTime<Utc>, faults: &mut Vec<FieldError>) -> String {
    let name = names::check(name, "/name").map_err(|e| faults.push(e)).unwrap_or_default();
    if expires_at.is_some_and(|at| at <= now) {
        faults.push(FieldError::new("/expires_at", "past", "A key cannot expire in the past."));
    }
    name
}

fn check_scopes(texts: &[String], faults: &mut Vec<FieldError>) -> ScopeSet {
    let mut scopes = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        match Scope::parse(text) {
            Some(scope) => scopes.push(scope),
            None => faults.push(FieldError::new(format!("/scopes/{i}"), "unknown_scope", "There is no such scope.")),
        }
    }
    scopes.into_iter().collect()
}

/// What a key to be made is to be like, checked.
struct Draft {
    kind: KeyKind,
    name: String,
    scopes: ScopeSet,
    machine_id: Option<MachineId>,
    expires_at: Option<DateTime<Utc>>,
    /// For the audit.
    details: serde_json::Value,
}

/// Makes a key for the account the caller acts for. The caller can give it no more than they have themselves; a key made by a key does not
/// outlive that one.
///
/// # Errors
/// `invalid_input`; `insufficient_scope` (a key) or `forbidden` (a role) for scopes the caller does not have.
pub async fn create_key(ctx: &Ctx, caller: &Caller, form: CreateKey) -> Result<NewApiKey> {
    let mut faults = Vec::new();
    let name = check_name(&form.name, form.expires_at, ctx.clock.wall_now(), &mut faults);
    let scopes = check_scopes(&form.scopes, &mut faults);
    if !faults.is_empty() {
        return Err(Error::invalid_fields(faults));
    }
    let details = json!({ "scopes": form.scopes });
    let draft = Draft { kind: KeyKind::Api, name, scopes, machine_id: None, expires_at: form.expires_at, details };
    let (made, key) = make(ctx, caller, draft).await?;
    Ok(NewApiKey { view: view(made), key })
}

/// Makes an upload token by the rules of [`create_key`]; it may do what `runs:write` allows. Whether the machine is the account's is for who
/// knows machines to say.
///
/// # Errors
/// As there.
pub async fn create_upload_token(ctx: &Ctx, caller: &Caller, form: CreateUploadToken) -> Result<NewUploadToken> {
    let mut faults = Vec::new();
    let name = check_name(&form.name, form.expires_at, ctx.clock.wall_now(), &mut faults);
    if !faults.is_empty() {
        return Err(Error::invalid_fields(faults));
    }
    let scopes = [Scope::RunsWrite].into_iter().collect();
    let details = json!({ "machine_id": form.machine_id });
    let draft = Draft { kind: KeyKind::Upload, name, scopes, machine_id: form.machine_id, expires_at: form.expires_at, details };
    let (made, token) = make(ctx, caller, draft).await?;
    Ok(NewUploadToken { view: token_view(made), token })
}

async fn make(ctx: &Ctx, caller: &Caller, draft: Draft) -> Result<(Made, Secret<String>)> {
    let now = ctx.clock.wall_now();
    let (secret, prefix) = token::key(draft.kind);
    let sha256 = token::sha256(secret.expose());
    let minted_by = match caller.actor {
        Actor::ApiKey(id) => Some(id),
        Actor::User => None,
    };
    let id = ApiKeyId::new();
    let (draft, prefix, sha256) = (&draft, &prefix, &sha256);
    let made = ctx
        .db
        .tx("api_key_create", async |tx| {
            if !rights_now(tx, caller).await?.covers(draft.scopes) {
                return Err(too_wide(caller));
            }
            let expires_at = expiry(tx, minted_by, draft.expires_at).await?;
            let new = NewKey {
                id,
                kind: draft.kind,
                account_id: caller.account_id,
                created_by: caller.user_id,
                minted_by,
                name: &draft.name,
                prefix,
                sha256,
                scopes: draft.scopes,
                machine_id: draft.machine_id,
                expires_at,
                now,
            };
            let key = keys::key_insert(tx, new).await?;
            let makers = account_summaries(tx, &[key.created_by]).await?;
            audit(tx, act(caller, draft.kind, "create", id, draft.details.clone(), now)).await?;
            made(key, &makers)
        })
        .await?;
    Ok((made, secret))
}

fn act<'a>(caller: &'a Caller, kind: KeyKind, verb: &str, id: ApiKeyId, details: serde_json::Value, at: DateTime<Utc>) -> Act<'a> {
    let (action, target) = match (kind, verb) {
        (KeyKind::Api, "create") => ("api_key.create", id.to_string()),
        (KeyKind::Api, _) => ("api_key.revoke", id.to_string()),
        (KeyKind::Upload, "create") => ("upload_token.create", UploadTokenId::from_uuid(id.uuid()).to_string()),
        (KeyKind::Upload, _) => ("upload_token.revoke", UploadTokenId::from_uuid(id.uuid()).to_string()),
    };
    Act { by: By::Caller(caller), account_id: Some(caller.account_id), action, target, details, at }
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
    revoke(ctx, KeyKind::Api, caller, id).await
}

/// [`revoke_key`] for an upload token.
///
/// # Errors
/// As there.
pub async fn revoke_upload_token(ctx: &Ctx, caller: &Caller, id: UploadTokenId) -> Result<()> {
    revoke(ctx, KeyKind::Upload, caller, ApiKeyId::from_uuid(id.uuid())).await
}

async fn revoke(ctx: &Ctx, kind: KeyKind, caller: &Caller, id: ApiKeyId) -> Result<()> {
    let now = ctx.clock.wall_now();
    ctx.db
        .tx("api_key_revoke", async |tx| {
            let not_found = || Error::not_found(kind.noun());
            let key = keys::key_fetch(tx, kind, caller.account_id, id).await?.ok_or_else(not_found)?;
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
                audit(tx, act(caller, kind, "revoke", id, json!({}), now)).await?;
            }
            Ok(())
        })
        .await
}
