//! The routes of the catalog that say nothing of runs; the others are `benchmarks`', which has both. Public; answered from memory.

use actix_web::{Responder, get, web as actix};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{HardwareModel, service};
use crate::{
    base::Result,
    web::{ConflictProblem, NotFoundProblem, Query, QueryProblems},
};

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
