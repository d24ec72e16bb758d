//! The export over HTTP.

use actix_web::{
    HttpResponse, Responder, get,
    http::header::{self, ContentEncoding},
};

use super::service;
use crate::{
    base::Result,
    ctx::Ctx,
    identity::{Auth, scope},
    web::AuthProblems,
};

/// Download all measurements as CSV
///
/// Every valid decode cell of every public, verified run, by run. Needs Pro. An answer that breaks off before its end has lost the server.
#[utoipa::path(tag = "Runs", responses((status = 200, content_type = "text/csv", body = String), AuthProblems), security(("bearer" = [])))]
#[get("/api/v1/cells.csv")]
pub async fn cells_csv(auth: Auth<scope::AccountRead>, ctx: Ctx) -> Result<impl Responder> {
    service::require(&ctx, &auth.caller).await?;
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/csv; charset=utf-8"))
        .insert_header((header::CONTENT_DISPOSITION, "attachment; filename=\"rigmark-cells.csv\""))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(Box::pin(service::cells_csv(ctx))))
}

/// Download all measurements as Parquet
///
/// The same as `cells.csv`, for programs that read columns. Needs Pro.
#[utoipa::path(tag = "Runs", responses((status = 200, content_type = "application/vnd.apache.parquet", body = String), AuthProblems),
    security(("bearer" = [])))]
#[get("/api/v1/cells.parquet")]
pub async fn cells_parquet(auth: Auth<scope::AccountRead>, ctx: Ctx) -> Result<impl Responder> {
    service::require(&ctx, &auth.caller).await?;
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/vnd.apache.parquet"))
        .insert_header((header::CONTENT_DISPOSITION, "attachment; filename=\"rigmark-cells.parquet\""))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        // Compressed within, column by column.
        .insert_header(ContentEncoding::Identity)
        .streaming(Box::pin(service::cells_parquet(ctx))))
}
