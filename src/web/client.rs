//! Who asks: the request id, and the address that rate limits of strangers go by.

use std::net::{IpAddr, Ipv4Addr};

use actix_web::{
    HttpMessage, HttpRequest,
    http::header::{self, HeaderMap},
};

use crate::base::id::RequestId;

pub const REQUEST_ID_HEADER: &str = "x-request-id";
const REQUEST_ID_CHARS_MAX: usize = 128;

#[derive(Clone)]
pub(super) struct RequestIdText(pub String);

/// The id under which the log and the problem body know this request.
pub fn request_id(req: &HttpRequest) -> String {
    req.extensions().get::<RequestIdText>().map_or_else(String::new, |id| id.0.clone())
}

/// The client's own id when it is 1 to 128 characters of `A-Z a-z 0-9 . _ -`, otherwise a new one.
pub(super) fn choose_request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID_HEADER).and_then(|value| value.to_str().ok());
    let fits = |id: &&str| {
        (1..=REQUEST_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    given.filter(fits).map_or_else(|| RequestId::new().to_string(), str::to_owned)
}

/// Whether the request comes with a token or a key, of whatever worth; both headers, as `identity` reads them.
pub(super) fn has_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || headers.contains_key("x-api-key")
}

/// The address of the connection. `X-Forwarded-For` is not believed: anybody can send it. An IPv6 client is its /64, since one subscriber
/// has all of it.
pub fn client_address(req: &HttpRequest) -> IpAddr {
    match req.peer_addr().map(|address| address.ip().to_canonical()) {
        None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        Some(IpAddr::V6(v6)) if !v6.is_loopback() => {
            let prefix = u128::from(v6) & !u128::from(u64::MAX);
            IpAddr::V6(prefix.into())
        }
        Some(address) => address,
    }
}
