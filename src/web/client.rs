//! Who asks: the request id, and the address that rate limits of strangers go by.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use actix_web::{
    HttpMessage, HttpRequest,
    http::header::{self, HeaderMap},
};
use ipnet::IpNet;

use super::ctx;
use crate::base::id::RequestId;

pub const REQUEST_ID_HEADER: &str = "x-request-id";
const FORWARDED_FOR: &str = "x-forwarded-for";
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

/// The client's address. It is the connection's; where that is a trusted proxy's, the last one in `X-Forwarded-For` that is no trusted
/// proxy's, since each proxy appends whom it saw and anybody can send the beginning. An IPv6 client is its /64: one subscriber has all of it.
pub fn client_address(req: &HttpRequest) -> IpAddr {
    let Some(peer) = req.peer_addr() else { return IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let trusted = ctx(req).map_or(&[][..], |ctx| &ctx.config.trusted_proxies);
    subscriber(origin(peer.ip().to_canonical(), req.headers(), trusted))
}

fn origin(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    if !is_trusted(&peer) {
        return peer;
    }
    let lines: Vec<_> = headers.get_all(FORWARDED_FOR).filter_map(|line| line.to_str().ok()).collect();
    let mut nearest = peer;
    for hop in lines.iter().flat_map(|line| line.split(',')).rev() {
        // A proxy may add the port. What is no address was sent by the client: the proxy that passed it on is as far as can be seen.
        let hop = hop.trim();
        let parsed = hop.parse::<IpAddr>().or_else(|_| hop.parse::<SocketAddr>().map(|socket| socket.ip()));
        let Ok(address) = parsed else { break };
        nearest = address.to_canonical();
        if !is_trusted(&nearest) {
            break;
        }
    }
    nearest
}

fn subscriber(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let prefix = u128::from(v6) & !u128::from(u64::MAX);
            IpAddr::V6(prefix.into())
        }
        address => address,
    }
}
