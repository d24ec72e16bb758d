//! What webhooks are told of runs, in the transaction of what happened. The view is made only where somebody waits for it.

use chrono::{DateTime, Utc};

use super::{
    super::{
        model::{Run, RunRow, RunSummaryView, StaleRun},
        queries,
    },
    read,
};
use crate::{
    base::{Error, Result, id::RunId},
    ctx::Ctx,
    db::Tx,
    identity,
    webhooks::{
        EventType,
        service::{accounts_waiting_for, emit},
    },
};

/// The run, as its row is now, has another verdict, or its first.
pub(super) async fn verdict(ctx: &Ctx, tx: &mut Tx<'_>, id: RunId) -> Result<()> {
    let run = queries::run_fetch(tx, id).await?.ok_or_else(|| Error::internal("a run with a verdict and no row"))?;
    let event = EventType::RunVerdict;
    for account in accounts_waiting_for(tx, &[run.account_id], event).await? {
        let data = summary(tx, run.clone()).await?;
        emit(ctx, tx, account, event, &data).await?;
    }
    Ok(())
}

/// The run's badge is stale, for `reason` (too).
pub(super) async fn stale(ctx: &Ctx, tx: &mut Tx<'_>, run: &Run, reason: &str, until: DateTime<Utc>) -> Result<()> {
    let event = EventType::BadgeStale;
    for account in accounts_waiting_for(tx, &[run.account_id], event).await? {
        let data = StaleRun {
            run: summary(tx, run.clone()).await?,
            machine_id: run.machine_id,
            stale_reason: reason.to_owned(),
            stale_until: until,
        };
        emit(ctx, tx, account, event, &data).await?;
    }
    Ok(())
}

async fn summary(tx: &mut Tx<'_>, run: Run) -> Result<RunSummaryView> {
    let by = identity::service::account_summary(tx, run.account_id).await?;
    read::summary(RunRow {
        id: run.id,
        by_handle: by.handle,
        status: run.status,
        evidence_level: run.evidence_level,
        model_slug: run.model_slug,
        publisher: run.publisher,
        quantization: run.quantization,
        hardware_slug: run.hardware_slug,
        gpu_count: run.gpu_count,
        engine_name: run.engine_name,
        title: run.title,
        summary: run.summary,
        decode_single_tokens_per_second: run.decode_single_tokens_per_second,
        decode_peak_tokens_per_second: run.decode_peak_tokens_per_second,
        prefill_peak_tokens_per_second: run.prefill_peak_tokens_per_second,
        created_at: run.created_at,
        expires_at: run.expires_at,
    })
}
