//! Saved cards over HTTP.

use actix_web::{HttpResponse, Responder, delete, get, patch, post};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    model::{CardSetupRequest, CardSetupView, PaymentMethodView, UpdatePaymentMethod},
    service,
};
use crate::{
    base::{Result, id::CardSetupId, shape::PaymentMethodText},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, ConflictProblem, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, cursor},
};

/// Save a card
///
/// Stripe keeps it; it can then be charged while nobody is there. With a payment method it is saved at once, with an address to return to its
/// owner goes to `checkout_url`, with neither a browser gives it to Stripe with `client_secret`. It is in the list when `status` is `succeeded`;
/// `requires_action` wants its owner to authenticate.
#[utoipa::path(tag = "Money", request_body = CardSetupRequest,
    responses((status = 201, body = CardSetupView), AuthProblems, InputProblems, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/payment-methods")]
pub async fn payment_method_create(auth: Auth<scope::BillingWrite>, body: Json<CardSetupRequest>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::setup_begin(&ctx, auth.caller.account_id, &body).await?;
    Ok(HttpResponse::Created().insert_header(("Cache-Control", "no-store")).json(view))
}

/// Read the saving of a card
///
/// As Stripe has it now: whoever comes back from Stripe reads it here, and need not wait for a webhook.
#[utoipa::path(tag = "Money", params(("id" = CardSetupId, Path, description = "What saving a card was answered with")),
    responses((status = 200, body = CardSetupView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/card-setups/{id}")]
pub async fn card_setup_fetch(auth: Auth<scope::BillingRead>, id: Path<CardSetupId>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::setup_fetch(&ctx, auth.caller.account_id, *id).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(view))
}

/// Which of the account's cards, the latest first.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PaymentMethodListQuery {
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// List saved cards
///
/// What cards are known by, as Stripe showed it last; no numbers.
#[utoipa::path(tag = "Money", params(PaymentMethodListQuery),
    responses((status = 200, body = Page<PaymentMethodView>), AuthProblems, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/payment-methods")]
pub async fn payment_method_list(auth: Auth<scope::BillingRead>, query: Query<PaymentMethodListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = format!("{} {}", auth.caller.account_id, query.binding());
    let after: Option<(DateTime<Utc>, String)> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let rows = service::method_list(&ctx, auth.caller.account_id, after, query.limit.rows_to_fetch()).await?;
    let page = Page::new(&ctx, &binding, query.limit, rows, |row: &PaymentMethodView| (row.created_at, row.id.clone()), |row| row)?;
    Ok(HttpResponse::Ok().json(page))
}

/// Make a card the default
#[utoipa::path(tag = "Money", request_body = UpdatePaymentMethod, params(("id" = PaymentMethodText, Path, description = "A card of the account")),
    responses((status = 200, body = PaymentMethodView), AuthProblems, InputProblems, NotFoundProblem), security(("bearer" = [])))]
#[patch("/api/v1/payment-methods/{id}")]
pub async fn payment_method_update(
    auth: Auth<scope::BillingWrite>,
    id: Path<String>,
    body: Json<UpdatePaymentMethod>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let view = service::method_update(&ctx, auth.caller.account_id, &id, &body).await?;
    Ok(HttpResponse::Ok().json(view))
}

/// Remove a card
///
/// It is charged no more from now on, and taken off the account at Stripe. Automatic top-up with it is paused.
#[utoipa::path(tag = "Money", params(("id" = PaymentMethodText, Path, description = "A card of the account")),
    responses((status = 204), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[delete("/api/v1/payment-methods/{id}")]
pub async fn payment_method_delete(auth: Auth<scope::BillingWrite>, id: Path<String>, ctx: Ctx) -> Result<impl Responder> {
    service::method_remove(&ctx, auth.caller.account_id, &id).await?;
    Ok(HttpResponse::NoContent().finish())
}
