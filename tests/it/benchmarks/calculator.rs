//! The decode calculator: sizes and bounds that are known, laws that hold everywhere, its error on the reference run, and its route.

use proptest::prelude::*;
use rigmark::benchmarks::calculator::answer::Question;
use rigmark::benchmarks::calculator::memory::{kv_bytes, kv_copies};
use rigmark::benchmarks::calculator::{
    Anchor, Answer, CellAnswer, Genuine, Kind, KvFormat, MemoryFit, Priors, Reason, Setup, Surface, WeightBits, Weights, answer, decode,
    evaluate, prefill,
};
use rigmark::benchmarks::{CellStatus, Matrix, Quantization};
use rigmark::catalog::{Catalog, HardwareModel, Model};
use serde_json::{Value, json};

use super::{judge, reference_claim, value};
use crate::support::{TestApp, hosts};

const GIB: f64 = 1_073_741_824.0;

fn model(slug: &str) -> &'static Model {
    Catalog::builtin().model(slug).unwrap()
}

fn hardware(slug: &str) -> &'static HardwareModel {
    Catalog::builtin().hardware(slug).unwrap()
}

fn setup<'a>(part: &'a HardwareModel, gpu_count: u32, network: &'a Model, quantization: &str, kv: KvFormat) -> Setup<'a> {
    let weights = Weights::of(network, &Quantization::parse(quantization)).unwrap();
    Setup { hardware: part, gpu_count, memory_gib: None, model: network, weights, kv }
}

fn reference_setup() -> Setup<'static> {
    let kv = KvFormat::parse("int4_per_token_head").unwrap();
    setup(hardware("rtx-3090"), 1, model("nemotron-cascade-2-30b-a3b"), "AWQ 4-bit", kv)
}

fn asked(setup: Setup<'_>, contexts: &[u64], levels: &[u32], anchors: &[Anchor<'_>]) -> Answer {
    answer(&Question { setup, contexts, concurrency_levels: levels }, anchors)
}

fn only(answer: &Answer) -> &CellAnswer {
    assert_eq!(answer.cells.len(), 1);
    &answer.cells[0]
}

fn near(found: f64, expected: f64, share: f64) {
    assert!((found - expected).abs() <= expected.abs() * share, "{found} is not within {share} of {expected}");
}

#[test]
fn cache_sizes_are_those_of_the_attention() {
    let gib = |slug: &str, tokens: f64| kv_bytes(model(slug), KvFormat::FP16, tokens) / GIB;
    assert_eq!(format!("{:.3}", gib("llama-3-1-8b", 8_192.0)), "1.000");
    assert_eq!(format!("{:.2}", gib("gemma-3-27b-it", 131_072.0)), "10.41", "windows stop growing");
    assert_eq!(format!("{:.2}", gib("deepseek-v3", 163_840.0)), "10.72", "one latent for all heads");
    near(gib("llama-3-1-8b", 8_192.0) / 2.0, kv_bytes(model("llama-3-1-8b"), KvFormat::parse("fp8").unwrap(), 8_192.0) / GIB, 1e-12);
    let per_head = kv_bytes(model("nemotron-cascade-2-30b-a3b"), KvFormat::parse("int4_per_token_head").unwrap(), 1.0);
    assert_eq!(per_head, 1_632.0, "4 bits and a scale for each token and head");
    assert_eq!(kv_copies(model("llama-3-1-8b"), 4), 1.0);
    assert_eq!(kv_copies(model("llama-3-1-8b"), 16), 2.0);
    assert_eq!(kv_copies(model("deepseek-v3"), 8), 8.0);
}

/// 936 GB/s over 3.3 B active parameters at 4.85 bits; over all 30.5 B it would be 51.
#[test]
fn the_ceiling_of_a_mixture_is_that_of_its_active_parameters() {
    let qwen = model("qwen3-30b-a3b");
    let routed_active = qwen.routed_params_b.unwrap() * 8.0 / 128.0;
    let mixture = Model { fixed_read_params_b: 3.3 - routed_active, ..qwen.clone() };
    let part = HardwareModel { bandwidth_gb_s: Some(936.0), ..hardware("rtx-3090").clone() };
    let weights = Weights::new(&mixture, WeightBits::uniform(4.85));
    let setup = Setup { hardware: &part, gpu_count: 1, memory_gib: None, model: &mixture, weights, kv: KvFormat::FP16 };
    assert_eq!(decode::memory_ceiling(&setup, 1, 0.0).unwrap().round(), 468.0);
    assert!(decode::memory_ceiling(&setup, 2, 0.0).unwrap() < 2.0 * 468.0, "two requests hit more experts than one");
}

#[test]
fn a_quantization_is_not_applied_to_every_weight() {
    let weights = reference_setup().weights;
    assert!(weights.from_repository);
    near(weights.bits.experts, 4.46, 0.002);
    near(weights.fixed_bytes, 3.70e9, 0.002);
    assert_eq!(weights.total_bytes, 20_767_782_252.0);
    let qwen = Weights::of(model("qwen3-30b-a3b"), &Quantization::parse("gguf q4_k_m")).unwrap();
    near(qwen.total_bytes, 30.532e9 * 4.85 / 8.0, 1e-3);
    assert_eq!(WeightBits::of(&Quantization::parse("4.85 bits"), model("qwen3-30b-a3b")), Some(WeightBits::uniform(4.85)));
    assert_eq!(WeightBits::of(&Quantization::parse("3.5bpw"), model("qwen3-30b-a3b")), Some(WeightBits::uniform(3.5)));
    assert_eq!(WeightBits::of(&Quantization::parse("secret sauce"), model("qwen3-30b-a3b")), None);
    for slug in Quantization::known_slugs() {
        assert!(Weights::of(model("llama-3-1-8b"), &Quantization::parse(slug)).is_some(), "{slug} has no width");
    }
}

#[test]
fn what_does_not_fit_has_no_speed_and_a_reason() {
    let small = setup(hardware("rtx-3090"), 1, model("deepseek-v3"), "fp8", KvFormat::FP16);
    let answer = asked(small, &[0], &[1], &[]);
    assert_eq!(answer.memory.fits, Some(false));
    assert_eq!((only(&answer).tokens_per_second, only(&answer).reason), (None, Some(Reason::DoesNotFit)));
    let llama = setup(hardware("rtx-3090"), 1, model("llama-3-1-8b"), "bf16", KvFormat::FP16);
    let answer = asked(llama, &[8_192, 131_072, 131_073], &[1, 2], &[]);
    assert_eq!(answer.memory.fits, Some(true));
    let reasons: Vec<Option<Reason>> = answer.cells.iter().map(|cell| cell.reason).collect();
    let too_long = Some(Reason::ExceedsMaxContext);
    let full = Some(Reason::DoesNotFit);
    assert_eq!(reasons, [None, None, full, full, too_long, too_long]);
    let capacity = answer.memory.kv_capacity_tokens.unwrap();
    assert!(capacity.low < capacity.value && capacity.value < capacity.high && capacity.value > 20_000.0 && capacity.high < 80_000.0);
    assert_eq!(answer.prefill.len(), 3);
    assert!(answer.prefill[0].low.unwrap() < answer.prefill[0].high.unwrap());
}

fn reference_matrix() -> Matrix {
    judge("reference-run.json").matrix
}

fn anchor(matrix: &Matrix) -> Anchor<'_> {
    Anchor { run_id: "run_x".to_owned(), matrix, setup: reference_setup() }
}

#[test]
fn a_run_of_the_same_hardware_anchors_the_answer() {
    let matrix = reference_matrix();
    let anchors = [anchor(&matrix)];
    let told = |context: u64, level: u32| {
        let answer = asked(reference_setup(), &[context], &[level], &anchors);
        let cell = only(&answer).clone();
        assert_eq!(cell.basis.run_id.as_deref(), Some("run_x"), "{context} × {level}");
        (cell.kind, cell.tokens_per_second, cell.reason)
    };
    let measured = matrix.cell(32_768, 4).unwrap().total_tokens_per_second;
    assert_eq!(told(32_768, 4), (Kind::Measured, measured, None));
    let queued = matrix.cell(0, 32).unwrap().total_tokens_per_second;
    assert_eq!(told(0, 32), (Kind::Measured, queued, None));
    assert_eq!(told(131_072, 8), (Kind::Measured, None, Some(Reason::OverCapacityInRun)));
    for (context, level, between) in [(24_576, 4, (350.7, 390.7)), (0, 3, (257.7, 422.8)), (24_576, 3, (211.8, 390.7))] {
        let (kind, value, _) = told(context, level);
        let value = value.unwrap();
        assert_eq!(kind, Kind::Interpolated, "{context} × {level}");
        assert!(between.0 < value && value < between.1, "{context} × {level}: {value}");
    }
    // Just over what was measured: the time of a step is linear in the context.
    let (kind, value, _) = told(200_000, 1);
    assert_eq!(kind, Kind::Extrapolated);
    near(value.unwrap(), 1.0 / (0.0069 + 43.5e-9 * 200_000.0), 0.05);
}

#[test]
fn prefill_is_anchored_in_time_per_token() {
    let matrix = reference_matrix();
    let (row, kind) = prefill::anchored(&matrix, 65_536).unwrap();
    assert_eq!((row.value, kind), (3_525.0, Kind::Measured));
    let (row, kind) = prefill::anchored(&matrix, 98_304).unwrap();
    assert_eq!(kind, Kind::Interpolated);
    near(row.value, 1.0 / (99.28e-6 + 2.787e-9 * 98_700.0), 0.02);
    assert_eq!(prefill::anchored(&matrix, 200_000).unwrap().1, Kind::Extrapolated);
    assert_eq!(prefill::anchored(&matrix, 300_000), None);
}

#[test]
fn a_run_on_other_hardware_is_carried_over_by_bandwidth() {
    let matrix = reference_matrix();
    let faster = Setup { hardware: hardware("rtx-4090"), ..reference_setup() };
    let answer = asked(faster, &[0], &[1], &[anchor(&matrix)]);
    let cell = only(&answer);
    assert_eq!((cell.kind, cell.basis.hardware.as_deref()), (Kind::Scaled, Some("rtx-3090")));
    let ratio = hardware("rtx-4090").bandwidth_gb_s.unwrap() / 936.2;
    let value = cell.tokens_per_second.unwrap();
    assert!(value > 145.0 && value <= 145.0 * ratio, "{value}");
    assert!(cell.low.unwrap() < 145.0 && cell.high.unwrap() > 145.0 * ratio);
    let own = asked(faster, &[0], &[1], &[]);
    assert_eq!((only(&own).kind, only(&own).basis.run_id.as_deref()), (Kind::Estimated, None));
}

/// The goals of the calculator on what the repository has; `cargo bench --bench calculator` prints them with the public documents too.
#[test]
fn its_error_on_the_reference_run_is_within_the_goals() {
    let genuine = Genuine {
        name: "reference".to_owned(),
        machine: "3090".to_owned(),
        simulated: false,
        speculative: false,
        matrix: reference_matrix(),
        setup: Some(reference_setup()),
    };
    let report = evaluate(&[genuine]);
    assert_eq!(report.matrices[0].cells, 21);
    assert!(report.between.cells >= 15 && report.between.median <= 0.03, "{report}");
    assert!(report.unanchored.share() >= 0.9 && report.unanchored.width <= 2.5, "{report}");
    assert_eq!(report.matrices[0].above_ceiling, 0);
    assert!(report.goals.iter().all(|goal| goal.met), "{report}");
    assert!(report.to_string().contains("met"), "{report}");
}

#[test]
fn the_error_counts_what_is_wrong() {
    let mut matrix = reference_matrix();
    for (index, cell) in matrix.decode.iter_mut().filter(|cell| cell.status == CellStatus::Valid).enumerate() {
        if index % 2 == 0 {
            cell.total_tokens_per_second = cell.total_tokens_per_second.map(|total| total * 10.0);
        }
    }
    let genuine = Genuine {
        name: "spoilt".to_owned(),
        machine: "3090".to_owned(),
        simulated: false,
        speculative: false,
        matrix,
        setup: Some(reference_setup()),
    };
    let report = evaluate(&[genuine]);
    assert!(report.between.median > 0.5 && report.goals.iter().filter(|goal| !goal.met).count() >= 2, "{report}");
    assert!(report.matrices[0].above_ceiling > 0);
}

#[test]
fn queued_cells_are_not_fitted() {
    let matrix = reference_matrix();
    assert_eq!(Surface::of(&matrix).cells().count(), matrix.count(CellStatus::Valid));
    assert!(Surface::of(&matrix).cells().all(|(context, level, _)| context < 253_952 && level <= 16));
}

fn parts() -> impl Strategy<Value = &'static HardwareModel> {
    let known: Vec<_> = Catalog::builtin().hardware_models().iter().filter(|part| part.bandwidth_gb_s.is_some()).collect();
    proptest::sample::select(known)
}

fn setups() -> impl Strategy<Value = Setup<'static>> {
    let models: Vec<&'static Model> = Catalog::builtin().models().iter().collect();
    let slugs: Vec<&'static str> = Quantization::known_slugs().collect();
    let kvs = ["fp16", "fp8", "q4_0", "int4_per_token_head"];
    (parts(), 1_u32..17, proptest::sample::select(models), proptest::sample::select(slugs), proptest::sample::select(kvs.to_vec()))
        .prop_map(|(part, count, network, slug, kv)| setup(part, count, network, slug, KvFormat::parse(kv).unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn more_bandwidth_is_never_slower(setup in setups(), faster in 1.0_f64..20.0, context in 0_u64..1_000_000, level in 1_u32..512) {
        let part = HardwareModel { bandwidth_gb_s: setup.hardware.bandwidth_gb_s.map(|gb_s| gb_s * faster), ..setup.hardware.clone() };
        let better = Setup { hardware: &part, ..setup };
        let (context, priors) = (context as f64, Priors::default());
        let total = |setup: &Setup<'_>| decode::estimate(setup, &priors, level, context).unwrap();
        prop_assert!(total(&better).value >= total(&setup).value * (1.0 - 1e-12));
        prop_assert!(decode::ceiling(&better, level, context) >= decode::ceiling(&setup, level, context));
    }

    #[test]
    fn more_requests_never_give_a_lower_total(setup in setups(), context in 0_u64..1_000_000, level in 1_u32..512, more in 1_u32..64) {
        let total = |level: u32| decode::estimate(&setup, &Priors::default(), level, context as f64).unwrap().value;
        prop_assert!(total(level + more) >= total(level) * (1.0 - 1e-12));
        let longer = decode::estimate(&setup, &Priors::default(), level, context as f64 * 2.0).unwrap().value;
        prop_assert!(longer <= total(level) * (1.0 + 1e-12));
    }

    #[test]
    fn a_range_holds_its_value_and_is_not_too_wide(setup in setups(), context in 0_u64..1_000_000, level in 1_u32..512) {
        let range = decode::estimate(&setup, &Priors::default(), level, context as f64).unwrap();
        prop_assert!(0.0 < range.low && range.low <= range.value && range.value <= range.high, "{range:?}");
        prop_assert!(range.high / range.low <= 2.5);
        let ceiling = decode::ceiling(&setup, level, context as f64).unwrap();
        prop_assert!(range.value <= ceiling * (1.0 + 1e-9), "{range:?} over {ceiling}");
        if let Some(rate) = prefill::estimate(&setup, context as f64) {
            prop_assert!(0.0 < rate.low && rate.low <= rate.value && rate.value <= rate.high);
        }
    }

    #[test]
    fn sizes_are_never_negative_and_grow(setup in setups(), tokens in 0_u64..2_000_000, more in 0_u64..1_000_000) {
        let bytes = |tokens: u64| kv_bytes(setup.model, setup.kv, tokens as f64);
        prop_assert!(bytes(tokens) >= 0.0 && bytes(tokens + more) >= bytes(tokens));
        let weights = setup.weights;
        prop_assert!(weights.fixed_bytes > 0.0 && weights.routed_bytes >= 0.0);
        prop_assert!(weights.total_bytes >= (weights.fixed_bytes + weights.routed_bytes) * (1.0 - 1e-12));
        prop_assert!(Weights::least(setup.model, None).total_bytes <= weights.total_bytes);
        let fit = MemoryFit::of(&setup);
        if let Some([low, value, high]) = fit.cache_room_bytes {
            prop_assert!(low <= value && value <= high);
        }
        if let Some([low, value, high]) = fit.capacity_tokens(&setup) {
            prop_assert!(0.0 <= low && low <= value && value <= high);
        }
    }

    #[test]
    fn anchored_answers_are_ranges_too(context in 0_u64..600_000, level in 1_u32..80) {
        let matrix = reference_matrix();
        let answer = asked(reference_setup(), &[context], &[level], &[anchor(&matrix)]);
        let cell = only(&answer);
        prop_assert_eq!(cell.tokens_per_second.is_none(), cell.reason.is_some());
        if let (Some(low), Some(value), Some(high)) = (cell.low, cell.tokens_per_second, cell.high) {
            prop_assert!(0.0 < low && low <= value && value <= high, "{:?}", cell);
        }
    }
}

fn question() -> Value {
    json!({ "model": "cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit", "hardware": "NVIDIA GeForce RTX 3090", "quantization": "awq_4bit",
            "contexts": [0, 24_576, 131_072], "concurrency_levels": [1, 8] })
}

/// The run's KV format is taken where none is asked for; another one asked for leaves only the formula.
#[tokio::test]
async fn the_route_answers_from_verified_public_runs() {
    let app = TestApp::new().await;
    let before = app.http.post("/api/v1/calculator/decode").json(&question()).expect(200).await;
    assert!(before["cells"].as_array().unwrap().iter().all(|cell| cell["kind"] == "estimated"), "{before}");
    let ann = hosts::person(&app, "ann").await;
    let claim = serde_json::to_value(reference_claim()).unwrap();
    let upload = json!({ "document": value("reference-run.json"), "hardware": claim["hardware"], "model": claim["model"],
                         "engine": claim["engine"], "launch_command": claim["launch_command"] });
    let run = ann.http.post("/api/v1/matrix-runs").json(&upload).expect(201).await;
    assert_eq!(run["status"], "verified", "{run}");
    let answer = app.http.post("/api/v1/calculator/decode").json(&question()).expect(200).await;
    let kinds: Vec<&str> = answer["cells"].as_array().unwrap().iter().map(|cell| cell["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["measured", "measured", "interpolated", "interpolated", "measured", "measured"], "{answer}");
    assert_eq!(answer["cells"][0]["basis"]["run_id"], run["id"]);
    assert_eq!(answer["cells"][5]["tokens_per_second"], Value::Null);
    assert_eq!(answer["cells"][5]["reason"], "over_capacity_in_run");
    assert_eq!(answer["inputs"]["kv_bits"], 4.0);
    let again = app.http.post("/api/v1/calculator/decode").json(&question()).expect(200).await;
    assert_eq!(answer, again);
    let mut other = question();
    other["kv_cache_dtype"] = json!("fp8");
    let answer = app.http.post("/api/v1/calculator/decode").json(&other).expect(200).await;
    assert_eq!(answer["cells"][0]["kind"], "estimated", "{answer}");
    let mut faster = question();
    faster["hardware"] = json!("RTX 4090");
    let answer = app.http.post("/api/v1/calculator/decode").json(&faster).expect(200).await;
    assert_eq!((&answer["cells"][0]["kind"], &answer["cells"][0]["basis"]["run_id"]), (&json!("scaled"), &run["id"]));
}

#[tokio::test]
async fn a_question_that_cannot_be_answered_says_where() {
    let app = TestApp::new().await;
    for (key, wrong, pointer, code) in [
        ("model", json!("No Such Model"), "/model", "unknown_model"),
        ("hardware", json!("Quantum Blaster 9"), "/hardware", "unknown_hardware"),
        ("quantization", json!("secret sauce"), "/quantization", "unknown_quantization"),
        ("kv_cache_dtype", json!("int3"), "/kv_cache_dtype", "unknown_kv_cache_dtype"),
        ("gpu_count", json!(0), "/gpu_count", "out_of_range"),
        ("contexts", json!([]), "/contexts", "out_of_range"),
        ("concurrency_levels", json!([1, 0]), "/concurrency_levels/1", "out_of_range"),
    ] {
        let mut body = question();
        body[key] = wrong;
        let problem = app.http.post("/api/v1/calculator/decode").json(&body).expect_problem(422, "invalid_input").await;
        assert_eq!((&problem["errors"][0]["pointer"], &problem["errors"][0]["code"]), (&json!(pointer), &json!(code)), "{problem}");
    }
}
