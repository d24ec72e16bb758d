//! The web toolkit: what handlers share and no domain owns.
//!
//! A handler is `async fn(auth…, Path, Query, Json, ctx: Ctx) -> base::Result<impl Responder>`: it extracts, calls one service function and
//! wraps the answer. Extractors answer bad input with problem details themselves. actix polls all arguments at once, from left to right; the
//! one that authorises stands first and never waits (a middleware has looked the caller up), so a stranger gets 401 before anything is read.
//!
//! Invariants:
//! - Under `/api` every error is `application/problem+json` (RFC 9457); [`edge`] is the one place that writes them.
//! - No body is read or inflated beyond its limit ([`body`]).
//! - Nothing here knows a domain. Every request passes, outermost first: `edge`, compression, `api` (etag, rate limit of strangers,
//!   parameters nobody reads, survival of a hang-up).

pub mod accept;
mod answers;
pub mod api;
pub mod body;
pub mod client;
mod csv;
pub mod cursor;
pub mod edge;
pub mod etag;
pub mod health;
pub mod html;
pub mod idempotency;
pub mod json;
pub mod metrics;
pub mod not_found;
pub mod openapi;
pub mod page;
pub mod path;
pub mod problem;
mod queries;
pub mod query;
pub mod rate_limit;
pub mod stream;
pub mod tunables;

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web::Data};

pub use answers::kept_json;
pub use body::RawBody;
pub use client::{client_address, request_id};
pub use csv::inert_text;
pub use idempotency::Idem;
pub use json::Json;
pub use openapi::{
    AuthProblems, ConflictProblem, ForbiddenProblem, FundsProblem, IdempotencyProblems, InputProblems, NotFoundProblem, QueryProblems,
    SignInProblems,
};
pub use page::{Limit, Page};
pub use path::Path;
pub use problem::ProblemBody;
pub use query::Query;
pub use stream::event_stream;

use crate::{
    base::{Error, Result},
    ctx::Ctx,
};

/// Handlers take `ctx: Ctx`; `app` puts it in as `Data<Ctx>`.
impl FromRequest for Ctx {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(ctx(req).cloned())
    }
}

fn ctx(req: &HttpRequest) -> Result<&Ctx> {
    req.app_data::<Data<Ctx>>().map(|data| &***data).ok_or_else(|| Error::internal("the app has no Ctx"))
}
