//! The account a call acts for.

use actix_web::{HttpRequest, HttpResponse, Responder, get, patch, post};

use super::{ListQuery, Tries, binding};
use crate::{
    base::{Result, id::InvitationId},
    ctx::Ctx,
    identity::{
        extract::Auth,
        model::{InvitationView, OwnAccount},
        scope,
        service::{self, ChangePassword, UpdateAccount},
    },
    web::{AuthProblems, InputProblems, Json, Page, Query, QueryProblems, cursor},
};

/// Read the own account
///
/// The account that the call acts for, what the caller may do for it, and its plan. The e-mail address is shown to the signed-in person only.
#[utoipa::path(tag = "Accounts", responses((status = 200, body = OwnAccount), AuthProblems), security(("bearer" = [])))]
#[get("/api/v1/me")]
pub async fn me_show(auth: Auth<scope::AccountRead>, ctx: Ctx) -> Result<impl Responder> {
    let mut conn = ctx.db.conn().await?;
    Ok(HttpResponse::Ok().json(service::own_account(&ctx, &mut conn, &auth.caller).await?))
}

/// Change the own account
#[utoipa::path(tag = "Accounts", request_body = UpdateAccount, responses((status = 200, body = OwnAccount), AuthProblems, InputProblems),
    security(("bearer" = [])))]
#[patch("/api/v1/me")]
pub async fn me_update(auth: Auth<scope::Session>, body: Json<UpdateAccount>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::update_own_account(&ctx, &auth.caller, body.into_inner()).await?))
}

/// Change the password
///
/// Ends every other session of the user.
#[utoipa::path(tag = "Accounts", request_body = ChangePassword, responses((status = 204), AuthProblems, InputProblems), security(("bearer" = [])))]
#[post("/api/v1/me/password")]
pub async fn me_password_change(
    auth: Auth<scope::Session>,
    body: Json<ChangePassword>,
    req: HttpRequest,
    ctx: Ctx,
) -> Result<impl Responder> {
    let tries = Tries::begin_in_session(&ctx, &req, &auth.caller.user_id.to_string()).await?;
    let outcome = service::change_password(&ctx, &auth.caller, body.into_inner()).await;
    tries.end(&ctx, outcome).await?;
    Ok(HttpResponse::NoContent())
}

/// List invitations to the caller
///
/// Open ones, to the account or to its e-mail address.
#[utoipa::path(tag = "Accounts", params(ListQuery), responses((status = 200, body = Page<InvitationView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/me/invitations")]
pub async fn me_invitation_list(auth: Auth<scope::Session>, query: Query<ListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = binding(&auth.caller, &query);
    let before: Option<InvitationId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let mut conn = ctx.db.conn().await?;
    let rows = service::invitations_to_me(&ctx, &mut conn, &auth.caller, before, query.limit.rows_to_fetch()).await?;
    Ok(HttpResponse::Ok().json(Page::new(&ctx, &binding, query.limit, rows, |row: &InvitationView| row.id, |row| row)?))
}
