//! Operator actions and the sandbox's clock over HTTP.

use actix_web::{HttpResponse, Responder, get, post};

use super::service::{self, ClockRequest, ClockView};
use crate::{
    base::{
        Result,
        id::{DisputeId, RunId},
    },
    benchmarks::{
        self,
        model::RunView,
        service::{ReviewQueueItem, ReviewQueueQuery, ReviewRequest, ReviewView, SimilarRuns},
    },
    billing::{self, service::DisputeEvidence},
    ctx::Ctx,
    identity::{Auth, Operator, scope},
    web::{AuthProblems, ConflictProblem, InputProblems, Json, NotFoundProblem, Page, Path, Query, QueryProblems, cursor},
};

/// Read the sandbox's clock
#[utoipa::path(tag = "Sandbox", responses((status = 200, body = ClockView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/sandbox/clock")]
pub async fn clock_fetch(_auth: Auth<scope::Any>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::clock(&ctx).await?))
}

/// Move the sandbox's clock
///
/// Business time (rentals, quotes, evidence, earnings) goes forward from due event to due event; machines that answer now count as alive all
/// the way. Tokens and rate limits do not notice.
#[utoipa::path(tag = "Sandbox", request_body = ClockRequest,
    responses((status = 200, body = ClockView), AuthProblems, InputProblems, NotFoundProblem), security(("bearer" = [])))]
#[post("/api/v1/sandbox/clock")]
pub async fn clock_advance(_auth: Auth<scope::Any>, body: Json<ClockRequest>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::advance_clock(&ctx, &body).await?))
}

/// List runs that wait for review
///
/// Those that have waited longest first, also unlisted ones.
#[utoipa::path(tag = "Operators", params(ReviewQueueQuery),
    responses((status = 200, body = Page<ReviewQueueItem>), AuthProblems, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/admin/review-queue")]
pub async fn review_queue(_operator: Operator, query: Query<ReviewQueueQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after = cursor::open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let (data, next) = benchmarks::service::review_queue(&ctx, &query, after).await?;
    let next_cursor = next.map(|place| cursor::seal(&ctx, query.binding(), &place)).transpose()?;
    Ok(HttpResponse::Ok().json(Page { data, next_cursor }))
}

/// Read a run as an operator
///
/// The run with its findings explained, since when and why it waits, the uploader's answer and its history. The document as it came in is at
/// `/api/v1/matrix-runs/{id}/original`.
#[utoipa::path(tag = "Operators", params(("id" = RunId, Path, description = "A run")),
    responses((status = 200, body = ReviewView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/admin/matrix-runs/{id}")]
pub async fn review_show(operator: Operator, id: Path<RunId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(benchmarks::service::review_show(&ctx, &operator.caller, id.into_inner()).await?))
}

/// Compare a run with similar ones
///
/// Runs that share marks with it (the very same tokens and seconds of a cell, the tool's run identifier, a device), and the newest verified runs
/// of the same model, quantization, hardware and number of GPUs; each with the cells that both have measured.
#[utoipa::path(tag = "Operators", params(("id" = RunId, Path, description = "A run")),
    responses((status = 200, body = SimilarRuns), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/admin/matrix-runs/{id}/similar")]
pub async fn review_similar(_operator: Operator, id: Path<RunId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(benchmarks::service::similar(&ctx, id.into_inner()).await?))
}

/// Export the evidence of anybody's dispute
///
/// What the account's own export holds.
#[utoipa::path(tag = "Operators", params(("id" = DisputeId, Path, description = "A dispute")),
    responses((status = 200, body = DisputeEvidence), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/admin/disputes/{id}/evidence")]
pub async fn dispute_evidence_export(_operator: Operator, id: Path<DisputeId>, ctx: Ctx) -> Result<impl Responder> {
    let evidence = billing::service::evidence_for_operator(&ctx, *id).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(evidence))
}

/// Decide on a run
///
/// Accepts or rejects, with a public reason; what the checks rejected stays rejected. A person's decision stands until it is taken back with
/// `reopen`, so of two operators at once the second gets `already_decided` with who decided. The same decision of the same operator again
/// changes nothing. Nobody decides on a run of their own account. A listing that loses its evidence leaves the market.
#[utoipa::path(tag = "Operators", params(("id" = RunId, Path, description = "A run")), request_body = ReviewRequest,
    responses((status = 200, body = RunView), AuthProblems, InputProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/admin/matrix-runs/{id}/review")]
pub async fn run_review(operator: Operator, id: Path<RunId>, body: Json<ReviewRequest>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(benchmarks::service::review(&ctx, &operator.caller, id.into_inner(), &body).await?))
}
