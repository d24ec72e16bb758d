//! The wrapper of `lil-bench` around a plain result. Its own summary is never read.

use serde_json::{Map, Value};

use super::fields::{Fields, Place, whole_of};
use super::model::{Document, Metadata, Wrapper};
use super::plain;
use crate::benchmarks::json::{Unreadable, UnreadableCode};
use crate::benchmarks::verdict::{SeenGpu, SeenHardware};

const SCHEMA: &str = "lil-bench-result/1";
const SCHEMA_FAMILY: &str = "lil-bench-result/";

pub(super) fn document(top: &Map<String, Value>) -> Result<Document, Unreadable> {
    let fields = Fields { map: top, place: Place::Root };
    let schema = fields.text("schema")?.unwrap_or_default();
    if !schema.starts_with(SCHEMA_FAMILY) {
        let detail = "The \"schema\" is not one of this benchmark.";
        return Err(Unreadable::new("/schema", UnreadableCode::NotARunDocument, detail));
    }
    let wrapper = wrapper(&fields, schema)?;
    let missing = || Unreadable::new("/results", UnreadableCode::NotARunDocument, "The wrapper holds no results.");
    let results = Fields { map: fields.object("results")?.ok_or_else(missing)?, place: Place::Key(&fields.place, "results") };
    let bench = results.object("bench")?.filter(|bench| !bench.is_empty());
    let mut document = match bench {
        Some(bench) => plain::read(Fields { map: bench, place: Place::Key(&results.place, "bench") })?,
        // The benchmark crashed; the wrapper alone was uploaded.
        None => Document { metadata: Metadata::default(), ..Document::default() },
    };
    merge_hardware(&fields, &mut document.hardware);
    document.wrapper = Some(wrapper);
    Ok(document)
}

fn wrapper(fields: &Fields<'_>, schema: &str) -> Result<Wrapper, Unreadable> {
    let inside = |key: &str| fields.lenient_object(key).map(|map| Fields { map, place: Place::Root });
    let server = inside("server");
    let part = |key: &str| server.and_then(|s| s.lenient_object(key)).map(|map| Fields { map, place: Place::Root });
    let (limits, api, options) = (part("limits"), part("api"), part("options"));
    let limit = |key: &str| limits.and_then(|l| l.lenient_number(key)).and_then(whole_of);
    let speculation = options.is_some_and(|o| o.map.keys().any(|k| k.contains("speculative")));
    Ok(Wrapper {
        schema: super::fields::clean(schema),
        known_schema: schema == SCHEMA,
        profile: fields.shown("profile")?,
        run_id: fields.shown("run_id")?,
        status: fields.shown("status")?,
        tool_version: inside("client").and_then(|c| c.lenient_text("lil_bench")),
        integrity_status: inside("integrity").and_then(|i| i.lenient_text("status")),
        max_model_len: limit("max_model_len"),
        max_num_seqs: limit("max_num_seqs"),
        kv_tokens: limit("kv_tokens"),
        plan_skipped: plan_skipped(fields),
        served_model_root: api.and_then(|a| a.lenient_text("root")),
        engine_version: api.and_then(|a| a.lenient_text("version")),
        speculation,
    })
}

fn plan_skipped(fields: &Fields<'_>) -> Vec<(u64, u64)> {
    let Some(plan) = fields.map.get("plan").and_then(Value::as_array) else { return Vec::new() };
    let skipped = plan.iter().filter(|step| step.get("status").and_then(Value::as_str) == Some("skipped"));
    let whole = |step: &Value, key: &str| step.get(key).and_then(Value::as_f64).and_then(whole_of);
    let place = |step: &Value| Some((whole(step, "context").or_else(|| whole(step, "requested_context"))?, whole(step, "concurrency")?));
    skipped.take(super::CELLS_MAX).filter_map(place).collect()
}

/// The wrapper runs on the server's machine, so its list stands above the client's.
fn merge_hardware(fields: &Fields<'_>, seen: &mut SeenHardware) {
    let Some(map) = fields.lenient_object("hardware") else { return };
    let hardware = Fields { map, place: Place::Root };
    let rows = map.get("gpus").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let gpus: Vec<SeenGpu> = rows.iter().take(1_024).filter_map(gpu).collect();
    if !gpus.is_empty() {
        seen.gpus = gpus;
    }
    if let Some(driver) = hardware.lenient_text("driver").or_else(|| hardware.lenient_text("driver_version")) {
        seen.driver = Some(driver);
    }
    let lscpu = hardware.lenient_object("cpu").and_then(|cpu| cpu.get("lscpu")).and_then(|l| l.get("Model name"));
    seen.cpu = lscpu.and_then(Value::as_str).map(super::fields::clean).or_else(|| seen.cpu.take());
    let memory = hardware.lenient_object("memory").and_then(|memory| memory.get("mem_total_mib"));
    seen.ram_mib = memory.and_then(Value::as_f64).or(seen.ram_mib);
}

fn gpu(row: &Value) -> Option<SeenGpu> {
    let Value::Object(map) = row else { return None };
    let fields = Fields { map, place: Place::Root };
    let power = fields.lenient_object("power").and_then(|p| p.get("enforced_limit_w")).and_then(Value::as_f64);
    Some(SeenGpu { name: fields.lenient_text("name")?, memory_mib: fields.lenient_number("memory_total_mib"), power_limit_w: power })
}
