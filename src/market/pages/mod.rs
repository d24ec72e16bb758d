//! Pages of the market: the search, whose address is the whole search, and one listing with how to rent it.

mod fields;
mod form;
mod view;

use actix_web::{HttpResponse, Responder, get, http::StatusCode};
use askama::Template;

use super::{
    model::ListingView,
    service::{self, Hit, ListingQuery, Sort},
};
use crate::{
    base::{Result, id::ListingId},
    benchmarks::{self, LevelMark, Reading, Rung, StatusMark, ladder, readings},
    ctx::Ctx,
    web::{
        Limit, Page, Path, Query,
        html::{self, Layout},
    },
};
use fields::Fields;
use form::{Condition, Form, Said};
use view::{Row, RunLink};

/// How many conditions an empty result tries to do without.
const RELAXATIONS_MAX: usize = 8;

#[derive(Template)]
#[template(path = "market.html")]
struct MarketPage {
    layout: Layout,
    fields: Fields,
    faults: Vec<Said>,
    candidates: Vec<Candidate>,
    conditions: Vec<Condition>,
    found: Option<Found>,
}

/// A name that an ambiguous one could mean.
struct Candidate {
    name: String,
    path: String,
}

struct Found {
    rows: Vec<Row>,
    heads: Heads,
    relaxations: Vec<Relaxation>,
    first: Option<String>,
    next: Option<String>,
    is_workload: bool,
    is_narrowed: bool,
    /// Of the search with machines that cannot be rented now, when it has none.
    with_unavailable: Option<String>,
}

/// Addresses of the same search in other orders; the order in force is marked.
struct Heads {
    price: Head,
    speed: Head,
    ttft: Head,
    output: Head,
}

struct Head {
    path: String,
    is_current: bool,
}

/// The search without one condition, and how many it finds.
struct Relaxation {
    text: String,
    path: String,
    count: String,
}

/// The search.
#[get("/en/marketplace")]
pub async fn marketplace(ctx: Ctx, given: Query<Vec<(String, String)>>) -> Result<impl Responder> {
    let mut form = Form::of(&given);
    let searched = match form.query() {
        Ok(query) => search(&ctx, &form, &query).await,
        Err(error) => Err(error),
    };
    let found = match searched {
        Ok(found) => Some(found),
        Err(error) => {
            form.refuse(error)?;
            None
        }
    };
    let status = if found.is_some() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    html::page_with(
        status,
        &MarketPage {
            layout: Layout::new(&ctx, "marketplace", "Marketplace"),
            fields: Fields::of(&form),
            faults: form.all_faults(),
            candidates: candidates(&form),
            conditions: form.conditions().into_iter().map(|(condition, _)| condition).collect(),
            found,
        },
    )
}

fn candidates(form: &Form) -> Vec<Candidate> {
    let is_name = |fault: &Said| fault.name == "hardware" || fault.name == "model";
    let Some(fault) = form.all_faults().into_iter().find(is_name) else { return Vec::new() };
    let candidate = |name: &String| Candidate { path: form.with(&[(&fault.name, name)]).address(), name: name.clone() };
    form.candidates.iter().map(candidate).collect()
}

async fn search(ctx: &Ctx, form: &Form, query: &Query<ListingQuery>) -> Result<Found> {
    let hits = service::search(ctx, query, query.binding()).await?;
    let page = Page::new(ctx, query.binding(), query.limit, hits, Hit::position, |hit| hit.view)?;
    let is_empty = page.data.is_empty() && query.cursor.is_none();
    Ok(Found {
        rows: view::rows(&page.data),
        heads: heads(form, query),
        relaxations: if is_empty { relaxations(ctx, form).await? } else { Vec::new() },
        first: query.cursor.is_some().then(|| form.with(&[]).address()),
        next: page.next_cursor.map(|cursor| form.with(&[("cursor", &cursor)]).address()),
        is_workload: form.has_workload(),
        is_narrowed: form.is_narrowed(),
        with_unavailable: (!query.include_unavailable).then(|| form.with(&[("include_unavailable", "true")]).address()),
    })
}

fn heads(form: &Form, query: &ListingQuery) -> Heads {
    let default = if form.has_workload() { Sort::PricePerMillionTokens } else { Sort::Price };
    let current = query.sort.unwrap_or(default);
    let head = |sort: Sort, name: &str| Head {
        path: form.with(&[("sort", if sort == default { "" } else { name })]).address(),
        is_current: sort == current,
    };
    Heads {
        price: head(Sort::Price, "price"),
        speed: head(Sort::TokensPerSecond, "tokens_per_second"),
        ttft: head(Sort::Ttft, "ttft"),
        output: head(Sort::PricePerMillionTokens, "price_per_million_tokens"),
    }
}

/// What an empty search would find without one of its conditions, most first: the condition that excludes most heads the list.
async fn relaxations(ctx: &Ctx, form: &Form) -> Result<Vec<Relaxation>> {
    let mut ways: Vec<(String, Form)> = form.conditions().into_iter().map(|(c, form)| (format!("Without: {}", c.text), form)).collect();
    if form.value("include_unavailable") != "true" {
        ways.push(("With machines that cannot be rented now".to_owned(), form.with(&[("include_unavailable", "true")])));
    }
    if form.has_workload() {
        ways.extend((form.value("concurrency") != "1").then(|| ("One user at once".to_owned(), form.with(&[("concurrency", "1")]))));
        ways.extend((form.value("context") != "0").then(|| ("No context".to_owned(), form.with(&[("context", "0")]))));
    }
    let mut found = Vec::new();
    for (text, form) in ways.into_iter().take(RELAXATIONS_MAX) {
        let query = form.with(&[("limit", "")]).query()?;
        let limit = Limit::default().get();
        let count = service::search(ctx, &query, query.binding()).await?.len();
        if count > 0 {
            let path = form.with(&[("limit", "")]).address();
            let said = if count > limit { format!("more than {limit} machines") } else { machines(count) };
            found.push((count, Relaxation { text, path, count: said }));
        }
    }
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    Ok(found.into_iter().map(|(_, relaxation)| relaxation).collect())
}

fn machines(count: usize) -> String {
    if count == 1 { "1 machine".to_owned() } else { format!("{count} machines") }
}

#[derive(Template)]
#[template(path = "listing.html")]
struct ListingPage<'a> {
    layout: Layout,
    listing: &'a ListingView,
    gpu: String,
    status: Option<StatusMark>,
    level: LevelMark,
    ladder: Vec<Rung>,
    obstacle: Option<String>,
    run: Option<RunLink>,
    readings: Vec<Reading>,
    specs: [(&'static str, Vec<(&'static str, String)>); 3],
    public_url: &'a str,
}

/// One listing.
#[get("/en/listings/{id}")]
pub async fn listing(ctx: Ctx, id: Path<ListingId>) -> Result<impl Responder> {
    let listing = service::show(&ctx, None, *id).await?;
    let run = match &listing.run {
        Some(run) => Some(benchmarks::service::fetch(&ctx, run.id).await?),
        None => None,
    };
    let gpu = view::gpu(&listing);
    let level = listing.run.as_ref().map_or("", |run| &run.evidence_level);
    html::page(&ListingPage {
        layout: Layout::new(&ctx, "marketplace", format!("{gpu} by {}", listing.by)),
        gpu,
        status: listing.badge.map(view::status),
        level: LevelMark::of(level),
        ladder: ladder(level),
        obstacle: view::obstacle(&listing),
        run: view::run_link(&listing),
        readings: run.as_ref().map(readings).unwrap_or_default(),
        specs: [("Hardware", view::hardware(&listing)), ("Terms", view::terms(&listing)), ("Reliability", view::reliability(&listing))],
        public_url: &ctx.public_url,
        listing: &listing,
    })
}

/// The market is the way in.
#[get("/")]
pub async fn root() -> HttpResponse {
    html::redirect(form::PATH)
}

/// English is the one language so far.
#[get("/en")]
pub async fn home() -> HttpResponse {
    html::redirect(form::PATH)
}
