//! Reports over HTTP.

use actix_web::{HttpResponse, Responder, delete, get, post};

use super::model::ReportView;
use crate::{
    base::{Result, id::ReportId},
    benchmarks::service::{self, CreateReport, ReportListQuery},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, InputProblems, Json, NotFoundProblem, Page, Path, Query, QueryProblems, cursor::open_opt, kept_json},
};

/// Report a speed
///
/// What somebody saw, without a document that proves it: it is listed as reported and never counted with measured runs. A speed above what the
/// hardware can do with one token a step says so; one that no speculation explains is refused.
#[utoipa::path(tag = "Runs", request_body = CreateReport,
    responses((status = 201, body = ReportView), AuthProblems, InputProblems), security(("bearer" = [])))]
#[post("/api/v1/reports")]
pub async fn report_create(auth: Auth<scope::RunsWrite>, body: Json<CreateReport>, ctx: Ctx) -> Result<impl Responder> {
    let report = service::report_create(&ctx, &auth.caller, &body).await?;
    Ok(HttpResponse::Created().json(report))
}

/// List reports
///
/// Newest first.
#[utoipa::path(tag = "Runs", params(ReportListQuery), responses((status = 200, body = Page<ReportView>), NotFoundProblem, QueryProblems))]
#[get("/api/v1/reports")]
pub async fn report_list(query: Query<ReportListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let page = async {
        let after = open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
        let rows = service::report_list(&ctx, &query, after).await?;
        Page::new(&ctx, query.binding(), query.limit, rows, |row| row.id, |row| row)
    };
    let key = format!("{}\n{}\n{}", query.binding(), query.limit.get(), query.cursor.as_deref().unwrap_or_default());
    kept_json(&ctx, key, page).await
}

/// Read a report
#[utoipa::path(tag = "Runs", params(("id" = ReportId, Path, description = "A report")), responses((status = 200, body = ReportView), NotFoundProblem))]
#[get("/api/v1/reports/{id}")]
pub async fn report_show(id: Path<ReportId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::report_fetch(&ctx, *id).await?))
}

/// Delete a report
///
/// One's own.
#[utoipa::path(tag = "Runs", params(("id" = ReportId, Path, description = "One's own report")),
    responses((status = 204), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[delete("/api/v1/reports/{id}")]
pub async fn report_delete(auth: Auth<scope::RunsWrite>, id: Path<ReportId>, ctx: Ctx) -> Result<impl Responder> {
    service::report_delete(&ctx, &auth.caller, *id).await?;
    Ok(HttpResponse::NoContent().finish())
}
