//! Speeds that people type in.

use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::super::{
    calculator::{KvFormat, Stated, ceiling::TOKENS_PER_STEP_MAX},
    quantization::{Quantization, kv_cache_name},
    reports::{
        Bound,
        model::{Rate, Report, ReportView},
        queries::{self, ReportFilter},
    },
};
use crate::{
    base::{
        Error, Result,
        faults::Faults,
        id::ReportId,
        text,
        units::{CONCURRENCY_MAX, CONTEXT_TOKENS_MAX},
    },
    catalog::{self, Catalog, HardwareMatch, HardwareModel, Model, ModelMatch},
    ctx::Ctx,
    identity::{self, Caller},
    web::{
        Limit,
        rate_limit::{self, REPORTS},
    },
};

const NAME_CHARS_MAX: usize = 200;
const ENGINE_CHARS_MAX: usize = 80;
const URL_CHARS_MAX: usize = 500;
const NOTES_CHARS_MAX: usize = 2_000;
const GPU_COUNT_MAX: i32 = 1_024;
const TTFT_MS_MAX: f64 = 86_400_000.0;

/// A speed that somebody saw: one model on one hardware at one context and concurrency.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateReport {
    /// A model by slug, name or repository; one that the catalog does not know is kept as it is written.
    #[schema(min_length = 1, max_length = 200)]
    pub model: String,
    /// A hardware model by slug or name; one that the catalog does not know is kept as it is written.
    #[schema(min_length = 1, max_length = 200)]
    pub hardware: String,
    /// 1 when absent.
    #[schema(minimum = 1, maximum = 1024)]
    pub gpu_count: Option<i32>,
    /// `vllm`.
    #[schema(min_length = 1, max_length = 80)]
    pub engine: String,
    #[schema(min_length = 1, max_length = 80)]
    pub engine_version: Option<String>,
    /// Any spelling of a quantization.
    #[schema(min_length = 1, max_length = 80)]
    pub quantization: String,
    /// As engines name it (`fp8`).
    #[schema(min_length = 1, max_length = 40)]
    pub kv_cache_dtype: Option<String>,
    /// Tokens before the answer.
    #[schema(minimum = 0, maximum = 16_777_216)]
    pub context_tokens: i32,
    /// Requests at once.
    #[schema(minimum = 1, maximum = 4096)]
    pub concurrency: i32,
    /// What `tokens_per_second` is of.
    pub rate: Rate,
    /// Output tokens. More than the hardware could do with any speculation is refused.
    #[schema(exclusive_minimum = 0)]
    pub tokens_per_second: f64,
    #[schema(exclusive_minimum = 0, maximum = 86_400_000)]
    pub ttft_ms: Option<f64>,
    /// Where it can be read: an http or https address.
    #[schema(max_length = 500)]
    pub source_url: Option<String>,
    #[schema(max_length = 2_000)]
    pub notes: Option<String>,
}

/// Filters of the list of reports, as in the address.
#[derive(Debug, Clone, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReportListQuery {
    /// A model of the catalog by slug, name or repository, or a name as it was reported.
    pub model: Option<String>,
    /// Handle of the organization that publishes the model.
    pub publisher: Option<String>,
    /// A hardware model by slug or name, or a name as it was reported.
    pub hardware: Option<String>,
    /// GPUs of the machine.
    #[param(minimum = 1)]
    pub gpu_count: Option<i32>,
    /// Name of the engine: `vllm`.
    pub engine: Option<String>,
    /// Any spelling of a quantization.
    pub quantization: Option<String>,
    /// Handle of whoever reported it.
    pub by: Option<String>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// # Errors
/// `invalid_input` with every fault; `implausible` among them says what the bound is. `rate_limited`.
pub async fn report_create(ctx: &Ctx, caller: &Caller, form: &CreateReport) -> Result<ReportView> {
    let report = checked(caller, form)?;
    rate_limit::charge_quietly(ctx, REPORTS.times(caller.rate_factor), &caller.account_id.to_string()).await?;
    let report = ctx
        .db
        .tx("report_create", async |tx| {
            let report = Report { created_at: ctx.business_now(tx).await?, ..report.clone() };
            queries::report_insert(tx, &report).await?;
            Ok(report)
        })
        .await?;
    report_fetch(ctx, report.id).await
}

/// # Errors
/// `not_found`.
pub async fn report_fetch(ctx: &Ctx, id: ReportId) -> Result<ReportView> {
    let mut conn = ctx.db.conn().await?;
    let (report, handle) = queries::report_fetch(&mut conn, id).await?.ok_or_else(|| Error::not_found("report"))?;
    ReportView::of(report, &handle)
}

/// # Errors
/// `not_found` for what is not there or another account's.
pub async fn report_delete(ctx: &Ctx, caller: &Caller, id: ReportId) -> Result<()> {
    let deleted = ctx.db.tx("report_delete", async |tx| queries::report_delete(tx, id, caller.account_id).await).await?;
    if deleted { Ok(()) } else { Err(Error::not_found("report")) }
}

/// Newest first, from after `after`.
///
/// # Errors
/// `not_found` for an account that does not exist.
pub async fn report_list(ctx: &Ctx, query: &ReportListQuery, after: Option<ReportId>) -> Result<Vec<ReportView>> {
    if query.gpu_count.is_some_and(|count| count < 1) {
        return Err(Error::invalid("?gpu_count", "out_of_range", "gpu_count is at least 1."));
    }
    let mut conn = ctx.db.read().await?;
    let by = match &query.by {
        Some(handle) => Some(identity::service::account_by_handle(&mut conn, handle).await?.id),
        None => None,
    };
    let filter = ReportFilter {
        model: query.model.as_deref().map(|name| known_model(name).map_or_else(|| name.trim().to_owned(), |row| row.slug.clone())),
        publisher: query.publisher.as_deref().map(|handle| handle.trim_start_matches('@').to_ascii_lowercase()),
        hardware: query.hardware.as_deref().map(|name| known_hardware(name).map_or_else(|| name.trim().to_owned(), |row| row.slug.clone())),
        gpu_count: query.gpu_count,
        engine: query.engine.clone(),
        quantization: query.quantization.as_deref().map(|text| Quantization::parse(text).as_str().to_owned()),
        by,
    };
    let rows = queries::report_list(&mut conn, &filter, after, query.limit.rows_to_fetch()).await?;
    rows.into_iter().map(|(report, handle)| ReportView::of(report, &handle)).collect()
}

fn known_model(name: &str) -> Option<&'static Model> {
    match Catalog::builtin().resolve_model(name) {
        ModelMatch::One(row) => Some(row),
        ModelMatch::Ambiguous(_) | ModelMatch::Unknown => None,
    }
}

fn known_hardware(name: &str) -> Option<&'static HardwareModel> {
    match Catalog::builtin().resolve_hardware(name, None) {
        HardwareMatch::One(row) => Some(row),
        HardwareMatch::Ambiguous(_) | HardwareMatch::Unknown => None,
    }
}

fn checked(caller: &Caller, form: &CreateReport) -> Result<Report> {
    let mut faults = Faults::default();
    check_texts(form, &mut faults);
    check_numbers(form, &mut faults);
    // A name that means several rows is asked about; an unknown one is kept.
    let model = match Catalog::builtin().resolve_model(&form.model) {
        ModelMatch::Ambiguous(_) => faults.take(catalog::service::model_input("/model", &form.model)),
        found => found.one(),
    };
    let hardware = match Catalog::builtin().resolve_hardware(&form.hardware, None) {
        HardwareMatch::Ambiguous(_) => faults.take(catalog::service::hardware_input("/hardware", &form.hardware, None)),
        found => found.one(),
    };
    faults.finish()?;
    let quantization = Quantization::parse(&form.quantization);
    let ceiling = ceiling(form, model, hardware, &quantization);
    let is_above_ceiling = check_bound(form, ceiling)?;
    Ok(Report {
        id: ReportId::new(),
        account_id: caller.account_id,
        model_slug: model.map(|row| row.slug.clone()),
        model_name: model.map_or_else(|| form.model.trim().to_owned(), |row| row.name.clone()),
        publisher: model.map(|row| row.publisher.clone()),
        hardware_slug: hardware.map(|row| row.slug.clone()),
        hardware_name: hardware.map_or_else(|| form.hardware.trim().to_owned(), |row| row.name.clone()),
        gpu_count: form.gpu_count.unwrap_or(1),
        engine_name: form.engine.trim().to_lowercase(),
        engine_version: form.engine_version.clone(),
        quantization: quantization.as_str().to_owned(),
        kv_cache_dtype: form.kv_cache_dtype.as_deref().and_then(kv_cache_name),
        context_tokens: form.context_tokens,
        concurrency: form.concurrency,
        rate: form.rate.as_str().to_owned(),
        tokens_per_second: form.tokens_per_second,
        ttft_ms: form.ttft_ms,
        total_ceiling_tokens_per_second: ceiling,
        is_above_ceiling,
        source_url: form.source_url.clone(),
        notes: form.notes.clone(),
        created_at: chrono::DateTime::UNIX_EPOCH,
    })
}

fn check_texts(form: &CreateReport, faults: &mut Faults) {
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let texts = [
        ("/model", form.model.clone(), NAME_CHARS_MAX),
        ("/hardware", form.hardware.clone(), NAME_CHARS_MAX),
        ("/engine", form.engine.clone(), ENGINE_CHARS_MAX),
        ("/engine_version", optional(&form.engine_version), ENGINE_CHARS_MAX),
        ("/quantization", form.quantization.clone(), ENGINE_CHARS_MAX),
        ("/kv_cache_dtype", optional(&form.kv_cache_dtype), 40),
    ];
    for (pointer, text, most) in texts {
        if text.trim().is_empty() || text.chars().count() > most {
            faults.add(pointer, "wrong_length", format!("1 to {most} characters."));
        }
        faults.extend(text::label_fault(pointer, &text));
    }
    if form.notes.as_deref().is_some_and(|notes| notes.chars().count() > NOTES_CHARS_MAX) {
        faults.add("/notes", "wrong_length", format!("At most {NOTES_CHARS_MAX} characters."));
    }
    faults.extend(form.notes.as_deref().and_then(|notes| text::prose_fault("/notes", notes)));
    faults.extend(form.source_url.as_deref().and_then(|text| text::label_fault("/source_url", text)));
    let is_address = |text: &str| {
        text.len() <= URL_CHARS_MAX && url::Url::parse(text).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
    };
    if form.source_url.as_deref().is_some_and(|text| !is_address(text)) {
        faults.add("/source_url", "invalid_value", format!("An http or https address of at most {URL_CHARS_MAX} characters."));
    }
}

fn check_numbers(form: &CreateReport, faults: &mut Faults) {
    if form.gpu_count.is_some_and(|count| !(1..=GPU_COUNT_MAX).contains(&count)) {
        faults.add("/gpu_count", "out_of_range", format!("A machine has 1 to {GPU_COUNT_MAX} GPUs."));
    }
    if !(0..=CONTEXT_TOKENS_MAX).contains(&form.context_tokens) {
        faults.add("/context_tokens", "out_of_range", format!("A context has at most {CONTEXT_TOKENS_MAX} tokens."));
    }
    if !(1..=CONCURRENCY_MAX).contains(&form.concurrency) {
        faults.add("/concurrency", "out_of_range", format!("concurrency is from 1 to {CONCURRENCY_MAX}."));
    }
    if !(form.tokens_per_second.is_finite() && form.tokens_per_second > 0.0) {
        faults.add("/tokens_per_second", "out_of_range", "A speed is above 0.");
    }
    if form.ttft_ms.is_some_and(|ttft| !(ttft > 0.0 && ttft <= TTFT_MS_MAX)) {
        faults.add("/ttft_ms", "out_of_range", "The time to the first token is above 0 and at most a day.");
    }
}

fn ceiling(form: &CreateReport, model: Option<&Model>, hardware: Option<&HardwareModel>, quantization: &Quantization) -> Option<f64> {
    let gpu_count = u32::try_from(form.gpu_count.unwrap_or(1)).ok()?;
    let (concurrency, context) = (u32::try_from(form.concurrency).ok()?, u64::try_from(form.context_tokens).ok()?);
    let kv = form.kv_cache_dtype.as_deref().and_then(KvFormat::parse);
    let ceiling = Stated::new(hardware?, gpu_count, model?, &form.model, Some(quantization), kv).bound(concurrency, context)?;
    ceiling.is_finite().then_some(ceiling)
}

/// Whether the speed is above the ceiling.
fn check_bound(form: &CreateReport, ceiling: Option<f64>) -> Result<bool> {
    let share = match form.rate {
        Rate::Total => 1.0,
        Rate::PerRequest => f64::from(form.concurrency),
    };
    let concurrency = u32::try_from(form.concurrency).unwrap_or(1);
    match Bound::of(form.tokens_per_second * share, concurrency, ceiling) {
        Bound::Within => Ok(false),
        Bound::Above => Ok(true),
        Bound::Impossible(most) => {
            let (rate, most) = (form.rate.as_str(), most / share);
            let why = match ceiling {
                Some(ceiling) => format!(
                    "This hardware can do at most {:.1} tokens/s ({rate}) with this model, and {most:.1} if speculation gave {TOKENS_PER_STEP_MAX} tokens a step.",
                    ceiling / share
                ),
                None => format!("No engine does more than {most:.1} tokens/s ({rate})."),
            };
            Err(Error::invalid("/tokens_per_second", "implausible", why))
        }
    }
}
