//! `ETag` and `If-None-Match` on reads: a strong tag over the body, 304 when the client has it.
//!
//! The tag is of the uncompressed body. A compressed answer is another representation, so [`mark_encoding`] adds the encoding to its tag, and
//! either is recognised when it comes back.

use actix_web::{
    HttpResponse,
    body::{BoxBody, MessageBody},
    dev::ServiceResponse,
    http::{
        StatusCode,
        header::{self, EntityTag, Header, HeaderMap, HeaderValue, IfNoneMatch},
    },
};
use sha2::{Digest, Sha256};

use super::client::has_credentials;

const ENCODINGS: [&str; 3] = ["br", "gzip", "deflate"];

/// Streams, errors and what nobody may keep pass unchanged.
pub(super) fn apply(res: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let is_kept = !res.headers().get(header::CACHE_CONTROL).is_some_and(|value| value.to_str().is_ok_and(|text| text.contains("no-store")));
    if res.status() != StatusCode::OK || res.headers().contains_key(header::ETAG) || !is_kept {
        return res;
    }
    let (request, response) = res.into_parts();
    let (mut head, body) = response.into_parts();
    let bytes = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        Err(body) => return ServiceResponse::new(request, head.set_body(body)),
    };
    let digest = Sha256::digest(&bytes);
    let tag = data_encoding::BASE64URL_NOPAD.encode(digest.get(..16).unwrap_or_default());
    let is_private = has_credentials(request.headers()) || request.headers().contains_key(header::COOKIE);
    let known = IfNoneMatch::parse(&request).ok().and_then(|header| find(&header, &tag));
    insert(head.headers_mut(), &known.clone().unwrap_or_else(|| EntityTag::new_strong(tag)), is_private);
    if known.is_none() {
        return ServiceResponse::new(request, head.set_body(BoxBody::new(bytes)));
    }
    let mut unchanged = HttpResponse::NotModified().finish();
    for (name, value) in head.headers().iter().filter(|(name, _)| **name != header::CONTENT_TYPE && **name != header::CONTENT_LENGTH) {
        unchanged.headers_mut().append(name.clone(), value.clone());
    }
    ServiceResponse::new(request, unchanged)
}

/// The tag that the client has, as it wrote it.
fn find(header: &IfNoneMatch, tag: &str) -> Option<EntityTag> {
    match header {
        IfNoneMatch::Any => Some(EntityTag::new_strong(tag.to_owned())),
        IfNoneMatch::Items(items) => items.iter().find(|item| plain(item.tag()) == tag).cloned(),
    }
}

fn plain(tag: &str) -> &str {
    match tag.rsplit_once('.') {
        Some((plain, encoding)) if ENCODINGS.contains(&encoding) => plain,
        _ => tag,
    }
}

fn insert(headers: &mut HeaderMap, tag: &EntityTag, is_private: bool) {
    if let Ok(value) = HeaderValue::from_str(&tag.to_string()) {
        headers.insert(header::ETAG, value);
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        // May be kept, must be asked about: what a listing says changes at any moment.
        let value = if is_private { "private, no-cache" } else { "public, no-cache" };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(value));
    }
    headers.append(header::VARY, HeaderValue::from_static("authorization, x-api-key, cookie, rigmark-account"));
}

/// After compression: `"abc"` becomes `"abc.gzip"`.
pub(super) fn mark_encoding(headers: &mut HeaderMap) {
    let Some(encoding) = headers.get(header::CONTENT_ENCODING).and_then(|v| v.to_str().ok()).filter(|e| ENCODINGS.contains(e)) else {
        return;
    };
    let marked = headers
        .get(header::ETAG)
        .and_then(|v| v.to_str().ok())
        .and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'))
        .and_then(|tag| HeaderValue::from_str(&format!("\"{tag}.{encoding}\"")).ok());
    if let Some(value) = marked {
        headers.insert(header::ETAG, value);
    }
}
