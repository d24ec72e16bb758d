//! Billing over HTTP.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, HttpResponse, Responder, dev::Payload, get, http::StatusCode, post, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    model::{TopUpRequest, TopUpStatus, TopUpView},
    service::{self, Begun, ListFilter, SandboxCreditRequest, SandboxCreditView},
};
use crate::{
    base::{Error, Result, id::TopUpId, shape::IdempotencyKeyText},
    ctx::Ctx,
    db::Tx,
    identity::{Auth, scope},
    integrations::stripe::SIGNATURE_HEADER,
    web::{
        AuthProblems, ConflictProblem, Idem, IdempotencyProblems, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query,
        QueryProblems, RawBody, cursor, idempotency,
    },
};

/// More than any event has.
const EVENT_BYTES_MAX: usize = 1_000_000;

/// Makes a route of the sandbox absent elsewhere: it stands before every other argument, so that nobody learns of it.
pub struct SandboxOnly;

impl FromRequest for SandboxOnly {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let ctx = req.app_data::<Data<Ctx>>().ok_or_else(|| Error::internal("the app has no Ctx"));
        ready(ctx.and_then(|ctx| service::require_sandbox(ctx)).map(|()| Self))
    }
}

/// Add play money
///
/// Sandbox only: adds to the account's available balance.
#[utoipa::path(tag = "Sandbox", request_body = SandboxCreditRequest,
    params(("Idempotency-Key" = IdempotencyKeyText, Header, description = "A new one for each credit meant")),
    responses((status = 201, body = SandboxCreditView), AuthProblems, InputProblems, IdempotencyProblems, NotFoundProblem),
    security(("bearer" = [])))]
#[post("/api/v1/sandbox/credits")]
pub async fn sandbox_credit_create(
    _sandbox: SandboxOnly,
    auth: Auth<scope::BillingWrite>,
    idem: Idem,
    body: Json<SandboxCreditRequest>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let claim = idem.claim(auth.caller.account_id, &body);
    let effect = async |tx: &mut Tx<'_>| {
        let view = service::sandbox_credit(&ctx, tx, &auth.caller, &body).await?;
        Ok((StatusCode::CREATED, view))
    };
    idempotency::once(&ctx, claim, effect).await
}

/// Bring in money
///
/// Through Stripe: with a payment method it is charged at once, with an address to return to the payer goes to `checkout_url`, with neither a
/// browser pays with `client_secret`. The money is on the account when `status` is `succeeded`; a declined card leaves
/// `requires_payment_method`, and `requires_action` wants the payer to authenticate. In the sandbox there is no Stripe:
/// `POST /api/v1/sandbox/credits` adds play money.
#[utoipa::path(tag = "Money", request_body = TopUpRequest,
    params(("Idempotency-Key" = IdempotencyKeyText, Header, description = "A new one for each top-up meant")),
    responses((status = 201, body = TopUpView), AuthProblems, InputProblems, IdempotencyProblems, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/top-ups")]
pub async fn top_up_create(auth: Auth<scope::BillingWrite>, idem: Idem, body: Json<TopUpRequest>, ctx: Ctx) -> Result<impl Responder> {
    let claim = idem.claim(auth.caller.account_id, &body);
    let begin = async |claim: &idempotency::Claim| service::top_up_begin(&ctx, &auth.caller, &body, &claim.derived_key()).await;
    let record = async |tx: &mut Tx<'_>, begun: &Begun| Ok((StatusCode::CREATED, service::top_up_record(&ctx, tx, begun).await?));
    idempotency::once_prepared(&ctx, claim, begin, record).await
}

/// Which of the account's top-ups, newest first.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TopUpListQuery {
    /// In this state only.
    pub status: Option<TopUpStatus>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// List top-ups
///
/// As they were last seen; reading one asks Stripe.
#[utoipa::path(tag = "Money", params(TopUpListQuery), responses((status = 200, body = Page<TopUpView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/top-ups")]
pub async fn top_up_list(auth: Auth<scope::BillingRead>, query: Query<TopUpListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = format!("{} {}", auth.caller.account_id, query.binding());
    let before: Option<TopUpId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let filter = ListFilter { status: query.status, before, limit: query.limit.rows_to_fetch() };
    let rows = service::top_up_list(&ctx, auth.caller.account_id, &filter).await?;
    let page = Page::new(&ctx, &binding, query.limit, rows, |row: &TopUpView| row.id, |row| row)?;
    Ok(HttpResponse::Ok().json(page))
}

/// Read a top-up
///
/// As Stripe has it now: whoever comes back from paying reads it here, and need not wait for a webhook.
#[utoipa::path(tag = "Money", params(("id" = TopUpId, Path, description = "A top-up of the account")),
    responses((status = 200, body = TopUpView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/top-ups/{id}")]
pub async fn top_up_fetch(auth: Auth<scope::BillingRead>, id: Path<TopUpId>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::top_up_fetch(&ctx, auth.caller.account_id, *id).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(view))
}

/// The event was taken in, now or before.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventTaken {
    pub received: bool,
}

/// Take an event of Stripe's
///
/// For Stripe alone: the body is signed with the webhook's secret, no more than five minutes ago.
#[utoipa::path(tag = "Money", request_body(content = serde_json::Value, description = "An event, as Stripe writes it", content_type = "application/json",
        example = json!({"id": "evt_1SXample", "type": "payment_intent.succeeded", "data": {"object": {"id": "pi_1SXample", "object": "payment_intent"}}})),
    params(("Stripe-Signature" = String, Header, description = "Time and signatures of the body, as Stripe makes them")),
    responses((status = 200, body = EventTaken), InputProblems, NotFoundProblem, ConflictProblem))]
#[post("/api/v1/stripe/events")]
pub async fn stripe_event_take(req: HttpRequest, body: RawBody<EVENT_BYTES_MAX>, ctx: Ctx) -> Result<impl Responder> {
    let signature = req.headers().get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok());
    service::event_take(&ctx, signature, &body).await?;
    Ok(HttpResponse::Ok().json(EventTaken { received: true }))
}
