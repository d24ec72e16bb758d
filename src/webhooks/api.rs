//! The HTTP of webhook endpoints.

use actix_web::{HttpResponse, Responder, delete, get, patch, post};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    model::{CreateWebhookEndpoint, UpdateWebhookEndpoint, WebhookDeliveryView, WebhookEndpointView, WebhookEndpointWithSecret},
    service,
};
use crate::{
    base::{
        Result,
        id::{WebhookEndpointId, WebhookEventId},
    },
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, ConflictProblem, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, cursor},
};

/// A page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WebhookListQuery {
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
    cursor: Option<String>,
}

/// List webhook endpoints
///
/// The account's, newest first, without their secrets.
#[utoipa::path(tag = "Webhooks", params(WebhookListQuery),
    responses((status = 200, body = Page<WebhookEndpointView>), AuthProblems, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/webhook-endpoints")]
pub async fn webhook_endpoint_list(auth: Auth<scope::AccountRead>, query: Query<WebhookListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = format!("{} {}", auth.caller.account_id, query.binding());
    let before: Option<WebhookEndpointId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let rows = service::list(&ctx, &auth.caller, before, query.limit.rows_to_fetch()).await?;
    Ok(HttpResponse::Ok().json(Page::new(&ctx, &binding, query.limit, rows, |row: &WebhookEndpointView| row.id, |row| row)?))
}

/// Make a webhook endpoint
///
/// The account's events are sent to its address from now on, signed as the Standard Webhooks specification says; `secret` is shown this once.
/// Who makes or changes an endpoint needs the write scope of everything that it is told: `rentals:write` for `rental.*`, `runs:write` for
/// `run.*`, `listings:write` for `listing.*` and `badge.*`, `billing:write` for `top_up.*`, and all of these for `*`. The address must be a
/// public one, which is checked again at every try; redirects are not followed. An account has at most 20 endpoints.
#[utoipa::path(tag = "Webhooks", request_body = CreateWebhookEndpoint,
    responses((status = 201, body = WebhookEndpointWithSecret), AuthProblems, InputProblems, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/webhook-endpoints")]
pub async fn webhook_endpoint_create(auth: Auth<scope::Any>, body: Json<CreateWebhookEndpoint>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Created().json(service::create(&ctx, &auth.caller, &body).await?))
}

/// Read a webhook endpoint
///
/// Without its secret.
#[utoipa::path(tag = "Webhooks", params(("id" = WebhookEndpointId, Path, description = "A webhook endpoint of the account")),
    responses((status = 200, body = WebhookEndpointView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/webhook-endpoints/{id}")]
pub async fn webhook_endpoint_show(auth: Auth<scope::AccountRead>, id: Path<WebhookEndpointId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::show(&ctx, &auth.caller, *id).await?))
}

/// Change a webhook endpoint
///
/// A disabled endpoint is told nothing new, and what waits for it goes on waiting until it is enabled, for 30 days. The scopes are those for
/// making it, of the events before and after.
#[utoipa::path(tag = "Webhooks", params(("id" = WebhookEndpointId, Path, description = "A webhook endpoint of the account")),
    request_body = UpdateWebhookEndpoint,
    responses((status = 200, body = WebhookEndpointView), AuthProblems, NotFoundProblem, InputProblems), security(("bearer" = [])))]
#[patch("/api/v1/webhook-endpoints/{id}")]
pub async fn webhook_endpoint_update(
    auth: Auth<scope::Any>,
    id: Path<WebhookEndpointId>,
    body: Json<UpdateWebhookEndpoint>,
    ctx: Ctx,
) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::update(&ctx, &auth.caller, *id, &body).await?))
}

/// Delete a webhook endpoint
///
/// With the log of its deliveries; what waited for it is not sent. The scopes are those for making it.
#[utoipa::path(tag = "Webhooks", params(("id" = WebhookEndpointId, Path, description = "A webhook endpoint of the account")),
    responses((status = 204), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[delete("/api/v1/webhook-endpoints/{id}")]
pub async fn webhook_endpoint_delete(auth: Auth<scope::Any>, id: Path<WebhookEndpointId>, ctx: Ctx) -> Result<impl Responder> {
    service::delete(&ctx, &auth.caller, *id).await?;
    Ok(HttpResponse::NoContent())
}

/// Give a webhook endpoint a new secret
///
/// Shown this once. For 24 hours the secret before it signs too: `webhook-signature` then holds both signatures, separated by a space. The
/// scopes are those for making the endpoint.
#[utoipa::path(tag = "Webhooks", params(("id" = WebhookEndpointId, Path, description = "A webhook endpoint of the account")),
    responses((status = 200, body = WebhookEndpointWithSecret), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[post("/api/v1/webhook-endpoints/{id}/rotate-secret")]
pub async fn webhook_secret_rotate(auth: Auth<scope::Any>, id: Path<WebhookEndpointId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::rotate_secret(&ctx, &auth.caller, *id).await?))
}

/// Send a test event
///
/// A `webhook.test` to this endpoint alone, whatever it waits for; its `data` is `{"webhook_endpoint_id": …}`. What came of it stands in the
/// log. The scopes are those for making the endpoint.
#[utoipa::path(tag = "Webhooks", params(("id" = WebhookEndpointId, Path, description = "A webhook endpoint of the account")),
    responses((status = 202, body = WebhookDeliveryView), AuthProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/webhook-endpoints/{id}/test")]
pub async fn webhook_test_send(auth: Auth<scope::Any>, id: Path<WebhookEndpointId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Accepted().json(service::send_test(&ctx, &auth.caller, *id).await?))
}

/// List what was sent to a webhook endpoint
///
/// One row an event, with its last try; newest event first. Events are kept for 30 days, answers of receivers not at all.
#[utoipa::path(tag = "Webhooks",
    params(("id" = WebhookEndpointId, Path, description = "A webhook endpoint of the account"), WebhookListQuery),
    responses((status = 200, body = Page<WebhookDeliveryView>), AuthProblems, NotFoundProblem, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/webhook-endpoints/{id}/deliveries")]
pub async fn webhook_delivery_list(
    auth: Auth<scope::AccountRead>,
    id: Path<WebhookEndpointId>,
    query: Query<WebhookListQuery>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let binding = format!("{} {} {}", auth.caller.account_id, *id, query.binding());
    let before: Option<WebhookEventId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let rows = service::deliveries(&ctx, &auth.caller, *id, before, query.limit.rows_to_fetch()).await?;
    Ok(HttpResponse::Ok().json(Page::new(&ctx, &binding, query.limit, rows, |row: &WebhookDeliveryView| row.event_id, |row| row)?))
}

/// Deliver an event again
///
/// Now, with the same `webhook-id` and the same bytes. A delivery that was over, delivered or failed, gets this one try more; one that waits
/// goes on with its schedule. While a try is under way nothing changes. The scopes are those for making the endpoint.
#[utoipa::path(tag = "Webhooks",
    params(("id" = WebhookEndpointId, Path, description = "A webhook endpoint of the account"),
        ("event_id" = WebhookEventId, Path, description = "An event that was sent to it")),
    responses((status = 202, body = WebhookDeliveryView), AuthProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/webhook-endpoints/{id}/deliveries/{event_id}/retry")]
pub async fn webhook_delivery_retry(
    auth: Auth<scope::Any>,
    ids: Path<(WebhookEndpointId, WebhookEventId)>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let (id, event) = *ids;
    Ok(HttpResponse::Accepted().json(service::retry(&ctx, &auth.caller, id, event).await?))
}
