//! Payouts over HTTP.

use actix_web::{HttpResponse, Responder, get, http::StatusCode, patch, post};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    model::{OnboardingRequest, OnboardingView, PayoutAccountView, PayoutRequest, PayoutStatus, PayoutView, UpdatePayoutAccount},
    service::{self, Begun, ListFilter},
};
use crate::{
    base::{Result, id::PayoutId, shape::IdempotencyKeyText},
    ctx::Ctx,
    db::Tx,
    identity::{Auth, scope},
    web::{
        AuthProblems, ConflictProblem, FundsProblem, Idem, IdempotencyProblems, InputProblems, Json, Limit, NotFoundProblem, Page, Path,
        Query, QueryProblems, cursor, idempotency,
    },
};

/// Set up the payout account
///
/// Makes the account at Stripe through which the host is paid, if there is none yet, and a link to a page of Stripe's, where its owner answers
/// what Stripe has to know. Asked again, it gives another link. In the sandbox there is no Stripe.
#[utoipa::path(tag = "Money", request_body = OnboardingRequest,
    responses((status = 201, body = OnboardingView), AuthProblems, InputProblems, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/payout-account")]
pub async fn payout_account_onboard(auth: Auth<scope::BillingWrite>, body: Json<OnboardingRequest>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::payout_account_onboard(&ctx, &auth.caller, &body).await?;
    Ok(HttpResponse::Created().insert_header(("Cache-Control", "no-store")).json(view))
}

/// Read the payout account
///
/// As Stripe has it now, with what can be paid out.
#[utoipa::path(tag = "Money", responses((status = 200, body = PayoutAccountView), AuthProblems), security(("bearer" = [])))]
#[get("/api/v1/payout-account")]
pub async fn payout_account_show(auth: Auth<scope::BillingRead>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::payout_account_show(&ctx, auth.caller.account_id).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(view))
}

/// Set the schedule of payouts
#[utoipa::path(tag = "Money", request_body = UpdatePayoutAccount,
    responses((status = 200, body = PayoutAccountView), AuthProblems, InputProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[patch("/api/v1/payout-account")]
pub async fn payout_account_update(auth: Auth<scope::BillingWrite>, body: Json<UpdatePayoutAccount>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::payout_account_update(&ctx, &auth.caller, &body).await?))
}

/// Pay out
///
/// Takes the amount out of what is payable and sends it to the payout account. It is `pending` until Stripe has confirmed it, `sent` while it is
/// on the payout account, `paid` once the bank has it. What Stripe refuses (`failed`) or takes back (`reversed`) is payable again. Earnings
/// become payable a week after they were earned.
#[utoipa::path(tag = "Money", request_body = PayoutRequest,
    params(("Idempotency-Key" = IdempotencyKeyText, Header, description = "A new one for each payout meant")),
    responses((status = 201, body = PayoutView), AuthProblems, InputProblems, IdempotencyProblems, FundsProblem), security(("bearer" = [])))]
#[post("/api/v1/payouts")]
pub async fn payout_create(auth: Auth<scope::BillingWrite>, idem: Idem, body: Json<PayoutRequest>, ctx: Ctx) -> Result<impl Responder> {
    let claim = idem.claim(auth.caller.account_id, &body);
    let begin = async |claim: &idempotency::Claim| service::payout_begin(&ctx, &auth.caller, &body, &claim.derived_key()).await;
    let record = async |tx: &mut Tx<'_>, begun: &Begun| Ok((StatusCode::CREATED, service::payout_record(&ctx, tx, begun).await?));
    idempotency::once_prepared(&ctx, claim, begin, record).await
}

/// Which of the account's payouts, newest first.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PayoutListQuery {
    /// In this state only.
    pub status: Option<PayoutStatus>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// List payouts
#[utoipa::path(tag = "Money", params(PayoutListQuery), responses((status = 200, body = Page<PayoutView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/payouts")]
pub async fn payout_list(auth: Auth<scope::BillingRead>, query: Query<PayoutListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = format!("{} {}", auth.caller.account_id, query.binding());
    let before: Option<PayoutId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let filter = ListFilter { status: query.status, before, limit: query.limit.rows_to_fetch() };
    let rows = service::payout_list(&ctx, auth.caller.account_id, &filter).await?;
    let page = Page::new(&ctx, &binding, query.limit, rows, |row: &PayoutView| row.id, |row| row)?;
    Ok(HttpResponse::Ok().json(page))
}

/// Read a payout
#[utoipa::path(tag = "Money", params(("id" = PayoutId, Path, description = "A payout of the account")),
    responses((status = 200, body = PayoutView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/payouts/{id}")]
pub async fn payout_fetch(auth: Auth<scope::BillingRead>, id: Path<PayoutId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::payout_fetch(&ctx, auth.caller.account_id, *id).await?))
}
