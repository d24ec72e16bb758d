//! Pages: the layout every page shares, assets with hashed names, and how figures are written.
//!
//! Invariants: no page loads anything from elsewhere; no inline script or style; an asset's name changes with its bytes, so it may be cached
//! for ever; missing is "—", never 0.

use std::sync::LazyLock;

use actix_web::{
    HttpResponse, get,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    web::Path,
};
use askama::Template;
use sha2::{Digest, Sha256};

use crate::{
    base::{Error, Result},
    config::Mode,
    ctx::Ctx,
};

/// What the layout of every page needs.
#[derive(Debug, Clone)]
pub struct Layout {
    pub title: String,
    pub is_sandbox: bool,
    /// The menu's current part: its path without the language.
    pub part: &'static str,
    pub css: &'static str,
    pub js: &'static str,
}

impl Layout {
    pub fn new(ctx: &Ctx, part: &'static str, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            is_sandbox: ctx.config.mode == Mode::Sandbox,
            part,
            css: asset_path("rigmark.css"),
            js: asset_path("rigmark.js"),
        }
    }

    /// `aria-current` of a menu entry.
    pub fn current(&self, part: &str) -> &'static str {
        if self.part == part { "page" } else { "false" }
    }
}

/// Renders a page.
///
/// # Errors
/// `internal` when the template fails.
pub fn page(template: &impl Template) -> Result<HttpResponse> {
    let body = template.render().map_err(Error::internal)?;
    Ok(HttpResponse::Ok().insert_header((CONTENT_TYPE, "text/html; charset=utf-8")).body(body))
}

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    path: String,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files: [(&str, &str, &[u8]); 2] = [
        ("rigmark.css", "text/css; charset=utf-8", include_bytes!("../../static/rigmark.css")),
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
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A context length as people say it: `0`, `500`, `16K`, `248K`.
pub fn context(tokens: u64) -> String {
    if tokens >= 1_024 && tokens % 1_024 == 0 { format!("{}K", tokens / 1_024) } else { thousands(&tokens.to_string()) }
}
