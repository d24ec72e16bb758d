//! The inner middleware of `/api`: strangers' rate limit, parameters that nobody reads, effects that survive a hang-up, ETags. Pages have
//! ETags too.

use actix_web::{
    Error as ActixError,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::Method,
    middleware::Next,
    web::Data,
};
use tracing::Instrument;

use super::{
    client::{client_address, has_credentials},
    etag, html,
    not_found::Paths,
    query::{self, QueryRead},
    rate_limit,
};
use crate::base::{Error, Result};

const PREFIX: &str = "/api/";

/// `.wrap(from_fn(web::api::api))` on the app. Other paths pass, but for the tags of pages; where a caller was counted the answer says what is
/// left.
pub async fn api(req: ServiceRequest, next: Next<impl MessageBody + 'static>) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let reads = *req.method() == Method::GET;
    if !req.path().starts_with(PREFIX) {
        let mut res = next.call(req).await?.map_into_boxed_body();
        let request = res.request().clone();
        rate_limit::insert_headers(&request, res.headers_mut());
        return Ok(if reads && html::is_page(res.headers()) { etag::apply(res) } else { res });
    }
    let checked = before(&req, reads).await;
    let mut res = match checked {
        Ok(()) => call(req, next, reads).await?,
        Err(error) => req.error_response(error),
    };
    if let Err(error) = after(&res, reads).await {
        res = res.error_response(error);
    }
    let request = res.request().clone();
    rate_limit::insert_headers(&request, res.headers_mut());
    Ok(if reads { etag::apply(res) } else { res })
}

async fn before(req: &ServiceRequest, reads: bool) -> Result<()> {
    // A method that the path does not take is 405, whatever stands in the query, and somebody who has to say who they are hears that first.
    let is_known = has_credentials(req.headers());
    let paths = req.app_data::<Data<Paths>>();
    let is_taken =
        paths.is_none_or(|paths| paths.takes(req.method(), req.path()) && (is_known || !paths.needs_credentials(req.method(), req.path())));
    if !reads
        && is_taken
        && let Some(error) = query::unread(req.query_string())
    {
        return Err(error);
    }
    if !is_known {
        charge_address(req.request()).await?;
    }
    Ok(())
}

/// A request with a token that nobody looked at, or that proved nothing, counts as a stranger's.
async fn after(res: &ServiceResponse<BoxBody>, reads: bool) -> Result<()> {
    let request = res.request();
    if !rate_limit::was_charged(request) {
        charge_address(request).await?;
    }
    let unread = reads && res.status().is_success() && !actix_web::HttpMessage::extensions(request).contains::<QueryRead>();
    match query::unread(request.query_string()) {
        Some(error) if unread => Err(error),
        _ => Ok(()),
    }
}

async fn charge_address(req: &actix_web::HttpRequest) -> Result<()> {
    let ctx = super::ctx(req)?.clone();
    rate_limit::charge(&ctx, req, rate_limit::PUBLIC, &client_address(req).to_string()).await
}

/// actix drops a handler when the client hangs up, in the middle of whatever it does. What changes things runs as a task of its own, so that a
/// client that gives up early does not leave half of an effect (a provider called, the answer never stored).
async fn call(req: ServiceRequest, next: Next<impl MessageBody + 'static>, reads: bool) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let called = next.call(req);
    if reads {
        return called.await.map(ServiceResponse::map_into_boxed_body);
    }
    let task = actix_web::rt::spawn(called.in_current_span());
    task.await.map_err(Error::internal)?.map(ServiceResponse::map_into_boxed_body)
}
