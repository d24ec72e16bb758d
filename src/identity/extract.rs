//! The extractors that authorise *and* load: a handler that does not name one has no caller, and one that names [`Auth`] runs only for callers
//! with the scope in its type.
//!
//! ```ignore
//! async fn rental_list(auth: Auth<scope::RentalsRead>, query: Query<RentalQuery>, ctx: Ctx) -> Result<impl Responder> {
//!     let rows = service::rental_list(&ctx, &auth.caller, …).await?;
//! ```
//!
//! actix polls all arguments of a handler at once, so an extractor that waits for the database would let a stranger see what is wrong with a
//! body before 401. Therefore [`identify`], a middleware, looks the credentials up, and the extractors only read what it found: standing first,
//! they answer before anything else is read.
//!
//! Invariants: of the API's callers identity comes from `Authorization` (or `X-Api-Key`, which Anthropic's clients send) and `Rigmark-Account`,
//! from no other header, from no cookie and from no body; credentials that are present and bad are 401 also where none are needed.

use std::{
    cell::Cell,
    future::{Ready, ready},
    marker::PhantomData,
};

use actix_web::{
    Error as ActixError, FromRequest, HttpMessage, HttpRequest,
    body::MessageBody,
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::header::{self, HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    web::Data,
};

use super::{
    caller::{Caller, authenticate, authenticate_uploader},
    pages,
    scope::{self, Required},
    token::KeyKind,
};
use crate::{
    base::{Code, Error, Result, id::MachineId},
    ctx::Ctx,
    web::rate_limit,
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

/// Somebody with an upload token, for the routes of the benchmark tool: these take nothing else, and nothing else takes an upload token.
#[derive(Debug, Clone)]
pub struct Uploader {
    pub caller: Caller,
    /// What the token's runs are bound to.
    pub machine_id: Option<MachineId>,
}

impl<S: Required> FromRequest for Auth<S> {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = somebody(req).and_then(|caller| caller.require(S::NEED).map(|()| caller));
        ready(found.map(|caller| Self { caller, need: PhantomData }))
    }
}

impl<S: Required> FromRequest for MaybeAuth<S> {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = identified(req).map(|found| found.filter(|caller| caller.require(S::NEED).is_ok()));
        ready(found.map(|caller| Self { caller, need: PhantomData }))
    }
}

impl FromRequest for Operator {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = somebody(req).and_then(|caller| caller.require_operator().map(|()| caller));
        ready(found.map(|caller| Self { caller }))
    }
}

impl FromRequest for Uploader {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = match req.extensions().get::<Identified>() {
            Some(Identified::Uploader(uploader)) => Ok(Self::clone(uploader)),
            Some(Identified::Stranger | Identified::Caller(_)) => Err(no_upload_token()),
            Some(Identified::Failed(error)) => Err(error.take().unwrap_or_else(no_upload_token)),
            None => Err(not_wrapped()),
        };
        ready(found.and_then(|uploader| uploader.caller.require(scope::RunsWrite::NEED).map(|()| uploader)))
    }
}

/// What [`identify`] found.
enum Identified {
    Stranger,
    Caller(Box<Caller>),
    Uploader(Box<Uploader>),
    /// Why not; taken by the extractor that answers with it.
    Failed(Cell<Option<Error>>),
}

fn identified(req: &HttpRequest) -> Result<Option<Caller>> {
    match req.extensions().get::<Identified>() {
        Some(Identified::Stranger) => Ok(None),
        Some(Identified::Caller(caller)) => Ok(Some(Caller::clone(caller))),
        Some(Identified::Uploader(_)) => Err(Error::new(Code::Unauthenticated, "An upload token opens only the benchmark tool's uploads.")),
        Some(Identified::Failed(error)) => Err(error.take().unwrap_or_else(no_credentials)),
        None => Err(not_wrapped()),
    }
}

fn not_wrapped() -> Error {
    Error::internal("the app does not wrap identity::extract::identify")
}

fn somebody(req: &HttpRequest) -> Result<Caller> {
    identified(req)?.ok_or_else(no_credentials)
}

fn no_credentials() -> Error {
    Error::new(Code::Unauthenticated, "Send an access token or an API key as Authorization: Bearer.")
}

fn no_upload_token() -> Error {
    Error::new(Code::Unauthenticated, "Send an upload token (lilb_…) as Authorization: Bearer; POST /api/v1/upload-tokens makes one.")
}

/// Finds out who calls, for the extractors; the innermost middleware. What it finds wrong is theirs to answer: a route without one (signing
/// in, say) does not mind an expired token.
///
/// # Errors
/// The handler's own.
pub async fn identify(req: ServiceRequest, next: Next<impl MessageBody>) -> Result<ServiceResponse<impl MessageBody>, ActixError> {
    let found = match find(req.request()).await {
        Ok(found) => found,
        Err(error) => Identified::Failed(Cell::new(Some(error))),
    };
    req.extensions_mut().insert(found);
    let is_signed_in = pages::identify(req.request()).await;
    let mut res = next.call(req).await?;
    if is_signed_in {
        // The page shows who reads it.
        res.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
    Ok(res)
}

/// Who calls. The connection goes back before the handler runs.
async fn find(req: &HttpRequest) -> Result<Identified> {
    let Some(secret) = secret(req.headers())? else { return Ok(Identified::Stranger) };
    let ctx = req.app_data::<Data<Ctx>>().ok_or_else(|| Error::internal("the app has no Ctx"))?;
    // A name that is no text is the name of no account.
    let acting_for = single(req.headers(), &ACCOUNT).map_err(|()| Error::not_found("account"))?;
    let mut conn = ctx.db.conn().await?;
    let (found, account, factor) = if KeyKind::of(&secret) == Some(KeyKind::Upload) {
        let (caller, machine_id) = authenticate_uploader(ctx, &mut conn, &secret, acting_for.as_deref()).await?;
        let (account, factor) = (caller.account_id, caller.rate_factor);
        (Identified::Uploader(Box::new(Uploader { caller, machine_id })), account, factor)
    } else {
        let caller = authenticate(ctx, &mut conn, &secret, acting_for.as_deref()).await?;
        let (account, factor) = (caller.account_id, caller.rate_factor);
        (Identified::Caller(Box::new(caller)), account, factor)
    };
    drop(conn);
    rate_limit::charge(ctx, req, rate_limit::API.times(factor), &account.to_string()).await?;
    Ok(found)
}

/// An access token or an API key. What pages bring in a cookie is for pages only ([`pages`]).
fn secret(headers: &HeaderMap) -> Result<Option<String>> {
    let malformed =
        || Error::new(Code::Unauthenticated, "Authorization must be one header of the form: Bearer, a space, the token or key.");
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
