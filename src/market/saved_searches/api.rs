//! Saved searches over HTTP.

use actix_web::{HttpResponse, Responder, delete, get, post};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    model::{SaveSearch, SavedSearchView},
    service,
};
use crate::{
    base::{Result, id::SavedSearchId},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, ConflictProblem, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, cursor::open_opt},
};

/// Save a search
///
/// Writes to the account when a listing that fits comes on the market or changes there, once for each listing. Needs Pro.
#[utoipa::path(tag = "Market", request_body = SaveSearch,
    responses((status = 201, body = SavedSearchView), AuthProblems, InputProblems, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/saved-searches")]
pub async fn saved_search_create(auth: Auth<scope::RentalsWrite>, body: Json<SaveSearch>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Created().json(service::save(&ctx, &auth.caller, &body).await?))
}

/// Which of the account's searches, newest first.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SavedSearchListQuery {
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// List saved searches
#[utoipa::path(tag = "Market", params(SavedSearchListQuery),
    responses((status = 200, body = Page<SavedSearchView>), AuthProblems, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/saved-searches")]
pub async fn saved_search_list(auth: Auth<scope::RentalsRead>, query: Query<SavedSearchListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = format!("{} {}", auth.caller.account_id, query.binding());
    let before = open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let rows = service::list(&ctx, &auth.caller, before, query.limit.rows_to_fetch()).await?;
    let page = Page::new(&ctx, &binding, query.limit, rows, |row: &SavedSearchView| row.id, |row| row)?;
    Ok(HttpResponse::Ok().json(page))
}

/// Forget a saved search
#[utoipa::path(tag = "Market", params(("id" = SavedSearchId, Path, description = "A search of the account")),
    responses((status = 204), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[delete("/api/v1/saved-searches/{id}")]
pub async fn saved_search_delete(auth: Auth<scope::RentalsWrite>, id: Path<SavedSearchId>, ctx: Ctx) -> Result<impl Responder> {
    service::forget(&ctx, &auth.caller, *id).await?;
    Ok(HttpResponse::NoContent().finish())
}
