//! Rankings of what was measured, and the catalog's rows with it.

use super::super::boards::{
    HardwareWithRuns, LeaderboardRow, Measured, ModelPage, ModelWithRuns, Place, PublisherPage, PublisherView, Ranking, ReportCount,
    queries::{
        self,
        measured::{Subject, counts, measured},
    },
};
use crate::{
    base::{Code, Error, Result},
    catalog::{Catalog, HardwareModel, Model, Publisher, service as catalog},
    ctx::Ctx,
};

/// Rows of a ranking from after `after`, each with its place; not of `tokens_per_dollar`, which is the market's.
///
/// # Errors
/// The database's own faults.
pub async fn leaderboard(ctx: &Ctx, ranking: &Ranking, after: Option<&Place>, limit: i64) -> Result<Vec<(LeaderboardRow, Place)>> {
    let mut conn = ctx.db.search().await?;
    queries::entry_list(&mut conn, ctx.db.shapes(), ranking, after, limit).await
}

/// # Errors
/// The database's own faults.
pub async fn models_with_runs(ctx: &Ctx, rows: Vec<&Model>) -> Result<Vec<ModelWithRuns>> {
    let slugs: Vec<&str> = rows.iter().map(|row| row.slug.as_str()).collect();
    let mut found = measured(&mut *ctx.db.read().await?, Subject::Model, &slugs).await?;
    let with = |row: &Model| {
        let (measured, reports) = found.remove(&row.slug).unwrap_or_default();
        ModelWithRuns { model: row.clone(), measured, reports }
    };
    Ok(rows.into_iter().map(with).collect())
}

/// # Errors
/// The database's own faults.
pub async fn hardware_with_runs(ctx: &Ctx, rows: Vec<&HardwareModel>) -> Result<Vec<HardwareWithRuns>> {
    let slugs: Vec<&str> = rows.iter().map(|row| row.slug.as_str()).collect();
    let mut found = measured(&mut *ctx.db.read().await?, Subject::Hardware, &slugs).await?;
    let with = |row: &HardwareModel| {
        let (measured, reports) = found.remove(&row.slug).unwrap_or_default();
        HardwareWithRuns { hardware: row.clone(), measured, reports }
    };
    Ok(rows.into_iter().map(with).collect())
}

/// # Errors
/// `not_found`.
pub async fn hardware_page(ctx: &Ctx, slug: &str) -> Result<HardwareWithRuns> {
    let row = catalog::hardware_fetch(slug)?;
    hardware_with_runs(ctx, vec![row]).await?.pop().ok_or_else(|| Error::not_found("hardware model"))
}

/// # Errors
/// `not_found`.
pub async fn model_page(ctx: &Ctx, slug: &str) -> Result<ModelPage> {
    let model = catalog::model_detail(slug)?;
    let found = measured(&mut *ctx.db.read().await?, Subject::Model, &[slug]).await?;
    let (measured, reports): (Measured, ReportCount) = found.into_iter().next().map(|(_, found)| found).unwrap_or_default();
    Ok(ModelPage { model, measured, reports })
}

/// Publishers of the catalog's models by slug, from after the one `after`.
///
/// # Errors
/// `invalid_cursor` when `after` is no publisher.
pub async fn publishers(ctx: &Ctx, after: Option<&str>, rows_max: usize) -> Result<Vec<PublisherView>> {
    let all = Catalog::builtin().publishers();
    let start = match after.map(|after| all.iter().position(|row| row.slug == after)) {
        None => 0,
        Some(Some(position)) => position + 1,
        Some(None) => return Err(Error::new(Code::InvalidCursor, "The list has no such row; start again without the cursor.")),
    };
    views(ctx, all.iter().skip(start).take(rows_max).collect()).await
}

async fn views(ctx: &Ctx, rows: Vec<&Publisher>) -> Result<Vec<PublisherView>> {
    let slugs: Vec<&str> = rows.iter().map(|row| row.slug.as_str()).collect();
    let found = counts(&mut *ctx.db.read().await?, Subject::Publisher, &slugs).await?;
    let view = |row: &Publisher| {
        let (accepted_run_count, reports) = found.get(&row.slug).copied().unwrap_or_default();
        PublisherView { slug: row.slug.clone(), model_count: row.model_count, accepted_run_count, reports }
    };
    Ok(rows.into_iter().map(view).collect())
}

/// # Errors
/// `not_found`.
pub async fn publisher_page(ctx: &Ctx, slug: &str) -> Result<PublisherPage> {
    let catalog = Catalog::builtin();
    let row = catalog.publishers().iter().find(|row| row.slug == slug).ok_or_else(|| Error::not_found("publisher"))?;
    let publisher = views(ctx, vec![row]).await?.pop().ok_or_else(|| Error::not_found("publisher"))?;
    let models = catalog.models().iter().filter(|model| model.publisher == slug).collect();
    Ok(PublisherPage { publisher, models: models_with_runs(ctx, models).await? })
}
