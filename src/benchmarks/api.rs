//! Challenges and runs over HTTP.

use actix_web::{HttpRequest, HttpResponse, Responder, get, http::header, post};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    calculator::Answer,
    history::model::RunEventView,
    model::{ChallengeView, RunSummaryView, RunView},
    remeasure::model::RemeasurementView,
    service::{self, AnswerRequest, ChallengeRequest, DecodeQuestion, RunHistoryQuery, RunListQuery},
};
use crate::{
    base::{
        Result,
        id::{ChallengeId, MachineId, RunId},
    },
    ctx::Ctx,
    identity::{Auth, scope},
    web::{
        AuthProblems, ConflictProblem, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, RawBody,
        body::RUN_BYTES_MAX, cursor, rate_limit,
    },
};

/// Issue a challenge for a machine
#[utoipa::path(tag = "Machines", params(("id" = MachineId, Path, description = "One's own machine")), request_body = ChallengeRequest,
    responses((status = 201, body = ChallengeView), AuthProblems, InputProblems, NotFoundProblem), security(("bearer" = [])))]
#[post("/api/v1/machines/{id}/challenges")]
pub async fn challenge_create(
    auth: Auth<scope::MachinesWrite>,
    id: Path<MachineId>,
    body: Json<ChallengeRequest>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let challenge = service::challenge_create(&ctx, &auth.caller, id.into_inner(), &body).await?;
    Ok(HttpResponse::Created().json(challenge))
}

/// Read a challenge
#[utoipa::path(tag = "Machines", params(("id" = ChallengeId, Path, description = "A challenge of one's own machine")),
    responses((status = 200, body = ChallengeView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/challenges/{id}")]
pub async fn challenge_fetch(auth: Auth<scope::MachinesRead>, id: Path<ChallengeId>, ctx: Ctx) -> Result<impl Responder> {
    let challenge = service::challenge_fetch(&ctx, &auth.caller, id.into_inner()).await?;
    Ok(HttpResponse::Ok().json(challenge))
}

/// Re-measure a machine
///
/// The server measures a few random cells of the machine's newest verified run itself, on its registered engine. While that is open, asking again
/// gives the same.
#[utoipa::path(tag = "Machines", params(("id" = MachineId, Path, description = "One's own machine")),
    responses((status = 202, body = RemeasurementView), AuthProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/machines/{id}/remeasure")]
pub async fn machine_remeasure(auth: Auth<scope::MachinesWrite>, id: Path<MachineId>, ctx: Ctx) -> Result<impl Responder> {
    let remeasurement = service::remeasure(&ctx, &auth.caller, id.into_inner()).await?;
    Ok(HttpResponse::Accepted().json(remeasurement))
}

/// A page of a list.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RemeasurementListQuery {
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
    cursor: Option<String>,
}

/// List a machine's re-measurements
#[utoipa::path(tag = "Machines", params(("id" = MachineId, Path, description = "One's own machine"), RemeasurementListQuery),
    responses((status = 200, body = Page<RemeasurementView>), AuthProblems, NotFoundProblem, QueryProblems), security(("bearer" = [])))]
#[get("/api/v1/machines/{id}/remeasurements")]
pub async fn remeasurement_list(
    auth: Auth<scope::MachinesRead>,
    id: Path<MachineId>,
    query: Query<RemeasurementListQuery>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let before = cursor::open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let rows = service::remeasurements(&ctx, &auth.caller, id.into_inner(), before, query.limit.rows_to_fetch()).await?;
    Ok(HttpResponse::Ok().json(Page::new(&ctx, query.binding(), query.limit, rows, |row| row.id, |row| row)?))
}

/// Upload a run document
///
/// `document` is the benchmark's JSON, plain or wrapped, of any known version. A document that fails its checks is stored as `rejected` and
/// answered with 201; only what is no run document at all is refused. The same upload again gives the same run.
#[utoipa::path(tag = "Runs", request_body(content = super::model::UploadBody, content_type = "application/json"),
    responses((status = 201, body = RunView), AuthProblems, InputProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/matrix-runs")]
pub async fn run_upload(auth: Auth<scope::RunsWrite>, body: RawBody<RUN_BYTES_MAX>, req: HttpRequest, ctx: Ctx) -> Result<impl Responder> {
    rate_limit::charge(&ctx, &req, rate_limit::UPLOADS.times(auth.caller.rate_factor), &auth.caller.account_id.to_string()).await?;
    let run = service::upload(&ctx, &auth.caller, (*body.0).clone()).await?;
    Ok(HttpResponse::Created().json(run))
}

/// List public runs
#[utoipa::path(tag = "Runs", params(RunListQuery), responses((status = 200, body = Page<RunSummaryView>), NotFoundProblem, QueryProblems))]
#[get("/api/v1/matrix-runs")]
pub async fn run_list(query: Query<RunListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after = cursor::open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let (data, next) = service::list(&ctx, &query, after).await?;
    let next_cursor = next.map(|place| cursor::seal(&ctx, query.binding(), &place)).transpose()?;
    Ok(HttpResponse::Ok().json(Page { data, next_cursor }))
}

/// Read a run
#[utoipa::path(tag = "Runs", params(("id" = RunId, Path, description = "A run")),
    responses((status = 200, body = RunView), NotFoundProblem))]
#[get("/api/v1/matrix-runs/{id}")]
pub async fn run_fetch(id: Path<RunId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::fetch(&ctx, id.into_inner()).await?))
}

/// Download a run's document
///
/// The redacted bytes that the verdict and `document_sha256` stand on; `rigmark verify` repeats the verdict on them.
#[utoipa::path(tag = "Runs", params(("id" = RunId, Path, description = "A run")),
    responses((status = 200, content_type = "application/json", body = serde_json::Value), NotFoundProblem))]
#[get("/api/v1/matrix-runs/{id}/document")]
pub async fn run_document(id: Path<RunId>, ctx: Ctx) -> Result<impl Responder> {
    let bytes = service::document(&ctx, id.into_inner()).await?;
    Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "application/json")).body(bytes))
}

/// Download a run's document as it came in
///
/// For the account that uploaded it, and for operators. What is public of it is at `/document`.
#[utoipa::path(tag = "Runs", params(("id" = RunId, Path, description = "A run of one's own")),
    responses((status = 200, content_type = "application/json", body = serde_json::Value), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/matrix-runs/{id}/original")]
pub async fn run_original(auth: Auth<scope::RunsWrite>, id: Path<RunId>, ctx: Ctx) -> Result<impl Responder> {
    let id = id.into_inner();
    let bytes = service::original(&ctx, &auth.caller, id).await?;
    Ok(original_download(id, bytes))
}

/// A document that nobody else may see, as a file: no browser shows it, no cache keeps it.
pub fn original_download(id: RunId, bytes: Vec<u8>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"{id}.json\"")))
        .insert_header((header::CACHE_CONTROL, "private, no-store"))
        .body(bytes)
}

/// Read a run's history
///
/// What happened to it, oldest first: upload, verdicts, an operator's decisions with their reasons, the uploader's answer, what the server
/// measured itself, staleness. Events are never changed.
#[utoipa::path(tag = "Runs", params(("id" = RunId, Path, description = "A run"), RunHistoryQuery),
    responses((status = 200, body = Page<RunEventView>), NotFoundProblem, QueryProblems))]
#[get("/api/v1/matrix-runs/{id}/history")]
pub async fn run_history(id: Path<RunId>, query: Query<RunHistoryQuery>, ctx: Ctx) -> Result<impl Responder> {
    let after = cursor::open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let (data, next) = service::history(&ctx, id.into_inner(), query.limit, after).await?;
    let next_cursor = next.map(|place| cursor::seal(&ctx, query.binding(), &place)).transpose()?;
    Ok(HttpResponse::Ok().json(Page { data, next_cursor }))
}

/// Answer an operator
///
/// Once a run, while it waits for review or after a person rejected it; anyone can read it in the run's history. The same text again gives the
/// same answer.
#[utoipa::path(tag = "Runs", params(("id" = RunId, Path, description = "A run of one's own")), request_body = AnswerRequest,
    responses((status = 201, body = RunEventView), AuthProblems, InputProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[post("/api/v1/matrix-runs/{id}/answer")]
pub async fn run_answer(auth: Auth<scope::RunsWrite>, id: Path<RunId>, body: Json<AnswerRequest>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Created().json(service::answer(&ctx, &auth.caller, id.into_inner(), &body).await?))
}

/// Download a run's measurements
#[utoipa::path(tag = "Runs", params(("id" = RunId, Path, description = "A run")),
    responses((status = 200, content_type = "text/csv", body = String), NotFoundProblem))]
#[get("/api/v1/matrix-runs/{id}/cells.csv")]
pub async fn run_cells(id: Path<RunId>, ctx: Ctx) -> Result<impl Responder> {
    let text = service::cells_csv(&ctx, id.into_inner()).await?;
    Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "text/csv; charset=utf-8")).body(text))
}

/// Calculate decode speed and memory
///
/// What a model does on a machine: measured cells where a verified run of the same model, quantization and hardware has them, interpolated and
/// extrapolated ones near them, runs on other hardware scaled by bandwidth, or else the formula's range. Each cell names its kind and basis;
/// one that does not fit in memory has null speeds and a reason.
#[utoipa::path(tag = "Runs", request_body = DecodeQuestion, responses((status = 200, body = Answer), InputProblems))]
#[post("/api/v1/calculator/decode")]
pub async fn calculator_decode(body: Json<DecodeQuestion>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::decode(&ctx, &body).await?))
}
