//! The vendored files of pages, under names that change with their bytes, so that they may be kept for ever.

use std::sync::LazyLock;

use actix_web::{
    HttpResponse, get,
    http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    web::Path,
};
use sha2::{Digest, Sha256};

use crate::base::{Error, Result};

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    path: String,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files: [(&str, &str, &[u8]); 3] = [
        ("rigmark.css", "text/css; charset=utf-8", include_bytes!("../../../static/rigmark.css")),
        ("rigmark.svg", "image/svg+xml", include_bytes!("../../../static/rigmark.svg")),
        ("rigmark.js", "text/javascript; charset=utf-8", include_bytes!("../../../static/rigmark.js")),
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
