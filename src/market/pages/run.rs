//! The page of one run: what the run says, the machines that are for rent with it, the runs to compare it with.

use askama::Template;

use super::{
    super::{model::ListingView, service::RunOnMarket},
    view::{self, Row},
};
use crate::{
    benchmarks::{HistorySection, OtherRuns, RunBody, cell_name, comparison_cell},
    ctx::Ctx,
    web::html::{Layout, Messages, Reader},
};

#[derive(Template)]
#[template(path = "run.html")]
pub(super) struct RunPage<'a> {
    layout: Layout,
    t: Messages,
    run: RunBody<'a>,
    /// The cell that the offers are compared by: `16K × 8`.
    cell: String,
    offers: Vec<Offer>,
    others: OtherRuns,
    history: HistorySection,
}

struct Offer {
    row: Row,
    is_own_machine: bool,
}

impl<'a> RunPage<'a> {
    pub fn new(ctx: &Ctx, reader: &Reader, on_market: &'a RunOnMarket) -> Self {
        let t = reader.t;
        let run = &on_market.shown.run;
        let description = format!("{}. {}", run.engine_summary, run.matrix_summary);
        let rows = view::rows(reader, &on_market.offers);
        let offer = |(row, listing): (Row, &ListingView)| Offer { row, is_own_machine: run.machine_id == Some(listing.machine.id) };
        let cell = comparison_cell(&run.decode);
        Self {
            layout: Layout::new(ctx, reader, "runs", run.title.clone(), description).hidden_from_search_engines(run.visibility != "public"),
            t,
            run: RunBody::of(reader, run),
            cell: cell.map(|cell| cell_name(t, cell.context_tokens, cell.concurrency)).unwrap_or_default(),
            offers: rows.into_iter().zip(&on_market.offers).map(offer).collect(),
            others: OtherRuns::of(reader, &on_market.shown),
            history: HistorySection::of(reader, run, &on_market.shown.history),
        }
    }
}
