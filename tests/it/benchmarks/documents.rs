//! Every document's verdict and cell counts.

use rigmark::benchmarks::{AssessContext, CHECKS, CellStatus, Claim, DecodeMode, Severity, Verdict, assess, is_near_duplicate};

use super::{bytes, codes, has, judge, public_documents};

const STATUSES: [CellStatus; 7] = [
    CellStatus::Valid,
    CellStatus::Queued,
    CellStatus::OverCapacity,
    CellStatus::Error,
    CellStatus::Loop,
    CellStatus::Skipped,
    CellStatus::NotRun,
];

/// (file, verdict, prefill rows, cells by status in the order above)
const TABLE: &[(&str, Verdict, usize, [usize; 7])] = &[
    ("reference-run.json", Verdict::Verified, 5, [21, 4, 23, 0, 0, 0, 0]),
    ("reference-run.nonce.json", Verdict::Verified, 5, [21, 4, 23, 0, 0, 0, 0]),
    ("page-transcribed.json", Verdict::Rejected, 5, [21, 4, 23, 0, 0, 0, 0]),
    ("v04_all_valid.json", Verdict::Verified, 4, [12, 0, 0, 0, 0, 0, 0]),
    ("v04_queued.json", Verdict::Verified, 2, [4, 4, 0, 0, 0, 0, 0]),
    ("v04_over_capacity.json", Verdict::Verified, 3, [8, 1, 6, 0, 0, 0, 0]),
    ("v04_kv_unknown_queued.json", Verdict::Verified, 3, [9, 3, 0, 0, 0, 0, 0]),
    ("v04_error_drop.json", Verdict::Verified, 2, [5, 0, 0, 1, 0, 0, 0]),
    ("v04_dead_server.json", Verdict::Verified, 2, [3, 0, 0, 1, 0, 0, 0]),
    ("v04_prefill_only.json", Verdict::NeedsReview, 4, [0, 0, 0, 0, 0, 0, 0]),
    ("v04_burst.json", Verdict::Verified, 2, [4, 0, 0, 0, 0, 0, 0]),
    ("v04_request_count.json", Verdict::Verified, 2, [4, 0, 0, 0, 0, 0, 0]),
    ("v04_spec_multi_token.json", Verdict::Verified, 2, [6, 0, 0, 0, 0, 0, 0]),
    ("v04_no_continuous.json", Verdict::Verified, 2, [4, 0, 0, 0, 0, 0, 0]),
    ("v04_no_metrics.json", Verdict::Verified, 2, [4, 0, 0, 0, 0, 0, 0]),
    ("synthetic_v07_error_and_loop.json", Verdict::NeedsReview, 4, [10, 0, 0, 1, 1, 0, 0]),
    ("synthetic_lil_bench_wrapped.json", Verdict::Verified, 4, [12, 0, 0, 0, 0, 0, 0]),
    ("synthetic_lil_bench_wrapped.json.gz", Verdict::Verified, 4, [12, 0, 0, 0, 0, 0, 0]),
    ("synthetic_lil_bench_failed.json", Verdict::NeedsReview, 4, [10, 0, 0, 1, 1, 0, 0]),
    ("real_llamacpp_cpu.json", Verdict::Verified, 2, [9, 0, 0, 0, 0, 0, 0]),
    ("real_llamacpp_cpu_completed.json", Verdict::NeedsReview, 2, [9, 0, 0, 0, 0, 0, 0]),
];

/// (file, cells by status)
const PUBLIC: &[(&str, [usize; 7])] = &[
    ("public_unversioned_qwen3.5-awq_c0.json", [4, 0, 0, 0, 0, 0, 0]),
    ("public_v03_qwen3.5-397b-awq-mtp.json", [36, 4, 0, 0, 0, 0, 0]),
    ("public_v0417_glm5-dcp1.json", [12, 0, 23, 0, 0, 0, 0]),
    ("public_v0417_glm5-dcp4-mtp1.json", [21, 0, 14, 0, 0, 0, 0]),
    ("public_v0417_glm5-dcp8-mtp1_one-cell.json", [1, 0, 0, 0, 0, 0, 0]),
];

#[test]
fn every_document_has_its_verdict_and_cells() {
    for (name, verdict, prefill, counts) in TABLE {
        let run = judge(name);
        assert_eq!(run.verdict, *verdict, "{name}: {:#?}", run.findings);
        assert_eq!(run.matrix.prefill.len(), *prefill, "{name}");
        assert_eq!(STATUSES.map(|status| run.matrix.count(status)), *counts, "{name}");
        assert!(run.findings.iter().all(|finding| CHECKS.iter().any(|check| check.code == finding.code)), "{:?}", codes(&run.findings));
    }
}

#[test]
fn public_documents_are_never_called_forged() {
    let Some(folder) = public_documents() else { return };
    for (name, counts) in PUBLIC {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let run = assess(&bytes, &Claim::default(), &AssessContext::default()).unwrap();
        assert_eq!(run.verdict, Verdict::Verified, "{name}: {:#?}", run.findings);
        assert_eq!(STATUSES.map(|status| run.matrix.count(status)), *counts, "{name}");
    }
}

#[test]
fn over_reporting_by_a_proxy_is_suspected_and_not_called_forged() {
    let run = judge("real_llamacpp_cpu_completed.json");
    let finding = run.findings.iter().find(|finding| finding.code == "usage_overreported").unwrap();
    assert_eq!((finding.severity, finding.cells.len()), (Severity::Suspicious, 6));
    assert!(run.findings.iter().all(|finding| finding.severity < Severity::Error));
}

#[test]
fn modes_and_layers_are_told_apart() {
    assert_eq!(judge("v04_request_count.json").matrix.mode, DecodeMode::RequestCount);
    let burst = judge("v04_burst.json").matrix;
    assert_eq!((burst.mode, burst.decode.len(), burst.burst.len()), (DecodeMode::Duration, 4, 4));
    assert!(has(&judge("v04_prefill_only.json").findings, "no_valid_cell"));
    let no_metrics = judge("v04_no_metrics.json").matrix;
    assert!(no_metrics.decode.iter().all(|cell| cell.average_active_requests.is_none() && cell.output_tokens.is_some()));
}

#[test]
fn a_wrapper_gives_its_server_and_its_hardware() {
    let run = judge("synthetic_lil_bench_wrapped.json");
    assert_eq!(run.run.engine_version.as_deref(), Some("0.32.0"));
    assert_eq!(run.run_id.as_deref(), Some("00000000-0000-0000-0000-000000005eed"));
    assert_eq!(run.hardware_seen.gpus[0].name, "NVIDIA GeForce RTX 3090");
    assert_eq!(run.hardware_seen.gpus[0].memory_mib, Some(24_576.0));
    assert_eq!(run.tool.version.as_deref(), Some("0.7.3"));
}

#[test]
fn the_same_measurement_is_found_under_another_wrapper() {
    let (plain, wrapped) = (judge("v04_all_valid.json"), judge("synthetic_lil_bench_wrapped.json"));
    assert_eq!(plain.fingerprint.len(), 12);
    assert_ne!(plain.document_sha256, wrapped.document_sha256);
    assert!(is_near_duplicate(&plain.fingerprint, &wrapped.fingerprint));
    assert!(!is_near_duplicate(&plain.fingerprint, &judge("v04_queued.json").fingerprint));
    assert!(!is_near_duplicate(&plain.fingerprint, &[]));
}

#[test]
fn the_same_bytes_give_the_same_assessment() {
    for (name, ..) in TABLE {
        let (one, two) = (judge(name), judge(name));
        assert_eq!(one.document_sha256, two.document_sha256);
        assert_eq!(one.findings, two.findings);
    }
    assert_eq!(judge("synthetic_lil_bench_wrapped.json").document_sha256, judge("synthetic_lil_bench_wrapped.json.gz").document_sha256);
}

#[test]
fn every_check_is_explained_once() {
    for (index, check) in CHECKS.iter().enumerate() {
        assert!(CHECKS.iter().skip(index + 1).all(|other| other.code != check.code), "{} stands twice", check.code);
        assert!(check.code.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", check.code);
        assert_eq!(check.explanation.matches(". ").count() + 1, 2, "{} has two sentences", check.code);
    }
}

/// A byte-order mark, other key order and spacing are the same document.
#[test]
fn spelling_of_the_json_does_not_matter() {
    let plain = bytes("v04_all_valid.json");
    let mut marked = vec![0xef, 0xbb, 0xbf];
    marked.extend(&plain);
    let pretty = serde_json::to_vec_pretty(&super::value("v04_all_valid.json")).unwrap();
    let expected = judge("v04_all_valid.json").document_sha256;
    for bytes in [marked, pretty] {
        assert_eq!(assess(&bytes, &Claim::default(), &AssessContext::default()).unwrap().document_sha256, expected);
    }
}
