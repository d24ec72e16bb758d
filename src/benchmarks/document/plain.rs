//! The plain result of `llm_decode_bench.py`.

use chrono::NaiveDateTime;
use serde_json::{Map, Value};

use super::CELLS_MAX;
use super::fields::{Fields, Place, clean};
use super::model::{Args, Document, Metadata, RawCell, RawPrefill, Sample, Stats, SummaryEntry, Telemetry, Version};
use crate::benchmarks::json::{Unreadable, UnreadableCode};
use crate::benchmarks::redact::LOOPBACK;
use crate::benchmarks::verdict::{SeenGpu, SeenHardware};

const CONCURRENCY_MAX: u64 = 1_000_000;
const CONTEXT_MAX: u64 = 1_000_000_000;
const GPUS_SHOWN_MAX: usize = 1_024;

pub(super) fn document(top: &Map<String, Value>) -> Result<Document, Unreadable> {
    read(Fields { map: top, place: Place::Root })
}

/// Reads the object at any place: the whole file, or `results.bench` of a wrapper.
pub(super) fn read(top: Fields<'_>) -> Result<Document, Unreadable> {
    let missing = |what: &str| {
        let detail = format!("This is no result of llm-inference-bench: it has no \"{what}\".");
        Unreadable::new(top.place.pointer(), UnreadableCode::NotARunDocument, detail)
    };
    let metadata_map = top.object("metadata")?.ok_or_else(|| missing("metadata"))?;
    let results = top.list("results")?.ok_or_else(|| missing("results"))?;
    if !metadata_map.contains_key("concurrency_levels") && results.is_empty() {
        return Err(missing("metadata.concurrency_levels"));
    }
    let burst: &[Value] = top.list("burst_results")?.map_or(&[], Vec::as_slice);
    bounded(&top, results.len() + burst.len())?;
    let metadata_place = Place::Key(&top.place, "metadata");
    let metadata_fields = Fields { map: metadata_map, place: metadata_place };
    let metadata = metadata(&metadata_fields)?;
    bounded(&top, metadata.concurrency_levels.len().saturating_mul(metadata.context_lengths.len()))?;
    let cells = cells(results, Place::Key(&top.place, "results"))?;
    let startup = top.object("startup_diagnostics")?;
    let startup = startup.map(|map| Fields { map, place: Place::Key(&top.place, "startup_diagnostics") });
    let mut document = Document {
        wrapper: None,
        version: metadata_fields.shown("version")?.map(version),
        startup_version: startup.and_then(|s| s.lenient_text("version")),
        metadata,
        args: startup.map(|s| args(&s)).unwrap_or_default(),
        event_log: event_log(&top)?,
        prefill: prefill(&top)?,
        burst_cells: self::cells(burst, Place::Key(&top.place, "burst_results"))?,
        summary: summary(&top, "summary_table")?,
        burst_summary: summary(&top, "burst_summary_table")?,
        hardware: startup.map(|s| seen_by_client(&s)).unwrap_or_default(),
        has_extra_measurements: top.map.get("coding_peak").is_some_and(|peak| !is_nothing(peak)),
        server_is_local: metadata_fields.text("server")?.is_some_and(|server| server == LOOPBACK),
        cells,
    };
    telemetry_hardware(results, &mut document.hardware);
    Ok(document)
}

fn bounded(top: &Fields<'_>, cells: usize) -> Result<(), Unreadable> {
    if cells > CELLS_MAX {
        let place = Place::Key(&top.place, "results");
        return Err(Unreadable::new(place.pointer(), UnreadableCode::TooManyCells, format!("A run has at most {CELLS_MAX} cells.")));
    }
    Ok(())
}

/// `0.4.18` and the like; anything after the third number is ignored.
pub(super) fn version(text: String) -> Version {
    let core = text.strip_prefix('v').unwrap_or(&text);
    let core = core.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<Option<u32>> = core.split('.').map(|part| part.parse().ok()).collect();
    let parts = match numbers.as_slice() {
        [Some(major), Some(minor), Some(patch)] => Some((*major, *minor, *patch)),
        [Some(major), Some(minor)] => Some((*major, *minor, 0)),
        _ => None,
    };
    Version { text, parts }
}

fn metadata(fields: &Fields<'_>) -> Result<Metadata, Unreadable> {
    let timestamp_text = fields.text("timestamp")?;
    let timestamp = timestamp_text.and_then(|t| NaiveDateTime::parse_from_str(t, "%Y-%m-%dT%H:%M:%S%.f").ok());
    let metadata = Metadata {
        client: fields.lenient_text("client"),
        engine_version: fields.lenient_text("engine_version"),
        engine: fields.shown("engine")?,
        model: fields.shown("model")?,
        timestamp,
        timestamp_malformed: timestamp_text.is_some() && timestamp.is_none(),
        decode_mode: fields.shown("decode_mode")?,
        duration_per_test: fields.number("duration_per_test")?,
        request_count: fields.whole("request_count")?,
        burst_request_count: fields.whole("burst_request_count")?,
        burst_requests_per_concurrency: fields.whole("burst_requests_per_concurrency")?,
        run_burst: fields.flag("run_burst")?.unwrap_or_default(),
        prefill_mode: fields.shown("prefill_mode")?,
        prefill_only: fields.flag("prefill_only")?.unwrap_or_default(),
        skip_prefill: fields.flag("skip_prefill")?.unwrap_or_default(),
        max_tokens: fields.whole("max_tokens")?,
        max_total_tokens: fields.whole("max_total_tokens")?,
        metrics_available: fields.flag("metrics_available")?,
        concurrency_levels: fields.wholes("concurrency_levels")?,
        context_lengths: fields.wholes("context_lengths")?,
        forced_tokens: fields.map.iter().any(|(key, value)| key.starts_with("forced_token") && !is_nothing(value)),
    };
    for (key, values, max) in
        [("concurrency_levels", &metadata.concurrency_levels, CONCURRENCY_MAX), ("context_lengths", &metadata.context_lengths, CONTEXT_MAX)]
    {
        let place = Place::Key(&fields.place, key);
        for (i, value) in values.iter().enumerate() {
            in_range(*value, u64::from(key == "concurrency_levels"), max, Place::Index(&place, i))?;
        }
    }
    Ok(metadata)
}

fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || value.as_str().is_some_and(str::is_empty)
}

fn in_range(value: u64, min: u64, max: u64, place: Place<'_>) -> Result<(), Unreadable> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Unreadable::new(place.pointer(), UnreadableCode::OutOfRange, format!("The value lies outside {min} to {max}.")))
}

fn event_log(top: &Fields<'_>) -> Result<Vec<String>, Unreadable> {
    let place = Place::Key(&top.place, "event_log");
    let lines = top.list("event_log")?.map(Vec::as_slice).unwrap_or_default();
    let line = |(i, value): (usize, &Value)| {
        value.as_str().map(str::to_owned).ok_or_else(|| Place::Index(&place, i).wrong_type("a string", value))
    };
    lines.iter().enumerate().map(line).collect()
}

fn cells(rows: &[Value], place: Place<'_>) -> Result<Vec<RawCell>, Unreadable> {
    rows.iter().enumerate().map(|(i, row)| cell(&Fields::of(row, Place::Index(&place, i))?)).collect()
}

fn cell(f: &Fields<'_>) -> Result<RawCell, Unreadable> {
    let coordinate = |key: &str, min, max| {
        let place = Place::Key(&f.place, key);
        let value = f.whole(key)?.ok_or_else(|| {
            Unreadable::new(place.pointer(), UnreadableCode::NotARunDocument, "A cell without this is none of this benchmark.")
        })?;
        in_range(value, min, max, place).map(|()| value)
    };
    let concurrency = coordinate("concurrency", 1, CONCURRENCY_MAX)?;
    let context_tokens = coordinate("context_tokens", 0, CONTEXT_MAX)?;
    Ok(RawCell {
        concurrency,
        context_tokens,
        benchmark_mode: f.shown("benchmark_mode")?,
        request_count_target: f.number("request_count_target")?,
        measurement_seconds: f.number("measurement_seconds")?,
        measurement_wall_seconds: f.number("measurement_wall_seconds")?,
        client_output_tokens: f.number("client_output_tokens")?,
        server_output_tokens: f.number("server_output_tokens")?,
        aggregate_source: f.text("aggregate_source")?.map(clean),
        aggregate_tps: f.number("aggregate_tps")?,
        failure_reason: f.shown("failure_reason")?,
        per_request_avg_tps: f.number("per_request_avg_tps")?,
        ttft: stats(f, "ttft")?,
        time_to_second_token: stats(f, "time_to_second_token")?,
        request_latency: stats(f, "request_latency")?,
        inter_token_latency: stats(f, "inter_token_latency")?,
        chunk_inter_token_latency: stats(f, "chunk_inter_token_latency")?,
        output_tps_per_user: stats(f, "output_tps_per_user")?,
        e2e_output_tps_per_user: stats(f, "e2e_output_tps_per_user")?,
        input_seq_len_avg: f.number("input_seq_len_avg")?,
        output_seq_len: stats(f, "output_seq_len")?,
        request_count: f.number("request_count")?,
        completed_request_count: f.number("completed_request_count")?,
        samples: samples(f)?,
        total_tokens: f.number("total_tokens")?,
        wall_time: f.number("wall_time")?,
        num_completed: f.number("num_completed")?,
        num_errors: f.number("num_errors")?,
        server_gen_throughput: f.number("server_gen_throughput")?,
        server_utilization: f.number("server_utilization")?,
        server_spec_accept_rate: f.number("server_spec_accept_rate")?,
        server_spec_accept_length: f.number("server_spec_accept_length")?,
        server_steps_per_s: f.number("server_steps_per_s")?,
        server_accept_len_effective: f.number("server_accept_len_effective")?,
        avg_running_reqs: f.number("avg_running_reqs")?,
        max_running_reqs: f.number("max_running_reqs")?,
        effective_concurrency: f.number("effective_concurrency")?,
        avg_queue_reqs: f.number("avg_queue_reqs")?,
        max_queue_reqs: f.number("max_queue_reqs")?,
        queue_fraction: f.number("queue_fraction")?,
        underfilled: f.flag("underfilled")?,
        warmup_timed_out: f.flag("warmup_timed_out")?,
        warmup_duration: f.number("warmup_duration")?,
        capacity_limited: f.flag("capacity_limited")?,
        loop_detected: f.flag("loop_detected")?.unwrap_or_default(),
        telemetry: telemetry(f),
    })
}

/// Telemetry has no promised shape: what is no number is absent. A zero is a sensor that is not there, but for the utilisation.
fn telemetry(f: &Fields<'_>) -> Telemetry {
    let Some(map) = f.lenient_object("hardware_summary") else { return Telemetry::default() };
    let f = Fields { map, place: Place::Root };
    let positive = |key: &str| f.lenient_number(key).filter(|number| *number > 0.0);
    Telemetry {
        gpu_count: positive("gpu_count"),
        gpu_util_max_pct: f.lenient_number("gpu_util_max_pct").filter(|share| *share >= 0.0),
        power_avg_w: positive("power_total_avg_w"),
        power_limit_w: positive("power_limit_total_w"),
        vram_used_max_mib: positive("vram_used_max_mb"),
        vram_total_mib: positive("vram_total_mb"),
    }
}

fn stats(f: &Fields<'_>, name: &str) -> Result<Stats, Unreadable> {
    let number = |suffix: &str| f.number(&format!("{name}_{suffix}"));
    Ok(Stats { avg: number("avg")?, p50: number("p50")?, p90: number("p90")?, p99: number("p99")? })
}

fn samples(f: &Fields<'_>) -> Result<Option<Vec<Sample>>, Unreadable> {
    let Some(rows) = f.list("request_samples")? else { return Ok(None) };
    let place = Place::Key(&f.place, "request_samples");
    let sample = |(i, row): (usize, &Value)| {
        let f = Fields::of(row, Place::Index(&place, i))?;
        let number = |key: &str| f.number(key).map(Option::unwrap_or_default);
        Ok(Sample {
            ttft: number("ttft")?,
            time_to_second_token: number("time_to_second_token")?,
            latency: number("latency")?,
            inter_token_latency: number("inter_token_latency_avg")?,
            chunk_inter_token_latency: number("chunk_inter_token_latency_avg")?,
            input_tokens: number("input_tokens")?,
            output_tokens: number("output_tokens")?,
            output_tps_per_user: number("output_tps_per_user")?,
            e2e_output_tps_per_user: number("e2e_output_tps_per_user")?,
            completed: f.flag("completed")?.unwrap_or_default(),
        })
    };
    rows.iter().enumerate().map(sample).collect::<Result<_, _>>().map(Some)
}

fn prefill(top: &Fields<'_>) -> Result<Vec<RawPrefill>, Unreadable> {
    let Some(map) = top.object("prefill")? else { return Ok(Vec::new()) };
    let place = Place::Key(&top.place, "prefill");
    if map.len() > CELLS_MAX {
        return Err(Unreadable::new(place.pointer(), UnreadableCode::TooManyCells, "There are too many prefill rows."));
    }
    let mut rows = Vec::with_capacity(map.len());
    for (key, value) in map {
        let row_place = Place::Key(&place, key);
        let context_tokens = context_key(key, row_place)?;
        let f = Fields::of(value, row_place)?;
        let validation = f.lenient_object("server_validation");
        rows.push(RawPrefill {
            context_tokens,
            ttft_seconds: f.number("ttft_seconds")?,
            prefill_seconds: f.number("prefill_seconds")?,
            client_ttft_seconds: f.number("client_ttft_seconds")?,
            tok_per_sec: f.number("tok_per_sec")?,
            client_tok_per_sec: f.number("client_tok_per_sec")?,
            prompt_tokens: f.number("prompt_tokens")?,
            samples: f.number("samples")?,
            method: f.shown("method")?,
            cached_tokens: validation.and_then(|v| v.get("cached_tokens")).and_then(Value::as_f64),
        });
    }
    rows.sort_by_key(|row| row.context_tokens);
    Ok(rows)
}

/// A key that is a decimal number, as Python writes them: one spelling for a number.
fn context_key(key: &str, place: Place<'_>) -> Result<u64, Unreadable> {
    let number = key.parse::<u64>().ok().filter(|n| n.to_string() == key && *n <= CONTEXT_MAX);
    number.ok_or_else(|| Unreadable::new(place.pointer(), UnreadableCode::WrongType, "The key is no decimal number of tokens or requests."))
}

fn summary(top: &Fields<'_>, name: &str) -> Result<Option<Vec<SummaryEntry>>, Unreadable> {
    let Some(rows) = top.object(name)? else { return Ok(None) };
    let place = Place::Key(&top.place, name);
    let mut entries = Vec::new();
    for (context, row) in rows {
        let row_place = Place::Key(&place, context);
        let context_tokens = context_key(context, row_place)?;
        for (concurrency, value) in Fields::of(row, row_place)?.map {
            let cell_place = Place::Key(&row_place, concurrency);
            let concurrency = context_key(concurrency, cell_place)?;
            if !value.is_null() && !value.is_number() {
                return Err(cell_place.wrong_type("a number or null", value));
            }
            bounded(top, entries.len())?;
            entries.push(SummaryEntry { context_tokens, concurrency, value: value.as_f64() });
        }
    }
    Ok(Some(entries))
}

fn args(startup: &Fields<'_>) -> Args {
    let Some(map) = startup.lenient_object("args") else { return Args::default() };
    let f = Fields { map, place: Place::Root };
    let whole = |key: &str| f.lenient_number(key).and_then(super::fields::whole_of);
    Args {
        present: true,
        concurrency: map.get("concurrency").and_then(sizes),
        contexts: map.get("contexts").and_then(sizes),
        prefill_contexts: map.get("prefill_contexts").and_then(sizes),
        max_tokens: whole("max_tokens"),
        duration: f.lenient_number("duration"),
        request_count: whole("request_count"),
        kv_budget: whole("kv_budget"),
    }
}

/// A list of sizes as the command line takes them: `0,16k,128k`, or a JSON list of numbers.
fn sizes(value: &Value) -> Option<Vec<u64>> {
    match value {
        Value::String(text) => text.split(',').map(str::trim).filter(|part| !part.is_empty()).take(CELLS_MAX).map(size).collect(),
        Value::Array(items) => items.iter().map(|item| item.as_f64().and_then(super::fields::whole_of)).collect(),
        _ => None,
    }
}

/// `16k` is 16 × 1024, `1m` is 1024 × 1024, as the tool reads them.
pub fn size(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1_024.0),
        None => lower.strip_suffix('m').map_or((lower.as_str(), 1.0), |digits| (digits, 1_048_576.0)),
    };
    let number: f64 = digits.parse().ok().filter(|n: &f64| n.is_finite())?;
    super::fields::whole_of((number * unit).round())
}

/// GPUs as nvidia-smi listed them on the client's machine: index, name, driver, bus, PCIe generation, width, power limit.
fn seen_by_client(startup: &Fields<'_>) -> SeenHardware {
    let mut seen = SeenHardware::default();
    let Some(query) = startup.lenient_object("nvidia_smi_query") else { return seen };
    let stdout = query.get("stdout").and_then(Value::as_str).unwrap_or_default();
    for line in stdout.lines().take(GPUS_SHOWN_MAX) {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let [_, name, driver, .., power] = columns.as_slice() else { continue };
        let power_limit_w = power.parse().ok().filter(|w: &f64| w.is_finite());
        seen.gpus.push(SeenGpu { name: clean(name), memory_mib: None, power_limit_w });
        seen.driver = Some(clean(driver));
    }
    seen
}

/// GPU count and memory from the telemetry of the cells: the largest seen.
fn telemetry_hardware(rows: &[Value], seen: &mut SeenHardware) {
    for row in rows {
        let Some(summary) = row.get("hardware_summary") else { continue };
        let number = |key: &str| summary.get(key).and_then(Value::as_f64).filter(|n| *n > 0.0);
        if let Some(count) = number("gpu_count").and_then(super::fields::whole_of).and_then(|n| u32::try_from(n).ok()) {
            seen.gpu_count = seen.gpu_count.max(Some(count));
        }
        if let Some(mib) = number("vram_total_mb") {
            seen.vram_total_mib = Some(seen.vram_total_mib.map_or(mib, |before| before.max(mib)));
        }
    }
}
