//! The routes of machines.

use actix_web::{HttpResponse, Responder, delete, get, patch, post, web as actix};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    model::MachineView,
    service::{self, CreateMachine, UpdateMachine},
};
use crate::{
    base::{Result, id::MachineId},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, ConflictProblem, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, cursor::open_opt},
};

/// Register a machine
#[utoipa::path(tag = "Machines", security(("bearer" = [])), request_body = CreateMachine,
    responses((status = 201, body = MachineView), AuthProblems, InputProblems))]
#[post("/api/v1/machines")]
pub async fn machine_create(auth: Auth<scope::MachinesWrite>, body: Json<CreateMachine>, ctx: Ctx) -> Result<impl Responder> {
    let machine = service::create(&ctx, &auth.caller, body.into_inner()).await?;
    Ok(HttpResponse::Created().json(machine))
}

#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MachineListQuery {
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
    cursor: Option<String>,
}

/// List machines
///
/// The account's own, newest first.
#[utoipa::path(tag = "Machines", security(("bearer" = [])), params(MachineListQuery),
    responses((status = 200, body = Page<MachineView>), AuthProblems, QueryProblems))]
#[get("/api/v1/machines")]
pub async fn machine_list(auth: Auth<scope::MachinesRead>, query: Query<MachineListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let before = open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let machines = service::list(&ctx, &auth.caller, before, query.limit.rows_to_fetch()).await?;
    Ok(actix::Json(Page::new(&ctx, query.binding(), query.limit, machines, |machine| machine.id, |machine| machine)?))
}

/// Read a machine
#[utoipa::path(tag = "Machines", security(("bearer" = [])), params(("id" = MachineId, Path, description = "A machine of the account")),
    responses((status = 200, body = MachineView), AuthProblems, NotFoundProblem))]
#[get("/api/v1/machines/{id}")]
pub async fn machine_show(auth: Auth<scope::MachinesRead>, id: Path<MachineId>, ctx: Ctx) -> Result<impl Responder> {
    service::show(&ctx, &auth.caller, *id).await.map(actix::Json)
}

/// Change a machine
///
/// Another set of GPUs takes its listing off the market until there is a new run; another driver or power limit makes the run behind it stale.
#[utoipa::path(tag = "Machines", security(("bearer" = [])), params(("id" = MachineId, Path, description = "A machine of the account")), request_body = UpdateMachine,
    responses((status = 200, body = MachineView), AuthProblems, NotFoundProblem, ConflictProblem, InputProblems))]
#[patch("/api/v1/machines/{id}")]
pub async fn machine_update(
    auth: Auth<scope::MachinesWrite>,
    id: Path<MachineId>,
    body: Json<UpdateMachine>,
    ctx: Ctx,
) -> Result<impl Responder> {
    service::update(&ctx, &auth.caller, *id, body.into_inner()).await.map(actix::Json)
}

/// Delete a machine
///
/// One that is neither published nor rented. A second time is the same success.
#[utoipa::path(tag = "Machines", security(("bearer" = [])), params(("id" = MachineId, Path, description = "A machine of the account")),
    responses((status = 204), AuthProblems, NotFoundProblem, ConflictProblem))]
#[delete("/api/v1/machines/{id}")]
pub async fn machine_delete(auth: Auth<scope::MachinesWrite>, id: Path<MachineId>, ctx: Ctx) -> Result<impl Responder> {
    service::delete(&ctx, &auth.caller, *id).await?;
    Ok(HttpResponse::NoContent())
}
