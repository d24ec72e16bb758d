//! `/v1` in OpenAI's shape.

use actix_web::{
    HttpResponse, Responder, get,
    http::{StatusCode, header},
    post,
};
use serde_json::Value;

use super::{error::OpenAiError, service};
use crate::{
    base::{Error, Result},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{Json, problem},
};

/// A chat request may carry pictures.
const CHAT_BYTES_MAX: usize = 20_000_000;

/// How `/v1` writes errors: given to the web toolkit, which calls it for every fault under that prefix, its own included.
pub fn render_error(error: &Error, request_id: &str) -> HttpResponse {
    let mut response = HttpResponse::build(problem::status(error.code()));
    problem::insert_headers(&mut response, error);
    response.insert_header(("x-request-id", request_id)).json(OpenAiError::from_error(error))
}

/// List the models within reach
#[utoipa::path(tag = "Endpoint", responses((status = 200, body = service::ModelList), (status = "default", body = OpenAiError)), security(("bearer" = [])))]
#[get("/v1/models")]
pub async fn models(auth: Auth<scope::Inference>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::models(&ctx, &auth.caller).await?))
}

/// Chat completion
///
/// Passed on to the machine that `model` names, streamed or not. A client that leaves cancels the engine's work.
#[utoipa::path(tag = "Endpoint", request_body(content = Object, content_type = "application/json"),
    responses((status = 200, body = Object), (status = "default", body = OpenAiError)), security(("bearer" = [])))]
#[post("/v1/chat/completions")]
pub async fn chat_completions(auth: Auth<scope::Inference>, body: Json<Value, CHAT_BYTES_MAX>, ctx: Ctx) -> Result<impl Responder> {
    let passage = service::chat(&ctx, &auth.caller, body.into_inner()).await?;
    let status = StatusCode::from_u16(passage.response.status).map_err(Error::internal)?;
    let mut response = HttpResponse::build(status);
    if let Some(kind) = passage.response.headers.get("content-type").and_then(|v| v.to_str().ok()) {
        response.insert_header((header::CONTENT_TYPE, kind));
    }
    if passage.is_stream {
        response.insert_header((header::CACHE_CONTROL, "no-store"));
    }
    Ok(response.streaming(passage.response.body))
}
