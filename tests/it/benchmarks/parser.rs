//! Bad input: a clear refusal with its place, promptly and in bounded memory.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use rigmark::base::clock::monotonic;
use rigmark::benchmarks::document::{PACKED_BYTES_MAX, UNPACKED_BYTES_MAX};
use rigmark::benchmarks::json::{canonical_bytes, parse};
use rigmark::benchmarks::matrix::needed_tokens;
use rigmark::benchmarks::{
    AssessContext, CellStatus, Claim, Unreadable, UnreadableCode as Code, Verdict, assess, assess_value, read_envelope,
};
use serde_json::{Value, json};

use super::{bytes, has, value};

fn refusal(bytes: &[u8]) -> Unreadable {
    assess(bytes, &Claim::default(), &AssessContext::default()).unwrap_err()
}

fn refused(text: &str) -> (Code, String) {
    let unreadable = refusal(text.as_bytes());
    (unreadable.code, unreadable.pointer)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A document with one value replaced, as text.
fn edited(pointer: &str, to: Value) -> String {
    let mut document = value("v04_all_valid.json");
    *document.pointer_mut(pointer).unwrap() = to;
    document.to_string()
}

#[test]
fn what_is_no_run_document_is_refused_with_place_and_code() {
    let cases = [
        ("", Code::Empty, ""),
        ("  \n", Code::Empty, ""),
        ("\u{feff}", Code::Empty, ""),
        ("hello", Code::NotJson, ""),
        ("[]", Code::NotAnObject, ""),
        ("12", Code::NotAnObject, ""),
        ("null", Code::NotAnObject, ""),
        ("{}", Code::NotARunDocument, ""),
        (r#"{"results": {"hellaswag": {"acc": 0.5}}, "config": {}}"#, Code::NotARunDocument, ""),
        (r#"{"schema": "openapi/3", "results": {}}"#, Code::NotARunDocument, "/schema"),
        (r#"{"schema": 3}"#, Code::WrongType, "/schema"),
        (r#"{"schema": "lil-bench-result/1"}"#, Code::NotARunDocument, "/results"),
        (r#"{"metadata": {"a": 1}, "results": []}"#, Code::NotARunDocument, ""),
        (r#"{"metadata": [], "results": []}"#, Code::WrongType, "/metadata"),
        (r#"{"metadata": {"concurrency_levels": [1]}, "results": {}}"#, Code::WrongType, "/results"),
        (r#"{"metadata": {"concurrency_levels": ["1"]}, "results": []}"#, Code::WrongType, "/metadata/concurrency_levels/0"),
        (r#"{"metadata": {"concurrency_levels": [-1]}, "results": []}"#, Code::OutOfRange, "/metadata/concurrency_levels/0"),
        (r#"{"metadata": {}, "results": [{}]}"#, Code::NotARunDocument, "/results/0/concurrency"),
        (r#"{"metadata": {}, "results": [7]}"#, Code::WrongType, "/results/0"),
        (r#"{"a": 1, "b": {"c~/d": 1, "c~/d": 2}}"#, Code::DuplicateKey, "/b/c~0~1d"),
        (r#"{"a": [1, 2, NaN]}"#, Code::NonFiniteNumber, "/a/2"),
        (r#"{"a": -Infinity}"#, Code::NonFiniteNumber, "/a"),
        (r#"{"a": 1e999}"#, Code::NonFiniteNumber, "/a"),
        (r#"{"a": 1"#, Code::Truncated, ""),
        (r#"{"a": tru"#, Code::Truncated, "/a"),
        (r#"{"a": "x"#, Code::Truncated, "/a"),
        (r#"{"a": 01}"#, Code::NotJson, "/a"),
        (r#"{"a": 1,}"#, Code::NotJson, ""),
        (r#"{"a": 'x'}"#, Code::NotJson, "/a"),
        ("{\"a\": \"\u{1}\"}", Code::NotJson, "/a"),
        (r#"{"a": 1} x"#, Code::NotJson, ""),
    ];
    for (text, code, pointer) in cases {
        assert_eq!(refused(text), (code, pointer.to_owned()), "{text:?}");
    }
    assert_eq!(refusal(&[0xff, 0xfe, b'{']).code, Code::NotUtf8);
}

#[test]
fn known_fields_of_a_wrong_type_are_refused_with_their_place() {
    for (pointer, to, code) in [
        ("/results/3/aggregate_tps", json!("145"), Code::WrongType),
        ("/results/3/capacity_limited", json!(1), Code::WrongType),
        ("/results/3/concurrency", json!(1.5), Code::OutOfRange),
        ("/results/3/request_samples/0/ttft", json!([]), Code::WrongType),
        ("/summary_table/0", json!([]), Code::WrongType),
        ("/summary_table/0/1", json!("x"), Code::WrongType),
        ("/event_log/4", json!(4), Code::WrongType),
        ("/prefill", json!({"8k": {}}), Code::WrongType),
        ("/metadata/max_tokens", json!(-1), Code::OutOfRange),
    ] {
        let (found, place) = refused(&edited(pointer, to));
        assert_eq!(found, code, "{pointer}");
        assert!(place.starts_with(pointer), "{pointer}: {place}");
    }
}

#[test]
fn nan_is_read_as_absent_in_telemetry_only() {
    let text = value("synthetic_lil_bench_wrapped.json").to_string();
    let telemetry = text.replacen("[1740,1740,1735]", "[NaN,-Infinity,1735]", 1);
    assert_ne!(telemetry, text, "the telemetry was edited");
    let run = assess(telemetry.as_bytes(), &Claim::default(), &AssessContext::default()).unwrap();
    assert_eq!(run.verdict, Verdict::Verified);
    let mut cell = value("v04_all_valid.json");
    cell["results"][0]["hardware_summary"] = json!({"vram_total_mb": "@"});
    let inside = cell.to_string().replace("\"@\"", "NaN");
    assert!(assess(inside.as_bytes(), &Claim::default(), &AssessContext::default()).is_ok());
    let outside = edited("/results/0/aggregate_tps", json!("@")).replace("\"@\"", "NaN");
    assert_eq!(refused(&outside), (Code::NonFiniteNumber, "/results/0/aggregate_tps".to_owned()));
}

#[test]
fn nesting_is_bounded_before_the_stack_is() {
    let deep = |levels: usize| format!("{{\"a\": {}1{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(deep(127).as_bytes()).is_ok());
    assert_eq!(parse(deep(128).as_bytes()).unwrap_err().code, Code::TooDeep);
    assert_eq!(refusal("[".repeat(10_000).as_bytes()).code, Code::TooDeep);
    let objects = "{\"a\":".repeat(1_000_000);
    let refusal = refusal(objects.as_bytes());
    assert_eq!(refusal.code, Code::TooDeep);
    assert!(refusal.pointer.len() < 400);
}

#[test]
fn cells_are_bounded() {
    let mut document = value("v04_all_valid.json");
    let cell = document["results"][0].clone();
    document["results"] = Value::Array(vec![json!({"concurrency": 1, "context_tokens": 0}); 4_097]);
    assert_eq!(refused(&document.to_string()).0, Code::TooManyCells);
    document["results"] = json!([cell]);
    document["metadata"]["concurrency_levels"] = Value::Array((1..=65).map(Value::from).collect());
    document["metadata"]["context_lengths"] = Value::Array((0..64).map(Value::from).collect());
    assert_eq!(refused(&document.to_string()).0, Code::TooManyCells);
}

#[test]
fn sizes_are_bounded_while_streaming() {
    let start = monotonic();
    let bomb = gzip(&vec![b' '; UNPACKED_BYTES_MAX * 4]);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(refusal(&bomb).code, Code::TooLarge);
    assert_eq!(refusal(&vec![b' '; UNPACKED_BYTES_MAX + 1]).code, Code::TooLarge);
    let mut packed = gzip(b"{}");
    packed.resize(PACKED_BYTES_MAX + 1, 0);
    assert_eq!(refusal(&packed).code, Code::TooLarge);
    let whole = gzip(&bytes("v04_all_valid.json"));
    assert_eq!(refusal(&whole[..whole.len() / 2]).code, Code::BadGzip);
    assert!(assess(&whole, &Claim::default(), &AssessContext::default()).is_ok());
    // Text that is small and a tree that is not.
    let many = format!("[{}]", "{\"a\":0},".repeat(1_000_000));
    assert_eq!(refusal(many.as_bytes()).code, Code::TooLarge);
    assert!(start.elapsed().as_secs() < 60, "took {:?}", start.elapsed());
}

#[test]
fn every_cut_of_a_document_is_refused() {
    let whole = bytes("v04_prefill_only.json");
    let end = whole.iter().rposition(|b| *b == b'}').unwrap();
    for cut in (0..end).step_by(61) {
        let code = refusal(&whole[..cut]).code;
        assert!(matches!(code, Code::Truncated | Code::Empty | Code::NotUtf8), "{cut}: {code:?}");
    }
}

#[test]
fn an_envelope_keeps_the_document_apart() {
    let document = String::from_utf8(bytes("v04_all_valid.json")).unwrap();
    let body = format!("{{\"machine_id\": \"mch_1\", \"document\": {document}, \"notes\": \"x\"}}");
    let envelope = read_envelope(body.as_bytes()).unwrap();
    assert_eq!(envelope.fields.keys().collect::<Vec<_>>(), ["machine_id", "notes"]);
    assert_eq!(&body[envelope.document_span], document.trim());
    assert_eq!(assess_value(envelope.document, &Claim::default(), &AssessContext::default()).unwrap().verdict, Verdict::Verified);
    assert_eq!(read_envelope(b"{\"a\": 1}").unwrap_err().pointer, "/document");
    assert_eq!(read_envelope(b"[1]").unwrap_err().code, Code::NotAnObject);
    let twice = read_envelope(b"{\"document\": {}, \"document\": {}}").unwrap_err();
    assert_eq!((twice.code, twice.pointer.as_str()), (Code::DuplicateKey, "/document"));
}

#[test]
fn a_crashed_or_empty_wrapper_is_read_and_not_verified() {
    let text = r#"{"schema": "lil-bench-result/1", "status": "failed", "results": {"bench": {}, "bench_log_tail": "Traceback"}}"#;
    let run = assess(text.as_bytes(), &Claim::default(), &AssessContext::default()).unwrap();
    assert_eq!(run.verdict, Verdict::NeedsReview);
    assert!(has(&run.findings, "no_valid_cell") && run.matrix.decode.is_empty());
}

#[test]
fn half_a_surrogate_pair_is_read() {
    let parsed = parse(br#"{"a": "\ud83d\ude00 \ud800 \ud800\u0041 \"\\\/"}"#).unwrap();
    assert_eq!(parsed["a"], "😀 \u{fffd} \u{fffd}A \"\\/");
}

#[test]
fn parsing_is_about_as_fast_as_serde_json() {
    let bytes = bytes("reference-run.nonce.json");
    let mut ours = std::time::Duration::MAX;
    let mut theirs = std::time::Duration::MAX;
    for _ in 0..5 {
        let start = monotonic();
        let value = parse(&bytes).unwrap();
        ours = ours.min(start.elapsed());
        let start = monotonic();
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
        theirs = theirs.min(start.elapsed());
    }
    println!("ours {ours:?}, serde_json {theirs:?} (optimised even in the test profile)");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _either = assess(&bytes, &Claim::default(), &AssessContext::default());
    }

    #[test]
    fn random_json_text_never_panics(text in r#"[\[\]{}",:0-9eE.+\-\\untrfalsNaI \u{0}-\u{20}]{0,120}"#) {
        let ours = parse(text.as_bytes());
        // What serde_json accepts without doubled keys we accept, to the same value.
        if let (Ok(ours), Ok(theirs)) = (&ours, serde_json::from_str::<Value>(&text)) {
            prop_assert_eq!(ours, &theirs);
        }
    }

    #[test]
    fn canonical_bytes_read_back_to_the_same_value(numbers in proptest::collection::vec(any::<f64>(), 0..20), key in ".{0,12}") {
        let value = json!({ key: numbers.iter().filter(|n| n.is_finite()).collect::<Vec<_>>() });
        let bytes = canonical_bytes(&value);
        prop_assert_eq!(parse(&bytes).unwrap(), serde_json::from_slice::<Value>(&bytes).unwrap());
        prop_assert_eq!(canonical_bytes(&parse(&bytes).unwrap()), bytes);
    }

    #[test]
    fn random_edits_of_a_document_never_panic(edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = bytes("v04_prefill_only.json");
        for (index, byte) in edits {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let _either = assess(&bytes, &Claim::default(), &AssessContext::default());
    }

    /// Rebuilding by the KV rule agrees with the rule itself, whatever the matrix.
    #[test]
    fn absent_cells_follow_the_kv_rule(
        contexts in proptest::collection::btree_set(0_u64..300_000, 1..6),
        levels in proptest::collection::btree_set(1_u32..200, 1..6),
        budget in 1_u64..20_000_000,
        max_tokens in 1_u64..20_000,
    ) {
        let document = json!({
            "metadata": {
                "version": "0.7.0", "concurrency_levels": levels, "context_lengths": contexts, "max_tokens": max_tokens, "max_total_tokens": budget,
            },
            "results": [],
        });
        let run = assess_value(document, &Claim::default(), &AssessContext::default()).unwrap();
        prop_assert_eq!(run.matrix.decode.len(), contexts.len() * levels.len());
        for cell in &run.matrix.decode {
            let over = needed_tokens(cell.context_tokens, cell.concurrency, max_tokens) > budget;
            prop_assert_eq!(cell.status == CellStatus::OverCapacity, over);
        }
        let over = run.matrix.decode.iter().filter(|cell| cell.status == CellStatus::OverCapacity);
        let smallest = over.map(|cell| needed_tokens(cell.context_tokens, cell.concurrency, max_tokens)).min();
        prop_assert_eq!(run.matrix.kv_capacity.below_tokens, smallest);
    }
}
