//! The address of a receiver as its owner writes it, and how far a delivery to it may go.

use url::{Host, Url};

use crate::{
    base::{Code, Error, FieldError, Result},
    engines::Reach,
};

const LENGTH_MAX: usize = 2_048;

/// Reads an address. `allow_loopback`: the sandbox, while it is bound to loopback.
///
/// # Errors
/// The fault, at `/url`; no part of the text is repeated, for it may hold a password.
pub(super) fn parse(text: &str, allow_loopback: bool) -> Result<Url, FieldError> {
    let fault = |code: &'static str, detail: &str| FieldError::new("/url", code, detail);
    if text.len() > LENGTH_MAX {
        return Err(fault("too_long", "The URL is longer than 2048 characters."));
    }
    let not_a_url = || fault("invalid_url", "This is not a URL such as https://example.org/webhooks.");
    // The URL standard drops tabs and line breaks inside a URL; here they are more likely an attack than a slip.
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(not_a_url());
    }
    let url = Url::parse(text).map_err(|_| not_a_url())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || url.port() == Some(0) || url.as_str().len() > LENGTH_MAX {
        return Err(not_a_url());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("url_with_credentials", "The URL must not contain a user name or a password."));
    }
    if url.fragment().is_some() {
        return Err(fault("url_with_fragment", "The URL must not contain a fragment."));
    }
    if url.scheme() == "http" && !(allow_loopback && is_loopback(&url)) {
        return Err(fault("https_required", "The URL must begin with https://; http:// is for this machine itself, in the sandbox."));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Refuses at once what needs no look-up: a literal address that must not be reached.
///
/// # Errors
/// `forbidden_address`.
pub(super) fn check_literal(url: &Url, allow_loopback: bool) -> Result<()> {
    let literal = match url.host() {
        Some(Host::Ipv4(ip)) => Some(ip.into()),
        Some(Host::Ipv6(ip)) => Some(ip.into()),
        _ => None,
    };
    match literal.and_then(|ip| reach(url, allow_loopback)?.forbids(ip)) {
        Some(kind) => Err(Error::new(Code::ForbiddenAddress, format!("The address is not a public one ({kind})."))),
        None => Ok(()),
    }
}

/// How far a delivery may go; `None`: nowhere, since what was allowed once is not any more.
pub(super) fn reach(url: &Url, allow_loopback: bool) -> Option<Reach> {
    match (url.scheme(), allow_loopback) {
        ("https", true) => Some(Reach::PublicOrLoopback),
        ("https", false) => Some(Reach::Public),
        ("http", true) => Some(Reach::Loopback),
        _ => None,
    }
}
