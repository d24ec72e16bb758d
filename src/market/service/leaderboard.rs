//! The leaderboard: what was measured is the benchmarks' to rank, what a dollar buys the market's.

use super::super::{
    queries::{self, ValueRow},
    workload::micro_tokens_per_second,
};
use crate::{
    base::{Error, Money, Result},
    benchmarks::{self, LeaderboardOffer, LeaderboardQuery, LeaderboardRow, LeaderboardRun, Metric, Place, Ranking, model::EvidenceLevel},
    ctx::Ctx,
    web::cursor,
};

/// Rows of a ranking with their places; one more than the page holds. `bound_to` is what cursors of this list belong to.
///
/// # Errors
/// `invalid_input`, `invalid_cursor`.
pub async fn leaderboard(ctx: &Ctx, query: &LeaderboardQuery, bound_to: &str) -> Result<Vec<(LeaderboardRow, Place)>> {
    let ranking = Ranking::check(query)?;
    let after: Option<Place> = cursor::open_opt(ctx, bound_to, query.cursor.as_deref())?;
    let limit = query.limit.rows_to_fetch();
    if ranking.metric != Metric::TokensPerDollar {
        return benchmarks::service::leaderboard(ctx, &ranking, after.as_ref(), limit).await;
    }
    let mut conn = ctx.db.search().await?;
    let now = ctx.business_now(&mut conn).await?;
    let rows = queries::value_list(&mut conn, ctx.db.shapes(), &ranking, now, after.as_ref(), limit).await?;
    let mut before = after;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let place = Place::after(before.as_ref(), row.value.rate, &row.value.quantization, &row.value.kv_cache_dtype);
        let place = Place { listing: Some(row.listing.id), ..place };
        found.push((view(&ranking, row, place.rank)?, place.clone()));
        before = Some(place);
    }
    Ok(found)
}

fn view(ranking: &Ranking, row: ValueRow, rank: i64) -> Result<LeaderboardRow> {
    let ValueRow { value, listing, run } = row;
    let figure = tokens_per_dollar(value.total_tokens_per_second, listing.price_per_hour_micros)
        .ok_or_else(|| Error::internal("a listing without a speed or a price"))?;
    Ok(LeaderboardRow {
        rank,
        figure,
        unit: ranking.metric.unit(),
        model: value.model,
        publisher: value.publisher,
        quantization: value.quantization,
        kv_cache_dtype: value.kv_cache_dtype,
        context_tokens: ranking.context_tokens,
        concurrency: Some(ranking.concurrency),
        hardware: value.hardware_slug,
        gpu_count: value.gpu_count,
        lowest: figure,
        highest: figure,
        run_count: 1,
        account_count: 1,
        stale_run_count: 0,
        run: LeaderboardRun {
            id: run.id,
            title: run.title,
            by: format!("@{}", run.by_handle),
            evidence_level: EvidenceLevel::parse(&run.evidence_level)?,
            engine: run.engine_name,
            created_at: run.created_at,
            stale_at: None,
        },
        offer: Some(LeaderboardOffer { listing_id: listing.id, price_per_hour: Money::usd_micros(listing.price_per_hour_micros) }),
    })
}

/// Whole output tokens for one dollar: micro-tokens a second over an hour, divided by micro-dollars an hour; rounded down.
pub fn tokens_per_dollar(total_tokens_per_second: f64, price_per_hour_micros: i64) -> Option<f64> {
    let micro_tokens = i128::from(micro_tokens_per_second(total_tokens_per_second)?) * 3_600;
    let tokens = micro_tokens.checked_div(i128::from(price_per_hour_micros))?;
    // Shown as a number like every other figure; no amount of money is made of it.
    u32::try_from(tokens).map_or_else(|_| tokens.to_string().parse().ok(), |tokens| Some(f64::from(tokens)))
}
