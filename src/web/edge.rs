//! The outermost middleware, which every request passes: request id and span, errors as problems, the headers that every answer carries, the
//! access log and the request metric.
//!
//! Invariants: the log has the method, the route's pattern, the status and the duration; no query string, no body, no token. The cause of an
//! internal error is logged here and nowhere else. A handler that panics is an internal error.

use std::{panic::AssertUnwindSafe, time::Instant};

use actix_web::{
    Error as ActixError, HttpMessage, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Data,
};
use futures::FutureExt;
use tracing::Instrument;

use super::{
    client::{REQUEST_ID_HEADER, RequestIdText, choose_request_id},
    etag,
    problem::{self, LateRenderer, Renderers},
};
use crate::{
    base::{Code, Error, clock},
    config::Mode,
    ctx::Ctx,
};

/// What must be known of a request after it is gone.
struct Seen {
    request_id: String,
    method: Method,
    /// Errors without anything to say become problems below `/api` only: pages have their own.
    is_api: bool,
    mode: Option<Mode>,
    /// How an error is written when there is no request any more to ask.
    late: LateRenderer,
    start: Instant,
}

/// `.wrap(from_fn(web::edge::edge))`, last, so that it is outermost.
pub async fn edge(mut req: ServiceRequest, next: Next<impl MessageBody + 'static>) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let seen = Seen {
        request_id: choose_request_id(req.headers()),
        method: req.method().clone(),
        is_api: req.path() == "/api" || req.path().starts_with("/api/"),
        mode: req.app_data::<Data<Ctx>>().map(|ctx| ctx.config.mode),
        late: req.app_data::<Renderers>().map_or(problem::render, |renderers| renderers.find_late(req.path())),
        start: clock::monotonic(),
    };
    req.extensions_mut().insert(RequestIdText(seen.request_id.clone()));
    if seen.method == Method::HEAD {
        // Answered as GET; the connection remembers to leave the body out.
        req.head_mut().method = Method::GET;
    }
    let span = tracing::info_span!("request", request_id = %seen.request_id, method = %seen.method);
    let finish = async {
        match AssertUnwindSafe(next.call(req)).catch_unwind().await {
            Ok(Ok(res)) => Ok(answered(res, &seen)),
            Ok(Err(error)) => Err(failed(&error, &seen)),
            Err(panic) => Err(panicked(panic.as_ref(), &seen)),
        }
    };
    finish.instrument(span).await
}

fn answered(res: ServiceResponse<impl MessageBody + 'static>, seen: &Seen) -> ServiceResponse<BoxBody> {
    let res = res.map_into_boxed_body();
    let route = res.request().match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    let mut res = match problem_of(&res, &route, seen) {
        Some(problem) => replace(res, problem),
        None => res,
    };
    insert_headers(res.headers_mut(), seen);
    record(seen, &route, res.status().as_u16());
    res
}

/// What to answer in place of `res`, when that is an error which we write.
fn problem_of(res: &ServiceResponse<BoxBody>, route: &str, seen: &Seen) -> Option<HttpResponse> {
    let foreign;
    let error = match res.response().error() {
        Some(error) => match error.as_error::<Error>() {
            Some(error) => error,
            None => {
                foreign = problem::from_actix(error);
                &foreign
            }
        },
        None if seen.is_api && is_bare_error(res) => {
            foreign = problem::from_status(res.status());
            &foreign
        }
        None => return None,
    };
    log_error(error, route);
    Some(problem::answer(res.request(), error, &seen.request_id))
}

fn is_bare_error(res: &ServiceResponse<BoxBody>) -> bool {
    let content_type = res.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("text/plain");
    (res.status().is_client_error() || res.status().is_server_error()) && content_type.starts_with("text/plain")
}

/// The problem in place of the answer, with the headers that the answer had for other reasons (`Allow`, `RateLimit`, cookies).
fn replace(res: ServiceResponse<BoxBody>, mut problem: HttpResponse) -> ServiceResponse<BoxBody> {
    let (request, old) = res.into_parts();
    let belongs_to_body = [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CONTENT_ENCODING, header::TRANSFER_ENCODING];
    for (name, value) in old.headers() {
        if !belongs_to_body.contains(name) && !problem.headers().contains_key(name) {
            problem.headers_mut().append(name.clone(), value.clone());
        }
    }
    ServiceResponse::new(request, problem)
}

/// An error that came past every handler.
fn failed(error: &ActixError, seen: &Seen) -> ActixError {
    let foreign;
    let error = match error.as_error::<Error>() {
        Some(error) => error,
        None => {
            foreign = problem::from_actix(error);
            &foreign
        }
    };
    late(error, seen)
}

fn panicked(panic: &(dyn std::any::Any + Send), seen: &Seen) -> ActixError {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    late(&Error::internal(format!("panic: {}", text.unwrap_or_default())), seen)
}

fn late(error: &Error, seen: &Seen) -> ActixError {
    log_error(error, "unmatched");
    let mut response = (seen.late)(error, &seen.request_id);
    insert_headers(response.headers_mut(), seen);
    record(seen, "unmatched", response.status().as_u16());
    actix_web::error::InternalError::from_response("answered", response).into()
}

/// Once, with the whole chain of causes; what the client did wrong is in the access log only.
fn log_error(error: &Error, route: &str) {
    if error.code() == Code::Internal {
        tracing::error!(route, error = ?error, "internal error");
    } else if problem::status(error.code()).is_server_error() {
        tracing::warn!(route, error = ?error, "request failed");
    }
}

fn insert_headers(headers: &mut HeaderMap, seen: &Seen) {
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding == "identity") {
        headers.remove(header::CONTENT_ENCODING);
    }
    etag::mark_encoding(headers);
    if let Ok(id) = HeaderValue::from_str(&seen.request_id) {
        headers.insert(HeaderName::from_static(REQUEST_ID_HEADER), id);
    }
    if let Some(mode) = seen.mode.filter(|mode| *mode != Mode::Live) {
        headers.insert(HeaderName::from_static("rigmark-mode"), HeaderValue::from_static(mode.as_str()));
    }
    let mut default = |name: HeaderName, value: &'static str| {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    };
    default(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    default(header::X_FRAME_OPTIONS, "DENY");
    default(header::REFERRER_POLICY, "strict-origin-when-cross-origin");
    // What pages need beyond it they say themselves.
    default(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    if seen.mode == Some(Mode::Live) {
        default(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
}

fn record(seen: &Seen, route: &str, status: u16) {
    let elapsed = seen.start.elapsed();
    let duration_ms = elapsed.as_secs_f64() * 1_000.0;
    tracing::info!(target: "access", method = %seen.method, route, status, duration_ms, request_id = %seen.request_id);
    let labels = [("method", seen.method.to_string()), ("route", route.to_owned()), ("status", status.to_string())];
    metrics::histogram!("rigmark_http_request_duration_seconds", &labels).record(elapsed.as_secs_f64());
}
