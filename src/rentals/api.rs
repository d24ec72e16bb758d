//! Rentals over HTTP.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, Responder, get, http::StatusCode, post};
use bytes::Bytes;
use futures::stream;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    model::{RentalView, Usage},
    service::{self, ExtendRequest, ListFilter, RentRequest},
    state::Status,
};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, RentalId},
        shape::IdempotencyKeyText,
    },
    ctx::Ctx,
    identity::{self, Auth, Caller, scope},
    web::{
        AuthProblems, ConflictProblem, FundsProblem, Idem, IdempotencyProblems, InputProblems, Json, Limit, NotFoundProblem, Page, Path,
        Query, QueryProblems, cursor, event_stream, idempotency,
    },
};

/// Which of the account's rentals, newest first.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RentalListQuery {
    /// In this state only.
    pub status: Option<Status>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// Rent a machine
///
/// Takes the machine, freezes the terms and holds the money, all or nothing. Billing begins when the machine has answered one token.
#[utoipa::path(tag = "Rentals", request_body = RentRequest, params(("Idempotency-Key" = IdempotencyKeyText, Header, description = "A new one for each rental meant")),
    responses((status = 201, body = RentalView), AuthProblems, InputProblems, IdempotencyProblems, NotFoundProblem, FundsProblem, ConflictProblem),
    security(("bearer" = [])))]
#[post("/api/v1/rentals")]
pub async fn rental_create(auth: Auth<scope::RentalsWrite>, idem: Idem, body: Json<RentRequest>, ctx: Ctx) -> Result<impl Responder> {
    let claim = idem.claim(auth.caller.account_id, &body);
    let model = service::served_model(&ctx, &body).await;
    let accept = async |tx: &mut crate::db::Tx<'_>| {
        let view = service::accept(&ctx, tx, &auth.caller, &body, model.as_deref()).await?;
        Ok((StatusCode::CREATED, view))
    };
    idempotency::once(&ctx, claim, accept).await
}

/// List rentals
#[utoipa::path(tag = "Rentals", params(RentalListQuery), responses((status = 200, body = Page<RentalView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/rentals")]
pub async fn rental_list(auth: Auth<scope::RentalsRead>, query: Query<RentalListQuery>, ctx: Ctx) -> Result<impl Responder> {
    // A cursor is the caller's own: it names the account beside the query.
    let binding = format!("{} {}", auth.caller.account_id, query.binding());
    let before: Option<RentalId> = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let filter = ListFilter { status: query.status, before, limit: query.limit.rows_to_fetch() };
    let rows = service::list(&ctx, auth.caller.account_id, &filter).await?;
    let page = Page::new(&ctx, &binding, query.limit, rows, |r: &RentalView| r.id, |r| r)?;
    Ok(HttpResponse::Ok().json(page))
}

/// Read a rental
#[utoipa::path(tag = "Rentals", params(("id" = RentalId, Path, description = "A rental of the account")),
    responses((status = 200, body = RentalView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/rentals/{id}")]
pub async fn rental_fetch(auth: Auth<scope::RentalsRead>, id: Path<RentalId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::fetch(&ctx, auth.caller.account_id, id.into_inner()).await?))
}

/// Stop a rental
///
/// Accepted in every state and ends billing at its receipt; a rental that is over stays as it is.
#[utoipa::path(tag = "Rentals", params(("id" = RentalId, Path, description = "A rental of the account")),
    responses((status = 200, body = RentalView), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[post("/api/v1/rentals/{id}/stop")]
pub async fn rental_stop(auth: Auth<scope::RentalsWrite>, id: Path<RentalId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::stop(&ctx, &auth.caller, id.into_inner()).await?))
}

/// Extend a rental
///
/// Moves the deadline or raises the cap.
#[utoipa::path(tag = "Rentals", request_body = ExtendRequest,
    params(("id" = RentalId, Path, description = "A rental of the account"), ("Idempotency-Key" = IdempotencyKeyText, Header, description = "A new one for each extension meant")),
    responses((status = 200, body = RentalView), AuthProblems, InputProblems, IdempotencyProblems, NotFoundProblem, ConflictProblem),
    security(("bearer" = [])))]
#[post("/api/v1/rentals/{id}/extend")]
pub async fn rental_extend(
    auth: Auth<scope::RentalsWrite>,
    idem: Idem,
    id: Path<RentalId>,
    body: Json<ExtendRequest>,
    ctx: Ctx,
) -> Result<impl Responder> {
    let (account, id) = (auth.caller.account_id, id.into_inner());
    let claim = idem.claim(account, &body);
    idempotency::once(&ctx, claim, async |tx| Ok((StatusCode::OK, service::extend(&ctx, tx, account, id, &body).await?))).await
}

/// What a rental has cost and why
#[utoipa::path(tag = "Rentals", params(("id" = RentalId, Path, description = "A rental of the account")),
    responses((status = 200, body = Usage), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/rentals/{id}/usage")]
pub async fn rental_usage(auth: Auth<scope::RentalsRead>, id: Path<RentalId>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::usage(&ctx, auth.caller.account_id, id.into_inner()).await?))
}

/// Follow a rental
///
/// Server-sent events, each with its sequence as `id`, its kind as `event` and a `RentalEvent` as `data`; `Last-Event-ID` resumes. The stream ends with the rental.
#[utoipa::path(tag = "Rentals", params(("id" = RentalId, Path, description = "A rental of the account"),
    ("Last-Event-ID" = Option<String>, Header, description = "Sequence of the last event that was seen")),
    responses((status = 200, content_type = "text/event-stream", body = String), AuthProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/rentals/{id}/events")]
pub async fn rental_events(auth: Auth<scope::RentalsRead>, id: Path<RentalId>, request: HttpRequest, ctx: Ctx) -> Result<impl Responder> {
    let id = id.into_inner();
    let last = request.headers().get("last-event-id").and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok()).unwrap_or(0);
    let first = service::events(&ctx, auth.caller.account_id, id, last).await?;
    let follower = Follower { ctx, caller: auth.caller, id, last, pending: Some(first) };
    Ok(event_stream(stream::try_unfold(follower, Follower::next)))
}

const POLL: Duration = Duration::from_secs(1);

/// A reader of one rental's events.
struct Follower {
    ctx: Ctx,
    caller: Caller,
    id: RentalId,
    last: i64,
    /// What was read before the stream began; `None` once it goes on by itself, an empty list when the rental is over.
    pending: Option<(Vec<super::model::RentalEvent>, bool)>,
}

impl Follower {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        let (events, goes_on) = match self.pending.take() {
            Some(read) => read,
            None => {
                tokio::time::sleep(POLL).await;
                self.read_again().await?
            }
        };
        if events.is_empty() && !goes_on {
            return Ok(None);
        }
        let mut text = String::new();
        for event in &events {
            self.last = event.sequence;
            let data = serde_json::to_string(event).map_err(Error::internal)?;
            text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", event.sequence, event.kind));
        }
        if text.is_empty() {
            // A comment keeps proxies from closing a quiet stream and finds out whether the reader is still there.
            text.push_str(": waiting\n\n");
        }
        Ok(Some((Bytes::from(text), self)))
    }

    /// The right to read is asked for again each time: a stream outlives no session, key or membership.
    async fn read_again(&self) -> Result<(Vec<super::model::RentalEvent>, bool)> {
        let account: AccountId = {
            let mut conn = self.ctx.db.conn().await?;
            identity::caller_refresh(&self.ctx, &mut conn, &self.caller).await?.account_id
        };
        service::events(&self.ctx, account, self.id, self.last).await
    }
}
