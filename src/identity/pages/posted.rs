//! Forms that are sent by POST, from pages of ours only.
//!
//! Two things have to be right, each of which a page of somebody else's cannot have: the browser says that the form stood on our own origin
//! (`Sec-Fetch-Site`, or `Origin` where it does not send that), and the form holds the token that belongs to the cookie. A request that says
//! nothing of where it comes from is refused.

use std::{collections::HashSet, future::Future, pin::Pin};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    http::header::{self, HeaderMap},
    web::Data,
};
use url::{Url, form_urlencoded};

use super::super::token::sha256;
use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
    web::{
        RawBody,
        html::{FORM_TOKEN, Person},
    },
};

const BYTES_MAX: usize = 65_536;

/// The fields of a form, each once, without the token. `BOUND`: for somebody who has signed in the token must be right; all forms but the one
/// to sign in with.
#[derive(Debug)]
pub struct Posted<const BOUND: bool = true> {
    pub pairs: Vec<(String, String)>,
}

impl<const BOUND: bool> Posted<BOUND> {
    /// As it was typed; empty for a field that is not there.
    pub fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

impl<const BOUND: bool> FromRequest for Posted<BOUND> {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self>>>>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let checked = check_origin(req).and_then(|()| check_type(req));
        let token = req.extensions().get::<Person>().map(|person| person.form_token.clone());
        let body = RawBody::<BYTES_MAX>::from_request(req, payload);
        Box::pin(async move {
            checked?;
            let body = body.await?;
            let mut pairs = parse(&body)?;
            let given = pairs.iter().position(|(name, _)| name == FORM_TOKEN).map(|at| pairs.remove(at).1).unwrap_or_default();
            // Of hashes, so that the time it takes says nothing of the token.
            let is_right = |token: &String| sha256(token) == sha256(&given);
            // Nobody has no session that could be misused.
            if BOUND && !token.as_ref().is_none_or(is_right) {
                return Err(forged());
            }
            Ok(Self { pairs })
        })
    }
}

fn forged() -> Error {
    Error::new(Code::ForgedRequest, "The form was not sent from a page of ours, or that page is out of date.")
}

fn check_origin(req: &HttpRequest) -> Result<()> {
    let headers = req.headers();
    let is_ours = match (text(headers, "sec-fetch-site"), text(headers, "origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => is_own(req, origin),
        (None, None) => false,
    };
    if is_ours { Ok(()) } else { Err(forged()) }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // What is no text is from nowhere.
    headers.get(name).map(|value| value.to_str().unwrap_or("null"))
}

/// The origin of the public address, or of the address by which the browser reached this server, which no page can choose for it.
fn is_own(req: &HttpRequest, origin: &str) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    let public = req.app_data::<Data<Ctx>>().and_then(|ctx| Url::parse(&ctx.public_url).ok());
    if public.is_some_and(|public| public.origin() == origin.origin()) {
        return true;
    }
    let Some(host) = text(req.headers(), "host") else { return false };
    let authority = match (origin.host_str(), origin.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return false,
    };
    matches!(origin.scheme(), "http" | "https") && authority.eq_ignore_ascii_case(host)
}

fn check_type(req: &HttpRequest) -> Result<()> {
    let value = req.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Ok(());
    }
    Err(Error::new(Code::UnsupportedMediaType, "A form is sent as application/x-www-form-urlencoded."))
}

fn parse(body: &[u8]) -> Result<Vec<(String, String)>> {
    let mut seen = HashSet::new();
    let mut pairs = Vec::new();
    for (name, value) in form_urlencoded::parse(body) {
        let is_readable = |text: &str| !text.contains(['\0', char::REPLACEMENT_CHARACTER]);
        if !is_readable(&name) || !is_readable(&value) {
            return Err(Error::invalid(
                format!("?{}", name.replace('\0', "")),
                "invalid_value",
                "The field is not UTF-8, or has a NUL character.",
            ));
        }
        if !seen.insert(name.clone().into_owned()) {
            return Err(Error::invalid(format!("?{name}"), "duplicate_field", "The field stands more than once."));
        }
        pairs.push((name.into_owned(), value.into_owned()));
    }
    Ok(pairs)
}
