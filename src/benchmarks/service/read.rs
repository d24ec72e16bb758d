//! Reading runs.

use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    super::{
        matrix::{Cell, Matrix},
        model::{
            EngineView, HardwareView, Run, RunDetail, RunModelView, RunRow, RunSettingsView, RunSummaryView, RunView, RunWithRelated,
            Standing,
        },
        quantization::Quantization,
        queries::{self, RunFilter, RunPlace, RunSort},
        verdict::Verdict,
    },
    gunzip,
    history::newest_events,
};
use crate::{
    base::{Error, Result, id::RunId},
    catalog::{Catalog, HardwareKind, ModelMatch},
    ctx::Ctx,
    db::Conn,
    identity,
    web::{Limit, inert_text},
};

/// Filters of the list of runs, as in the address.
#[derive(Debug, Clone, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunListQuery {
    /// A model of the catalog by slug, name or repository, or the name under which a run was uploaded.
    pub model: Option<String>,
    /// Handle of the organization that publishes the model.
    pub publisher: Option<String>,
    /// A hardware model by slug or name.
    pub hardware: Option<String>,
    /// GPUs of the machine.
    #[param(minimum = 1)]
    pub gpu_count: Option<i32>,
    /// Name of the engine: `vllm`.
    pub engine: Option<String>,
    /// Any spelling of a quantization.
    pub quantization: Option<String>,
    /// Handle of the uploader.
    pub by: Option<String>,
    /// The verdict.
    pub status: Option<Verdict>,
    /// Default: `newest`.
    pub sort: Option<RunSort>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// A page of public runs after `after`, and the place where the next begins.
///
/// # Errors
/// `not_found` for an uploader that does not exist, `invalid_input` for hardware that the catalog does not know.
pub async fn list(ctx: &Ctx, query: &RunListQuery, after: Option<RunPlace>) -> Result<(Vec<RunSummaryView>, Option<RunPlace>)> {
    let mut conn = ctx.db.search().await?;
    let filter = filter(&mut conn, query).await?;
    let mut rows = queries::run_list(&mut conn, ctx.db.shapes(), &filter, after.as_ref(), query.limit.rows_to_fetch()).await?;
    let has_more = rows.len() > query.limit.get();
    rows.truncate(query.limit.get());
    let next = if has_more { rows.last().map(|row| place(row, filter.sort)) } else { None };
    Ok((rows.into_iter().map(summary).collect::<Result<_>>()?, next))
}

fn place(row: &RunRow, sort: RunSort) -> RunPlace {
    let value = match sort {
        RunSort::Newest => None,
        RunSort::DecodeSingle => row.decode_single_tokens_per_second,
        RunSort::DecodePeak => row.decode_peak_tokens_per_second,
        RunSort::PrefillPeak => row.prefill_peak_tokens_per_second,
    };
    RunPlace { created_at: row.created_at, value, id: row.id }
}

async fn filter(conn: &mut Conn, query: &RunListQuery) -> Result<RunFilter> {
    if query.gpu_count.is_some_and(|count| count < 1) {
        return Err(Error::invalid("?gpu_count", "out_of_range", "gpu_count is at least 1."));
    }
    let catalog = Catalog::builtin();
    let hardware = match &query.hardware {
        Some(name) => Some(crate::catalog::service::hardware_input("?hardware", name, None)?.slug.clone()),
        None => None,
    };
    let model = query.model.as_ref().map(|name| match catalog.resolve_model(name) {
        ModelMatch::One(model) => model.slug.clone(),
        _ => name.clone(),
    });
    let by = match &query.by {
        Some(handle) => Some(identity::service::account_by_handle(conn, handle).await?.id),
        None => None,
    };
    Ok(RunFilter {
        model,
        publisher: query.publisher.clone(),
        hardware,
        gpu_count: query.gpu_count,
        engine: query.engine.clone(),
        quantization: query.quantization.as_deref().map(|q| Quantization::parse(q).as_str().to_owned()),
        by,
        status: query.status,
        sort: query.sort.unwrap_or_default(),
    })
}

pub(super) fn summary(row: RunRow) -> Result<RunSummaryView> {
    let status = verdict(&row.status)?;
    Ok(RunSummaryView {
        id: row.id,
        status,
        label: label(status),
        evidence_level: row.evidence_level,
        title: row.title,
        summary: row.summary,
        by: format!("@{}", row.by_handle),
        model: row.model_slug,
        publisher: row.publisher,
        quantization: row.quantization,
        hardware: row.hardware_slug,
        gpu_count: row.gpu_count,
        engine: row.engine_name,
        decode_single_tokens_per_second: row.decode_single_tokens_per_second,
        decode_peak_tokens_per_second: row.decode_peak_tokens_per_second,
        prefill_peak_tokens_per_second: row.prefill_peak_tokens_per_second,
        created_at: row.created_at,
        expires_at: row.expires_at,
    })
}

pub(super) fn verdict(text: &str) -> Result<Verdict> {
    match text {
        "verified" => Ok(Verdict::Verified),
        "needs_review" => Ok(Verdict::NeedsReview),
        "rejected" => Ok(Verdict::Rejected),
        other => Err(Error::internal(format!("run status {other}"))),
    }
}

const fn label(status: Verdict) -> &'static str {
    match status {
        Verdict::Verified => "measured",
        Verdict::NeedsReview | Verdict::Rejected => "unverified",
    }
}

/// One run. An unlisted one is shown to whoever has its address.
///
/// # Errors
/// `not_found`.
pub async fn fetch(ctx: &Ctx, id: RunId) -> Result<RunView> {
    let conn = ctx.db.conn().await?;
    shown(&conn, id).await.map(|(view, _)| view)
}

/// The run, and the catalog's slug of its quantization or what was typed.
pub(super) async fn shown(conn: &Conn, id: RunId) -> Result<(RunView, Option<String>)> {
    let (run, handle, standing) = queries::run_shown(conn, id).await?.ok_or_else(|| Error::not_found("run"))?;
    let quantization = run.quantization.clone();
    Ok((view(run, &handle, standing.unwrap_or_default())?, quantization))
}

/// How many runs of the same model, and of the same hardware, stand beside one.
const RELATED_MAX: i64 = 6;

/// One run, with the runs to compare it with: statements that are sent together, and may be with others of the connection.
///
/// # Errors
/// `not_found`.
pub async fn fetch_with_related(conn: &Conn, id: RunId) -> Result<RunWithRelated> {
    let ((run, quantization), related, history) =
        futures::try_join!(shown(conn, id), queries::run_list_related(conn, id, RELATED_MAX), newest_events(conn, id))?;
    Ok(RunWithRelated { run, quantization, related, history })
}

/// The redacted document: the very bytes that `document_sha256` and the verdict stand on.
///
/// # Errors
/// `not_found`.
pub async fn document(ctx: &Ctx, id: RunId) -> Result<Vec<u8>> {
    let mut conn = ctx.db.conn().await?;
    let packed = queries::run_document_fetch(&mut conn, id).await?.ok_or_else(|| Error::not_found("run"))?;
    drop(conn);
    tokio::task::spawn_blocking(move || gunzip(&packed)).await.map_err(Error::internal)?
}

fn view(run: Run, handle: &str, standing: Standing) -> Result<RunView> {
    let detail: RunDetail = run.detail.read()?;
    let status = verdict(&run.status)?;
    let remeasurements = match standing.remeasurements {
        serde_json::Value::Null => Vec::new(),
        outcomes => serde_json::from_value(outcomes).map_err(Error::internal)?,
    };
    Ok(RunView {
        label: label(status),
        by: format!("@{handle}"),
        model: model_view(&run, &detail),
        hardware: hardware_view(&run, &detail),
        engine: engine_view(&run, &detail),
        run: RunSettingsView {
            served_model: detail.run.served_model.clone(),
            revision: detail.claim.model.as_ref().and_then(|m| m.revision.clone()),
            decode_test: detail.run.decode_test.clone(),
            prefill_mode: detail.run.prefill_mode.clone(),
            duration_seconds: detail.run.duration_seconds,
            max_output_tokens: detail.run.max_output_tokens,
        },
        id: run.id,
        status,
        evidence_level: run.evidence_level,
        visibility: run.visibility,
        title: run.title,
        summary: run.summary,
        engine_summary: detail.engine_summary,
        matrix_summary: detail.matrix_summary,
        tool: detail.tool,
        launch_command: detail.claim.launch_command,
        notes: detail.notes,
        prefill: detail.matrix.prefill,
        decode: detail.matrix.decode,
        kv_capacity: detail.matrix.kv_capacity,
        checks: detail.findings,
        rules_version: run.rules_version,
        document_sha256: run.document_sha256,
        machine_id: run.machine_id,
        challenge_id: run.challenge_id,
        created_at: run.created_at,
        expires_at: run.expires_at,
        stale_at: run.stale_at,
        stale_reason: run.stale_reason,
        stale_until: standing.stale_until,
        remeasured_at: standing.remeasured_at,
        disputed_at: standing.disputed_at,
        remeasurements,
        reviewed_at: run.reviewed_at,
        review_reason: run.review_reason,
    })
}

fn model_view(run: &Run, detail: &RunDetail) -> RunModelView {
    let model = run.model_slug.as_deref().and_then(|slug| Catalog::builtin().model(slug));
    let hf_id = detail.claim.model.as_ref().map(|m| m.hf_id.clone());
    RunModelView {
        slug: run.model_slug.clone(),
        name: model.map_or_else(|| run.model_name.clone(), |m| m.name.clone()),
        hf_id,
        publisher: run.publisher.clone(),
    }
}

fn hardware_view(run: &Run, detail: &RunDetail) -> HardwareView {
    let model = run.hardware_slug.as_deref().and_then(|slug| Catalog::builtin().hardware(slug));
    let claim = detail.claim.hardware.clone().unwrap_or_default();
    let seen = &detail.hardware_seen;
    let seen_name = seen.gpus.first().map(|g| g.name.clone());
    let named = Some(claim.gpu).filter(|g| !g.is_empty());
    HardwareView {
        slug: run.hardware_slug.clone(),
        kind: model.map(|m| kind_name(m.kind).to_owned()).or(claim.kind),
        gpu: model.map(|m| m.name.clone()).or(named).or(seen_name),
        gpu_count: run.gpu_count.or_else(|| seen.gpu_count.and_then(|c| i32::try_from(c).ok())),
        vram_gib: claim.vram_gib.or_else(|| model.and_then(|m| m.memory_gib)),
        cpu: claim.cpu.or_else(|| seen.cpu.clone()),
        ram_gib: claim.ram_gib,
        os: claim.os.or_else(|| seen.os.clone()),
        driver: claim.driver.or_else(|| seen.driver.clone()),
        power_limit_w: claim.power_limit_w.or_else(|| seen.gpus.first().and_then(|g| g.power_limit_w)),
    }
}

/// The kind in the words of the page.
const fn kind_name(kind: HardwareKind) -> &'static str {
    match kind {
        HardwareKind::DiscreteGpu => "Discrete GPU",
        HardwareKind::IntegratedGpu => "Integrated GPU",
        HardwareKind::UnifiedMemory => "Unified memory",
        HardwareKind::Cpu => "CPU",
        HardwareKind::Accelerator => "Accelerator",
    }
}

fn engine_view(run: &Run, detail: &RunDetail) -> EngineView {
    let claim = detail.claim.engine.clone().unwrap_or_default();
    EngineView {
        name: run.engine_name.clone(),
        version: claim.version.or_else(|| detail.run.engine_version.clone()),
        quantization: run.quantization.as_deref().map(|q| Quantization::parse(q).name().to_owned()),
        backend: claim.backend,
        build: claim.build,
    }
}

/// The table of all measurements as CSV. Texts that a spreadsheet would run are escaped.
///
/// # Errors
/// `not_found`; `internal` when a row cannot be written.
pub async fn cells_csv(ctx: &Ctx, id: RunId) -> Result<String> {
    let run = fetch(ctx, id).await?;
    let matrix = Matrix { prefill: run.prefill, decode: run.decode, ..Matrix::default() };
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = [
        "phase",
        "context_tokens",
        "concurrency",
        "status",
        "total_tokens_per_second",
        "per_request_tokens_per_second",
        "ttft_ms",
        "itl_ms",
        "average_active_requests",
        "completed_requests",
        "output_tokens",
        "measured_seconds",
        "prompt_tokens",
        "failure",
    ];
    writer.write_record(head).map_err(Error::internal)?;
    for row in &matrix.prefill {
        let record = [
            "prefill".to_owned(),
            row.context_tokens.to_string(),
            "1".to_owned(),
            "valid".to_owned(),
            text(row.tokens_per_second),
            String::new(),
            text(row.ttft_ms),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            text(row.prompt_tokens),
            String::new(),
        ];
        writer.write_record(record).map_err(Error::internal)?;
    }
    for cell in &matrix.decode {
        writer.write_record(decode_record(cell)).map_err(Error::internal)?;
    }
    let bytes = writer.into_inner().map_err(|e| Error::internal(e.to_string()))?;
    String::from_utf8(bytes).map_err(Error::internal)
}

fn decode_record(cell: &Cell) -> [String; 14] {
    [
        "decode".to_owned(),
        cell.context_tokens.to_string(),
        cell.concurrency.to_string(),
        cell.status.as_str().to_owned(),
        text(cell.total_tokens_per_second),
        text(cell.per_request_tokens_per_second),
        text(cell.ttft_ms),
        text(cell.itl_ms),
        text(cell.average_active_requests),
        text(cell.completed_requests),
        text(cell.output_tokens),
        text(cell.measured_seconds),
        String::new(),
        cell.failure.as_deref().map(inert_text).unwrap_or_default(),
    ]
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}
