//! The search page: the form, what was found, or how near the market came.

use askama::Template;

use super::{
    super::{
        model::ListingView,
        service::{self, Hit, ListingQuery, Sort},
    },
    PART,
    fields::Fields,
    form::{self, WORDS},
    relaxations::{self, Nearness},
    view::{self, Row},
};
use crate::{
    base::Result,
    ctx::Ctx,
    web::{
        Page, Query,
        html::{
            Layout, Messages, Reader,
            form::{Applied, Controls, FaultSummary, Form, Paging},
        },
    },
};

#[derive(Template)]
#[template(path = "market.html")]
pub(super) struct MarketPage {
    layout: Layout,
    t: Messages,
    path: String,
    fields: Fields,
    faults: Option<FaultSummary>,
    applied: Applied,
    /// What is asked, in one line.
    asked: String,
    is_workload: bool,
    is_narrowed: bool,
    found: Option<Found>,
    rows: Vec<Row>,
    paging: Paging,
    /// The same search with machines that cannot be rented now, when it has none.
    with_unavailable: Option<String>,
}

/// The answer of a search.
pub(super) struct Found {
    page: Page<ListingView>,
    heads: Heads,
    /// Of an empty first page.
    nearness: Option<Nearness>,
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

pub(super) async fn find(ctx: &Ctx, t: Messages, form: &Form, query: &Query<ListingQuery>) -> Result<Found> {
    let hits = service::search(ctx, query, query.binding()).await?;
    let page = Page::new(ctx, query.binding(), query.limit, hits, Hit::position, |hit| hit.view)?;
    let is_empty = page.data.is_empty() && query.cursor.is_none();
    Ok(Found { page, heads: heads(form, query), nearness: if is_empty { Some(relaxations::nearness(ctx, t, form).await?) } else { None } })
}

fn heads(form: &Form, query: &ListingQuery) -> Heads {
    let default = if form::has_workload(form) { Sort::PricePerMillionTokens } else { Sort::Price };
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

impl MarketPage {
    /// `found` is nothing when the form is not valid.
    pub fn new(ctx: &Ctx, reader: &Reader, form: &Form, found: Option<Found>) -> Self {
        let t = reader.t;
        let path = reader.path_of(PART);
        let controls = Controls { t, form, id: "search", words: WORDS };
        let conditions = form::conditions(t, form);
        let next = found.as_ref().and_then(|found| found.page.next_cursor.clone());
        let is_shown = form.value("include_unavailable") == "true";
        Self {
            layout: Layout::new(ctx, reader, PART, t.text("menu-marketplace"), t.text("market-lede")),
            t,
            fields: Fields::of(&controls),
            faults: controls.faults(),
            applied: Applied { t, conditions: form::as_links(&conditions), clear: path.clone() },
            asked: relaxations::asked(t, form),
            is_workload: form::has_workload(form),
            is_narrowed: form::is_narrowed(form),
            rows: found.as_ref().map(|found| view::rows(reader, &found.page.data)).unwrap_or_default(),
            paging: Paging {
                t,
                first: form.has("cursor").then(|| form.with(&[]).address()),
                next: next.map(|cursor| form.with(&[("cursor", &cursor)]).address()),
            },
            with_unavailable: (!is_shown).then(|| form.with(&[("include_unavailable", "true")]).address()),
            found,
            path,
        }
    }

    /// What was found, as a heading.
    fn heading(&self) -> String {
        let (t, count) = (self.t, self.rows.len());
        let is_one_page = self.paging.first.is_none() && self.paging.next.is_none();
        match (count, self.is_narrowed) {
            (0, _) if self.paging.first.is_some() => t.text("market-end").into_owned(),
            (0, true) => t.text("market-none-fit").into_owned(),
            (0, false) => t.text("market-empty").into_owned(),
            (_, true) if is_one_page => t.with("market-count-fit", &[("count", count.into())]),
            (_, false) if is_one_page => t.with("market-count", &[("count", count.into())]),
            (_, true) => t.text("market-many-fit").into_owned(),
            (_, false) => t.text("market-many").into_owned(),
        }
    }
}
