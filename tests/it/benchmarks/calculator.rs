//! The decode calculator: sizes and bounds that are known, laws that hold everywhere, its error on the reference run, and its route.

use proptest::prelude::*;
use rigmark::benchmarks::calculator::answer::Question;
use rigmark::benchmarks::calculator::memory::{kv_bytes, kv_copies};
use rigmark::benchmarks::calculator::{
    Anchor, Answer, CellAnswer, Genuine, Kind, KvFormat, MemoryFit, Priors, Reason, Setup, Stated, Surface, WeightBits, Weights, answer,
    ceiling, decode, evaluate, prefill,
};
use rigmark::benchmarks::{CellStatus, Matrix, Quantization};
use rigmark::catalog::{Catalog, HardwareModel, Model};
use serde_json::{Value, json};

use super::{judge, reference_claim, value};
use crate::boards::{board, change, host, run, single, with};
use crate::support::hosts::{Cell, RunRow, cell};
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
    let (routed, routed_active) = (qwen.routed_params_b.unwrap(), qwen.routed_params_b.unwrap() * 8.0 / 128.0);
    let embedding = qwen.total_params_b - routed - qwen.fixed_read_params_b;
    near(qwen.active_params_b, qwen.fixed_read_params_b + routed_active + embedding, 1e-3);
    let fixed_read_params_b = 3.3 - routed_active - embedding;
    let mixture = Model { fixed_read_params_b, total_params_b: routed + fixed_read_params_b + embedding, ..qwen.clone() };
    let part = HardwareModel { bandwidth_gb_s: Some(936.0), ..hardware("rtx-3090").clone() };
    let weights = Weights::new(&mixture, WeightBits::uniform(4.85));
    let setup = Setup { hardware: &part, gpu_count: 1, memory_gib: None, model: &mixture, weights, kv: KvFormat::FP16 };
    near(ceiling::step_bytes(&setup, 1, 0.0), 3.3e9 * 4.85 / 8.0, 1e-9);
    assert_eq!(ceiling::memory_ceiling(&setup, 1, 0.0).unwrap().round(), 468.0);
    assert!(ceiling::memory_ceiling(&setup, 2, 0.0).unwrap() < 2.0 * 468.0, "two requests hit more experts than one");
}

/// The values that the calculator is known to have right, as a client reads them. The catalog has 3.353 B active of Qwen3-30B-A3B, which its
/// publisher cuts to 3.3: 461 of the 468.
#[tokio::test]
async fn known_values_are_right_over_the_route() {
    let app = TestApp::new().await;
    let cell = async |model: &str, hardware: &str, quantization: &str, context: u64| {
        let body = json!({ "model": model, "hardware": hardware, "quantization": quantization, "kv_cache_dtype": "fp16",
                           "contexts": [context], "concurrency_levels": [1] });
        app.http.post("/api/v1/calculator/decode").json(&body).expect(200).await["cells"][0].clone()
    };
    let qwen = cell("Qwen/Qwen3-30B-A3B", "RTX 3090", "4.85 bits", 0).await;
    let ceiling = qwen["ceiling_tokens_per_second"].as_f64().unwrap();
    near(ceiling, 936.2 / (3.353 * 4.85 / 8.0), 1e-3);
    near(ceiling, 468.0, 3.353 / 3.3 - 1.0 + 1e-3);
    for (model, hardware, quantization, context, gib) in [
        ("meta-llama/Llama-3.1-8B", "RTX 3090", "bf16", 8_192, "1.000"),
        ("google/gemma-3-27b-it", "H100 SXM", "bf16", 131_072, "10.41"),
        ("deepseek-ai/DeepSeek-V3", "H200 SXM", "fp8", 163_840, "10.72"),
    ] {
        let cell = cell(model, hardware, quantization, context).await;
        let digits = gib.len() - gib.find('.').unwrap() - 1;
        assert_eq!(format!("{:.digits$}", cell["kv_cache_gib"].as_f64().unwrap()), gib, "{model}: {cell}");
    }
}

/// One cell has one ceiling: what a report and a check of a run allow is that times the margin for what they do not say.
#[test]
fn bounds_are_the_ceiling_times_their_margins() {
    let (part, network) = (hardware("rtx-3090"), model("nemotron-cascade-2-30b-a3b"));
    let awq = Quantization::parse("awq");
    let published = ceiling::memory_ceiling(&reference_setup(), 1, 0.0).unwrap();
    // 3.70 GB of 16-bit layers, 6 of 128 experts of 16.36 GB, and 0.35 B of embedding at the experts' width.
    near(published, 936.2 / (3.70 + 16.36 * 6.0 / 128.0 + 0.352 * 4.46 / 8.0), 2e-3);
    let repository = Stated::new(part, 1, network, "cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit", Some(&awq), Some(KvFormat::FP16));
    near(ceiling::memory_ceiling(&repository.setup, 1, 0.0).unwrap(), published, 1e-9);
    // The repository's size leaves no width open: only the embedding, which is not read.
    near(repository.memory_bound(1, 0.0).unwrap(), ceiling::ROOM * 936.2 / (3.70 + 16.36 * 6.0 / 128.0), 2e-3);
    let named = Stated::new(part, 1, network, "nemotron-cascade-2-30b-a3b", Some(&awq), None);
    near(named.memory_bound(1, 0.0).unwrap(), published * ceiling::MARGIN_MAX, 1e-9);
    // With one width for every weight nothing else is open.
    let llama = model("llama-3-1-8b");
    let dense = Stated::new(part, 1, llama, "llama-3-1-8b", Some(&Quantization::parse("bf16")), None);
    near(dense.memory_bound(1, 0.0).unwrap(), ceiling::ROOM * 936.2 / (2.0 * llama.fixed_read_params_b), 1e-6);
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

fn anchor(matrix: &Matrix) -> Anchor<'static> {
    Anchor::of_run("run_x", matrix, reference_setup())
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

fn quantizations() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(Quantization::known_slugs().collect::<Vec<_>>())
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
        prop_assert!(ceiling::ceiling(&better, level, context) >= ceiling::ceiling(&setup, level, context));
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
        let ceiling = ceiling::ceiling(&setup, level, context as f64).unwrap();
        prop_assert!(range.value <= ceiling * (1.0 + 1e-9), "{range:?} over {ceiling}");
        if let Some(rate) = prefill::estimate(&setup, context as f64) {
            prop_assert!(0.0 < rate.low && rate.low <= rate.value && rate.value <= rate.high);
        }
    }

    /// Three times a ceiling is never believed, and 85 % of the bandwidth over the fewest bytes always (evidence.md 4 C).
    #[test]
    fn a_margin_wrongs_nobody_and_hides_nothing(setup in setups(), slug in proptest::option::of(quantizations()), kv in any::<bool>(),
                                                context in 0_u64..1_000_000, level in 1_u32..512) {
        let quantization = slug.map(Quantization::parse);
        let kv = kv.then_some(setup.kv);
        let stated = Stated::new(setup.hardware, setup.gpu_count, setup.model, &setup.model.slug, quantization.as_ref(), kv);
        let margin = stated.margin(level, context as f64);
        prop_assert!((ceiling::ROOM..=ceiling::MARGIN_MAX).contains(&margin) && ceiling::MARGIN_MAX < 3.0, "{margin}");
        let published = ceiling::ceiling(&stated.setup, level, context as f64).unwrap();
        prop_assert!(stated.bound(level, context).unwrap() <= published * ceiling::MARGIN_MAX * (1.0 + 1e-12));
        let least = stated.least.weights.read_bytes(decode::experts_hit(setup.model, 1.0));
        let most = decode::bandwidth(setup.hardware, setup.gpu_count).unwrap() / least;
        prop_assert!(stated.memory_bound(1, 0.0).unwrap() >= most * 0.85);
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

/// Five accounts, one of which uploads three times, and a run that is not accepted: what the leaderboard has, cell by cell.
#[tokio::test]
async fn the_answer_stands_on_the_leaderboards_medians() {
    let app = TestApp::new().await;
    let speeds = [("ann", 100.0), ("bob", 96.0), ("cyd", 104.0), ("dee", 90.0), ("eve", 130.0)];
    let mut runs = Vec::new();
    for (handle, speed) in speeds {
        let (_, machine) = host(&app, handle).await;
        let more = [cell(0, 1, speed), cell(16_384, 1, speed * 0.8), cell(0, 8, if handle == "eve" { 100.0 } else { speed * 4.0 })];
        runs.push(run(&app, machine, &with(more.to_vec())).await.to_string());
        if handle == "eve" {
            for more in 0..2 {
                run(&app, machine, &single(131.0 + f64::from(more))).await;
            }
        }
        if handle == "dee" {
            run(&app, machine, &RunRow { visibility: "unlisted", ..single(1.0) }).await;
            run(&app, machine, &RunRow { status: "needs_review", ..single(1.0) }).await;
            // Other hardware, and another cache: neither has a vote.
            run(&app, machine, &RunRow { hardware_slug: Some("rtx-4090"), ..single(400.0) }).await;
            let fp8 = run(&app, machine, &single(300.0)).await;
            change(&app, fp8, "kv_cache_dtype = 'fp8'").await;
        }
    }
    let ask = async |body: Value| app.http.post("/api/v1/calculator/decode").json(&body).expect(200).await["cells"].clone();
    let mut question = json!({ "model": "gpt-oss-20b", "hardware": "RTX 3090", "quantization": "MXFP4", "contexts": [0, 8_192, 16_384],
                               "concurrency_levels": [1, 8] });
    let cells = ask(question.clone()).await;
    for (index, query) in [(0, "context=0&concurrency=1"), (1, "context=0&concurrency=8"), (4, "context=16k&concurrency=1")] {
        let row = board(&app, &format!("metric=decode_at&{query}&hardware=rtx-3090&kv_cache_dtype=auto")).await.remove(0);
        let found = &cells[index];
        assert_eq!(found["kind"], "measured", "{found}");
        assert_eq!(
            (&found["tokens_per_second"], &found["low"], &found["high"], &found["basis"]["run_id"]),
            (&row["figure"], &row["lowest"], &row["highest"], &row["run"]["id"]),
        );
        assert_eq!((&found["basis"]["run_count"], &found["basis"]["account_count"]), (&row["run_count"], &row["account_count"]));
    }
    assert_eq!((&cells[0]["tokens_per_second"], &cells[0]["low"], &cells[0]["high"]), (&json!(100.0), &json!(90.0), &json!(132.0)));
    assert_eq!((&cells[0]["basis"]["run_count"], &cells[0]["basis"]["account_count"]), (&json!(7), &json!(5)));
    let text = cells[0]["basis"]["text"].as_str().unwrap();
    assert_eq!(text, format!("Median of 7 runs of 5 accounts, each account counting once: that of run {}.", runs[0]));
    // Cell by cell: the fifth run is the fastest alone and the slowest with eight.
    assert_eq!((&cells[1]["tokens_per_second"], &cells[1]["basis"]["run_id"]), (&json!(384.0), &json!(runs[1])));
    let between = &cells[2];
    assert_eq!((&between["kind"], &between["basis"]["run_count"]), (&json!("interpolated"), &json!(5)), "{between}");
    // As far apart as runs usually are in a cell, which is more than a tenth.
    near(between["high"].as_f64().unwrap() / between["tokens_per_second"].as_f64().unwrap(), 1.30, 0.02);
    question["kv_cache_dtype"] = json!("fp8");
    let cells = ask(question.clone()).await;
    assert_eq!((&cells[0]["tokens_per_second"], &cells[0]["basis"]["run_count"]), (&json!(300.0), &json!(1)));
    assert!(cells[0]["basis"]["text"].as_str().unwrap().starts_with("Measured by run run_"));
    question["kv_cache_dtype"] = json!("q8_0");
    assert_eq!(ask(question.clone()).await[0]["kind"], "estimated");
}

/// What no run has a valid figure for: one that queued tells its speed, and one over capacity says so; a valid one goes before both.
#[tokio::test]
async fn cells_that_are_not_ranked_are_told_where_nothing_else_is() {
    let app = TestApp::new().await;
    for (handle, status, speed) in [("ann", "queued", 500.0), ("bob", "queued", 400.0), ("cyd", "over_capacity", 0.0), ("dee", "", 0.0)] {
        let (_, machine) = host(&app, handle).await;
        let more = Cell { status, ..cell(0, 32, speed) };
        let last = Cell { status: if handle == "ann" { "over_capacity" } else { "skipped" }, ..cell(16_384, 32, 0.0) };
        let contexts = ["ann", "bob", "cyd", "dee"].iter().position(|other| *other == handle).unwrap() as i32;
        // Each has one cell of its own, so that each stands for something.
        let cells =
            if handle == "dee" { vec![cell(1_024 * contexts, 1, 100.0)] } else { vec![cell(1_024 * contexts, 1, 100.0), more, last] };
        run(&app, machine, &with(cells)).await;
    }
    let body = json!({ "model": "gpt-oss-20b", "hardware": "RTX 3090", "quantization": "MXFP4", "contexts": [0, 16_384], "concurrency_levels": [32] });
    let cells = app.http.post("/api/v1/calculator/decode").json(&body).expect(200).await["cells"].clone();
    assert_eq!(
        (&cells[0]["tokens_per_second"], &cells[0]["low"], &cells[0]["high"]),
        (&json!(400.0), &json!(400.0), &json!(500.0)),
        "{cells}"
    );
    assert!(cells[0]["basis"]["text"].as_str().unwrap().contains("queued"), "{cells}");
    assert_eq!((&cells[1]["tokens_per_second"], &cells[1]["reason"]), (&Value::Null, &json!("over_capacity_in_run")));
    let (_, machine) = host(&app, "fay").await;
    run(&app, machine, &with(vec![cell(0, 32, 450.0)])).await;
    let cells = app.http.post("/api/v1/calculator/decode").json(&body).expect(200).await["cells"].clone();
    assert_eq!((&cells[0]["tokens_per_second"], &cells[0]["low"]), (&json!(450.0), &json!(450.0)), "{cells}");
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
