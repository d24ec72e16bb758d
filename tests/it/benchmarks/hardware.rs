//! What a document saw of the machine against what is claimed (cases.md 23).

use rigmark::benchmarks::{AssessContext, Claim, ClaimedHardware, Finding, HardwareUnseen, Severity, Verdict, assess_value};
use serde_json::{Value, json};

use super::{reference_claim, value};

fn judged(document: Value, hardware: Value) -> (Verdict, Vec<Finding>) {
    let hardware: ClaimedHardware = serde_json::from_value(hardware).unwrap();
    let claim = Claim { hardware: Some(hardware), ..reference_claim() };
    let run = assess_value(document, &claim, &AssessContext::default()).unwrap();
    (run.verdict, run.findings)
}

fn assert_found(document: Value, hardware: Value, code: &str, severity: Severity) {
    let (verdict, findings) = judged(document, hardware);
    let found = findings.iter().find(|finding| finding.code == code);
    assert_eq!(found.map(|finding| finding.severity), Some(severity), "{code}: {findings:#?}");
    assert_eq!(verdict, Verdict::of(&findings));
}

fn with_gpus(rows: &[&str]) -> Value {
    let mut document = value("reference-run.json");
    document["startup_diagnostics"]["nvidia_smi_query"]["stdout"] = json!(rows.join("\n"));
    document
}

#[test]
fn matching_hardware_in_any_spelling_raises_nothing() {
    for gpu in ["RTX 3090", "rtx-3090", "NVIDIA GeForce RTX 3090", "RTX_3090"] {
        let (verdict, findings) = judged(value("reference-run.json"), json!({"gpu": gpu, "gpu_count": 1, "vram_gib": 24}));
        assert_eq!((verdict, findings), (Verdict::Verified, vec![]), "{gpu}");
    }
}

/// (a) "H100 80GB" with 24,064 MiB; (b) count 8, detail 1; (g) A100 under an H100's name.
#[test]
fn claimed_hardware_that_the_document_contradicts_is_refused_with_its_own_code() {
    let mut wrapped = value("synthetic_lil_bench_wrapped.json");
    wrapped["hardware"]["gpus"][0]["name"] = json!("NVIDIA H100 80GB HBM3");
    wrapped["hardware"]["gpus"][0]["memory_total_mib"] = json!(24_064);
    assert_found(wrapped, json!({"gpu": "H100 SXM", "vram_gib": 80}), "gpu_memory_differs", Severity::Error);
    assert_found(value("reference-run.json"), json!({"gpu": "RTX 3090", "gpu_count": 8}), "gpu_count_differs", Severity::Error);
    let a100 = with_gpus(&["0, NVIDIA A100-SXM4-80GB, 595.99.02, 00000000:01:00.0, 4, 16, 400.00"]);
    assert_found(a100, json!({"gpu": "H100 SXM", "vram_gib": 80}), "gpu_differs", Severity::Error);
    assert_found(value("reference-run.json"), json!({"gpu": "RTX 3090 Ti"}), "gpu_differs", Severity::Error);
    assert_found(value("reference-run.json"), json!({"gpu": "RTX 3090", "vram_gib": 80}), "gpu_memory_differs", Severity::Suspicious);
}

#[test]
fn more_gpus_than_claimed_are_looked_at() {
    let row = |n: u8| format!("{n}, NVIDIA GeForce RTX 3090, 595.99.02, 00000000:0{n}:00.0, 4, 16, 350.00");
    let rows = [row(0), row(1)];
    let two = with_gpus(&[&rows[0], &rows[1]]);
    assert_found(two, json!({"gpu": "RTX 3090", "gpu_count": 1}), "gpu_count_differs", Severity::Suspicious);
}

/// The plain file lists the client's GPUs: with the engine on another host a difference is no contradiction.
#[test]
fn a_client_on_another_host_is_suspicious_and_no_forgery() {
    let mut remote = value("reference-run.json");
    remote["metadata"]["server"] = json!("http://gpu-box.lan:8000");
    assert_found(remote, json!({"gpu": "H100 SXM", "gpu_count": 8}), "gpu_differs", Severity::Suspicious);
}

#[test]
fn hardware_that_nobody_saw_is_a_note_in_the_sandbox_and_suspicious_elsewhere() {
    for (unseen, severity) in [(HardwareUnseen::Note, Severity::Note), (HardwareUnseen::Suspicious, Severity::Suspicious)] {
        let context = AssessContext { hardware_unseen: unseen, ..AssessContext::default() };
        let run = assess_value(value("v04_all_valid.json"), &reference_claim(), &context).unwrap();
        let finding = run.findings.iter().find(|finding| finding.code == "hardware_unseen").unwrap();
        assert_eq!(finding.severity, severity);
    }
}

#[test]
fn names_that_cannot_be_placed_are_notes() {
    assert_found(value("reference-run.json"), json!({"gpu": "RTX 6000"}), "hardware_ambiguous", Severity::Note);
    assert_found(value("reference-run.json"), json!({"gpu": "Quantum Blaster 9"}), "hardware_unknown", Severity::Note);
    let odd = with_gpus(&["0, NVIDIA Graphics Device, 595.99.02, 00000000:01:00.0, 4, 16, 350.00"]);
    assert_found(odd, json!({"gpu": "RTX 3090"}), "hardware_unknown", Severity::Note);
    assert_found(value("reference-run.json"), json!({"gpu": "RTX 3090", "driver": "550.1"}), "driver_differs", Severity::Note);
}

/// The machine's registered hardware stands above what the uploader says.
#[test]
fn the_machine_stands_above_the_claim() {
    let machine: ClaimedHardware = serde_json::from_value(json!({"gpu": "RTX 4090", "gpu_count": 1, "vram_gib": 24})).unwrap();
    let context = AssessContext { machine_hardware: Some(machine), ..AssessContext::default() };
    let run = assess_value(value("reference-run.json"), &reference_claim(), &context).unwrap();
    assert_eq!(run.verdict, Verdict::Rejected);
}

#[test]
fn memory_as_tools_print_it_fits() {
    let mut wrapped = value("synthetic_lil_bench_wrapped.json");
    wrapped["hardware"]["gpus"][0]["name"] = json!("NVIDIA GeForce RTX 4090");
    wrapped["hardware"]["gpus"][0]["memory_total_mib"] = json!(24_564);
    let (verdict, findings) = judged(wrapped, json!({"gpu": "RTX 4090", "vram_gib": 24}));
    assert_eq!(verdict, Verdict::Verified, "{findings:#?}");
}
