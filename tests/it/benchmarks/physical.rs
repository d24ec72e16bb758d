//! Group C: claims that the hardware cannot keep are found by name, and no genuine document changes its verdict.

use rigmark::benchmarks::{AssessContext, Assessment, Claim, ClaimedHardware, ClaimedModel, Severity, Verdict, assess, assess_value};
use serde_json::{Value, json};

use super::{codes, has, judge, public_documents, reference_claim, value};

const PHYSICAL: [&str; 12] = [
    "far_below_hardware",
    "physics_unchecked",
    "decode_above_bandwidth",
    "decode_above_compute",
    "itl_below_floor",
    "prefill_above_compute",
    "weights_exceed_memory",
    "cache_exceeds_memory",
    "gpu_idle",
    "memory_below_weights",
    "power_above_limit",
    "power_limit_unusual",
];

fn judged(document: Value, claim: &Claim) -> Assessment {
    assess_value(document, claim, &AssessContext::default()).unwrap()
}

fn claiming(gpu: &str, gpu_count: u32, hf_id: &str, quantization: Option<&str>) -> Claim {
    Claim {
        hardware: Some(ClaimedHardware { gpu: gpu.to_owned(), gpu_count: Some(gpu_count), ..ClaimedHardware::default() }),
        model: Some(ClaimedModel { hf_id: hf_id.to_owned(), revision: None, quantization: quantization.map(str::to_owned) }),
        ..Claim::default()
    }
}

fn assert_found(run: &Assessment, code: &str, severity: Severity) {
    let found = run.findings.iter().find(|finding| finding.code == code);
    assert_eq!(found.map(|finding| finding.severity), Some(severity), "{code} in {:?}", codes(&run.findings));
    let found = found.unwrap();
    assert!(found.expected.is_some() && found.observed.is_some(), "{code} says what was expected and observed");
    assert_ne!(Verdict::of(std::slice::from_ref(found)), Verdict::Rejected, "physics alone never rejects");
}

fn physical(run: &Assessment) -> Vec<&str> {
    codes(&run.findings).into_iter().filter(|code| PHYSICAL.contains(code)).collect()
}

#[test]
fn genuine_documents_keep_their_verdict_with_and_without_a_claim() {
    for name in ["reference-run.json", "reference-run.nonce.json"] {
        assert_eq!(physical(&judge(name)), Vec::<&str>::new(), "{name}: nobody names the model");
        let run = judged(value(name), &reference_claim());
        assert_eq!((run.verdict, physical(&run)), (Verdict::Verified, vec![]), "{name}");
    }
    for entry in std::fs::read_dir(super::path("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.contains("meta") {
            continue;
        }
        let plain = judge(&name);
        assert_eq!(physical(&plain), Vec::<&str>::new(), "{name}");
        // The stand-in is slower than the card: its documents fit the reference's claim too.
        let claimed = assess(&super::bytes(&name), &reference_claim(), &AssessContext::default()).unwrap();
        let doubted: Vec<_> = claimed.findings.iter().filter(|finding| PHYSICAL.contains(&finding.code.as_ref())).collect();
        // The document that a proxy made wrong shows a tiny model's speed.
        if !name.starts_with("real_llamacpp_cpu") {
            assert!(doubted.iter().all(|finding| finding.severity == Severity::Note), "{name}: {doubted:#?}");
        }
    }
}

/// The GLM-5 documents list eight cards and name their model: they are checked without any claim, and with the claims their owner would make.
#[test]
fn public_documents_stay_within_the_bounds() {
    let Some(folder) = public_documents() else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let plain = assess(&bytes, &Claim::default(), &AssessContext::default()).unwrap();
        assert_eq!(plain.verdict, Verdict::Verified, "{name}: {:#?}", plain.findings);
        let (hf_id, formats) = if name.contains("glm5") {
            ("zai-org/GLM-5", [Some("fp8"), Some("nvfp4"), None])
        } else {
            ("Qwen/Qwen3.5-397B-A17B", [Some("awq"), Some("int4"), None])
        };
        for quantization in formats {
            let run =
                assess(&bytes, &claiming("RTX PRO 6000 Blackwell Server", 8, hf_id, quantization), &AssessContext::default()).unwrap();
            assert_eq!((run.verdict, physical(&run)), (Verdict::Verified, vec![]), "{name} as {quantization:?}: {:#?}", run.findings);
        }
    }
}

/// Every time of the reference run divided by `factor`: what arithmetic cannot see.
fn faster(factor: f64) -> Value {
    let mut document = value("reference-run.json");
    for row in document["results"].as_array_mut().unwrap() {
        for (key, value) in row.as_object_mut().unwrap() {
            let Some(number) = value.as_f64() else { continue };
            let sped_up = ["aggregate_tps", "per_request_avg_tps", "client_output_tokens", "total_tokens", "server_output_tokens"];
            if sped_up.contains(&key.as_str()) || key.starts_with("output_tps_per_user") {
                *value = json!(number * factor);
            } else if key.contains("inter_token_latency") {
                *value = json!(number / factor);
            }
        }
    }
    document
}

#[test]
fn a_matrix_three_times_over_its_ceiling_is_found() {
    // 145 tok/s of a ceiling of 201 at one request.
    let run = judged(faster(3.0 * 201.2 / 145.0), &reference_claim());
    assert_found(&run, "decode_above_bandwidth", Severity::Suspicious);
    assert_found(&run, "itl_below_floor", Severity::Suspicious);
    let finding = run.findings.iter().find(|finding| finding.code == "decode_above_bandwidth").unwrap();
    assert!(finding.cells.len() >= 20, "{:?}", finding.cells);
    assert!(!has(&judged(faster(1.5), &reference_claim()).findings, "decode_above_bandwidth"), "what is possible is not called impossible");
    let slower_card = claiming("GTX 1060 6GB", 1, "cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit", Some("awq"));
    assert_found(&judged(value("reference-run.json"), &slower_card), "decode_above_bandwidth", Severity::Suspicious);
}

/// Without the name of a repository whose size is known, the width of the layers beside the experts is open; three times a ceiling is not.
#[test]
fn three_times_the_ceiling_is_found_whatever_is_left_open() {
    let claim = Claim {
        launch_command: reference_claim().launch_command,
        ..claiming("RTX 3090", 1, "nvidia/Nemotron-Cascade-2-30B-A3B", Some("awq"))
    };
    assert_found(&judged(faster(3.0 * 201.2 / 145.0), &claim), "decode_above_bandwidth", Severity::Suspicious);
    // An engine with every part in 4 bits does this at 85 % of the bandwidth.
    assert!(!has(&judged(faster(460.0 / 145.0), &claim).findings, "decode_above_bandwidth"));
}

/// What the check expects is what a report is held to.
#[tokio::test]
async fn a_check_and_a_report_have_one_bound() {
    let app = crate::support::TestApp::new().await;
    let ann = crate::support::hosts::person(&app, "ann").await;
    let report = json!({"model": "cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit", "hardware": "RTX 3090", "engine": "vLLM",
        "quantization": "AWQ 4-bit", "kv_cache_dtype": "int4_per_token_head", "context_tokens": 0, "concurrency": 1, "rate": "total",
        "tokens_per_second": 250.0});
    let made = ann.http.post("/api/v1/reports").json(&report).expect(201).await;
    let bound = made["total_ceiling_tokens_per_second"].as_f64().unwrap();
    assert_eq!((format!("{bound:.0}"), &made["is_above_ceiling"]), ("241".to_owned(), &json!(true)));
    let run = judged(faster(1.05 * bound / 145.0), &reference_claim());
    let finding = run.findings.iter().find(|finding| finding.code == "decode_above_bandwidth").unwrap();
    assert_eq!(finding.expected.as_deref(), Some(format!("at most {bound:.1} tok/s").as_str()), "{finding:?}");
    assert!(!has(&judged(faster(0.98 * bound / 145.0), &reference_claim()).findings, "itl_below_floor"));
}

#[test]
fn a_total_above_the_compute_peak_is_found() {
    let run = judged(faster(60.0), &reference_claim());
    assert_found(&run, "decode_above_compute", Severity::Suspicious);
}

#[test]
fn prefill_from_a_cache_is_found() {
    let mut document = value("reference-run.json");
    for row in document["prefill"].as_object_mut().unwrap().values_mut() {
        let (rate, seconds) = (row["tok_per_sec"].as_f64().unwrap(), row["ttft_seconds"].as_f64().unwrap());
        row["tok_per_sec"] = json!((rate * 20.0).round());
        row["ttft_seconds"] = json!(((seconds / 20.0) * 1e3).round() / 1e3);
    }
    assert_found(&judged(document, &reference_claim()), "prefill_above_compute", Severity::Suspicious);
}

/// DeepSeek V3 on one RTX 3090; the engine decides whether a part may lie elsewhere.
#[test]
fn weights_larger_than_the_memory_are_found() {
    let mut claim = reference_claim();
    claim.model = Some(ClaimedModel { hf_id: "deepseek-ai/DeepSeek-V3".to_owned(), revision: None, quantization: Some("fp8".to_owned()) });
    assert_found(&judged(value("reference-run.json"), &claim), "weights_exceed_memory", Severity::Suspicious);
    claim.launch_command = Some("vllm serve deepseek-ai/DeepSeek-V3 --cpu-offload-gb 600".to_owned());
    assert_found(&judged(value("reference-run.json"), &claim), "weights_exceed_memory", Severity::Note);
}

#[test]
fn a_cache_larger_than_the_memory_is_a_note() {
    let claim = claiming("RTX 3090", 1, "meta-llama/Llama-3.1-8B", Some("bf16"));
    let mut claim = Claim { engine: reference_claim().engine, ..claim };
    claim.launch_command = Some("vllm serve x --kv-cache-dtype auto".to_owned());
    assert_found(&judged(value("reference-run.json"), &claim), "cache_exceeds_memory", Severity::Note);
}

fn with_telemetry(change: Value) -> Value {
    let mut telemetry = json!({ "samples": 30, "gpu_count": 1, "gpu_util_max_pct": 97.0, "power_total_avg_w": 320.0,
        "power_limit_total_w": 350.0, "vram_used_max_mb": 23_000.0, "vram_total_mb": 24_576.0 });
    for (key, value) in change.as_object().unwrap() {
        telemetry[key] = value.clone();
    }
    let mut document = value("reference-run.json");
    for row in document["results"].as_array_mut().unwrap() {
        row["hardware_summary"] = telemetry.clone();
    }
    document
}

#[test]
fn telemetry_that_contradicts_the_run_is_found() {
    let run = judged(with_telemetry(json!({})), &reference_claim());
    assert_eq!((run.verdict, physical(&run)), (Verdict::Verified, vec![]), "{:#?}", run.findings);
    for (change, code, severity) in [
        (json!({ "gpu_util_max_pct": 0.0 }), "gpu_idle", Severity::Suspicious),
        (json!({ "vram_used_max_mb": 900.0 }), "memory_below_weights", Severity::Suspicious),
        (json!({ "power_total_avg_w": 600.0 }), "power_above_limit", Severity::Suspicious),
        (json!({ "power_limit_total_w": 900.0 }), "power_limit_unusual", Severity::Note),
    ] {
        assert_found(&judged(with_telemetry(change.clone()), &reference_claim()), code, severity);
        // The client's machine is not the engine's.
        let mut remote = with_telemetry(change);
        remote["metadata"]["server"] = json!("http://gpu-box.lan:8000");
        let run = judged(remote, &reference_claim());
        assert_found(&run, code, Severity::Note);
    }
    // Tools print zeros for what they cannot read.
    let blind = json!({ "gpu_util_max_pct": 0.0, "power_total_avg_w": 0.0, "power_limit_total_w": 0.0, "vram_used_max_mb": 0.0, "vram_total_mb": 0.0 });
    assert_eq!(physical(&judged(with_telemetry(blind), &reference_claim())), Vec::<&str>::new());
}

#[test]
fn speculation_raises_the_ceiling_by_its_length() {
    let mut document = faster(3.5);
    assert!(has(&judged(document.clone(), &reference_claim()).findings, "decode_above_bandwidth"));
    for row in document["results"].as_array_mut().unwrap() {
        row["server_accept_len_effective"] = json!(2.5);
        row["server_spec_accept_rate"] = json!(0.5);
    }
    assert!(!has(&judged(document, &reference_claim()).findings, "decode_above_bandwidth"));
}

#[test]
fn several_gpus_read_together() {
    let model = "cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit";
    assert!(has(&judged(faster(6.0), &claiming("RTX 3090", 1, model, Some("awq"))).findings, "decode_above_bandwidth"));
    assert!(!has(&judged(faster(6.0), &claiming("RTX 3090", 4, model, Some("awq"))).findings, "decode_above_bandwidth"));
}

#[test]
fn what_the_catalog_does_not_know_is_at_most_a_note() {
    let run = judged(value("reference-run.json"), &claiming("RTX 3090", 1, "somebody/unknown-model", None));
    let finding = run.findings.iter().find(|finding| finding.code == "physics_unchecked").unwrap();
    assert_eq!((finding.severity, run.verdict), (Severity::Note, Verdict::Verified));
    let model = "cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit";
    let run = judged(faster(50.0), &claiming("Quantum Blaster 9", 1, model, None));
    assert_eq!(physical(&run), Vec::<&str>::new());
    let run = judged(value("reference-run.json"), &claiming("Apple M3 Max", 1, model, Some("mlx-4bit")));
    assert_eq!(physical(&run).iter().filter(|code| **code != "physics_unchecked").count(), 0, "{:#?}", run.findings);
}

/// cases.md 23 g: a slow card's figures under a fast card's name, which no ceiling finds.
#[test]
fn figures_far_below_the_claimed_hardware_are_looked_at() {
    let renamed = |gpu: &str| {
        let mut document = value("reference-run.json");
        let smi = &mut document["startup_diagnostics"]["nvidia_smi_query"]["stdout"];
        *smi = json!(smi.as_str().unwrap().replace("NVIDIA GeForce RTX 3090", gpu));
        document
    };
    let mut claim = reference_claim();
    claim.hardware = Some(ClaimedHardware { gpu: "NVIDIA B200".to_owned(), gpu_count: Some(1), ..ClaimedHardware::default() });
    let run = judged(renamed("NVIDIA B200"), &claim);
    assert_found(&run, "far_below_hardware", Severity::Suspicious);
    assert_eq!(run.verdict, Verdict::NeedsReview);
    // Named by the document alone.
    let unclaimed = Claim { hardware: None, ..claim.clone() };
    assert_found(&judged(renamed("NVIDIA B200"), &unclaimed), "far_below_hardware", Severity::Suspicious);
    // What explains it honestly makes it a note.
    for option in ["--enforce-eager", "--cpu-offload-gb 40", "--disable-cuda-graph"] {
        let explained = Claim { launch_command: Some(format!("vllm serve x {option}")), ..claim.clone() };
        assert_found(&judged(renamed("NVIDIA B200"), &explained), "far_below_hardware", Severity::Note);
    }
    let mut other_engine = claim.clone();
    other_engine.engine = Some(rigmark::benchmarks::ClaimedEngine { name: "llama.cpp".to_owned(), ..Default::default() });
    assert_found(&judged(renamed("NVIDIA B200"), &other_engine), "far_below_hardware", Severity::Note);
    // Prefill as fast as the hardware: the engine's steps are slow, the hardware is not.
    let mut fast_prefill = renamed("NVIDIA B200");
    for row in fast_prefill["prefill"].as_object_mut().unwrap().values_mut() {
        row["tok_per_sec"] = json!(row["tok_per_sec"].as_f64().unwrap() * 8.0);
    }
    assert_found(&judged(fast_prefill, &claim), "far_below_hardware", Severity::Note);
    // A neighbour is no other kind of hardware.
    claim.hardware = Some(ClaimedHardware { gpu: "RTX 4090".to_owned(), gpu_count: Some(1), ..ClaimedHardware::default() });
    let near = judged(renamed("NVIDIA GeForce RTX 4090"), &claim);
    assert!(!has(&near.findings, "far_below_hardware"), "{:?}", codes(&near.findings));
}

/// No version explains that one cell of a document breaks what its others keep; a version that computes all otherwise is looked at.
#[test]
fn a_newer_version_does_not_excuse_an_edited_cell() {
    for version in ["0.9.0", "1.0"] {
        let mut document = value("reference-run.json");
        document["metadata"]["version"] = json!(version);
        let honest = judged(document.clone(), &reference_claim());
        assert_eq!(honest.verdict, Verdict::Verified, "{:?}", codes(&honest.findings));
        let mut edited = document.clone();
        let cell = &mut edited["results"][3];
        let total = cell["aggregate_tps"].as_f64().unwrap() * 1.3;
        cell["aggregate_tps"] = json!(total);
        assert_eq!(judged(edited, &reference_claim()).verdict, Verdict::Rejected, "{version}");
        let mut other_law = document;
        for cell in other_law["results"].as_array_mut().unwrap() {
            let average = cell["per_request_avg_tps"].as_f64().unwrap();
            cell["per_request_avg_tps"] = json!(average * 1.01);
        }
        assert_eq!(judged(other_law, &reference_claim()).verdict, Verdict::NeedsReview, "{version}");
    }
}
