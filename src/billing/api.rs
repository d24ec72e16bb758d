//! Billing over HTTP.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, Responder, dev::Payload, http::StatusCode, post, web::Data};

use super::service::{self, SandboxCreditRequest, SandboxCreditView};
use crate::{
    base::{Error, Result, shape::IdempotencyKeyText},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, Idem, IdempotencyProblems, InputProblems, Json, NotFoundProblem, idempotency},
};

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
    let effect = async |tx: &mut crate::db::Tx<'_>| {
        let view = service::sandbox_credit(&ctx, tx, &auth.caller, &body).await?;
        Ok((StatusCode::CREATED, view))
    };
    idempotency::once(&ctx, claim, effect).await
}
