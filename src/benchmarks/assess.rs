//! From a parsed document to its assessment: redact, read, build the matrix, check, and word it for the page.

use serde_json::Value;

use super::challenge::answer;
use super::checks::{self, Finding, Input, Phase, Row};
use super::claim::Claim;
use super::document::{Document, clean, read_value, whole_of};
use super::json::Unreadable;
use super::log;
use super::matrix::{Cell, DecodeMode, Matrix};
use super::redact;
use super::verdict::{AssessContext, Assessment, FingerprintCell, RULES_VERSION, RunSettings, Tool, Verdict};
use crate::catalog::{Catalog, HardwareMatch};

pub(super) const TOOL_NAME: &str = "llm-inference-bench";
const TOKENS_PER_K: u64 = 1_024;
const MICROS: f64 = 1e6;
const MILLIS: f64 = 1e3;

/// Judges plain or gzipped bytes.
///
/// # Errors
/// [`Unreadable`] when they are no run document; nothing is to be stored then.
pub fn assess(bytes: &[u8], claim: &Claim, context: &AssessContext) -> Result<Assessment, Unreadable> {
    assess_value(read_value(bytes)?, claim, context)
}

/// Judges a document that is parsed already (see [`super::document::read_envelope`]).
///
/// # Errors
/// As [`assess`].
pub fn assess_value(value: Value, claim: &Claim, context: &AssessContext) -> Result<Assessment, Unreadable> {
    // A fault is named at the place it has in what was sent, which redaction keeps.
    let redacted = redact::document(value);
    let document = Document::of(&redacted.value)?;
    let claim = redact::claim(claim);
    let matrix = Matrix::of(&document);
    let input = Input::new(&document, &matrix);
    let mut findings = checks::run(&input);
    let hardware = context.machine_hardware.as_ref().or(claim.hardware.as_ref());
    findings.extend(checks::claimed(&document, &claim));
    findings.extend(checks::hardware(&document, hardware, context.hardware_unseen));
    findings.extend(checks::physical(&input, &claim, hardware));
    findings.extend(checks::freshness(&document, context.uploaded_at));
    if let Some((spec, facts)) = &context.challenge {
        findings.extend(answer::check(&document, &matrix, spec, facts));
    }
    let findings = checks::merge(findings);
    Ok(Assessment {
        verdict: Verdict::of(&findings),
        rules_version: RULES_VERSION.to_owned(),
        title: title(&claim, &document),
        engine_summary: engine_summary(&claim, &document),
        matrix_summary: matrix_summary(&document, &matrix),
        tool: tool(&document),
        run: settings(&document, matrix.mode),
        fingerprint: fingerprint(&input),
        nonce: log::nonce(&document),
        run_id: document.wrapper.as_ref().and_then(|w| w.run_id.clone()),
        wall_seconds: answer::wall_seconds(&document),
        hardware_seen: document.hardware.clone(),
        redacted: redacted.bytes,
        document_sha256: redacted.sha256,
        device_hashes: redacted.device_hashes,
        findings,
        matrix,
        claim,
    })
}

fn tool(document: &Document) -> Tool {
    if let Some((name, version)) = document.metadata.client.as_deref().and_then(|client| client.split_once(' ')) {
        return Tool { name: name.to_owned(), version: Some(version.to_owned()) };
    }
    Tool { name: TOOL_NAME.to_owned(), version: document.version.as_ref().map(|version| version.text.clone()) }
}

fn settings(document: &Document, mode: DecodeMode) -> RunSettings {
    let metadata = &document.metadata;
    let decode_test = if metadata.prefill_only {
        None
    } else {
        Some(match mode {
            DecodeMode::Duration => "Fixed duration",
            DecodeMode::RequestCount => "Fixed number of requests",
            DecodeMode::Burst => "Burst of requests",
        })
    };
    let prefill_mode = metadata.prefill_mode.as_deref().map(|mode| match mode {
        "integrated_decode_scout" => "Measured during decode warm-up",
        "standalone_cold" => "Measured separately, cold",
        "skipped" => "Not measured",
        other => other,
    });
    RunSettings {
        served_model: metadata.model.clone(),
        decode_test: decode_test.map(str::to_owned),
        prefill_mode: prefill_mode.map(str::to_owned),
        duration_seconds: metadata.duration_per_test.filter(|_| mode == DecodeMode::Duration && !metadata.prefill_only),
        max_output_tokens: metadata.max_tokens,
        engine: metadata.engine.clone(),
        engine_version: log::engine_version(document),
    }
}

/// `Nemotron-Cascade-2-30B-A3B-AWQ-4bit on RTX 3090 24GB`.
fn title(claim: &Claim, document: &Document) -> String {
    let claimed = claim.model.as_ref().map(|model| clean(&model.hf_id)).filter(|id| !id.is_empty());
    let id = claimed.or_else(|| document.metadata.model.clone());
    let model = id.map_or_else(|| "Unknown model".to_owned(), |id| id.rsplit('/').next().unwrap_or_default().to_owned());
    match hardware_name(claim, document) {
        Some(hardware) => format!("{model} on {hardware}"),
        None => model,
    }
}

/// `RTX 3090 24GB`, `2× RTX 3090 24GB`: the claim, or else what the document saw.
fn hardware_name(claim: &Claim, document: &Document) -> Option<String> {
    let seen = document.hardware.gpus.first();
    let (name, count, gib) = match (&claim.hardware, seen) {
        (Some(hardware), _) => (clean(&hardware.gpu), hardware.gpu_count.unwrap_or(1), hardware.vram_gib),
        (None, Some(gpu)) => (gpu.name.clone(), u32::try_from(document.hardware.gpus.len()).unwrap_or(1), None),
        (None, None) => return None,
    };
    let (name, nominal) = match Catalog::builtin().resolve_hardware(&name, gib) {
        HardwareMatch::One(model) => (model.name.clone(), model.memory_gib.filter(|_| !model.unified)),
        HardwareMatch::Ambiguous(_) | HardwareMatch::Unknown => (name, None),
    };
    let memory = gib.or(nominal).map(|gib| format!("{}GB", gib.round())).filter(|memory| !name.ends_with(memory.as_str()));
    let times = if count > 1 { format!("{count}× ") } else { String::new() };
    Some(format!("{times}{name}{}", memory.map(|memory| format!(" {memory}")).unwrap_or_default()))
}

/// `vllm · 0.32.0 · AWQ 4-bit`: what is known of it.
fn engine_summary(claim: &Claim, document: &Document) -> String {
    let engine = claim.engine.as_ref();
    let name = engine.map(|engine| clean(&engine.name)).or_else(|| document.metadata.engine.clone());
    let version = engine.and_then(|engine| engine.version.as_deref().map(clean)).or_else(|| log::engine_version(document));
    let quantization = claim.quantization().map(|quantization| clean(quantization.name()));
    let parts = [name, version, quantization].into_iter().flatten().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" · ")
}

/// `6 contexts (0–248K) × 8 concurrency levels (1–128) · prefill at 8K, 16K, 32K, 64K, 128K`.
fn matrix_summary(document: &Document, matrix: &Matrix) -> String {
    let mut contexts: Vec<u64> = matrix.decode.iter().map(|cell| cell.context_tokens).collect();
    let mut levels: Vec<u32> = matrix.decode.iter().map(|cell| cell.concurrency).collect();
    contexts.sort_unstable();
    contexts.dedup();
    levels.sort_unstable();
    levels.dedup();
    let mut parts = Vec::new();
    if let ([shortest, .., longest], [fewest, .., most]) = (contexts.as_slice(), levels.as_slice()) {
        let contexts = format!("{} contexts ({}–{})", contexts.len(), context_name(*shortest), context_name(*longest));
        parts.push(format!("{contexts} × {} concurrency levels ({fewest}–{most})", levels.len()));
    } else if !matrix.decode.is_empty() {
        parts.push(few(&contexts, &levels));
    }
    if !matrix.prefill.is_empty() && !document.metadata.skip_prefill {
        let rows: Vec<String> = matrix.prefill.iter().map(|row| context_name(row.context_tokens)).collect();
        parts.push(format!("prefill at {}", rows.join(", ")));
    }
    parts.join(" · ")
}

/// The same where there is one context or one level only.
fn few(contexts: &[u64], levels: &[u32]) -> String {
    let span = |first: String, last: String| if first == last { first } else { format!("{first}–{last}") };
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let context = |c: Option<&u64>| c.map(|c| context_name(*c)).unwrap_or_default();
    let level = |l: Option<&u32>| l.map(u32::to_string).unwrap_or_default();
    format!(
        "{} context{} ({}) × {} concurrency level{} ({})",
        contexts.len(),
        plural(contexts.len()),
        span(context(contexts.first()), context(contexts.last())),
        levels.len(),
        plural(levels.len()),
        span(level(levels.first()), level(levels.last())),
    )
}

/// `0`, `500`, `16K`, `248K`; off the grid with one decimal: `17.3K`.
pub fn context_name(tokens: u64) -> String {
    if tokens < TOKENS_PER_K {
        return tokens.to_string();
    }
    if tokens.is_multiple_of(TOKENS_PER_K) {
        return format!("{}K", tokens / TOKENS_PER_K);
    }
    let tenths = (tokens * 10 + TOKENS_PER_K / 2) / TOKENS_PER_K;
    if tenths.is_multiple_of(10) { format!("{}K", tenths / 10) } else { format!("{}.{}K", tenths / 10, tenths % 10) }
}

/// Tokens and microseconds of every measured cell, so that a copy under another name is found.
fn fingerprint(input: &Input<'_>) -> Vec<FingerprintCell> {
    let cell = |row: Row<'_>| {
        Some(FingerprintCell {
            context_tokens: row.at.context_tokens,
            concurrency: row.at.concurrency,
            output_tokens: row.raw.client_output_tokens.and_then(whole_of)?,
            measured_micros: row.raw.measurement_seconds.map(|seconds| (seconds * MICROS).round()).and_then(whole_of)?,
            wall_seconds: row.raw.wall_time.filter(|seconds| *seconds > 0.0),
            ttft_ms: row.raw.ttft.p50.map(|seconds| seconds * MILLIS).filter(|ttft| *ttft > 0.0),
        })
    };
    input.measured().filter(|row| row.at.phase == Phase::Decode).filter_map(cell).collect()
}

/// What the service reports when it finds a run's twin; only the newcomer gets one.
pub fn duplicate_finding(exact: bool) -> Finding {
    if exact {
        Finding::suspicious("duplicate_document", "Another account or machine has uploaded this document before.")
    } else {
        Finding::suspicious(
            "near_duplicate",
            "At least half of the cells have the tokens and seconds of another account's or machine's run, or very nearly.",
        )
    }
}

/// What the service reports when a device of the document belongs to another host's verified run (cases.md 23 c).
pub fn device_finding() -> Finding {
    Finding::suspicious("device_seen_elsewhere", "A GPU of this document belongs to a run of another host.")
}

/// How many cells of a matrix were measured; for a line in a list.
pub fn measured_cells(matrix: &Matrix) -> usize {
    matrix.decode.iter().filter(|cell: &&Cell| cell.status.is_measured()).count()
}
