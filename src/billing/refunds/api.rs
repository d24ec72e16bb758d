//! Refunds over HTTP.

use actix_web::{HttpResponse, Responder, get, http::StatusCode, post};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    model::{RefundRequest, RefundStatus, RefundView},
    service::{self, ListFilter},
};
use crate::{
    base::{
        Result,
        id::{RefundId, TopUpId},
        shape::IdempotencyKeyText,
    },
    ctx::Ctx,
    db::Tx,
    identity::{Auth, scope},
    web::{
        AuthProblems, ConflictProblem, Idem, IdempotencyProblems, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query,
        QueryProblems, cursor, idempotency,
    },
};

/// Give money back
///
/// To where a top-up came from: at most what is left of that payment after other refunds and disputes, and at most what is available. The
/// amount leaves the balance at once. `pending` is on its way; `failed` has the money on the balance again, also when the payer's bank
/// returns it later.
#[utoipa::path(tag = "Money", request_body = RefundRequest,
    params(("Idempotency-Key" = IdempotencyKeyText, Header, description = "A new one for each refund meant")),
    responses((status = 201, body = RefundView), AuthProblems, InputProblems, IdempotencyProblems, NotFoundProblem, ConflictProblem),
    security(("bearer" = [])))]
#[post("/api/v1/refunds")]
pub async fn refund_create(auth: Auth<scope::BillingWrite>, idem: Idem, body: Json<RefundRequest>, ctx: Ctx) -> Result<impl Responder> {
    let claim = idem.claim(auth.caller.account_id, &body);
    let begin = async |claim: &idempotency::Claim| service::refund_begin(&ctx, &auth.caller, &body, &claim.derived_key()).await;
    let record = async |tx: &mut Tx<'_>, id: &RefundId| Ok((StatusCode::CREATED, service::refund_record(tx, *id).await?));
    idempotency::once_prepared(&ctx, claim, begin, record).await
}

/// Which of the account's refunds, newest first.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RefundListQuery {
    /// In this state only.
    pub status: Option<RefundStatus>,
    /// Of this top-up only.
    pub top_up_id: Option<TopUpId>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// List refunds
///
/// Those made at Stripe too.
#[utoipa::path(tag = "Money", params(RefundListQuery), responses((status = 200, body = Page<RefundView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/refunds")]
pub async fn refund_list(auth: Auth<scope::BillingRead>, query: Query<RefundListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = format!("{} {}", auth.caller.account_id, query.binding());
    let before: Option<RefundId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let filter = ListFilter { status: query.status, top_up: query.top_up_id, before, limit: query.limit.rows_to_fetch() };
    let rows = service::refund_list(&ctx, auth.caller.account_id, &filter).await?;
    let page = Page::new(&ctx, &binding, query.limit, rows, |row: &RefundView| row.id, |row| row)?;
    Ok(HttpResponse::Ok().json(page))
}

/// Read a refund
///
/// One that is on its way as Stripe has it now.
#[utoipa::path(tag = "Money", params(("id" = RefundId, Path, description = "A refund of the account")),
    responses((status = 200, body = RefundView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/refunds/{id}")]
pub async fn refund_fetch(auth: Auth<scope::BillingRead>, id: Path<RefundId>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::refund_fetch(&ctx, auth.caller.account_id, *id).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(view))
}
