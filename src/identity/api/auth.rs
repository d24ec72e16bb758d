//! Registering, signing in and out, and what mailed links do.

use actix_web::{HttpRequest, HttpResponse, Responder, post};

use super::{Tries, charge_letter, charge_registration};
use crate::{
    base::{Code, Result},
    ctx::Ctx,
    identity::{
        extract::{Auth, MaybeAuth},
        model::SignIn,
        scope,
        service::{
            self, ConfirmEmail, ConfirmRegistration, Login, Logout, Mailed, Refresh, Register, Registered, RequestReset, ResetPassword,
        },
    },
    web::{AuthProblems, ConflictProblem, InputProblems, Json, SignInProblems, client_address},
};

/// Register
///
/// Makes an account and signs in. In live mode the account begins with its confirmed address: the answer is 202, the same for an address that
/// has an account, and a letter holds the next step.
#[utoipa::path(tag = "Accounts", request_body = Register,
    responses((status = 201, body = SignIn), (status = 202, body = Mailed, description = "Live mode: a letter is on its way."), ConflictProblem, InputProblems))]
#[post("/api/v1/auth/register")]
pub async fn auth_register(body: Json<Register>, req: HttpRequest, ctx: Ctx) -> Result<impl Responder> {
    charge_registration(&ctx, &req).await?;
    let email = body.email.expose().to_owned();
    let registered = service::register(&ctx, body.into_inner()).await?;
    if matches!(registered, Registered::SignedIn(_)) {
        service::remember_address(&ctx, &email, client_address(&req)).await;
    }
    Ok(match registered {
        Registered::SignedIn(signed_in) => HttpResponse::Created().json(signed_in),
        Registered::Mailed(mailed) => HttpResponse::Accepted().json(mailed),
    })
}

/// Finish registering
///
/// Live mode: makes the account that a mailed link stands for, and signs in. When the handle has been taken meanwhile, the link can be used
/// again with another one.
#[utoipa::path(tag = "Accounts", request_body = ConfirmRegistration, responses((status = 201, body = SignIn), ConflictProblem, InputProblems))]
#[post("/api/v1/auth/register/confirm")]
pub async fn registration_confirm(body: Json<ConfirmRegistration>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Created().json(service::confirm_registration(&ctx, body.into_inner()).await?))
}

/// Sign in
#[utoipa::path(tag = "Accounts", request_body = Login, responses((status = 200, body = SignIn), SignInProblems, InputProblems))]
#[post("/api/v1/auth/login")]
pub async fn auth_login(body: Json<Login>, req: HttpRequest, ctx: Ctx) -> Result<impl Responder> {
    let tries = Tries::begin(&ctx, &req, body.email.expose()).await?;
    let outcome = service::login(&ctx, body.into_inner()).await;
    Ok(HttpResponse::Ok().json(tries.end(&ctx, outcome).await?))
}

/// Exchange a refresh token
///
/// A refresh token works once. Seeing it again ends the session, access tokens included: then, and for every token of that session from then
/// on, the answer is `refresh_token_reused`.
#[utoipa::path(tag = "Accounts", request_body = Refresh, responses((status = 200, body = SignIn), SignInProblems, InputProblems))]
#[post("/api/v1/auth/refresh")]
pub async fn auth_refresh(body: Json<Refresh>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::refresh(&ctx, body.into_inner()).await?))
}

/// Sign out
///
/// Ends the session of the access token, or of the refresh token in the body when the access token has expired.
#[utoipa::path(tag = "Accounts", request_body = Logout, responses((status = 204), SignInProblems, InputProblems), security((), ("bearer" = [])))]
#[post("/api/v1/auth/logout")]
pub async fn auth_logout(auth: Result<MaybeAuth<scope::Session>>, body: Json<Logout>, ctx: Ctx) -> Result<impl Responder> {
    let caller = match auth {
        Ok(auth) => auth.caller,
        // An access token that has expired is no reason to keep the session that the refresh token names.
        Err(error) if error.code() == Code::Unauthenticated && body.refresh_token.is_some() => None,
        Err(error) => return Err(error),
    };
    service::logout(&ctx, caller.as_ref(), body.into_inner()).await?;
    Ok(HttpResponse::NoContent())
}

/// Ask for a password reset
///
/// Has a link mailed to the address if it has an account. The answer does not tell.
#[utoipa::path(tag = "Accounts", request_body = RequestReset, responses((status = 202, body = Mailed), InputProblems))]
#[post("/api/v1/auth/password-reset")]
pub async fn password_reset_request(body: Json<RequestReset>, req: HttpRequest, ctx: Ctx) -> Result<impl Responder> {
    charge_letter(&ctx, &req, body.email.expose()).await?;
    Ok(HttpResponse::Accepted().json(service::request_reset(&ctx, body.into_inner()).await?))
}

/// Reset a password
///
/// With the token of the mailed link, which works once and for an hour. Ends every session of the user.
#[utoipa::path(tag = "Accounts", request_body = ResetPassword, responses((status = 204), InputProblems))]
#[post("/api/v1/auth/password-reset/confirm")]
pub async fn password_reset(body: Json<ResetPassword>, ctx: Ctx) -> Result<impl Responder> {
    service::reset_password(&ctx, body.into_inner()).await?;
    Ok(HttpResponse::NoContent())
}

/// Ask for a confirmation letter
///
/// Has a link mailed to the caller's own address.
#[utoipa::path(tag = "Accounts", responses((status = 202, body = Mailed), AuthProblems), security(("bearer" = [])))]
#[post("/api/v1/auth/email-confirmation")]
pub async fn email_confirmation_request(auth: Auth<scope::Session>, req: HttpRequest, ctx: Ctx) -> Result<impl Responder> {
    charge_letter(&ctx, &req, &auth.caller.user_id.to_string()).await?;
    Ok(HttpResponse::Accepted().json(service::request_confirmation(&ctx, &auth.caller).await?))
}

/// Confirm an e-mail address
///
/// With the token of the mailed link, which works once and for seven days.
#[utoipa::path(tag = "Accounts", request_body = ConfirmEmail, responses((status = 204), InputProblems))]
#[post("/api/v1/auth/email-confirmation/confirm")]
pub async fn email_confirm(body: Json<ConfirmEmail>, ctx: Ctx) -> Result<impl Responder> {
    service::confirm_email(&ctx, body.into_inner()).await?;
    Ok(HttpResponse::NoContent())
}
