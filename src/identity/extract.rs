//! The extractors that authorise *and* load: a handler that does not name one has no caller, and one that names [`Auth`] runs only for callers
//! with the scope in its type.
//!
//! ```ignore
//! async fn rental_list(auth: Auth<scope::RentalsRead>, query: Query<RentalQuery>, ctx: Ctx) -> Result<impl Responder> {
//!     let rows = service::rental_list(&ctx, &auth.caller, …).await?;
//! ```
//!
//! Invariants: identity comes from `Authorization` (or `X-Api-Key`, which OpenAI's and Anthropic's clients send) and `Rigmark-Account`, from no
//! other header and from no body; credentials that are present and bad are 401 also where none are needed.

use std::{future::Future, marker::PhantomData, pin::Pin};

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::header::{self, HeaderMap, HeaderName, HeaderValue},
    web::Data,
};

use super::{
    caller::{Caller, authenticate},
    scope::{self, Required},
};
use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
};

const ACCOUNT: HeaderName = HeaderName::from_static("rigmark-account");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// A caller who may do what `S` says (a marker of [`scope`]).
#[derive(Debug)]
pub struct Auth<S: Required> {
    pub caller: Caller,
    need: PhantomData<fn() -> S>,
}

/// For what anybody may read and the owner sees more of. A caller without `S` is a stranger.
#[derive(Debug)]
pub struct MaybeAuth<S: Required = scope::Any> {
    pub caller: Option<Caller>,
    need: PhantomData<fn() -> S>,
}

/// An operator who has signed in.
#[derive(Debug)]
pub struct Operator {
    pub caller: Caller,
}

type Extracted<T> = Pin<Box<dyn Future<Output = Result<T>>>>;

impl<S: Required> FromRequest for Auth<S> {
    type Error = Error;
    type Future = Extracted<Self>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = find(req);
        Box::pin(async move {
            let caller = found.await?.ok_or_else(no_credentials)?;
            caller.require(S::NEED)?;
            Ok(Self { caller, need: PhantomData })
        })
    }
}

impl<S: Required> FromRequest for MaybeAuth<S> {
    type Error = Error;
    type Future = Extracted<Self>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = find(req);
        Box::pin(async move {
            let caller = found.await?.filter(|caller| caller.require(S::NEED).is_ok());
            Ok(Self { caller, need: PhantomData })
        })
    }
}

impl FromRequest for Operator {
    type Error = Error;
    type Future = Extracted<Self>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = find(req);
        Box::pin(async move {
            let caller = found.await?.ok_or_else(no_credentials)?;
            caller.require_operator()?;
            Ok(Self { caller })
        })
    }
}

fn no_credentials() -> Error {
    Error::new(Code::Unauthenticated, "Send an access token or an API key as Authorization: Bearer.")
}

/// The caller, if there are credentials. The connection goes back before the handler runs.
fn find(req: &HttpRequest) -> impl Future<Output = Result<Option<Caller>>> + 'static {
    let ctx = req.app_data::<Data<Ctx>>().map(|data| Ctx::clone(data));
    let secret = secret(req.headers());
    let acting_for = single(req.headers(), &ACCOUNT);
    async move {
        let ctx = ctx.ok_or_else(|| Error::internal("the app has no Ctx"))?;
        let Some(secret) = secret? else { return Ok(None) };
        // A name that is no text is the name of no account.
        let acting_for = acting_for.map_err(|()| Error::not_found("account"))?;
        let mut conn = ctx.db.conn().await?;
        authenticate(&ctx, &mut conn, &secret, acting_for.as_deref()).await.map(Some)
    }
}

/// An access token or an API key. Pages will bring theirs in a cookie; it belongs here, after the headers, and its POST forms need a CSRF token.
fn secret(headers: &HeaderMap) -> Result<Option<String>> {
    let malformed = || Error::new(Code::Unauthenticated, "Authorization must be one header of the form: Bearer, a space, the token or key.");
    if let Some(value) = single(headers, &header::AUTHORIZATION).map_err(|()| malformed())? {
        let (scheme, secret) = value.split_once(' ').ok_or_else(malformed)?;
        let secret = secret.trim();
        return if scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty() { Ok(Some(secret.to_owned())) } else { Err(malformed()) };
    }
    single(headers, &API_KEY).map_err(|()| malformed())
}

/// The header's text; an error when it stands twice or is no text.
fn single(headers: &HeaderMap, name: &HeaderName) -> std::result::Result<Option<String>, ()> {
    let mut values = headers.get_all(name);
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(text)), None) => Ok(Some(text.trim().to_owned())),
        _ => Err(()),
    }
}
