//! Operator actions and the sandbox's clock over HTTP.

use actix_web::{HttpResponse, Responder, get, post};

use super::service::{self, ClockRequest, ClockView};
use crate::{
    base::{Result, id::RunId},
    benchmarks::{
        self,
        model::{RunSummaryView, RunView},
        service::{ReviewQueueQuery, ReviewRequest},
    },
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
#[utoipa::path(tag = "Operators", params(ReviewQueueQuery),
    responses((status = 200, body = Page<RunSummaryView>), AuthProblems, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/admin/review-queue")]
pub async fn review_queue(_operator: Operator, query: Query<ReviewQueueQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after = cursor::open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let (data, next) = benchmarks::service::review_queue(&ctx, &query, after).await?;
    let next_cursor = next.map(|place| cursor::seal(&ctx, query.binding(), &place)).transpose()?;
    Ok(HttpResponse::Ok().json(Page { data, next_cursor }))
}

/// Decide on a run
///
/// Accepts or rejects, with a public reason. What the checks rejected stays rejected. A listing that loses its evidence leaves the market.
#[utoipa::path(tag = "Operators", params(("id" = RunId, Path, description = "A run")), request_body = ReviewRequest,
    responses((status = 200, body = RunView), AuthProblems, InputProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/admin/matrix-runs/{id}/review")]
pub async fn run_review(operator: Operator, id: Path<RunId>, body: Json<ReviewRequest>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(benchmarks::service::review(&ctx, &operator.caller, id.into_inner(), &body).await?))
}
