//! Pages: the layout every page shares, what a browser may do with it, error pages, assets with hashed names, and how figures are written.
//!
//! Invariants: no page loads anything from elsewhere; no inline script or style; an asset's name changes with its bytes, so it may be cached
//! for ever; missing is "—", never 0; an error page shows what `Error` offers and the request id, nothing else.

use std::sync::LazyLock;

use actix_web::{
    HttpResponse, HttpResponseBuilder, get,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    },
    web::Path,
};
use askama::Template;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::problem::{self, Renderer};
use crate::{
    base::{Error, Result},
    config::Mode,
    ctx::Ctx,
};

/// Our own style sheet, script, pictures and forms; no inline anything, no frames, no plugins.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";
/// An address of ours says what somebody searched for; other sites learn nothing of it.
const PAGE_REFERRER_POLICY: &str = "same-origin";

/// One entry of the menu.
pub struct MenuItem {
    /// The path without the language; empty for what has no language.
    pub part: &'static str,
    pub path: &'static str,
    pub name: &'static str,
}

/// Every part that has a page, in the order of the menu.
const MENU: [MenuItem; 3] = [
    MenuItem { part: "marketplace", path: "/en/marketplace", name: "Marketplace" },
    MenuItem { part: "runs", path: "/en/runs", name: "Matrix runs" },
    MenuItem { part: "", path: "/openapi.json", name: "OpenAPI document" },
];

/// What the layout of every page needs.
#[derive(Debug, Clone)]
pub struct Layout {
    pub title: String,
    pub is_sandbox: bool,
    /// The menu's current part: its path without the language.
    pub part: &'static str,
    pub css: &'static str,
    pub js: &'static str,
    pub icon: &'static str,
}

impl Layout {
    pub fn new(ctx: &Ctx, part: &'static str, title: impl Into<String>) -> Self {
        Self::in_mode(ctx.config.mode, part, title)
    }

    fn in_mode(mode: Mode, part: &'static str, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            is_sandbox: mode == Mode::Sandbox,
            part,
            css: asset_path("rigmark.css"),
            js: asset_path("rigmark.js"),
            icon: asset_path("rigmark.svg"),
        }
    }

    pub fn menu(&self) -> &'static [MenuItem] {
        &MENU
    }

    /// Whether a menu entry is the page's own part.
    pub fn is_current(&self, item: &MenuItem) -> bool {
        !item.part.is_empty() && item.part == self.part
    }
}

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
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, PAGE_POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, PAGE_REFERRER_POLICY));
    response
}

/// A redirect that nobody remembers: where it leads may come to depend on the reader.
pub fn redirect(path: &str) -> HttpResponse {
    HttpResponse::Found().insert_header((LOCATION, path)).insert_header((CACHE_CONTROL, "no-store")).finish()
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    layout: Layout,
    status: u16,
    heading: &'a str,
    detail: &'a str,
    faults: Vec<&'a str>,
    request_id: &'a str,
}

/// How the errors of pages are written (`Renderers::at`). A renderer knows nothing but the error, so there is one for each kind of page band.
pub fn error_renderer(mode: Mode) -> Renderer {
    match mode {
        Mode::Sandbox => |error, id| error_page(Mode::Sandbox, error, id),
        Mode::Test => |error, id| error_page(Mode::Test, error, id),
        Mode::Live => |error, id| error_page(Mode::Live, error, id),
    }
}

fn error_page(mode: Mode, error: &Error, request_id: &str) -> HttpResponse {
    let status = problem::status(error.code());
    let heading = error.code().title().trim_end_matches('.');
    let faults: Vec<&str> = error.fields().iter().map(|field| field.detail.as_str()).collect();
    let faults = if faults.len() > 1 { faults } else { Vec::new() };
    let layout = Layout::in_mode(mode, "", heading);
    let page = ErrorPage { layout, status: status.as_u16(), heading, detail: error.detail(), faults, request_id };
    let mut response = page_response(status);
    problem::insert_headers(&mut response, error);
    response.insert_header((CACHE_CONTROL, "no-store"));
    match page.render() {
        Ok(body) => response.body(body),
        Err(_) => problem::render(error, request_id),
    }
}

/// `path` with these parameters; without a question mark when there are none.
pub fn address<K: AsRef<str>, V: AsRef<str>>(path: &str, pairs: impl IntoIterator<Item = (K, V)>) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    path: String,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files: [(&str, &str, &[u8]); 3] = [
        ("rigmark.css", "text/css; charset=utf-8", include_bytes!("../../static/rigmark.css")),
        ("rigmark.svg", "image/svg+xml", include_bytes!("../../static/rigmark.svg")),
        ("rigmark.js", "text/javascript; charset=utf-8", include_bytes!("../../static/rigmark.js")),
    ];
    files.into_iter().map(|(name, content_type, bytes)| Asset { name, content_type, bytes, path: hashed_path(name, bytes) }).collect()
});

fn hashed_path(name: &str, bytes: &[u8]) -> String {
    let hash = data_encoding::HEXLOWER.encode(Sha256::digest(bytes).get(..6).unwrap_or_default());
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    format!("/assets/{stem}-{hash}.{extension}")
}

/// The address of a vendored file; empty for a name that is not there.
pub fn asset_path(name: &str) -> &'static str {
    ASSETS.iter().find(|a| a.name == name).map_or("", |a| a.path.as_str())
}

/// Serves a vendored file by its hashed name.
#[get("/assets/{name}")]
pub async fn asset(name: Path<String>) -> Result<HttpResponse> {
    let wanted = format!("/assets/{name}");
    let asset = ASSETS.iter().find(|a| a.path == wanted).ok_or_else(|| Error::not_found("file"))?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, asset.content_type))
        .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(asset.bytes))
}

/// A figure with `decimals` digits after the point and commas between thousands, or "—".
pub fn figure(value: Option<f64>, decimals: usize) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else { return "—".to_owned() };
    let text = format!("{value:.decimals$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |d| ("-", d));
    let (whole, rest) = digits.split_once('.').map_or((digits, String::new()), |(w, r)| (w, format!(".{r}")));
    format!("{sign}{}{rest}", thousands(whole))
}

/// A count with commas between thousands, or "—".
pub fn count(value: Option<u64>) -> String {
    value.map_or_else(|| "—".to_owned(), |v| thousands(&v.to_string()))
}

fn thousands(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A day, in UTC.
pub fn date(instant: &DateTime<Utc>) -> String {
    instant.format("%Y-%m-%d").to_string()
}

/// A context length as people say it: `0`, `500`, `16K`, `248K`.
pub fn context(tokens: u64) -> String {
    if tokens >= 1_024 && tokens.is_multiple_of(1_024) { format!("{}K", tokens / 1_024) } else { thousands(&tokens.to_string()) }
}
