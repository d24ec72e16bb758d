//! `/v1` in OpenAI's shape.

use actix_web::{
    HttpRequest, HttpResponse, Responder, get,
    http::{StatusCode, header},
    post,
};

use super::{
    body::Passing,
    chat::{ChatCompletion, ChatRequest},
    error::OpenAiError,
    service,
};
use crate::{
    base::{Error, Result},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{Json, problem},
};

/// A chat request may carry pictures.
const CHAT_BYTES_MAX: usize = 20_000_000;

/// How `/v1` writes errors: given to the web toolkit, which calls it for every fault under that prefix, its own included.
pub fn render_error(_: &HttpRequest, error: &Error, request_id: &str) -> HttpResponse {
    let mut response = HttpResponse::build(status(error));
    problem::insert_headers(&mut response, error);
    response.insert_header(("x-request-id", request_id)).json(OpenAiError::from_error(error))
}

/// OpenAI knows no 422, and its clients send a request that got a 409 once more: both are the client's to mend.
fn status(error: &Error) -> StatusCode {
    match problem::status(error.code()) {
        StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT => StatusCode::BAD_REQUEST,
        status => status,
    }
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
#[utoipa::path(tag = "Endpoint", request_body(content = ChatRequest, content_type = "application/json"),
    responses((status = 200, content((ChatCompletion = "application/json"), (String = "text/event-stream"))), (status = "default", body = OpenAiError)), security(("bearer" = [])))]
#[post("/v1/chat/completions")]
pub async fn chat_completions(auth: Auth<scope::Inference>, body: Json<Passing, CHAT_BYTES_MAX>, ctx: Ctx) -> Result<impl Responder> {
    // Out of its wrapper at once: a large body holds one of a few permits, and an answer may take minutes.
    let passage = service::chat(&ctx, &auth.caller, body.into_inner()).await?;
    let mut response = HttpResponse::build(StatusCode::from_u16(passage.status).map_err(Error::internal)?);
    if let Some(kind) = passage.content_type {
        response.insert_header((header::CONTENT_TYPE, kind));
    }
    if let Some(seconds) = passage.retry_after {
        response.insert_header((header::RETRY_AFTER, seconds));
    }
    if passage.is_event_stream {
        // Nothing on the way may hold a token back: not compressed here, not buffered by proxies.
        response.insert_header(header::ContentEncoding::Identity).insert_header(("x-accel-buffering", "no"));
    }
    Ok(response.insert_header((header::CACHE_CONTROL, "no-store")).streaming(passage.body))
}
