//! Pro over HTTP.

use actix_web::{HttpResponse, Responder, get, http::StatusCode, post};

use super::{
    model::{PlanRequest, PortalRequest, PortalView, ProSubscriptionView, ProView, SeatsRequest, SubscribeRequest},
    service::{self, Begun},
};
use crate::{
    base::{Result, shape::IdempotencyKeyText},
    ctx::Ctx,
    db::Tx,
    identity::{Auth, MaybeAuth, scope},
    web::{AuthProblems, ConflictProblem, FundsProblem, Idem, IdempotencyProblems, InputProblems, Json, idempotency},
};

/// Read Pro
///
/// What it costs, what it gives, and for a caller who may read the account's billing what the account has of it.
#[utoipa::path(tag = "Money", responses((status = 200, body = ProView)), security((), ("bearer" = [])))]
#[get("/api/v1/pro")]
pub async fn pro_show(auth: MaybeAuth<scope::BillingRead>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::pro_view(&ctx, auth.caller.as_ref()).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(view))
}

/// Subscribe to Pro
///
/// Through Stripe: with a payment method it is charged at once, with an address to return to the payer goes to `checkout_url`, with neither a
/// browser pays with `client_secret`. Pro is on when `status` is `active`; a declined card leaves `failed` or `incomplete`. In the sandbox one
/// period is paid with play money, and does not renew.
#[utoipa::path(tag = "Money", request_body = SubscribeRequest,
    params(("Idempotency-Key" = IdempotencyKeyText, Header, description = "A new one for each subscription meant")),
    responses((status = 201, body = ProSubscriptionView), AuthProblems, InputProblems, IdempotencyProblems, ConflictProblem, FundsProblem),
    security(("bearer" = [])))]
#[post("/api/v1/pro")]
pub async fn pro_subscribe(auth: Auth<scope::BillingWrite>, idem: Idem, body: Json<SubscribeRequest>, ctx: Ctx) -> Result<impl Responder> {
    let claim = idem.claim(auth.caller.account_id, &body);
    if ctx.config.mode.is_sandbox() {
        let buy = async |tx: &mut Tx<'_>| Ok((StatusCode::CREATED, service::pro_buy_with_play_money(&ctx, tx, &auth.caller, &body).await?));
        return idempotency::once(&ctx, claim, buy).await;
    }
    let begin = async |claim: &idempotency::Claim| service::pro_begin(&ctx, &auth.caller, &body, &claim.derived_key()).await;
    let record = async |tx: &mut Tx<'_>, begun: &Begun| Ok((StatusCode::CREATED, service::pro_record(&ctx, tx, begun).await?));
    idempotency::once_prepared(&ctx, claim, begin, record).await
}

/// Cancel Pro
///
/// It ends with the period that is paid; one that was never paid ends now.
#[utoipa::path(tag = "Money", responses((status = 200, body = ProSubscriptionView), AuthProblems, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/pro/cancel")]
pub async fn pro_cancel(auth: Auth<scope::BillingWrite>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::pro_cancel(&ctx, &auth.caller).await?))
}

/// Resume Pro
///
/// Takes a cancellation back, while the period lasts.
#[utoipa::path(tag = "Money", responses((status = 200, body = ProSubscriptionView), AuthProblems, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/pro/resume")]
pub async fn pro_resume(auth: Auth<scope::BillingWrite>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::pro_resume(&ctx, &auth.caller).await?))
}

/// Change the plan of Pro
///
/// What is left of the period is settled at once: paid on the spot, or kept for the next invoice. A declined card changes nothing.
#[utoipa::path(tag = "Money", request_body = PlanRequest,
    responses((status = 200, body = ProSubscriptionView), AuthProblems, InputProblems, ConflictProblem, FundsProblem), security(("bearer" = [])))]
#[post("/api/v1/pro/plan")]
pub async fn pro_plan_set(auth: Auth<scope::BillingWrite>, body: Json<PlanRequest>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::pro_set_plan(&ctx, &auth.caller, &body).await?))
}

/// Change the seats of Pro
///
/// How many members of the organization it is for: nobody joins beyond them, and there are never fewer than members. Settled as a change of plan.
#[utoipa::path(tag = "Money", request_body = SeatsRequest,
    responses((status = 200, body = ProSubscriptionView), AuthProblems, InputProblems, ConflictProblem, FundsProblem), security(("bearer" = [])))]
#[post("/api/v1/pro/seats")]
pub async fn pro_seats_set(auth: Auth<scope::BillingWrite>, body: Json<SeatsRequest>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::pro_set_seats(&ctx, &auth.caller, &body).await?))
}

/// Open the billing portal
///
/// A page of Stripe's where the payer changes the card, and finds invoices.
#[utoipa::path(tag = "Money", request_body = PortalRequest,
    responses((status = 200, body = PortalView), AuthProblems, InputProblems, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/pro/portal")]
pub async fn pro_portal(auth: Auth<scope::BillingWrite>, body: Json<PortalRequest>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::pro_portal(&ctx, &auth.caller, &body).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(view))
}
