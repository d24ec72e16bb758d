//! The numbers that an operator may change, as this service has them.

use actix_web::{HttpResponse, Responder, get, http::header};

use crate::{base::Result, config::Tunables, ctx::Ctx};

/// Read the tunables
///
/// Limits, times, fees and tolerances that the rules leave to the operator of a service. They change with a release or a restart only.
#[utoipa::path(tag = "Service", responses((status = 200, body = Tunables)))]
#[get("/api/v1/tunables")]
pub async fn tunables_show(ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "public, max-age=300")).json(&ctx.config.tunables))
}
