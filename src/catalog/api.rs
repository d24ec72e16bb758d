//! The routes of the catalog. Public; answered from memory.

use actix_web::{Responder, get, web as actix};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    HardwareFilter, HardwareKind, HardwareModel, Model, ModelFilter,
    service::{self, ModelDetail},
};
use crate::{
    base::Result,
    ctx::Ctx,
    web::{ConflictProblem, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, cursor::open_opt},
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
/// Best match first.
#[utoipa::path(tag = "Catalog", params(HardwareListQuery), responses((status = 200, body = Page<HardwareModel>), QueryProblems))]
#[get("/api/v1/hardware")]
pub async fn hardware_list(query: Query<HardwareListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after: Option<String> = open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let filter = HardwareFilter { q: &query.q, vendor: query.vendor.as_deref(), kind: query.kind };
    let rows = service::hardware_list(filter, after.as_deref(), query.limit.get() + 1)?;
    Ok(actix::Json(Page::new(&ctx, query.binding(), query.limit, rows, |row| &row.slug, HardwareModel::clone)?))
}

#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HardwareResolveQuery {
    /// As people write it or tools print it.
    #[param(example = "NVIDIA GeForce RTX 3090")]
    name: String,
    /// Chooses between rows of one name; nominal or as a tool reports it. Ignored where it fits none of them.
    #[param(minimum = 0)]
    vram_gib: Option<f64>,
}

/// Resolve a hardware name
///
/// To the one hardware model that it means. An ambiguous name is 409 with `candidates`, each with `slug` and `name`.
#[utoipa::path(tag = "Catalog", params(HardwareResolveQuery),
    responses((status = 200, body = HardwareModel), NotFoundProblem, ConflictProblem, QueryProblems))]
#[get("/api/v1/hardware/resolve")]
pub async fn hardware_resolve(query: Query<HardwareResolveQuery>) -> Result<impl Responder> {
    service::hardware_resolve(&query.name, query.vram_gib).map(actix::Json)
}

/// Read a hardware model
#[utoipa::path(tag = "Catalog", params(("slug" = String, Path, description = "A slug of the catalog", max_length = 255)), responses((status = 200, body = HardwareModel), NotFoundProblem))]
#[get("/api/v1/hardware/{slug}")]
pub async fn hardware_show(slug: Path<String>) -> Result<impl Responder> {
    service::hardware_fetch(&slug).map(actix::Json)
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
/// Best match first.
#[utoipa::path(tag = "Catalog", params(ModelListQuery), responses((status = 200, body = Page<Model>), QueryProblems))]
#[get("/api/v1/models")]
pub async fn model_list(query: Query<ModelListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after: Option<String> = open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let filter = ModelFilter { q: &query.q, publisher: query.publisher.as_deref() };
    let rows = service::model_list(filter, after.as_deref(), query.limit.get() + 1)?;
    Ok(actix::Json(Page::new(&ctx, query.binding(), query.limit, rows, |row| &row.slug, Model::clone)?))
}

/// Read a model
///
/// With the repositories that hold its weights.
#[utoipa::path(tag = "Catalog", params(("slug" = String, Path, description = "A slug of the catalog", max_length = 255)), responses((status = 200, body = ModelDetail), NotFoundProblem))]
#[get("/api/v1/models/{slug}")]
pub async fn model_show(slug: Path<String>) -> Result<impl Responder> {
    service::model_detail(&slug).map(actix::Json)
}
