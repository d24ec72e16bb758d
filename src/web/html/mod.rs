//! Pages: who reads, the layout every page shares, what a browser may do with it, error pages; below it messages, forms and assets.
//!
//! A page is `async fn(ctx: Ctx, reader: Reader, …)` at `/{lang}/…`: one service call, then [`page`] of a template with `layout` and `t`.
//!
//! Invariants: no page loads anything from elsewhere; no inline script or style; an error page shows the message of the error's code, what is
//! wrong with the input, and the request id, nothing else.

mod assets;
mod error;
pub mod form;
mod layout;
mod messages;

use actix_web::{
    HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
        },
    },
};
use askama::Template;
use url::form_urlencoded;

pub use assets::{asset, asset_path};
pub use error::error_page;
pub use layout::{FORM_TOKEN, Layout, PageId, Person, Reader};
pub use messages::{Arg, Key, LANGUAGES, Language, Messages};

use crate::base::{Error, Result};

/// Our own style sheet, script, pictures and forms; no inline anything, no frames, no plugins.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";
/// An address of ours says what somebody searched for; other sites learn nothing of it.
const PAGE_REFERRER_POLICY: &str = "same-origin";
const HTML: &str = "text/html; charset=utf-8";

/// Renders a page.
///
/// # Errors
/// `internal` when the template fails.
pub fn page(template: &impl Template) -> Result<HttpResponse> {
    page_with(StatusCode::OK, template)
}

/// Renders a page that answers with another status: a form whose input is not valid.
///
/// # Errors
/// `internal` when the template fails.
pub fn page_with(status: StatusCode, template: &impl Template) -> Result<HttpResponse> {
    let body = template.render().map_err(Error::internal)?;
    Ok(page_response(status).body(body))
}

fn page_response(status: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .insert_header((CONTENT_TYPE, HTML))
        .insert_header((CONTENT_SECURITY_POLICY, PAGE_POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, PAGE_REFERRER_POLICY))
        .insert_header((HeaderName::from_static("cross-origin-opener-policy"), "same-origin"))
        .insert_header((HeaderName::from_static("cross-origin-resource-policy"), "same-origin"))
        .insert_header((HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"));
    response
}

/// Whether an answer with these headers is a page.
pub(super) fn is_page(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value == HTML)
}

/// A redirect that nobody remembers: where it leads may come to depend on the reader.
pub fn redirect(path: &str) -> HttpResponse {
    HttpResponse::Found().insert_header((LOCATION, path)).insert_header((CACHE_CONTROL, "no-store")).finish()
}

/// After a form was sent: the browser goes on with a GET, and loading that page again sends nothing.
pub fn redirect_after(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, path)).insert_header((CACHE_CONTROL, "no-store")).finish()
}

/// `path` with these parameters; without a question mark when there are none.
pub fn address<K: AsRef<str>, V: AsRef<str>>(path: &str, pairs: impl IntoIterator<Item = (K, V)>) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}
