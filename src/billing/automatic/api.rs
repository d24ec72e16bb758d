//! Automatic top-up over HTTP.

use actix_web::{HttpResponse, Responder, delete, get, put};

use super::{
    model::{AutomaticTopUpRequest, AutomaticTopUpView},
    service,
};
use crate::{
    base::Result,
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, ConflictProblem, InputProblems, Json, NotFoundProblem},
};

/// Read automatic top-up
///
/// What is set, how it went, and when it is tried next at the earliest. 404 while it is off.
#[utoipa::path(tag = "Money", responses((status = 200, body = AutomaticTopUpView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/automatic-top-up")]
pub async fn automatic_top_up_show(auth: Auth<scope::BillingRead>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::automatic_show(&ctx, auth.caller.account_id).await?;
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(view))
}

/// Set automatic top-up
///
/// When less than `threshold` is available, `amount` is charged to a saved card, at most once an hour. It pauses after several failures in a row,
/// at once when the bank wants the card's owner, or when the card is removed; saving it again ends the pause.
#[utoipa::path(tag = "Money", request_body = AutomaticTopUpRequest,
    responses((status = 200, body = AutomaticTopUpView), AuthProblems, InputProblems, ConflictProblem), security(("bearer" = [])))]
#[put("/api/v1/automatic-top-up")]
pub async fn automatic_top_up_set(auth: Auth<scope::BillingWrite>, body: Json<AutomaticTopUpRequest>, ctx: Ctx) -> Result<impl Responder> {
    let view = service::automatic_set(&ctx, auth.caller.account_id, &body).await?;
    Ok(HttpResponse::Ok().json(view))
}

/// Turn automatic top-up off
#[utoipa::path(tag = "Money", responses((status = 204), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[delete("/api/v1/automatic-top-up")]
pub async fn automatic_top_up_end(auth: Auth<scope::BillingWrite>, ctx: Ctx) -> Result<impl Responder> {
    service::automatic_end(&ctx, auth.caller.account_id).await?;
    Ok(HttpResponse::NoContent().finish())
}
