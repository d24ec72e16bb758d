//! The forger's tools: edits that keep as much of a document's arithmetic as the forger wants.

use rigmark::benchmarks::{
    AssessContext, Assessment, Claim, ClaimedHardware, Unreadable, assess, assess::duplicate_finding, assess_value, is_near_duplicate,
};
use serde_json::{Value, json};

use super::value;

/// What is uploaded, and what surrounds it.
pub struct Case {
    pub document: Value,
    /// Stands for the document where the spelling matters.
    pub bytes: Option<Vec<u8>>,
    pub claim: Claim,
    pub context: AssessContext,
    /// Runs of other accounts that the service has.
    pub others: Vec<Assessment>,
}

impl Case {
    pub fn of(source: &str) -> Self {
        Self { document: value(source), bytes: None, claim: Claim::default(), context: AssessContext::default(), others: Vec::new() }
    }

    /// The plain document, inside its wrapper or not.
    pub fn plain(&mut self) -> &mut Value {
        if self.document.get("schema").is_some() { &mut self.document["results"]["bench"] } else { &mut self.document }
    }

    /// Replaces text of the spelled document once; the text must be there.
    pub fn spell(&mut self, from: &str, to: &str) {
        let text = serde_json::to_string(&self.document).unwrap();
        assert!(text.contains(from), "{from} is not in the document");
        self.bytes = Some(text.replacen(from, to, 1).into_bytes());
    }

    pub fn claims(&mut self, gpu: &str, gpu_count: u32, vram_gib: Option<f64>) {
        self.claim = super::reference_claim();
        self.claim.hardware =
            Some(ClaimedHardware { gpu: gpu.to_owned(), gpu_count: Some(gpu_count), vram_gib, ..ClaimedHardware::default() });
    }

    /// As the service judges it: with the copies it knows.
    pub fn judge(&self) -> Result<Assessment, Unreadable> {
        let run = match &self.bytes {
            Some(bytes) => assess(bytes, &self.claim, &self.context)?,
            None => assess_value(self.document.clone(), &self.claim, &self.context)?,
        };
        let twins = self.others.iter().filter_map(|other| {
            let exact = other.document_sha256 == run.document_sha256;
            (exact || is_near_duplicate(&run.fingerprint, &other.fingerprint)).then(|| duplicate_finding(exact))
        });
        let twins: Vec<_> = twins.collect();
        Ok(run.with_findings(twins))
    }
}

pub fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap()
}

pub fn scale(row: &mut Value, key: &str, factor: f64) {
    let scaled = number(row, key) * factor;
    row[key] = json!(scaled);
}

pub fn rows(document: &mut Value) -> &mut Vec<Value> {
    document["results"].as_array_mut().unwrap()
}

pub fn cell(document: &mut Value, context: u64, concurrency: u64) -> &mut Value {
    rows(document).iter_mut().find(|row| row["context_tokens"] == context && row["concurrency"] == concurrency).unwrap()
}

/// As the log prints a context.
fn label(context: u64) -> String {
    if context < 1_024 { context.to_string() } else { format!("{}k", context / 1_024) }
}

pub fn lines(document: &mut Value) -> Vec<String> {
    document["event_log"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

pub fn edit_log(document: &mut Value, edit: impl Fn(&str) -> String) {
    let edited: Vec<String> = lines(document).iter().map(|line| edit(line)).collect();
    document["event_log"] = json!(edited);
}

/// The lines from this one on, and the time of saving, happen later.
pub fn shift(document: &mut Value, from: usize, seconds: i64) {
    let mut all = lines(document);
    for line in all.iter_mut().skip(from) {
        let parts: Vec<i64> = line[..8].split(':').map(|part| part.parse().unwrap()).collect();
        let clock = (parts[0] * 3_600 + parts[1] * 60 + parts[2] + seconds).rem_euclid(86_400);
        *line = format!("{:02}:{:02}:{:02}{}", clock / 3_600, clock / 60 % 60, clock % 60, &line[8..]);
    }
    document["event_log"] = json!(all);
    let saved: chrono::NaiveDateTime = document["metadata"]["timestamp"].as_str().unwrap().parse().unwrap();
    let saved = saved + chrono::TimeDelta::seconds(seconds);
    document["metadata"]["timestamp"] = json!(saved.format("%Y-%m-%dT%H:%M:%S%.6f").to_string());
}

fn log_total(document: &mut Value, context: u64, concurrency: u64, total: f64) {
    let start = format!("cell done C={concurrency} ctx={} ", label(context));
    let mut all = lines(document);
    // The hidden warm-up cell has a line of its own before.
    if let Some(line) = all.iter_mut().rev().find(|line| line[9..].starts_with(&start)) {
        *line = format!("{} {start}{total:.1} tok/s", &line[..8]);
    }
    document["event_log"] = json!(all);
}

/// The total of a cell from its tokens and seconds, and every copy of it.
pub fn retotal(document: &mut Value, context: u64, concurrency: u64) {
    let row = cell(document, context, concurrency);
    let total = number(row, "client_output_tokens") / number(row, "measurement_seconds");
    row["aggregate_tps"] = json!(total);
    row["per_request_avg_tps"] = json!(total / concurrency as f64);
    row["total_tokens"] = row["client_output_tokens"].clone();
    document["summary_table"][context.to_string()][concurrency.to_string()] = json!(total);
    log_total(document, context, concurrency, total);
}

/// Another count of tokens in a cell, with all that follows from it but the streams and the engine's own counter.
pub fn recount(document: &mut Value, context: u64, concurrency: u64, tokens: f64) {
    cell(document, context, concurrency)["client_output_tokens"] = json!(tokens.round() as u64);
    retotal(document, context, concurrency);
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let position = (sorted.len() - 1) as f64 * share;
    let below = position.floor() as usize;
    let high = sorted.get(below + 1).copied().unwrap_or(sorted[below]);
    sorted[below] + (high - sorted[below]) * (position - below as f64)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// All statistics of a cell from its samples.
pub fn restate(row: &mut Value) {
    let samples = row["request_samples"].as_array().unwrap().clone();
    let pick = |key: &str| samples.iter().map(|sample| number(sample, key)).collect::<Vec<f64>>();
    for (name, key) in [
        ("ttft", "ttft"),
        ("time_to_second_token", "time_to_second_token"),
        ("inter_token_latency", "inter_token_latency_avg"),
        ("chunk_inter_token_latency", "chunk_inter_token_latency_avg"),
        ("output_tps_per_user", "output_tps_per_user"),
        ("output_seq_len", "output_tokens"),
    ] {
        let mut values: Vec<f64> = pick(key).into_iter().filter(|value| *value > 0.0).collect();
        row[format!("{name}_avg")] = json!(mean(&values));
        values.sort_by(f64::total_cmp);
        for (suffix, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            row[format!("{name}_{suffix}")] = json!(percentile(&values, share));
        }
    }
    row["input_seq_len_avg"] = json!(mean(&pick("input_tokens")));
    row["request_count"] = json!(samples.len());
}

pub fn samples(row: &mut Value) -> &mut Vec<Value> {
    row["request_samples"].as_array_mut().unwrap()
}

/// Another pace of one stream, with as many tokens as fit into its life.
pub fn pace(sample: &mut Value, itl: f64) {
    let factor = number(sample, "inter_token_latency_avg") / itl;
    let tokens = ((number(sample, "output_tokens") - 1.0) * factor).ceil() + 1.0;
    sample["output_tokens"] = json!(tokens as u64);
    sample["inter_token_latency_avg"] = json!(itl);
    sample["chunk_inter_token_latency_avg"] = json!(itl);
    sample["output_tps_per_user"] = json!(1.0 / itl);
    scale(sample, "time_to_second_token", 1.0 / factor);
}

/// Tokens of all streams of a cell.
pub fn lives(row: &Value) -> f64 {
    row["request_samples"].as_array().unwrap().iter().map(|sample| number(sample, "output_tokens")).sum()
}

/// Every measured cell at `factor` times its speed: window, streams, statistics, counters, tables and log all rewritten.
pub fn speed_up(document: &mut Value, factor: impl Fn(u64, u64) -> f64) {
    let places: Vec<(u64, u64)> =
        rows(document).iter().map(|row| (row["context_tokens"].as_u64().unwrap(), row["concurrency"].as_u64().unwrap())).collect();
    for (context, concurrency) in places {
        let factor = factor(context, concurrency);
        let row = cell(document, context, concurrency);
        if factor == 1.0 || number(row, "aggregate_tps") <= 0.0 {
            continue;
        }
        for sample in samples(row) {
            let itl = number(sample, "inter_token_latency_avg") / factor;
            pace(sample, itl);
        }
        restate(row);
        let active = number(row, "effective_concurrency").max(1.0).round();
        let tokens = (number(row, "client_output_tokens") * factor / active).round() * active;
        let tokens = tokens.min(lives(row));
        row["server_output_tokens"] = json!(tokens as u64);
        row["server_gen_throughput"] = json!(tokens / number(row, "measurement_wall_seconds"));
        recount(document, context, concurrency, tokens);
    }
}

/// A prefill row of another time: rate, copies, log line, and with `clock` the log's clock and the times of the cell it belongs to.
pub fn prefill(document: &mut Value, context: u64, seconds: f64, clock: bool) {
    let row = &mut document["prefill"][context.to_string()];
    let seconds = (seconds * 1e3).round() / 1e3;
    let earlier = number(row, "ttft_seconds") - seconds;
    let rate = (number(row, "prompt_tokens") / seconds).round();
    for key in ["ttft_seconds", "prefill_seconds", "client_ttft_seconds"] {
        row[key] = json!(seconds);
    }
    for key in ["tok_per_sec", "client_tok_per_sec"] {
        row[key] = json!(rate);
    }
    let mut all = lines(document);
    let end = format!("done ctx={} ", label(context));
    let is_prefill = |line: &str| line[9..].starts_with("integrated prefill ") || line[9..].starts_with("prefill scout-only ");
    let Some(at) = all.iter().position(|line| is_prefill(line) && line.contains(&end)) else { return };
    let head = all[at].split_once(&end).unwrap().0.to_owned();
    all[at] = format!("{head}{end}{rate} tok/s");
    document["event_log"] = json!(all);
    if clock {
        shift(document, at, -(earlier.round() as i64));
        if all[at].contains("integrated") {
            let row = cell(document, context, 1);
            scale_by(row, "warmup_duration", -earlier.round());
            scale_by(row, "wall_time", -earlier.round());
        }
    }
}

fn scale_by(row: &mut Value, key: &str, seconds: f64) {
    let moved = number(row, key) + seconds;
    row[key] = json!(moved);
}

pub fn remove_cell(document: &mut Value, context: u64, concurrency: u64) {
    rows(document).retain(|row| row["context_tokens"] != context || row["concurrency"] != concurrency);
    document["summary_table"][context.to_string()].as_object_mut().unwrap().remove(&concurrency.to_string());
}

/// A cell and its lines go; with `close` the rest of the log moves up, so that no hole is left.
pub fn hide_cell(document: &mut Value, context: u64, concurrency: u64, close: bool) {
    remove_cell(document, context, concurrency);
    let name = format!("C={concurrency} ctx={}", label(context));
    let mut all = lines(document);
    let is = |line: &str, what: &str| line.ends_with(&format!("{what} {name}")) || line[9..].starts_with(&format!("{what} {name} "));
    let start = all.iter().rposition(|line| is(line, "cell start")).unwrap();
    let end = all.iter().rposition(|line| is(line, "cell done")).unwrap();
    let clock = |line: &str| line[..8].split(':').fold(0, |sum, part| sum * 60 + part.parse::<i64>().unwrap());
    let took = clock(&all[end]) - clock(&all[start]) + 2;
    all.drain(start..=end);
    document["event_log"] = json!(all);
    if close {
        shift(document, start, -took);
    }
}

/// A whole context goes: cells, lines, lists and arguments.
pub fn hide_context(document: &mut Value, context: u64) {
    let levels: Vec<u64> =
        rows(document).iter().filter(|row| row["context_tokens"] == context).map(|row| row["concurrency"].as_u64().unwrap()).collect();
    for concurrency in levels {
        hide_cell(document, context, concurrency, true);
    }
    document["summary_table"].as_object_mut().unwrap().remove(&context.to_string());
    document["metadata"]["context_lengths"].as_array_mut().unwrap().retain(|other| *other != context);
    let kept: Vec<String> = document["metadata"]["context_lengths"].as_array().unwrap().iter().map(Value::to_string).collect();
    document["startup_diagnostics"]["args"]["contexts"] = json!(kept.join(","));
    document["prefill"].as_object_mut().unwrap().remove(&context.to_string());
    let (made, ctx) = (format!("startup context {}:", label(context)), format!("prefill done ctx={} ", label(context)));
    let kept: Vec<String> = lines(document).into_iter().filter(|line| !line.contains(&made) && !line.contains(&ctx)).collect();
    document["event_log"] = json!(kept);
}

/// One context is called another, everywhere but in the text of the log's first lines.
pub fn rename_context(document: &mut Value, from: u64, to: u64) {
    for row in rows(document).iter_mut().filter(|row| row["context_tokens"] == from) {
        row["context_tokens"] = json!(to);
    }
    for block in ["summary_table", "prefill"] {
        let map = document[block].as_object_mut().unwrap();
        if let Some(row) = map.remove(&from.to_string()) {
            map.insert(to.to_string(), row);
        }
    }
    for context in document["metadata"]["context_lengths"].as_array_mut().unwrap() {
        if *context == from {
            *context = json!(to);
        }
    }
    let listed: Vec<String> = document["metadata"]["context_lengths"].as_array().unwrap().iter().map(Value::to_string).collect();
    document["startup_diagnostics"]["args"]["contexts"] = json!(listed.join(","));
    let (from, to) = (format!("ctx={}", label(from)), format!("ctx={}", label(to)));
    edit_log(document, |line| {
        if line.ends_with(&from) || line.contains(&format!("{from} ")) { line.replace(&from, &to) } else { line.to_owned() }
    });
}

/// One level is called another: row, workers, gauges, lists, arguments and log.
pub fn rename_level(document: &mut Value, from: u64, to: u64) {
    for row in rows(document).iter_mut().filter(|row| row["concurrency"] == from) {
        for key in ["concurrency", "num_completed", "avg_running_reqs", "max_running_reqs", "effective_concurrency"] {
            row[key] = json!(to);
        }
        let total = number(row, "aggregate_tps");
        row["per_request_avg_tps"] = json!(total / to as f64);
    }
    for row in document["summary_table"].as_object_mut().unwrap().values_mut() {
        if let Some(total) = row.as_object_mut().unwrap().remove(&from.to_string()) {
            row[to.to_string()] = total;
        }
    }
    for level in document["metadata"]["concurrency_levels"].as_array_mut().unwrap() {
        if *level == from {
            *level = json!(to);
        }
    }
    let listed: Vec<String> = document["metadata"]["concurrency_levels"].as_array().unwrap().iter().map(Value::to_string).collect();
    document["startup_diagnostics"]["args"]["concurrency"] = json!(listed.join(","));
    let (from, to) = (format!("C={from} "), format!("C={to} "));
    edit_log(document, |line| line.replace(&from, &to));
}

/// Telemetry of an RTX 3090 at work, in every cell.
pub fn with_telemetry(document: &mut Value, change: Value) {
    let mut telemetry = json!({ "samples": 30, "gpu_count": 1, "gpu_util_max_pct": 97.0, "power_total_avg_w": 320.0,
        "power_limit_total_w": 350.0, "vram_used_max_mb": 23_000.0, "vram_total_mb": 24_576.0 });
    for (key, value) in change.as_object().unwrap() {
        telemetry[key] = value.clone();
    }
    for row in rows(document) {
        row["hardware_summary"] = telemetry.clone();
    }
}

/// Noise that repeats: uniform in −1 to 1.
pub fn noise(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
