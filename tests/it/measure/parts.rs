//! The small parts of measuring: reading streams, percentiles, prompts, metrics.

use proptest::prelude::*;
use rigmark::measure::inspect::{EngineKind, Gauges, thousands};
use rigmark::measure::matrix::parse_tokens;
use rigmark::measure::prompt::Prompts;
use rigmark::measure::sse::{Event, Scanner};
use rigmark::measure::stats::{Spread, percentile, round};
use serde_json::json;

fn scan(pieces: &[&[u8]]) -> Vec<Event> {
    let mut scanner = Scanner::default();
    let mut events = Vec::new();
    for piece in pieces {
        assert!(scanner.feed(piece, |event, _| events.push(event)));
    }
    events
}

fn text(tokens: Option<u64>) -> Event {
    Event { has_text: true, has_choice: true, completion_tokens: tokens, ..Event::default() }
}

#[test]
fn chunks_of_the_known_engines_are_understood() {
    let one = |data: &str| scan(&[format!("data: {data}\n\n").as_bytes()])[0];
    assert_eq!(one(r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#), text(None));
    assert_eq!(one(r#"{"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": null}"#), text(None));
    assert_eq!(one(r#"{"choices":[{"delta":{"reasoning_content":"a","content":null}}]}"#), text(None));
    assert_eq!(
        one(r#"{"choices":[{"delta":{"reasoning":"a"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#),
        Event { prompt_tokens: Some(7), ..text(Some(3)) }
    );
    assert_eq!(one(r#"{"choices":[{"index":0,"text":" b"}]}"#), text(None));
    assert_eq!(one(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#), Event { has_text: false, ..text(None) });
    assert_eq!(one(r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#), Event { has_text: false, ..text(None) });
    let last = one(r#"{"choices":[],"usage":{"completion_tokens":50,"prompt_tokens":22,"completion_tokens_details":null}}"#);
    assert_eq!(last, Event { completion_tokens: Some(50), prompt_tokens: Some(22), ..Event::default() });
    assert!(one("[DONE]").is_done && one(r#"{"error":{"message":"x"}}"#).is_error);
    assert!(scan(&[b": comment\n\nevent: x\nid: 1\ndata:\n\n"]).is_empty());
    assert_eq!(scan(&[b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\n"]), [text(None)]);
}

proptest! {
    /// Whatever the text of a token is, it is one token, and its own words are not taken for members.
    #[test]
    fn text_is_never_taken_for_structure(content in ".{1,40}", count in 0u64..1_000_000, cuts in proptest::collection::vec(0usize..400, 0..4)) {
        let tricky = format!("{content}\"completion_tokens\":9,\"error\"");
        let chunk = json!({"id": "x", "choices": [{"index": 0, "delta": {"content": tricky}, "finish_reason": null}], "usage": {"completion_tokens": count, "prompt_tokens": 4}});
        let line = format!("data: {chunk}\n\ndata: [DONE]\n\n");
        let bytes = line.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        let events = scan(&pieces);
        prop_assert_eq!(events.len(), 2);
        prop_assert_eq!(events[0], Event { prompt_tokens: Some(4), ..text(Some(count)) });
        prop_assert!(events[1].is_done);
    }

    /// A percentile lies between its neighbours and grows with the percentage.
    #[test]
    fn percentiles_are_ordered(values in proptest::collection::vec(0.001f64..1e6, 1..50)) {
        let spread = Spread::of(values.iter().copied());
        let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        prop_assert!(low <= spread.p50 && spread.p50 <= spread.p90 && spread.p90 <= spread.p99 && spread.p99 <= high);
    }
}

#[test]
fn percentiles_interpolate_and_leave_out_zeros() {
    assert_eq!(percentile(&[1.0, 2.0, 3.0, 4.0], 50.0), 2.5);
    assert_eq!(percentile(&[1.0, 2.0, 3.0], 90.0), 2.8);
    assert_eq!(Spread::of([0.0, 2.0, 0.0, 4.0]), Spread { avg: 3.0, p50: 3.0, p90: 3.8, p99: 3.98 });
    assert_eq!(Spread::of([0.0]), Spread::default());
    assert_eq!(round(1.23456789, 6), 1.234568);
}

#[test]
fn prompts_are_linear_in_length_and_share_no_beginning() {
    let prompts = Prompts::new(Prompts::nonce());
    let texts: Vec<String> = [1_000, 2_000, 3_000, 9_000].iter().map(|context| prompts.text("decode", *context)).collect();
    for (pair, step) in texts.windows(2).zip([1_000, 1_000, 6_000]) {
        assert_eq!(pair[1].len() - pair[0].len(), step * 4);
        let shared = pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
        assert!(shared < 32, "{shared} bytes are the same");
    }
    assert_eq!(prompts.text("decode", 9_000), texts[3]);
    assert_ne!(prompts.text("prefill", 9_000)[..32], texts[3][..32]);
    assert_ne!(Prompts::new(Prompts::nonce()).text("decode", 0), prompts.text("decode", 0));
    let words = |text: &str, from: usize| text[from..from + 4_000].split_whitespace().count() as f64;
    assert!((words(&texts[3], 0) / words(&texts[3], 30_000) - 1.0).abs() < 0.01, "the text changes its density");
}

#[test]
fn metrics_of_both_engines_are_read_and_summed() {
    let vllm = "# HELP x\nvllm:num_requests_running{engine=\"0\"} 3.0\nvllm:num_requests_running{engine=\"1\"} 2.0\n\
                vllm:num_requests_waiting{engine=\"0\"} 1.0\nvllm:num_requests_waiting_by_reason{} 9\n\
                vllm:generation_tokens_total{engine=\"0\"} 1.5e3\nvllm:kv_cache_usage_perc{} 0.25\n";
    let gauges = Gauges::parse(EngineKind::Vllm, vllm).unwrap();
    assert_eq!(gauges, Gauges { running: 5.0, waiting: 1.0, generated_tokens: Some(1_500.0), kv_usage: 0.25 });
    let sglang = "sglang:num_running_reqs{m=\"x\"} 4\nsglang:num_queue_reqs{m=\"x\"} 2\n";
    assert_eq!(Gauges::parse(EngineKind::Sglang, sglang).unwrap(), Gauges { running: 4.0, waiting: 2.0, ..Gauges::default() });
    assert_eq!(Gauges::parse(EngineKind::Vllm, sglang), None);
}

#[test]
fn numbers_of_tokens_are_read_and_written() {
    assert_eq!((parse_tokens("0"), parse_tokens("16k"), parse_tokens(" 5000 ")), (Ok(0), Ok(16_384), Ok(5_000)));
    assert!(
        parse_tokens("k").is_err() && parse_tokens("-1").is_err() && parse_tokens("1.5k").is_err() && parse_tokens("99999999k").is_err()
    );
    assert_eq!(
        (thousands(7), thousands(622_592), thousands(1_000), thousands(1_234_567)),
        ("7".into(), "622,592".into(), "1,000".into(), "1,234,567".into())
    );
}
