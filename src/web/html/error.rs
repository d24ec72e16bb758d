//! Error pages: the same layout, the message of the error's code, what is wrong with the input, the request id.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header::CACHE_CONTROL},
};
use askama::Template;

use super::{Key, Language, Layout, Messages, Reader, address, page_response, redirect, redirect_after};
use crate::{
    base::{Code, Error},
    web::{ctx, problem},
};

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    layout: Layout,
    t: Messages,
    status: u16,
    detail: String,
    faults: Vec<&'a str>,
    request_id: &'a str,
}

/// How errors of pages are written (`problem::Renderers`).
pub fn error_page(req: &HttpRequest, error: &Error, request_id: &str) -> HttpResponse {
    if error.code() == Code::Unauthenticated && Language::is_of_page(req.path()) {
        return sign_in_first(req);
    }
    let Ok(ctx) = ctx(req) else { return problem::render(error, request_id) };
    let status = problem::status(error.code());
    let reader = Reader::of(req);
    let (heading, detail) = words(error.code());
    let (heading, detail) = (reader.t.text(heading), reader.t.text(detail).into_owned());
    let page = ErrorPage {
        layout: Layout::new(ctx, &reader, "", heading, detail.clone()).hidden_from_search_engines(true),
        t: reader.t,
        status: status.as_u16(),
        detail,
        faults: error.fields().iter().map(|field| field.detail.as_str()).collect(),
        request_id,
    };
    let mut response = page_response(status);
    problem::insert_headers(&mut response, error);
    response.insert_header((CACHE_CONTROL, "no-store"));
    match page.render() {
        Ok(body) => response.body(body),
        Err(_) => problem::render(error, request_id),
    }
}

/// To the form, and back to this page afterwards.
fn sign_in_first(req: &HttpRequest) -> HttpResponse {
    let is_read = *req.method() == Method::GET;
    let back = if is_read { req.uri().path_and_query().map_or(req.path(), |whole| whole.as_str()) } else { req.path() };
    let form = address(&Reader::of(req).path_of("sign-in"), [("next", back)]);
    if is_read { redirect(&form) } else { redirect_after(&form) }
}

/// What to call it, and what the reader can do.
fn words(code: Code) -> (Key, Key) {
    match code {
        Code::NotFound => (Key("error-not-found"), Key("error-not-found-detail")),
        Code::MethodNotAllowed => (Key("error-method"), Key("error-method-detail")),
        Code::InvalidCursor => (Key("error-cursor"), Key("error-cursor-detail")),
        Code::Forbidden | Code::InsufficientScope | Code::ConflictOfInterest => (Key("error-forbidden"), Key("error-forbidden-detail")),
        Code::ForgedRequest => (Key("error-forged"), Key("error-forged-detail")),
        Code::InvalidInput | Code::MalformedRequest => (Key("error-input"), Key("error-input-detail")),
        Code::RateLimited => (Key("error-rate"), Key("error-rate-detail")),
        Code::Unavailable => (Key("error-unavailable"), Key("error-unavailable-detail")),
        code if problem::status(code).is_client_error() => (Key("error-request"), Key("error-request-detail")),
        _ => (Key("error-internal"), Key("error-internal-detail")),
    }
}
