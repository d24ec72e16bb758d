//! Who reads a page, by the cookie.

use std::{
    cell::Cell,
    future::{Ready, ready},
};

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload, web::Data};

use super::super::{caller::Caller, service, token};
use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
    web::html::{Language, Person},
};

/// With `https` the browser itself holds to the host, to the path and to `Secure`.
const SECURE_NAME: &str = "__Host-rigmark_session";
const PLAIN_NAME: &str = "rigmark_session";

pub(super) fn is_https(ctx: &Ctx) -> bool {
    ctx.public_url.starts_with("https://")
}

pub(super) fn cookie_name(ctx: &Ctx) -> &'static str {
    if is_https(ctx) { SECURE_NAME } else { PLAIN_NAME }
}

/// Somebody who has signed in; a stranger is led to the form.
pub struct SignedIn {
    pub caller: Caller,
}

/// An operator who has signed in.
pub struct OperatorReader {
    pub caller: Caller,
}

/// Somebody or nobody.
pub struct MaybeSignedIn {
    pub caller: Option<Caller>,
}

enum Found {
    Nobody,
    Somebody(Box<Caller>),
    /// Why it is not known; taken by the extractor that needs somebody.
    Failed(Cell<Option<Error>>),
}

/// Looks the cookie of a request to a page up, for the extractors and the layout; whether somebody has signed in.
pub async fn identify(req: &HttpRequest) -> bool {
    if !Language::is_of_page(req.path()) {
        return false;
    }
    let found = match find(req).await {
        Ok(None) => Found::Nobody,
        Ok(Some((caller, person))) => {
            req.extensions_mut().insert(person);
            Found::Somebody(Box::new(caller))
        }
        Err(error) => {
            tracing::warn!(error = ?error, "a page's reader could not be looked up");
            Found::Failed(Cell::new(Some(error)))
        }
    };
    let is_somebody = matches!(found, Found::Somebody(_));
    req.extensions_mut().insert(found);
    is_somebody
}

async fn find(req: &HttpRequest) -> Result<Option<(Caller, Person)>> {
    let Some(ctx) = req.app_data::<Data<Ctx>>() else { return Ok(None) };
    let Some(cookie) = req.cookie(cookie_name(ctx)).filter(|cookie| !cookie.value().is_empty()) else { return Ok(None) };
    let mut conn = ctx.db.conn().await?;
    let Some(caller) = service::of_cookie(ctx, &mut conn, cookie.value()).await? else { return Ok(None) };
    let person = Person {
        handle: format!("@{}", caller.account_handle),
        is_operator: caller.is_operator,
        form_token: token::form_token(&ctx.config.keys, cookie.value())?,
    };
    Ok(Some((caller, person)))
}

fn somebody(req: &HttpRequest) -> Result<Option<Caller>> {
    match req.extensions().get::<Found>() {
        Some(Found::Somebody(caller)) => Ok(Some(Caller::clone(caller))),
        Some(Found::Failed(error)) => Err(error.take().unwrap_or_else(|| Error::internal("the reader's fault was taken"))),
        Some(Found::Nobody) | None => Ok(None),
    }
}

fn signed_in(req: &HttpRequest) -> Result<Caller> {
    somebody(req)?.ok_or_else(|| Error::new(Code::Unauthenticated, "Sign in."))
}

impl FromRequest for SignedIn {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(signed_in(req).map(|caller| Self { caller }))
    }
}

impl FromRequest for OperatorReader {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(signed_in(req).and_then(|caller| caller.require_operator().map(|()| Self { caller })))
    }
}

impl FromRequest for MaybeSignedIn {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(somebody(req).map(|caller| Self { caller }))
    }
}
