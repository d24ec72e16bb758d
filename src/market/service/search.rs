//! The public search, and what a run's page shows of the market.

use chrono::{DateTime, Utc};

use super::{
    super::{
        model::{ListingView, WorkloadMatch},
        queries::{self, Found},
        search::{ListingQuery, Position, Search},
        workload::Workload,
    },
    rules,
};
use crate::{
    base::{Result, id::RunId},
    benchmarks::{self, comparison_cell, model::RunWithRelated},
    ctx::Ctx,
    web::cursor,
};

/// How many machines a run's page shows.
const OFFERS_MAX: i64 = 6;

/// A listing that fits, and what a page that ends with it goes on from.
pub struct Hit {
    pub view: ListingView,
    position: Position,
}

impl Hit {
    pub fn position(&self) -> impl serde::Serialize + use<> {
        self.position
    }
}

/// Published listings that fit, in the order asked for; one more than the page holds. `bound_to` is what cursors of this search belong to.
///
/// # Errors
/// `invalid_input`, `invalid_cursor`.
pub async fn search(ctx: &Ctx, query: &ListingQuery, bound_to: &str) -> Result<Vec<Hit>> {
    let search = Search::check(query)?;
    let after: Option<Position> = cursor::open_opt(ctx, bound_to, query.cursor.as_deref())?;
    let mut conn = ctx.db.search().await?;
    let now = ctx.business_now(&mut conn).await?;
    let found = queries::listing_search(&mut conn, ctx.db.shapes(), &search, now, after.as_ref(), query.limit.rows_to_fetch()).await?;
    hits(ctx, now, &search, found)
}

fn hits(ctx: &Ctx, now: DateTime<Utc>, search: &Search, found: Vec<Found>) -> Result<Vec<Hit>> {
    let rules = rules(ctx, now);
    let hit = |Found { details, cell, position }: Found| {
        let matched = match (&search.workload, &cell, details.listing.run_id) {
            (Some(workload), Some(cell), Some(run)) => Some(WorkloadMatch::new(run, cell, details.listing.price_per_hour_micros, workload)),
            _ => None,
        };
        Ok(Hit { view: ListingView::new(details, matched, &rules)?, position })
    };
    found.into_iter().map(hit).collect()
}

/// How many listings fit each of the searches, counted up to `most`.
///
/// # Errors
/// `invalid_input`.
pub async fn count(ctx: &Ctx, searches: &[&ListingQuery], most: i64) -> Result<Vec<i64>> {
    let searches: Vec<Search> = searches.iter().map(|query| Search::check(query)).collect::<Result<_>>()?;
    let mut conn = ctx.db.read().await?;
    let now = ctx.business_now(&mut conn).await?;
    queries::listing_counts(&mut conn, ctx.db.shapes(), &searches, now, most).await
}

/// A run with the runs to compare it with and the machines that are for rent with it.
pub struct RunOnMarket {
    pub shown: RunWithRelated,
    /// The listing of the run's own machine first, then others with the same hardware, model and quantization, cheapest output first.
    pub offers: Vec<ListingView>,
}

/// One run, as far as the market knows it.
///
/// # Errors
/// `not_found`.
pub async fn show_run(ctx: &Ctx, id: RunId) -> Result<RunOnMarket> {
    let conn = ctx.db.conn().await?;
    // Nothing here waits for the answer to another: one round trip.
    let (shown, offers) =
        futures::try_join!(benchmarks::service::fetch_with_related(&conn, id), queries::run_offers(&conn, &ctx.clock, id, OFFERS_MAX))?;
    drop(conn);
    let (Some(search), Some(now)) = (search_like(&shown), offers.first().map(|offer| offer.now)) else {
        return Ok(RunOnMarket { shown, offers: Vec::new() });
    };
    let found = offers.into_iter().map(|offer| offer.found).collect();
    let offers = hits(ctx, now, &search, found)?.into_iter().map(|hit| hit.view).collect();
    Ok(RunOnMarket { shown, offers })
}

/// The search for machines that do what this run did at the cell that runs are compared by; `None` for a run without a valid cell.
fn search_like(shown: &RunWithRelated) -> Option<Search> {
    let run = &shown.run;
    let cell = comparison_cell(&run.decode)?;
    let workload = Workload {
        model: run.model.slug.clone().unwrap_or_else(|| run.model.name.clone()),
        context_tokens: i32::try_from(cell.context_tokens).ok()?,
        concurrency: i32::try_from(cell.concurrency).ok()?,
    };
    Some(Search { quantization: shown.quantization.clone(), ..Search::of_workload(workload) })
}
