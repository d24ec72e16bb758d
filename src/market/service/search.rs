//! The public search.

use super::{
    super::{
        model::{ListingView, WorkloadMatch},
        queries::{self, Found},
        search::{ListingQuery, Position, Search},
    },
    rules,
};
use crate::{base::Result, ctx::Ctx, web::cursor};

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
