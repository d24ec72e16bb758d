//! The routes of what runs are compared by: the catalog's rows with what was measured of them, publishers, and the methods.

use actix_web::{Responder, get, web as actix};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::model::{HardwareWithRuns, ModelPage, ModelWithRuns, PublisherPage, PublisherView};
use crate::{
    base::Result,
    benchmarks::{
        methods::{self, Methods},
        service,
    },
    catalog::{HardwareFilter, HardwareKind, ModelFilter, service as catalog},
    ctx::Ctx,
    web::{Limit, NotFoundProblem, Page, Path, Query, QueryProblems, cursor::open_opt},
};

#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HardwareListQuery {
    /// Beginnings of words. A whole name lists the rows of that name alone.
    #[serde(default)]
    q: String,
    /// In any case.
    vendor: Option<String>,
    /// Where its memory comes from.
    kind: Option<HardwareKind>,
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
    cursor: Option<String>,
}

/// List hardware models
///
/// Best match first; each with what was measured of it, and how many reports there are.
#[utoipa::path(tag = "Catalog", params(HardwareListQuery), responses((status = 200, body = Page<HardwareWithRuns>), QueryProblems))]
#[get("/api/v1/hardware")]
pub async fn hardware_list(query: Query<HardwareListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after: Option<String> = open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let filter = HardwareFilter { q: &query.q, vendor: query.vendor.as_deref(), kind: query.kind };
    let rows = catalog::hardware_list(filter, after.as_deref(), query.limit.get() + 1)?;
    let rows = service::hardware_with_runs(&ctx, rows).await?;
    Ok(actix::Json(Page::new(&ctx, query.binding(), query.limit, rows, |row| row.hardware.slug.clone(), |row| row)?))
}

/// Read a hardware model
///
/// With the best of what was measured on it, and how many reports there are.
#[utoipa::path(tag = "Catalog", params(("slug" = String, Path, description = "A slug of the catalog", max_length = 255)), responses((status = 200, body = HardwareWithRuns), NotFoundProblem))]
#[get("/api/v1/hardware/{slug}")]
pub async fn hardware_show(slug: Path<String>, ctx: Ctx) -> Result<impl Responder> {
    service::hardware_page(&ctx, &slug).await.map(actix::Json)
}

#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ModelListQuery {
    /// Beginnings of words of names, repositories and families.
    #[serde(default)]
    q: String,
    /// Handle of the publishing organization.
    publisher: Option<String>,
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
    cursor: Option<String>,
}

/// List models
///
/// Best match first; each with what was measured of it, and how many reports there are.
#[utoipa::path(tag = "Catalog", params(ModelListQuery), responses((status = 200, body = Page<ModelWithRuns>), QueryProblems))]
#[get("/api/v1/models")]
pub async fn model_list(query: Query<ModelListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after: Option<String> = open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let filter = ModelFilter { q: &query.q, publisher: query.publisher.as_deref() };
    let rows = catalog::model_list(filter, after.as_deref(), query.limit.get() + 1)?;
    let rows = service::models_with_runs(&ctx, rows).await?;
    Ok(actix::Json(Page::new(&ctx, query.binding(), query.limit, rows, |row| row.model.slug.clone(), |row| row)?))
}

/// Read a model
///
/// With the repositories that hold its weights, the best of what was measured, and how many reports there are.
#[utoipa::path(tag = "Catalog", params(("slug" = String, Path, description = "A slug of the catalog", max_length = 255)), responses((status = 200, body = ModelPage), NotFoundProblem))]
#[get("/api/v1/models/{slug}")]
pub async fn model_show(slug: Path<String>, ctx: Ctx) -> Result<impl Responder> {
    service::model_page(&ctx, &slug).await.map(actix::Json)
}

#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PublisherListQuery {
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
    cursor: Option<String>,
}

/// List publishers of models
///
/// By slug, each with how many runs were accepted of its models.
#[utoipa::path(tag = "Catalog", params(PublisherListQuery), responses((status = 200, body = Page<PublisherView>), QueryProblems))]
#[get("/api/v1/publishers")]
pub async fn publisher_list(query: Query<PublisherListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after: Option<String> = open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let rows = service::publishers(&ctx, after.as_deref(), query.limit.get() + 1).await?;
    Ok(actix::Json(Page::new(&ctx, query.binding(), query.limit, rows, |row| row.slug.clone(), |row| row)?))
}

/// Read a publisher
///
/// With its models and what was measured of each.
#[utoipa::path(tag = "Catalog", params(("slug" = String, Path, description = "A publisher's slug", max_length = 255)), responses((status = 200, body = PublisherPage), NotFoundProblem))]
#[get("/api/v1/publishers/{slug}")]
pub async fn publisher_show(slug: Path<String>, ctx: Ctx) -> Result<impl Responder> {
    service::publisher_page(&ctx, &slug).await.map(actix::Json)
}

/// Read the methods
///
/// What each suite measures and by which definitions, the tools and versions that are read, every check with its severity by version, what
/// counts on the leaderboard, and how far a re-measurement may be off.
#[utoipa::path(tag = "Runs", responses((status = 200, body = Methods)))]
#[get("/api/v1/benchmarks")]
pub async fn benchmark_methods(ctx: Ctx) -> Result<impl Responder> {
    Ok(actix::Json(methods::methods(&ctx)))
}
