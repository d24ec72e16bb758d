//! Group C: what the claimed hardware can do at most (evidence.md 4 C). The ceilings and their margins are the calculator's.
//!
//! Each bound has room for what the claim leaves open, for overclocked parts and for catalog rows that are uncertain: a finding says
//! "cannot", never "unlikely". Nothing here is an error, and what the catalog does not know is
//! a note. A document whose hardware nobody names has no bounds.

use super::floor::{self, Floor};
use super::{CellRef, Finding, Input, Phase, Row, Severity};
use crate::base::units::{GIB_BYTES, MIB_PER_GIB};
use crate::benchmarks::calculator::ceiling::{ROOM, TOKENS_PER_STEP_MAX, memory_ceiling};
use crate::benchmarks::calculator::memory::kv_bytes;
use crate::benchmarks::calculator::{KvFormat, Stated, prefill, real};
use crate::benchmarks::claim::{Claim, ClaimedHardware};
use crate::benchmarks::document::Document;
use crate::benchmarks::matrix::CellStatus;
use crate::benchmarks::quantization::Quantization;
use crate::catalog::{Catalog, HardwareMatch, HardwareModel, Model, ModelMatch};

/// Prompts are up to a tenth shorter than their context.
const PROMPT_SHARE: f64 = 0.9;
/// Tokens per step where speculation is named and its length is not.
const ACCEPTED_UNKNOWN: f64 = 8.0;
/// Options of a launch command that state how many tokens are guessed ahead.
const DRAFT_WORDS: &[&str] = &["num_speculative_tokens", "num-speculative-tokens", "speculative-num-draft-tokens", "draft-max"];
const CHUNKED: f64 = 1.05;
/// Words of a launch command that start speculation, and that keep weights outside the GPU.
const SPECULATION_WORDS: &[&str] = &["speculative", "--spec", "draft", "mtp", "ngram", "eagle"];
const OFFLOAD_WORDS: &[&str] = &["offload", "-ngl", "n-gpu-layers", "n-cpu-moe", "-ot ", "override-tensor"];
/// Words of a launch command that make an engine slow on purpose.
const DEBUG_WORDS: &[&str] = &["eager", "debug", "disable-cuda-graph", "cuda_launch_blocking", "profil", "cpu"];
/// Engines that keep all weights on the GPU unless told otherwise.
const RESIDENT_ENGINES: &[&str] = &["vllm", "sglang", "tensorrt-llm", "trtllm"];
const IDLE_PCT: f64 = 5.0;
const WEIGHTS_SHARE_SEEN: f64 = 0.8;
const POWER_ROOM: f64 = 1.1;
const POWER_LIMIT_USUAL: std::ops::RangeInclusive<f64> = 0.2..=1.6;

/// What the document is said to be of.
struct Subject<'a> {
    stated: Stated<'a>,
    quantization: Option<Quantization>,
    speculation: bool,
    /// The most tokens that a step gives one request: one more than are guessed ahead, where that is stated.
    accepted_max: f64,
    /// All weights must be on the GPU.
    resident: bool,
    /// Telemetry and engine are of one machine.
    local: bool,
}

pub(crate) fn check(input: &Input<'_>, claim: &Claim, hardware: Option<&ClaimedHardware>) -> Vec<Finding> {
    let Some((part, gpu_count)) = part(input.document, hardware) else { return Vec::new() };
    let Some((model, name)) = model(input.document, claim) else {
        let message = "The model is not in the catalog, so its speed was not compared with what the hardware can do.";
        return hardware.map(|_| Finding::note("physics_unchecked", message)).into_iter().collect();
    };
    let subject = subject(input, claim, (part, gpu_count), (model, name));
    let mut findings = Vec::new();
    for row in input.measured() {
        let accepted = accepted(&subject, row);
        findings.extend(above_bandwidth(&subject, row, accepted));
        findings.extend(above_compute(&subject, row));
        findings.extend(below_floor(&subject, row, accepted));
        findings.extend(idle(&subject, row));
        findings.extend(memory_in_use(&subject, row));
        findings.extend(power(&subject, row));
        findings.extend(power_limit(&subject, row));
    }
    findings.extend(prefill_above_compute(input, &subject));
    findings.extend(floor::far_below(input, &subject.floor(claim)));
    findings.extend(weights_exceed_memory(&subject, hardware));
    findings.extend(cache_exceeds_memory(input, &subject, hardware));
    findings
}

/// The claimed hardware, or else the one model that all GPUs of the document are.
fn part(document: &Document, claimed: Option<&ClaimedHardware>) -> Option<(&'static HardwareModel, u32)> {
    let catalog = Catalog::builtin();
    let seen = u32::try_from(document.hardware.gpus.len()).unwrap_or(u32::MAX);
    if let Some(claimed) = claimed {
        let model = catalog.resolve_hardware(&claimed.gpu, claimed.vram_gib).one()?;
        return Some((model, claimed.gpu_count.unwrap_or(1).max(seen).max(1)));
    }
    let mut models =
        document.hardware.gpus.iter().map(|gpu| match catalog.resolve_hardware(&gpu.name, gpu.memory_mib.map(|mib| mib / MIB_PER_GIB)) {
            HardwareMatch::One(model) => Some(model),
            HardwareMatch::Ambiguous(_) | HardwareMatch::Unknown => None,
        });
    let first = models.next()??;
    models.all(|model| model.is_some_and(|model| model.slug == first.slug)).then_some((first, seen))
}

/// The claimed model, or else the one whose name the document has; with that name.
fn model<'a>(document: &'a Document, claim: &'a Claim) -> Option<(&'static Model, &'a str)> {
    let claimed = claim.model.as_ref().map(|model| model.hf_id.as_str());
    let root = document.wrapper.as_ref().and_then(|wrapper| wrapper.served_model_root.as_deref());
    let name = claimed.or(root).or(document.metadata.model.as_deref())?;
    match Catalog::builtin().resolve_model(name) {
        ModelMatch::One(model) => Some((model, name)),
        ModelMatch::Ambiguous(_) | ModelMatch::Unknown => None,
    }
}

impl<'a> Subject<'a> {
    /// What the lower bound needs: the formats as they are likely, not as they would be fastest.
    fn floor(&self, claim: &Claim) -> Floor<'a> {
        let setup = &self.stated.setup;
        let command = claim.launch_command.as_deref().unwrap_or_default().to_lowercase();
        Floor {
            hardware: setup.hardware,
            gpu_count: setup.gpu_count,
            model: setup.model,
            ceiling: memory_ceiling(setup, 1, 0.0),
            quantization: self.quantization.clone(),
            is_plain: self.resident && !DEBUG_WORDS.iter().any(|word| command.contains(word)),
        }
    }
}

fn subject<'a>(input: &Input<'_>, claim: &Claim, part: (&'a HardwareModel, u32), model: (&'a Model, &str)) -> Subject<'a> {
    let document = input.document;
    let command = claim.launch_command.as_deref().unwrap_or_default().to_lowercase();
    // Comments are not options: "# Spec decode: none".
    let options: String = command.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let says = |words: &[&str]| words.iter().any(|word| options.contains(word));
    let guessed = |rate: Option<f64>| rate.is_some_and(|rate| rate > 0.0);
    let engine = claim.engine.as_ref().map(|engine| engine.name.to_lowercase()).or_else(|| document.metadata.engine.clone());
    let quantization = claim.quantization();
    let kv = KvFormat::of_launch_command(&options).filter(|kv| kv.bits >= KvFormat::LEAST.bits);
    Subject {
        stated: Stated::new(part.0, part.1, model.0, model.1, quantization.as_ref(), kv),
        speculation: says(SPECULATION_WORDS)
            || document.wrapper.as_ref().is_some_and(|wrapper| wrapper.speculation)
            || document.cells.iter().any(|cell| guessed(cell.server_spec_accept_rate) || guessed(cell.server_spec_accept_length)),
        accepted_max: drafted(&options).map_or(TOKENS_PER_STEP_MAX, |tokens| (tokens + 1.0).min(TOKENS_PER_STEP_MAX)),
        resident: engine.is_some_and(|engine| RESIDENT_ENGINES.contains(&engine.as_str())) && !says(OFFLOAD_WORDS),
        local: document.server_is_local,
        quantization,
    }
}

/// How many tokens the command says are guessed ahead.
fn drafted(options: &str) -> Option<f64> {
    let stated = DRAFT_WORDS.iter().filter_map(|word| {
        let (_, after) = options.split_once(word)?;
        let number = after.trim_start_matches(|c: char| matches!(c, '"' | '\'' | ':' | '=' | '\\') || c.is_whitespace());
        number.split(|c: char| !c.is_ascii_digit()).next()?.parse::<f64>().ok()
    });
    stated.reduce(f64::max)
}

/// Tokens that one step may have given each request.
#[derive(Clone, Copy)]
struct Accepted {
    /// As the client's own times show it: several tokens in one chunk.
    seen: f64,
    /// As counters and the command have it, which cost nothing to write; never less than what is seen.
    told: f64,
}

impl Accepted {
    /// The finding for a figure that is `factor` times the bound of one token a step; nothing where it is allowed.
    fn finding(self, code: &'static str, factor: f64, message: &'static str) -> Option<Finding> {
        if factor <= self.seen {
            return None;
        }
        if factor <= self.told {
            let message = "The claimed hardware is this fast only with speculation, of which the stream shows too little.";
            return Some(Finding::suspicious("speculation_unseen", message));
        }
        Some(Finding::suspicious(code, message))
    }
}

fn accepted(subject: &Subject<'_>, row: Row<'_>) -> Accepted {
    let chunked = row.raw.chunk_inter_token_latency.p50.zip(row.raw.inter_token_latency.p50);
    let per_chunk = chunked.filter(|(_, token)| *token > 0.0).map(|(chunk, token)| chunk / token).filter(|ratio| *ratio > CHUNKED);
    let seen = per_chunk.unwrap_or(1.0).min(subject.accepted_max);
    let counted = [row.raw.server_accept_len_effective, row.raw.server_spec_accept_length];
    let counted = counted.into_iter().flatten().filter(|length| *length > 1.0).reduce(f64::max);
    let told = counted.unwrap_or(if subject.speculation { ACCEPTED_UNKNOWN } else { 1.0 });
    Accepted { seen, told: told.min(subject.accepted_max).max(seen) }
}

/// Bandwidth over the bytes of a step; at C > 1 of a mixture of experts with more experts hit.
fn above_bandwidth(subject: &Subject<'_>, row: Row<'_>, accepted: Accepted) -> Option<Finding> {
    let total = row.raw.aggregate_tps?;
    let context = real(row.at.context_tokens) * PROMPT_SHARE;
    let bound = subject.stated.memory_bound(row.at.concurrency, context)?;
    let message = "The total is higher than the claimed hardware's memory bandwidth allows for this model.";
    let finding = accepted.finding("decode_above_bandwidth", total / bound, message)?;
    Some(finding.at(row.at).values(at_most(bound * accepted.seen), speed(total)))
}

fn above_compute(subject: &Subject<'_>, row: Row<'_>) -> Option<Finding> {
    let total = row.raw.aggregate_tps?;
    let bound = subject.stated.compute_bound()?;
    (total > bound).then(|| {
        let message = "The total is higher than the claimed hardware can compute for this model.";
        Finding::suspicious("decode_above_compute", message).at(row.at).values(at_most(bound), speed(total))
    })
}

/// The median stream against one reading of the active weights.
fn below_floor(subject: &Subject<'_>, row: Row<'_>, accepted: Accepted) -> Option<Finding> {
    let itl = row.raw.inter_token_latency.p50.filter(|seconds| *seconds > 0.0)?;
    let bound = subject.stated.memory_bound(1, 0.0)?;
    let message = "Tokens follow each other faster than the claimed hardware can read the active weights.";
    let finding = accepted.finding("itl_below_floor", 1.0 / (itl * bound), message)?;
    let milliseconds = |seconds: f64| format!("{:.3} ms", seconds * 1_000.0);
    Some(finding.at(row.at).values(format!("at least {}", milliseconds(1.0 / (bound * accepted.seen))), milliseconds(itl)))
}

/// A prompt that came from a cache is faster than any computing.
fn prefill_above_compute(input: &Input<'_>, subject: &Subject<'_>) -> Vec<Finding> {
    let setup = &subject.stated.setup;
    let Some(ceiling) = prefill::ceiling(setup.hardware, setup.gpu_count, setup.model, subject.quantization.as_ref()) else {
        return Vec::new();
    };
    let rows = input.document.prefill.iter().filter(|row| row.samples != Some(0.0));
    let finding = |row: &crate::benchmarks::document::RawPrefill| {
        let rate = row.tok_per_sec.filter(|rate| *rate > ceiling * ROOM)?;
        let at = CellRef { phase: Phase::Prefill, context_tokens: row.context_tokens, concurrency: 1 };
        let message = "Prefill is faster than the claimed hardware can compute: from a cache, or on other hardware.";
        Some(Finding::suspicious("prefill_above_compute", message).at(at).values(at_most(ceiling), speed(rate)))
    };
    rows.filter_map(finding).collect()
}

/// Bytes of memory of all claimed GPUs; `None` for parts that use whatever is fitted.
fn memory_bytes(subject: &Subject<'_>, claimed: Option<&ClaimedHardware>) -> Option<f64> {
    let count = f64::from(subject.stated.setup.gpu_count);
    // A claim may mean one GPU or all of them: the larger reading.
    let stated = claimed.and_then(|claimed| claimed.vram_gib).map(|gib| gib * count);
    let nominal = subject.stated.setup.hardware.memory_gib.map(|gib| gib * count);
    stated.into_iter().chain(nominal).reduce(f64::max).map(|gib| gib * real(GIB_BYTES))
}

fn weights_exceed_memory(subject: &Subject<'_>, claimed: Option<&ClaimedHardware>) -> Option<Finding> {
    let (memory, weights) = (memory_bytes(subject, claimed)?, subject.stated.least.weights.total_bytes);
    (weights > memory).then(|| {
        let message = "The model's weights are larger than all memory of the claimed hardware.";
        let severity = if subject.resident { Severity::Suspicious } else { Severity::Note };
        Finding::new("weights_exceed_memory", severity, message).values(at_most_gib(memory), gib(weights))
    })
}

/// The largest valid cell's cache beside the weights. Soft: a shared prefix is kept once.
fn cache_exceeds_memory(input: &Input<'_>, subject: &Subject<'_>, claimed: Option<&ClaimedHardware>) -> Option<Finding> {
    let (memory, setup) = (memory_bytes(subject, claimed)?, &subject.stated.least);
    let valid = input.matrix.decode.iter().filter(|cell| cell.status == CellStatus::Valid);
    let cache = |cell: &crate::benchmarks::matrix::Cell| {
        f64::from(cell.concurrency) * kv_bytes(setup.model, setup.kv, real(cell.context_tokens) * PROMPT_SHARE)
    };
    let largest = valid.max_by(|a, b| cache(a).total_cmp(&cache(b)))?;
    let need = setup.weights.total_bytes + cache(largest);
    (setup.weights.total_bytes <= memory && need > memory).then(|| {
        let at = CellRef { phase: Phase::Decode, context_tokens: largest.context_tokens, concurrency: largest.concurrency };
        let message = "Weights and the cache of this cell are larger than all memory of the claimed hardware.";
        Finding::note("cache_exceeds_memory", message).at(at).values(at_most_gib(memory), gib(need))
    })
}

/// What telemetry contradicts counts only where it is of the engine's machine.
fn contradiction(subject: &Subject<'_>) -> Severity {
    if subject.local { Severity::Suspicious } else { Severity::Note }
}

fn idle(subject: &Subject<'_>, row: Row<'_>) -> Option<Finding> {
    let telemetry = row.raw.telemetry;
    // Without a memory size the tool could not read this GPU at all.
    let busy = telemetry.gpu_util_max_pct.filter(|_| telemetry.vram_total_mib.is_some())?;
    (busy < IDLE_PCT).then(|| {
        let message = "The telemetry of this measured cell shows an idle GPU.";
        Finding::new("gpu_idle", contradiction(subject), message).at(row.at).values(format!("above {IDLE_PCT} %"), format!("{busy} %"))
    })
}

fn memory_in_use(subject: &Subject<'_>, row: Row<'_>) -> Option<Finding> {
    let used = row.raw.telemetry.vram_used_max_mib.filter(|_| subject.resident)? * MIB_PER_GIB * MIB_PER_GIB;
    let weights = subject.stated.least.weights.total_bytes;
    (used < weights * WEIGHTS_SHARE_SEEN).then(|| {
        let message = "The telemetry of this cell shows less GPU memory in use than the model's weights take.";
        Finding::new("memory_below_weights", contradiction(subject), message)
            .at(row.at)
            .values(format!("at least {}", gib(weights)), gib(used))
    })
}

fn power(subject: &Subject<'_>, row: Row<'_>) -> Option<Finding> {
    let (mean, limit) = (row.raw.telemetry.power_avg_w?, row.raw.telemetry.power_limit_w?);
    (mean > limit * POWER_ROOM).then(|| {
        let message = "The mean power of this cell is above the power limit in the same telemetry.";
        Finding::new("power_above_limit", contradiction(subject), message)
            .at(row.at)
            .values(format!("at most {limit:.0} W"), format!("{mean:.0} W"))
    })
}

fn power_limit(subject: &Subject<'_>, row: Row<'_>) -> Option<Finding> {
    let telemetry = row.raw.telemetry;
    let (limit, sold) = (telemetry.power_limit_w? / telemetry.gpu_count.unwrap_or(1.0), f64::from(subject.stated.setup.hardware.tdp_w?));
    (!POWER_LIMIT_USUAL.contains(&(limit / sold))).then(|| {
        let message = "The power limit in the telemetry is far from what this hardware is sold with.";
        Finding::note("power_limit_unusual", message).at(row.at).values(format!("about {sold:.0} W"), format!("{limit:.0} W"))
    })
}

fn at_most(tokens_per_second: f64) -> String {
    format!("at most {}", speed(tokens_per_second))
}

fn speed(tokens_per_second: f64) -> String {
    format!("{tokens_per_second:.1} tok/s")
}

fn at_most_gib(bytes: f64) -> String {
    format!("at most {}", gib(bytes))
}

fn gib(bytes: f64) -> String {
    format!("{:.1} GiB", bytes / real(GIB_BYTES))
}
