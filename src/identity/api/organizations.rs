//! Organizations, their members and invitations.

use actix_web::{HttpResponse, Responder, delete, get, patch, post};

use super::{ListQuery, binding};
use crate::{
    base::{Result, id::InvitationId, shape::HandleText},
    ctx::Ctx,
    identity::{
        extract::{Auth, MaybeAuth},
        model::{InvitationView, MemberView, OrganizationView},
        scope,
        service::{self, CreateInvitation, CreateOrganization, SetRole, UpdateOrganization},
    },
    web::{AuthProblems, ConflictProblem, InputProblems, Json, NotFoundProblem, Page, Path, Query, QueryProblems, cursor},
};

/// List the caller's organizations
#[utoipa::path(tag = "Organizations", params(ListQuery), responses((status = 200, body = Page<OrganizationView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/organizations")]
pub async fn organization_list(auth: Auth<scope::AccountRead>, query: Query<ListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = binding(&auth.caller, &query);
    let after: Option<String> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let mut conn = ctx.db.conn().await?;
    let rows = service::organizations(&mut conn, &auth.caller, after.as_deref(), query.limit.rows_to_fetch()).await?;
    let position = |row: &OrganizationView| row.summary.handle.clone();
    Ok(HttpResponse::Ok().json(Page::new(&ctx, &binding, query.limit, rows, position, |row| row)?))
}

/// Found an organization
///
/// The caller is its first owner.
#[utoipa::path(tag = "Organizations", request_body = CreateOrganization,
    responses((status = 201, body = OrganizationView), AuthProblems, ConflictProblem, InputProblems), security(("bearer" = [])))]
#[post("/api/v1/organizations")]
pub async fn organization_create(auth: Auth<scope::Session>, body: Json<CreateOrganization>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Created().json(service::found_organization(&ctx, &auth.caller, body.into_inner()).await?))
}

/// Read an organization
///
/// Public; with the caller's role for who belongs to it.
#[utoipa::path(tag = "Organizations", params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`")), responses((status = 200, body = OrganizationView), NotFoundProblem),
    security((), ("bearer" = [])))]
#[get("/api/v1/organizations/{handle}")]
pub async fn organization_show(auth: MaybeAuth<scope::AccountRead>, handle: Path<String>, ctx: Ctx) -> Result<impl Responder> {
    let mut conn = ctx.db.conn().await?;
    Ok(HttpResponse::Ok().json(service::organization(&mut conn, auth.caller.as_ref(), &handle).await?))
}

/// Change an organization
#[utoipa::path(tag = "Organizations", request_body = UpdateOrganization, params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`")),
    responses((status = 200, body = OrganizationView), AuthProblems, NotFoundProblem, InputProblems), security(("bearer" = [])))]
#[patch("/api/v1/organizations/{handle}")]
pub async fn organization_update(
    auth: Auth<scope::Session>,
    handle: Path<String>,
    body: Json<UpdateOrganization>,
    ctx: Ctx,
) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::update_organization(&ctx, &auth.caller, &handle, body.into_inner()).await?))
}

/// List members
#[utoipa::path(tag = "Organizations", params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`"), ListQuery),
    responses((status = 200, body = Page<MemberView>), AuthProblems, NotFoundProblem, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/organizations/{handle}/members")]
pub async fn member_list(
    auth: Auth<scope::AccountRead>,
    handle: Path<String>,
    query: Query<ListQuery>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let binding = binding(&auth.caller, &query);
    let after: Option<String> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let mut conn = ctx.db.conn().await?;
    let rows = service::members(&mut conn, &auth.caller, &handle, after.as_deref(), query.limit.rows_to_fetch()).await?;
    let position = |row: &MemberView| row.account.handle.clone();
    Ok(HttpResponse::Ok().json(Page::new(&ctx, &binding, query.limit, rows, position, |row| row)?))
}

/// Change a member's role
///
/// Owners give and take every role, admins every role but owner's. The last owner stays.
#[utoipa::path(tag = "Organizations", request_body = SetRole, params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`"), ("member" = HandleText, Path, description = "Handle of the member, with or without `@`")),
    responses((status = 200, body = MemberView), AuthProblems, NotFoundProblem, ConflictProblem, InputProblems), security(("bearer" = [])))]
#[patch("/api/v1/organizations/{handle}/members/{member}")]
pub async fn member_update(
    auth: Auth<scope::Session>,
    path: Path<(String, String)>,
    body: Json<SetRole>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let (handle, member) = &*path;
    Ok(HttpResponse::Ok().json(service::set_member_role(&ctx, &auth.caller, handle, member, body.into_inner()).await?))
}

/// Remove a member, or leave
///
/// Ends at once what they could do for the organization, and the keys they made for it.
#[utoipa::path(tag = "Organizations", params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`"), ("member" = HandleText, Path, description = "Handle of the member, with or without `@`")),
    responses((status = 204), AuthProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[delete("/api/v1/organizations/{handle}/members/{member}")]
pub async fn member_remove(auth: Auth<scope::Session>, path: Path<(String, String)>, ctx: Ctx) -> Result<impl Responder> {
    let (handle, member) = &*path;
    service::remove_member(&ctx, &auth.caller, handle, member).await?;
    Ok(HttpResponse::NoContent())
}

/// List open invitations
#[utoipa::path(tag = "Organizations", params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`"), ListQuery),
    responses((status = 200, body = Page<InvitationView>), AuthProblems, NotFoundProblem, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/organizations/{handle}/invitations")]
pub async fn invitation_list(
    auth: Auth<scope::Session>,
    handle: Path<String>,
    query: Query<ListQuery>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let binding = binding(&auth.caller, &query);
    let before: Option<InvitationId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let mut conn = ctx.db.conn().await?;
    let limit = query.limit.rows_to_fetch();
    let rows = service::invitations_of_organization(&ctx, &mut conn, &auth.caller, &handle, before, limit).await?;
    Ok(HttpResponse::Ok().json(Page::new(&ctx, &binding, query.limit, rows, |row: &InvitationView| row.id, |row| row)?))
}

/// Invite somebody
///
/// By handle, or by e-mail address whether it has an account yet or not. The invitation is open for 14 days.
#[utoipa::path(tag = "Organizations", request_body = CreateInvitation, params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`")),
    responses((status = 201, body = InvitationView), AuthProblems, NotFoundProblem, ConflictProblem, InputProblems), security(("bearer" = [])))]
#[post("/api/v1/organizations/{handle}/invitations")]
pub async fn invitation_create(
    auth: Auth<scope::Session>,
    handle: Path<String>,
    body: Json<CreateInvitation>,
    ctx: Ctx,
) -> Result<impl Responder> {
    Ok(HttpResponse::Created().json(service::create_invitation(&ctx, &auth.caller, &handle, body.into_inner()).await?))
}

/// Accept an invitation
///
/// By the invited person, who then is a member.
#[utoipa::path(tag = "Organizations", params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`"), ("id" = InvitationId, Path, description = "An invitation")),
    responses((status = 200, body = OrganizationView), AuthProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/organizations/{handle}/invitations/{id}/accept")]
pub async fn invitation_accept(auth: Auth<scope::Session>, path: Path<(String, InvitationId)>, ctx: Ctx) -> Result<impl Responder> {
    let (handle, id) = &*path;
    Ok(HttpResponse::Ok().json(service::accept_invitation(&ctx, &auth.caller, handle, *id).await?))
}

/// Take an invitation back
///
/// Taking it back twice is no error.
#[utoipa::path(tag = "Organizations", params(("handle" = HandleText, Path, description = "Handle of the organization, with or without `@`"), ("id" = InvitationId, Path, description = "An invitation")),
    responses((status = 204), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[delete("/api/v1/organizations/{handle}/invitations/{id}")]
pub async fn invitation_revoke(auth: Auth<scope::Session>, path: Path<(String, InvitationId)>, ctx: Ctx) -> Result<impl Responder> {
    let (handle, id) = &*path;
    service::revoke_invitation(&ctx, &auth.caller, handle, *id).await?;
    Ok(HttpResponse::NoContent())
}
