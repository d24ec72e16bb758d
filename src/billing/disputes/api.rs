//! Disputes over HTTP.

use actix_web::{HttpResponse, Responder, get};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    model::{DisputeEvidence, DisputeStatus, DisputeView},
    service::{self, ListFilter},
};
use crate::{
    base::{Result, id::DisputeId},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, cursor},
};

/// Which of the account's disputes, newest first.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DisputeListQuery {
    /// In this state only.
    pub status: Option<DisputeStatus>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// List disputes
///
/// Payments that the payer's bank asks about or takes back. While one is open its amount is out of reach and nothing new can be rented.
#[utoipa::path(tag = "Money", params(DisputeListQuery), responses((status = 200, body = Page<DisputeView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/disputes")]
pub async fn dispute_list(auth: Auth<scope::BillingRead>, query: Query<DisputeListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = format!("{} {}", auth.caller.account_id, query.binding());
    let before: Option<DisputeId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let filter = ListFilter { status: query.status, before, limit: query.limit.rows_to_fetch() };
    let rows = service::dispute_list(&ctx, auth.caller.account_id, &filter).await?;
    let page = Page::new(&ctx, &binding, query.limit, rows, |row: &DisputeView| row.id, |row| row)?;
    Ok(HttpResponse::Ok().json(page))
}

/// Read a dispute
#[utoipa::path(tag = "Money", params(("id" = DisputeId, Path, description = "A dispute of the account")),
    responses((status = 200, body = DisputeView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/disputes/{id}")]
pub async fn dispute_fetch(auth: Auth<scope::BillingRead>, id: Path<DisputeId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::dispute_fetch(&ctx, auth.caller.account_id, *id).await?))
}

/// Export the evidence of a dispute
///
/// In one file: the payment, every rental since it was credited with what was used and the measurement that backed the offer, and the account's
/// ledger entries.
#[utoipa::path(tag = "Money", params(("id" = DisputeId, Path, description = "A dispute of the account")),
    responses((status = 200, body = DisputeEvidence), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/disputes/{id}/evidence")]
pub async fn dispute_evidence(auth: Auth<scope::BillingRead>, id: Path<DisputeId>, ctx: Ctx) -> Result<impl Responder> {
    let evidence = service::evidence_for_account(&ctx, auth.caller.account_id, *id).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(evidence))
}
