//! API keys of the account a call acts for.

use actix_web::{HttpResponse, Responder, delete, get, post};

use super::{ListQuery, binding};
use crate::{
    base::{Result, id::ApiKeyId},
    ctx::Ctx,
    identity::{
        extract::Auth,
        model::{ApiKeyView, NewApiKey},
        scope,
        service::{self, CreateKey},
    },
    web::{AuthProblems, InputProblems, Json, NotFoundProblem, Page, Path, Query, QueryProblems, cursor},
};

/// List API keys
///
/// Keys of the account that are not revoked, newest first. In an organization owners and admins see all of them, others their own.
#[utoipa::path(tag = "Accounts", params(ListQuery), responses((status = 200, body = Page<ApiKeyView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/api-keys")]
pub async fn api_key_list(auth: Auth<scope::AccountRead>, query: Query<ListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = binding(&auth.caller, &query);
    let before: Option<ApiKeyId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let mut conn = ctx.db.conn().await?;
    let rows = service::api_keys(&mut conn, &auth.caller, before, query.limit.rows_to_fetch()).await?;
    Ok(HttpResponse::Ok().json(Page::new(&ctx, &binding, query.limit, rows, |row: &ApiKeyView| row.id, |row| row)?))
}

/// Make an API key
///
/// The key is shown this once. It may do what its scopes say, for this account only, while its maker belongs to the account. Nobody can give a
/// key more than they have; a key made by a key ends with it.
#[utoipa::path(tag = "Accounts", request_body = CreateKey, responses((status = 201, body = NewApiKey), AuthProblems, InputProblems),
    security(("bearer" = [])))]
#[post("/api/v1/api-keys")]
pub async fn api_key_create(auth: Auth<scope::Any>, body: Json<CreateKey>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Created().json(service::create_key(&ctx, &auth.caller, body.into_inner()).await?))
}

/// Revoke an API key
///
/// With it end the keys that were made with it. Revoking twice is no error. A key can revoke itself and what it made.
#[utoipa::path(tag = "Accounts", params(("id" = ApiKeyId, Path, description = "A key of the account")),
    responses((status = 204), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[delete("/api/v1/api-keys/{id}")]
pub async fn api_key_revoke(auth: Auth<scope::Any>, id: Path<ApiKeyId>, ctx: Ctx) -> Result<impl Responder> {
    service::revoke_key(&ctx, &auth.caller, id.into_inner()).await?;
    Ok(HttpResponse::NoContent())
}
