//! Pages of the market: the search, whose address is the whole search, one listing with how to rent it, and one run with the machines that are
//! for rent with it.

mod fields;
mod form;
mod listing;
mod relaxations;
mod run;
mod search;
mod view;

use actix_web::{HttpResponse, Responder, get, http::StatusCode};

use super::{search::Search, service};
use crate::{
    base::{
        Result,
        id::{ListingId, RunId},
    },
    ctx::Ctx,
    web::{
        Path, Query,
        html::{self, LANGUAGES, PageId, Reader, form::Form},
    },
};
use listing::ListingPage;
use run::RunPage;
use search::MarketPage;

const PART: &str = "marketplace";

/// The search.
#[get("/{lang}/marketplace")]
pub async fn marketplace(ctx: Ctx, reader: Reader, given: Query<Vec<(String, String)>>) -> Result<impl Responder> {
    let mut form = Form::of(reader.path_of(PART), &given);
    let found = match form.query(|query| Search::check(query).map(drop)) {
        Ok(query) => search::find(&ctx, reader.t, &form, &query).await,
        Err(error) => Err(error),
    };
    let found = match found {
        Ok(found) => Some(found),
        Err(error) => {
            form.refuse(error)?;
            None
        }
    };
    let status = if found.is_some() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    html::page_with(status, &MarketPage::new(&ctx, &reader, &form, found))
}

/// One listing.
#[get("/{lang}/listings/{id}")]
pub async fn listing_page(ctx: Ctx, reader: Reader, path: Path<PageId<ListingId>>) -> Result<impl Responder> {
    let (listing, run) = service::show_with_run(&ctx, path.id).await?;
    html::page(&ListingPage::new(&ctx, &reader, &listing, run.as_ref()))
}

/// One run.
#[get("/{lang}/runs/{id}")]
pub async fn run_page(ctx: Ctx, reader: Reader, path: Path<PageId<RunId>>) -> Result<impl Responder> {
    let shown = service::show_run(&ctx, path.id).await?;
    html::page(&RunPage::new(&ctx, &reader, &shown))
}

/// The market is the way in.
#[get("/")]
pub async fn root() -> HttpResponse {
    html::redirect(&format!("{}/{PART}", LANGUAGES[0].prefix))
}

/// The market is the way in, in every language.
#[get("/{lang}")]
pub async fn home(reader: Reader) -> HttpResponse {
    html::redirect(&reader.path_of(PART))
}
