//! The decode calculator over what was measured: the leaderboard's medians.

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::ToSchema;

use super::super::{
    boards::{
        KV_AUTO,
        queries::medians::{MedianRow, medians},
    },
    calculator::{Anchor, Answer, Figure, KvFormat, Range, Seen, Setup, Weights, answer, answer::Question},
    matrix::CellStatus,
    quantization::Quantization,
};
use crate::{
    base::{
        Error, FieldError, Result,
        shape::{ConcurrencyLevel, ContextTokens},
    },
    catalog::{self, Catalog, HardwareModel, Model},
    ctx::Ctx,
};

const GPU_COUNT_MAX: u32 = 1_024;
const CONTEXTS_MAX: usize = 32;
const CONTEXT_TOKENS_MAX: u64 = 100_000_000;
const LEVELS_MAX: usize = 32;
const LEVEL_MAX: u32 = 4_096;
/// Kinds of machine (with their KV cache types) looked at for one answer.
const SERIES_MAX: i64 = 12;
const CONTEXTS_USUAL: [u64; 5] = [0, 8_192, 16_384, 32_768, 131_072];
const LEVELS_USUAL: [u32; 5] = [1, 2, 4, 8, 16];

/// A model on a machine.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecodeQuestion {
    /// A model of the catalog by slug, name or repository.
    #[schema(min_length = 1, max_length = 200)]
    pub model: String,
    /// A hardware model by slug or name.
    #[schema(min_length = 1, max_length = 200)]
    pub hardware: String,
    /// 1 when absent.
    #[schema(minimum = 1, maximum = 1_024)]
    pub gpu_count: Option<u32>,
    /// A known one by any spelling (`AWQ 4-bit`, `q4_k_m`), or a number of bits (`4.85 bits`).
    #[schema(min_length = 1, max_length = 200)]
    pub quantization: String,
    /// As engines name it (`fp8`, `q8_0`). When absent: the type that most accounts measured with on this
    /// hardware, or else on other, or 16 bits.
    pub kv_cache_dtype: Option<String>,
    /// In tokens; at most 32. When absent: the usual ones up to the model's longest.
    #[schema(min_items = 1, max_items = 32, value_type = Option<Vec<ContextTokens>>)]
    pub contexts: Option<Vec<u64>>,
    /// At most 32. When absent: the usual ones.
    #[schema(min_items = 1, max_items = 32, value_type = Option<Vec<ConcurrencyLevel>>)]
    pub concurrency_levels: Option<Vec<u32>>,
}

/// Answers from the medians of accepted runs of the same model, quantization and KV cache type, and the formula.
///
/// # Errors
/// `invalid_input` for names that the catalog does not know, formats of unknown width, and numbers out of range.
pub async fn decode(ctx: &Ctx, asked: &DecodeQuestion) -> Result<Answer> {
    check_ranges(asked)?;
    let hardware = catalog::service::hardware_input("/hardware", &asked.hardware, None)?;
    let model = catalog::service::model_input("/model", &asked.model)?;
    let quantization = Quantization::parse(&asked.quantization);
    let weights = Weights::of(model, &quantization).ok_or_else(|| {
        let detail = "The width of this quantization is not known; a number of bits is read as such (\"4.85 bits\").";
        Error::invalid("/quantization", "unknown_quantization", detail)
    })?;
    let stated = asked.kv_cache_dtype.as_deref().map(kv_format).transpose()?;
    let gpu_count = asked.gpu_count.unwrap_or(1);
    let mut conn = ctx.db.read().await?;
    let count = i32::try_from(gpu_count).map_err(Error::internal)?;
    let rows = medians(&mut conn, &model.slug, quantization.as_str(), &hardware.slug, count, SERIES_MAX).await?;
    drop(conn);
    let series = series(&rows);
    let own = |one: &&Series| one.hardware.slug == hardware.slug && one.gpu_count == gpu_count;
    let usual = most_accounts(series.iter().filter(own)).or_else(|| most_accounts(series.iter()));
    let kv = stated.or(usual).unwrap_or(KvFormat::FP16);
    let setup = Setup { hardware, gpu_count, memory_gib: None, model, weights, kv };
    let contexts = contexts(asked, model);
    let levels = asked.concurrency_levels.clone().unwrap_or_else(|| LEVELS_USUAL.to_vec());
    let question = Question { setup, contexts: &contexts, concurrency_levels: &levels };
    let anchors: Vec<Anchor<'_>> = series.into_iter().filter(|one| one.kv == kv).map(|one| one.anchor(&setup)).collect();
    Ok(answer(&question, &anchors))
}

fn kv_format(text: &str) -> Result<KvFormat> {
    KvFormat::parse(text)
        .ok_or_else(|| Error::invalid("/kv_cache_dtype", "unknown_kv_cache_dtype", "No engine's name for a KV cache of a known width."))
}

/// The asked contexts, or the usual ones that the model allows.
fn contexts(asked: &DecodeQuestion, model: &Model) -> Vec<u64> {
    match &asked.contexts {
        Some(contexts) => contexts.clone(),
        None => CONTEXTS_USUAL.into_iter().filter(|context| *context <= u64::from(model.max_context)).collect(),
    }
}

fn check_ranges(asked: &DecodeQuestion) -> Result<()> {
    let mut faults = Vec::new();
    let mut out_of_range = |pointer: String, detail: String| faults.push(FieldError::new(pointer, "out_of_range", detail));
    if asked.gpu_count.is_some_and(|count| !(1..=GPU_COUNT_MAX).contains(&count)) {
        out_of_range("/gpu_count".to_owned(), format!("A machine has 1 to {GPU_COUNT_MAX} GPUs."));
    }
    let contexts = asked.contexts.as_deref().unwrap_or_default();
    if asked.contexts.is_some() && !(1..=CONTEXTS_MAX).contains(&contexts.len()) {
        out_of_range("/contexts".to_owned(), format!("Ask for 1 to {CONTEXTS_MAX} contexts."));
    }
    for (index, _) in contexts.iter().enumerate().filter(|(_, context)| **context > CONTEXT_TOKENS_MAX) {
        out_of_range(format!("/contexts/{index}"), format!("A context has at most {CONTEXT_TOKENS_MAX} tokens."));
    }
    let levels = asked.concurrency_levels.as_deref().unwrap_or_default();
    if asked.concurrency_levels.is_some() && !(1..=LEVELS_MAX).contains(&levels.len()) {
        out_of_range("/concurrency_levels".to_owned(), format!("Ask for 1 to {LEVELS_MAX} levels."));
    }
    for (index, _) in levels.iter().enumerate().filter(|(_, level)| !(1..=LEVEL_MAX).contains(*level)) {
        out_of_range(format!("/concurrency_levels/{index}"), format!("A level is 1 to {LEVEL_MAX} requests."));
    }
    if faults.is_empty() { Ok(()) } else { Err(Error::invalid_fields(faults)) }
}

/// What was measured on one kind of machine with one KV cache type.
struct Series {
    hardware: &'static HardwareModel,
    gpu_count: u32,
    kv: KvFormat,
    account_count: u32,
    cells: BTreeMap<(u64, u32), Seen>,
    prefill: BTreeMap<u64, Figure>,
}

impl Series {
    /// `None` for hardware that this program's catalog no longer has, and for a KV cache type of no known width.
    fn of(row: &MedianRow) -> Option<Self> {
        Some(Self {
            hardware: Catalog::builtin().hardware(&row.hardware_slug)?,
            gpu_count: u32::try_from(row.gpu_count).ok().filter(|count| *count > 0)?,
            // What engines choose by themselves is the model's own 16 bits.
            kv: if row.kv_cache_dtype == KV_AUTO { KvFormat::FP16 } else { KvFormat::of_name(&row.kv_cache_dtype)? },
            account_count: 0,
            cells: BTreeMap::new(),
            prefill: BTreeMap::new(),
        })
    }

    /// `rows` are those of one place and status, the fastest first.
    fn take(&mut self, rows: &[MedianRow]) -> Option<()> {
        // Of two in the middle the weaker one, as in the rankings.
        let row = rows.get(rows.len() / 2)?;
        let (context, level) = (u64::try_from(row.context_tokens).ok()?, u32::try_from(row.concurrency).ok()?);
        if row.status == CellStatus::OverCapacity.as_str() {
            self.cells.entry((context, level)).or_insert_with(|| Seen::OverCapacity(row.run_id.to_string()));
            return Some(());
        }
        let all = |count: fn(&MedianRow) -> i32| rows.iter().map(count).sum::<i32>();
        let figure = Figure {
            range: Range {
                low: rows.iter().map(|row| row.lowest).fold(row.figure, f64::min),
                value: row.figure,
                high: rows.iter().map(|row| row.highest).fold(row.figure, f64::max),
            },
            run_id: row.run_id.to_string(),
            run_count: u32::try_from(all(|row| row.run_count)).ok()?,
            account_count: u32::try_from(all(|row| row.account_count)).ok()?,
        };
        self.account_count = self.account_count.max(figure.account_count);
        if row.is_prefill {
            self.prefill.insert(context, figure);
        } else if row.status == CellStatus::Valid.as_str() {
            self.cells.insert((context, level), Seen::Valid(figure));
        } else if !matches!(self.cells.get(&(context, level)), Some(Seen::Valid(_))) && figure.range.value > 0.0 {
            self.cells.insert((context, level), Seen::Queued(figure));
        }
        Some(())
    }

    fn anchor<'a>(self, asked: &Setup<'a>) -> Anchor<'a> {
        let setup = Setup { hardware: self.hardware, gpu_count: self.gpu_count, memory_gib: None, kv: self.kv, ..*asked };
        Anchor::new(setup, self.cells, self.prefill)
    }
}

/// The rows by series, in their order.
fn series(rows: &[MedianRow]) -> Vec<Series> {
    let of = |rows: &[MedianRow]| {
        let mut one = Series::of(rows.first()?)?;
        let place = |row: &MedianRow| (row.is_prefill, row.context_tokens, row.concurrency, row.status.clone());
        for rows in rows.chunk_by(|a, b| place(a) == place(b)) {
            one.take(rows);
        }
        Some(one)
    };
    rows.chunk_by(|a, b| a.series_id == b.series_id).filter_map(of).collect()
}

/// The KV cache type that most accounts measured with; of several the first in order.
fn most_accounts<'a>(series: impl Iterator<Item = &'a Series>) -> Option<KvFormat> {
    let most = series.fold(None, |most: Option<&Series>, one| match most {
        Some(most) if most.account_count >= one.account_count => Some(most),
        _ => Some(one),
    });
    most.map(|most| most.kv)
}
