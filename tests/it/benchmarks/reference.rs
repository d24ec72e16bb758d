//! The reference run gives every number of the page it was rebuilt from.

use rigmark::benchmarks::{AssessContext, Assessment, Cell, CellStatus, DecodeMode, Matrix, assess};

use super::{bytes, reference_claim};

/// Context, tok/s, TTFT in ms.
const PREFILL: &[(u64, f64, f64)] = &[
    (8_192, 8_169.0, 1_030.0),
    (16_384, 6_886.0, 2_416.0),
    (32_768, 5_205.0, 6_359.0),
    (65_536, 3_525.0, 18_727.0),
    (131_072, 2_144.0, 61_490.0),
];

/// Context, concurrency, queued, total, per request, TTFT ms, time between tokens ms, active, completed, output tokens, seconds.
type Row = (u64, u32, bool, f64, f64, f64, f64, f64, u64, u64, f64);
const DECODE: &[Row] = &[
    (0, 1, false, 145.0, 145.4, 33.0, 6.9, 1.0, 0, 4_349, 30.0),
    (0, 2, false, 257.7, 129.1, 50.0, 7.7, 2.0, 0, 7_730, 30.0),
    (0, 4, false, 422.8, 106.1, 76.0, 9.4, 4.0, 0, 12_684, 30.0),
    (0, 8, false, 667.2, 83.7, 116.0, 11.9, 8.0, 0, 20_016, 30.0),
    (0, 16, false, 993.5, 62.5, 160.0, 16.0, 16.0, 0, 29_792, 30.0),
    (0, 32, true, 1_075.9, 52.4, 245.0, 19.1, 21.0, 0, 32_277, 30.0),
    (0, 64, true, 1_073.4, 52.2, 267.0, 19.2, 21.0, 0, 32_193, 30.0),
    (16_384, 1, false, 131.1, 131.3, 217.0, 7.6, 1.0, 0, 3_932, 30.0),
    (16_384, 2, false, 230.2, 114.9, 318.0, 8.7, 2.0, 0, 6_905, 30.0),
    (16_384, 4, false, 390.7, 97.1, 523.0, 10.3, 4.0, 0, 11_720, 30.0),
    (16_384, 8, false, 616.1, 75.7, 943.0, 13.2, 8.0, 0, 18_480, 30.0),
    (16_384, 16, false, 918.9, 55.2, 1_792.0, 18.1, 16.0, 0, 27_552, 30.0),
    (32_768, 1, false, 120.0, 120.1, 501.0, 8.3, 1.0, 0, 3_598, 30.0),
    (32_768, 2, false, 211.8, 105.3, 738.0, 9.5, 2.0, 0, 6_354, 30.0),
    (32_768, 4, false, 350.7, 86.1, 1_208.0, 11.6, 4.0, 0, 10_521, 30.0),
    (32_768, 8, false, 541.7, 64.7, 2_168.0, 15.4, 8.0, 0, 16_248, 30.0),
    (65_536, 1, false, 102.5, 102.7, 1_501.0, 9.7, 1.0, 0, 3_076, 30.0),
    (65_536, 2, false, 180.4, 88.4, 2_266.0, 11.3, 2.0, 0, 5_410, 30.0),
    (65_536, 4, false, 306.9, 72.2, 3_678.0, 13.8, 4.0, 0, 9_204, 30.0),
    (65_536, 8, false, 520.2, 56.7, 6_621.0, 17.6, 8.0, 0, 15_600, 30.0),
    (131_072, 1, false, 79.3, 79.4, 5_069.0, 12.6, 1.0, 0, 2_379, 30.0),
    (131_072, 2, false, 140.4, 65.8, 7_557.0, 15.3, 2.0, 0, 4_210, 30.0),
    (131_072, 4, false, 230.8, 47.6, 12_511.0, 21.1, 4.0, 0, 6_924, 30.0),
    (253_952, 1, true, 45.1, 55.5, 6_153.0, 18.0, 0.9, 0, 1_352, 30.0),
    (253_952, 2, true, 61.2, 43.6, 9_063.0, 23.4, 1.7, 0, 1_836, 30.0),
];

fn run() -> Assessment {
    assess(&bytes("reference-run.json"), &reference_claim(), &AssessContext::default()).unwrap()
}

fn rounded(value: Option<f64>, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value.unwrap() * scale).round() / scale
}

fn assert_row(cell: &Cell, row: &Row) {
    let (context, concurrency, queued, total, per_request, ttft, itl, active, completed, tokens, seconds) = *row;
    let place = format!("{context} × {concurrency}");
    assert_eq!(cell.status, if queued { CellStatus::Queued } else { CellStatus::Valid }, "{place}");
    assert_eq!(rounded(cell.total_tokens_per_second, 1), total, "{place}");
    assert_eq!(rounded(cell.per_request_tokens_per_second, 1), per_request, "{place}");
    assert_eq!(rounded(cell.ttft_ms, 0), ttft, "{place}");
    assert_eq!(rounded(cell.itl_ms, 1), itl, "{place}");
    assert_eq!(cell.average_active_requests, Some(active), "{place}");
    assert_eq!(cell.completed_requests, Some(completed), "{place}");
    assert_eq!(cell.output_tokens, Some(tokens), "{place}");
    assert_eq!(rounded(cell.measured_seconds, 1), seconds, "{place}");
}

#[test]
fn every_number_of_the_page_comes_out() {
    let matrix = run().matrix;
    let rows: Vec<_> =
        matrix.prefill.iter().map(|row| (row.context_tokens, row.tokens_per_second.unwrap(), row.ttft_ms.unwrap().round())).collect();
    assert_eq!(rows, PREFILL);
    assert_eq!(matrix.mode, DecodeMode::Duration);
    assert_eq!(matrix.decode.len(), 48);
    for row in DECODE {
        assert_row(matrix.cell(row.0, row.1).unwrap(), row);
    }
    let absent: Vec<&Cell> = matrix.decode.iter().filter(|cell| !cell.status.is_measured()).collect();
    assert_eq!(absent.len(), 23);
    for cell in absent {
        assert_eq!(cell.status, CellStatus::OverCapacity);
        assert_eq!((cell.total_tokens_per_second, cell.ttft_ms, cell.output_tokens), (None, None, None));
    }
    assert_eq!((matrix.kv_capacity.at_least_tokens, matrix.kv_capacity.below_tokens), (Some(589_824), Some(655_360)));
}

#[test]
fn the_page_is_worded_as_it_was() {
    let run = run();
    assert_eq!(run.title, "Nemotron-Cascade-2-30B-A3B-AWQ-4bit on RTX 3090 24GB");
    assert_eq!(run.engine_summary, "vllm · 0.32.0 · AWQ 4-bit");
    assert_eq!(run.matrix_summary, "6 contexts (0–248K) × 8 concurrency levels (1–128) · prefill at 8K, 16K, 32K, 64K, 128K");
    assert_eq!((run.tool.name.as_str(), run.tool.version.as_deref()), ("llm-inference-bench", Some("0.8.0")));
    assert_eq!(run.run.served_model.as_deref(), Some("bench"));
    assert_eq!(run.run.decode_test.as_deref(), Some("Fixed duration"));
    assert_eq!(run.run.prefill_mode.as_deref(), Some("Measured during decode warm-up"));
    assert_eq!((run.run.duration_seconds, run.run.max_output_tokens), (Some(30.0), Some(8_192)));
    assert_eq!(run.claim, reference_claim(), "nothing in the claim needs redaction");
    assert!(run.findings.is_empty(), "{:#?}", run.findings);
    assert_eq!(run.nonce, None);
    let full = assess(&bytes("reference-run.nonce.json"), &reference_claim(), &AssessContext::default()).unwrap();
    assert_eq!(full.nonce.map(|nonce| nonce.len()), Some(12));
}

#[test]
fn a_workload_gets_the_lightest_valid_cell_that_is_heavy_enough() {
    let matrix = run().matrix;
    let place = |cell: Option<&Cell>| cell.map(|cell| (cell.context_tokens, cell.concurrency));
    assert_eq!(place(matrix.lightest_cell(0, 1)), Some((0, 1)));
    assert_eq!(place(matrix.lightest_cell(16_000, 8)), Some((16_384, 8)));
    assert_eq!(place(matrix.lightest_cell(16_385, 5)), Some((32_768, 8)));
    assert_eq!(place(matrix.lightest_cell(0, 17)), None, "the cells at 32 and 64 are queued");
    assert_eq!(place(matrix.lightest_cell(200_000, 1)), None, "the cell at 248K is queued");
    let found = matrix.workload(10_000, 6).unwrap();
    assert_eq!(rounded(Some(found.tokens_per_second_per_user), 1), 77.0);
    assert_eq!(rounded(found.warm_ttft_ms, 0), 943.0);
    assert_eq!(rounded(found.cold_ttft_ms, 0), 2_416.0);
    assert_eq!(rounded(matrix.cold_ttft_ms(9_000), 0), 2_416.0);
    assert_eq!(rounded(matrix.cold_ttft_ms(0), 0), 33.0);
    assert_eq!(matrix.cold_ttft_ms(131_073), None);
    assert_eq!(Matrix::default().workload(0, 1), None);
}
