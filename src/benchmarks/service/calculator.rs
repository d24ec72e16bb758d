//! The decode calculator over the store's runs.

use serde::Deserialize;
use utoipa::ToSchema;

use super::super::{
    calculator::{Anchor, Answer, KvFormat, Setup, Weights, answer, answer::Question},
    matrix::Matrix,
    quantization::Quantization,
    queries::{self, AnchorRow},
};
use crate::{
    base::{Error, FieldError, Result},
    catalog::{self, Catalog, HardwareModel, Model},
    ctx::Ctx,
};

const GPU_COUNT_MAX: u32 = 1_024;
const CONTEXTS_MAX: usize = 32;
const CONTEXT_TOKENS_MAX: u64 = 100_000_000;
const LEVELS_MAX: usize = 32;
const LEVEL_MAX: u32 = 4_096;
/// Runs looked at for one answer.
const ANCHORS_MAX: i64 = 20;
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
    /// As engines name it (`fp8`, `q8_0`). When absent: that of the run the answer is anchored to, or 16 bits.
    pub kv_cache_dtype: Option<String>,
    /// In tokens; at most 32. When absent: the usual ones up to the model's longest.
    #[schema(min_items = 1, max_items = 32)]
    pub contexts: Option<Vec<u64>>,
    /// At most 32. When absent: the usual ones.
    #[schema(min_items = 1, max_items = 32)]
    pub concurrency_levels: Option<Vec<u32>>,
}

/// Answers from the verified public runs of the same model and quantization, and the formula.
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
    let rows = queries::calculator_anchors(&mut conn, &model.slug, quantization.as_str(), &hardware.slug, count, ANCHORS_MAX).await?;
    drop(conn);
    let runs: Vec<AnchorRun> = rows.into_iter().filter_map(|row| AnchorRun::of(row, stated)).collect();
    let kv = stated.or_else(|| runs.iter().find_map(|run| run.kv)).unwrap_or(KvFormat::FP16);
    let setup = Setup { hardware, gpu_count, memory_gib: None, model, weights, kv };
    let contexts = contexts(asked, model);
    let levels = asked.concurrency_levels.clone().unwrap_or_else(|| LEVELS_USUAL.to_vec());
    let question = Question { setup, contexts: &contexts, concurrency_levels: &levels };
    let anchors: Vec<Anchor<'_>> = runs.iter().map(|run| run.anchor(&setup)).collect();
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

/// A run of the store with what the catalog knows of its hardware.
struct AnchorRun {
    run_id: String,
    hardware: &'static HardwareModel,
    gpu_count: u32,
    kv: Option<KvFormat>,
    matrix: Matrix,
}

impl AnchorRun {
    /// `None` for hardware that this program's catalog no longer has, a matrix of another shape, or a KV cache known to be kept otherwise.
    fn of(row: AnchorRow, stated: Option<KvFormat>) -> Option<Self> {
        let kv = row.launch_command.as_deref().and_then(KvFormat::of_launch_command);
        if stated.is_some_and(|stated| kv.is_some_and(|kv| kv != stated)) {
            return None;
        }
        Some(Self {
            run_id: row.id.to_string(),
            hardware: Catalog::builtin().hardware(&row.hardware_slug)?,
            gpu_count: u32::try_from(row.gpu_count).ok().filter(|count| *count > 0)?,
            kv,
            matrix: serde_json::from_value(row.matrix).ok()?,
        })
    }

    fn anchor<'a>(&'a self, asked: &Setup<'a>) -> Anchor<'a> {
        let setup =
            Setup { hardware: self.hardware, gpu_count: self.gpu_count, memory_gib: None, kv: self.kv.unwrap_or(asked.kv), ..*asked };
        Anchor { run_id: self.run_id.clone(), matrix: &self.matrix, setup }
    }
}
