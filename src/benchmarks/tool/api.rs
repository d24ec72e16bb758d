//! The benchmark tool's uploads over HTTP: its two routes, made to what `lil-bench` can read (evidence.md 3), and the tokens for them.
//!
//! Invariants: every answer below [`PREFIX`] is a JSON object, not packed, and no redirect; an error's text is its `error`. The tool tries again
//! after 429 and 5xx only, so no document is answered with these for what is in it.

use actix_web::{
    HttpRequest, HttpResponse, Responder, delete, get,
    http::header::{CACHE_CONTROL, ContentEncoding},
    post,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::service::{self, BenchDocument, BenchLogin, BenchRun};
use crate::{
    base::{Error, Result, id::UploadTokenId},
    ctx::Ctx,
    identity::{self, Auth, NewUploadToken, UploadTokenView, Uploader, scope, service::CreateUploadToken},
    web::{
        AuthProblems, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, RawBody, body::RUN_BYTES_MAX, cursor,
        json::check_content_type, problem, rate_limit,
    },
};

pub const PREFIX: &str = "/api/bench";

/// What the benchmark tool shows of a failure.
#[derive(Debug, Serialize, ToSchema)]
pub struct BenchError {
    pub error: String,
    #[schema(value_type = crate::base::Code)]
    pub code: &'static str,
    /// Stands in the log beside what happened.
    pub request_id: String,
}

/// How the routes of the tool write errors: given to the web toolkit, which calls it for every fault under [`PREFIX`], its own included.
pub fn render_error(_: &HttpRequest, error: &Error, request_id: &str) -> HttpResponse {
    error_answer(error, request_id)
}

/// The same where there is no request to look at.
pub fn error_answer(error: &Error, request_id: &str) -> HttpResponse {
    let place = error.fields().first().map(|field| field.pointer.as_str()).filter(|pointer| !pointer.is_empty());
    let text = place.map_or_else(|| error.detail().to_owned(), |place| format!("{} ({place})", error.detail()));
    let mut response = HttpResponse::build(problem::status(error.code()));
    problem::insert_headers(&mut response, error);
    let body = BenchError { error: text, code: error.code().as_str(), request_id: request_id.to_owned() };
    response.insert_header((CACHE_CONTROL, "no-store")).insert_header(ContentEncoding::Identity).json(body)
}

/// Tell whose upload token it is
///
/// What `lil-bench whoami` asks, and `lil-bench run` before it measures.
#[utoipa::path(tag = "Runs", responses((status = 200, body = BenchLogin), (status = "default", body = BenchError)), security(("upload_token" = [])))]
#[get("/api/bench/whoami")]
pub async fn bench_whoami(uploader: Uploader, ctx: Ctx) -> Result<impl Responder> {
    let login = service::whoami(&ctx, uploader).await?;
    Ok(HttpResponse::Ok().insert_header(ContentEncoding::Identity).json(login))
}

/// Upload a document as the benchmark tool does
///
/// The body is the tool's JSON, plain or wrapped, mostly packed. The `run_id` of a wrapped document, or the content of a plain one, takes the
/// place of an idempotency key: the same again is answered with 200 and the same run, another content or account with 409. A document that
/// fails its checks is answered with 201 all the same; its run says why.
#[utoipa::path(tag = "Runs", request_body(content = BenchDocument, content_type = "application/json"),
    responses((status = 201, body = BenchRun), (status = 200, body = BenchRun, description = "The same was uploaded before."), (status = "default", body = BenchError)),
    security(("upload_token" = [])))]
#[post("/api/bench/runs")]
pub async fn bench_run_upload(uploader: Uploader, body: RawBody<RUN_BYTES_MAX>, req: HttpRequest, ctx: Ctx) -> Result<impl Responder> {
    check_content_type(&req)?;
    rate_limit::charge(&ctx, &req, rate_limit::UPLOADS.times(uploader.caller.rate_factor), &uploader.caller.account_id.to_string()).await?;
    let run = service::bench_upload(&ctx, &uploader, (*body.0).clone()).await?;
    let mut response = if run.is_new { HttpResponse::Created() } else { HttpResponse::Ok() };
    Ok(response.insert_header(ContentEncoding::Identity).json(run))
}

/// A page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UploadTokenListQuery {
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
    cursor: Option<String>,
}

/// List upload tokens
///
/// Tokens of the account that are not revoked, newest first. In an organization owners and admins see all of them, others their own.
#[utoipa::path(tag = "Runs", params(UploadTokenListQuery), responses((status = 200, body = Page<UploadTokenView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/upload-tokens")]
pub async fn upload_token_list(auth: Auth<scope::AccountRead>, query: Query<UploadTokenListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let binding = format!("{} {} {}", auth.caller.account_id, auth.caller.user_id, query.binding());
    let before: Option<UploadTokenId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let mut conn = ctx.db.conn().await?;
    let rows = identity::service::upload_tokens(&mut conn, &auth.caller, before, query.limit.rows_to_fetch()).await?;
    Ok(HttpResponse::Ok().json(Page::new(&ctx, &binding, query.limit, rows, |row: &UploadTokenView| row.id, |row| row)?))
}

/// Make an upload token
///
/// For the benchmark tool's `--token`. It is shown this once, and opens the tool's two routes and no other. Who makes it needs `runs:write`; it
/// works while they have that and belong to the account. A token made by a key ends with it.
#[utoipa::path(tag = "Runs", request_body = CreateUploadToken,
    responses((status = 201, body = NewUploadToken), AuthProblems, InputProblems, NotFoundProblem), security(("bearer" = [])))]
#[post("/api/v1/upload-tokens")]
pub async fn upload_token_create(auth: Auth<scope::RunsWrite>, body: Json<CreateUploadToken>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Created().json(service::upload_token_create(&ctx, &auth.caller, body.into_inner()).await?))
}

/// Revoke an upload token
///
/// Revoking twice is no error. A key can revoke the tokens that it made.
#[utoipa::path(tag = "Runs", params(("id" = UploadTokenId, Path, description = "An upload token of the account")),
    responses((status = 204), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[delete("/api/v1/upload-tokens/{id}")]
pub async fn upload_token_revoke(auth: Auth<scope::Any>, id: Path<UploadTokenId>, ctx: Ctx) -> Result<impl Responder> {
    identity::service::revoke_upload_token(&ctx, &auth.caller, id.into_inner()).await?;
    Ok(HttpResponse::NoContent())
}
