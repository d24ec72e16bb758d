//! The routes of the market.

use actix_web::{HttpResponse, Responder, get, patch, post, web as actix};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    model::{ListingView, QuoteView},
    service::{self, CreateListing, CreateQuote, Hit, ListingQuery, UpdateListing},
};
use crate::{
    base::{Result, id::ListingId},
    benchmarks::{LeaderboardQuery, LeaderboardRow},
    ctx::Ctx,
    identity::{Auth, MaybeAuth, scope},
    web::{
        AuthProblems, ConflictProblem, InputProblems, Json, Limit, NotFoundProblem, Page, Path, Query, QueryProblems, cursor::open_opt,
        kept_json,
    },
};

/// Draft a listing
///
/// Of one's own machine. It is on the market once it is published.
#[utoipa::path(tag = "Market", security(("bearer" = [])), request_body = CreateListing,
    responses((status = 201, body = ListingView), AuthProblems, NotFoundProblem, ConflictProblem, InputProblems))]
#[post("/api/v1/listings")]
pub async fn listing_create(auth: Auth<scope::ListingsWrite>, body: Json<CreateListing>, ctx: Ctx) -> Result<impl Responder> {
    let listing = service::create(&ctx, &auth.caller, &body).await?;
    Ok(HttpResponse::Created().json(listing))
}

/// Change a listing
///
/// Running rentals and quotes given keep theirs.
#[utoipa::path(tag = "Market", security(("bearer" = [])), params(("id" = ListingId, Path, description = "A listing")), request_body = UpdateListing,
    responses((status = 200, body = ListingView), AuthProblems, NotFoundProblem, InputProblems))]
#[patch("/api/v1/listings/{id}")]
pub async fn listing_update(
    auth: Auth<scope::ListingsWrite>,
    id: Path<ListingId>,
    body: Json<UpdateListing>,
    ctx: Ctx,
) -> Result<impl Responder> {
    service::update(&ctx, &auth.caller, *id, &body).await.map(actix::Json)
}

/// Publish a listing
///
/// Puts it on the market, or says with `unmet` everything that is missing.
#[utoipa::path(tag = "Market", security(("bearer" = [])), params(("id" = ListingId, Path, description = "A listing")),
    responses((status = 200, body = ListingView), AuthProblems, NotFoundProblem, ConflictProblem))]
#[post("/api/v1/listings/{id}/publish")]
pub async fn listing_publish(auth: Auth<scope::ListingsWrite>, id: Path<ListingId>, ctx: Ctx) -> Result<impl Responder> {
    service::publish(&ctx, &auth.caller, *id).await.map(actix::Json)
}

/// Pause a listing
///
/// Takes it off the market; rentals that run go on.
#[utoipa::path(tag = "Market", security(("bearer" = [])), params(("id" = ListingId, Path, description = "A listing")),
    responses((status = 200, body = ListingView), AuthProblems, NotFoundProblem, ConflictProblem))]
#[post("/api/v1/listings/{id}/pause")]
pub async fn listing_pause(auth: Auth<scope::ListingsWrite>, id: Path<ListingId>, ctx: Ctx) -> Result<impl Responder> {
    service::pause(&ctx, &auth.caller, *id).await.map(actix::Json)
}

/// Read a listing
///
/// A draft is shown to its owner only.
#[utoipa::path(tag = "Market", security((), ("bearer" = [])), params(("id" = ListingId, Path, description = "A listing")),
    responses((status = 200, body = ListingView), NotFoundProblem))]
#[get("/api/v1/listings/{id}")]
pub async fn listing_show(auth: MaybeAuth<scope::MachinesRead>, id: Path<ListingId>, ctx: Ctx) -> Result<impl Responder> {
    service::show(&ctx, auth.caller.as_ref(), *id).await.map(actix::Json)
}

/// Search the market
///
/// With a workload (`model`, `context` and `concurrency`) only listings that were measured at least that heavy, each
/// with the cell that says so.
#[utoipa::path(tag = "Market", security((), ("bearer" = [])), params(ListingQuery),
    responses((status = 200, body = Page<ListingView>), QueryProblems))]
#[get("/api/v1/listings")]
pub async fn listing_list(query: Query<ListingQuery>, ctx: Ctx) -> Result<impl Responder> {
    let page = async {
        let hits = service::search(&ctx, &query, query.binding()).await?;
        Page::new(&ctx, query.binding(), query.limit, hits, Hit::position, |hit| hit.view)
    };
    // No parameter holds a line break: a control character is percent-encoded there.
    let key = format!("{}\n{}\n{}", query.binding(), query.limit.get(), query.cursor.as_deref().unwrap_or_default());
    kept_json(&ctx, key, page).await
}

#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OwnListingQuery {
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
    cursor: Option<String>,
}

/// List the own listings
///
/// In every state, newest first.
#[utoipa::path(tag = "Market", security(("bearer" = [])), params(OwnListingQuery),
    responses((status = 200, body = Page<ListingView>), AuthProblems, QueryProblems))]
#[get("/api/v1/me/listings")]
pub async fn listing_list_own(auth: Auth<scope::MachinesRead>, query: Query<OwnListingQuery>, ctx: Ctx) -> Result<impl Responder> {
    let before = open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let listings = service::list_own(&ctx, &auth.caller, before, query.limit.rows_to_fetch()).await?;
    Ok(actix::Json(Page::new(&ctx, query.binding(), query.limit, listings, |listing| listing.id, |listing| listing)?))
}

/// Quote a price
///
/// Signs the present price of a listing; rented with the quote, it costs that or is refused.
#[utoipa::path(tag = "Market", security(("bearer" = [])), request_body = CreateQuote,
    responses((status = 201, body = QuoteView), AuthProblems, NotFoundProblem, ConflictProblem, InputProblems))]
#[post("/api/v1/quotes")]
pub async fn quote_create(_auth: Auth<scope::RentalsRead>, body: Json<CreateQuote>, ctx: Ctx) -> Result<impl Responder> {
    let quote = service::create_quote(&ctx, &body).await?;
    Ok(HttpResponse::Created().json(quote))
}

/// Rank what was measured
///
/// Each row is a model in one quantization and KV cache type on one hardware, at one context and concurrency, with the median of its accepted runs
/// and the run that has it. A person counts once. `tokens_per_dollar` ranks published listings that have a measured badge.
#[utoipa::path(tag = "Runs", params(LeaderboardQuery), responses((status = 200, body = Page<LeaderboardRow>), QueryProblems))]
#[get("/api/v1/leaderboard")]
pub async fn leaderboard_list(query: Query<LeaderboardQuery>, ctx: Ctx) -> Result<impl Responder> {
    let rows = service::leaderboard(&ctx, &query, query.binding()).await?;
    Ok(actix::Json(Page::new(&ctx, query.binding(), query.limit, rows, |(_, place)| place.clone(), |(row, _)| row)?))
}
