//! Challenges: what is asked, how it is asked, and which documents answer.

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use rigmark::benchmarks::challenge::{is_usual_concurrency, is_usual_context};
use rigmark::benchmarks::{
    AnswerFacts, AssessContext, Assessment, ChallengeSpec, Claim, CommandTarget, DrawRequest, Profile, Verdict, assess_value, draw,
    measure_command, tool_command,
};
use serde_json::{Value, json};

use super::{codes, has, value};

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn request(profile: Profile, seed: u64) -> DrawRequest {
    DrawRequest {
        profile,
        model: Some("bench".to_owned()),
        quantization: Some("awq-4bit".to_owned()),
        max_model_len: None,
        max_running_requests: None,
        issued_at: at("2026-11-30T02:30:00Z"),
        expires_at: at("2026-12-01T02:30:00Z"),
        seed,
    }
}

/// A challenge that the genuine over-capacity run answers: 0.4.18, contexts 0, 4K, 8K, levels to 32, 4 s.
pub fn spec() -> ChallengeSpec {
    ChallengeSpec {
        contexts: vec![0, 4_096, 8_192],
        concurrency_levels: vec![1, 2, 4, 8, 32],
        prefill_contexts: vec![1_024],
        duration_seconds: 4.0,
        max_tokens: 1_024,
        model: Some("bench".to_owned()),
        quantization: None,
        issued_at: at("2026-11-30T02:38:00Z"),
        expires_at: at("2026-12-01T02:38:00Z"),
        seed: 1,
    }
}

pub fn facts() -> AnswerFacts {
    AnswerFacts {
        uploaded_at: at("2026-11-30T02:41:00Z"),
        bytes_seen: false,
        nonce_seen: Some(false),
        max_running_requests: None,
        max_model_len: None,
        kv_tokens: None,
    }
}

fn answer(document: Value, spec: ChallengeSpec, facts: AnswerFacts) -> Assessment {
    let context = AssessContext { challenge: Some((spec, facts)), ..AssessContext::default() };
    assess_value(document, &Claim::default(), &context).unwrap()
}

fn genuine() -> Value {
    value("v04_over_capacity.json")
}

#[test]
fn a_genuine_run_answers_with_cells_over_capacity() {
    let run = answer(genuine(), spec(), facts());
    assert_eq!(run.verdict, Verdict::Verified, "{:#?}", run.findings);
    assert!((60.0..180.0).contains(&run.wall_seconds));
}

#[test]
fn what_does_not_answer_is_rejected_with_its_own_code() {
    type Edit = fn(&mut ChallengeSpec, &mut AnswerFacts);
    let cases: [(Edit, &str); 12] = [
        (|s, _| s.contexts.push(5_003), "challenge_cell_missing"),
        (|s, _| s.concurrency_levels.push(3), "challenge_cell_missing"),
        (|s, _| s.duration_seconds = 2.0, "challenge_settings_differ"),
        (|s, _| s.max_tokens = 2_048, "challenge_settings_differ"),
        (|s, _| s.model = Some("other".to_owned()), "challenge_model_differs"),
        (|_, f| f.bytes_seen = true, "challenge_document_reused"),
        (|_, f| f.nonce_seen = Some(true), "challenge_run_reused"),
        (|s, f| f.uploaded_at = s.expires_at + TimeDelta::seconds(1), "challenge_expired"),
        (|s, f| f.uploaded_at = s.issued_at + TimeDelta::seconds(60), "challenge_time"),
        (|s, _| s.issued_at = at("2026-11-30T02:40:30Z"), "challenge_time"),
        (
            |s, f| {
                (s.issued_at, s.expires_at, f.uploaded_at) =
                    (at("2026-11-28T00:00:00Z"), at("2026-11-29T00:00:00Z"), at("2026-11-28T12:00:00Z"))
            },
            "challenge_timestamp",
        ),
        (
            |s, f| {
                (s.issued_at, s.expires_at, f.uploaded_at) =
                    (at("2026-12-02T00:00:00Z"), at("2026-12-03T00:00:00Z"), at("2026-12-02T12:00:00Z"))
            },
            "challenge_timestamp",
        ),
    ];
    for (edit, code) in cases {
        let (mut spec, mut facts) = (spec(), facts());
        edit(&mut spec, &mut facts);
        let run = answer(genuine(), spec, facts);
        assert!(has(&run.findings, code), "{code}: {:?}", codes(&run.findings));
        assert_eq!(run.verdict, Verdict::Rejected, "{code}");
    }
}

#[test]
fn the_tools_clock_may_be_in_any_zone() {
    for hours in [-13, -5, 9, 13] {
        let mut document = genuine();
        let saved = "2026-11-30T02:40:47".parse::<chrono::NaiveDateTime>().unwrap() + TimeDelta::hours(hours);
        document["metadata"]["timestamp"] = json!(saved.format("%Y-%m-%dT%H:%M:%S%.6f").to_string());
        // The log's clock is in the same zone as the time stamp.
        for line in document["event_log"].as_array_mut().unwrap() {
            let text = line.as_str().unwrap();
            let time = text[..8].parse::<chrono::NaiveTime>().unwrap() + TimeDelta::hours(hours);
            *line = json!(format!("{} {}", time.format("%H:%M:%S"), &text[9..]));
        }
        let run = answer(document, spec(), facts());
        assert_eq!(run.verdict, Verdict::Verified, "{hours}: {:#?}", run.findings);
    }
}

#[test]
fn levels_and_contexts_beyond_the_engines_limits_are_explained_by_the_engine_only() {
    let mut asked = spec();
    asked.concurrency_levels.push(64);
    let mut document = genuine();
    document["metadata"]["concurrency_levels"].as_array_mut().unwrap().push(json!(64));
    document["startup_diagnostics"]["args"]["concurrency"] = json!("1,2,4,8,32,64");
    // 64 × 1,024 is above the budget of 24,000: over capacity, as it should be.
    assert_eq!(answer(document.clone(), asked.clone(), facts()).verdict, Verdict::Verified);
    // SGLang drops whole levels above its slots and says so.
    document["metadata"]["engine"] = json!("sglang");
    document["metadata"]["max_total_tokens"] = json!(2_000_000);
    let lines = document["event_log"].as_array_mut().unwrap();
    lines.retain(|line| !line.as_str().unwrap().contains("KV cache budget"));
    lines.insert(5, json!("02:38:47 startup max running requests: 8; dropped C=32,64"));
    document["metadata"]["context_lengths"] = json!([0]);
    document["startup_diagnostics"]["args"]["contexts"] = json!("0");
    document["results"].as_array_mut().unwrap().retain(|row| row["context_tokens"] == 0);
    asked.contexts = vec![0];
    let dropped = |engine: Option<u32>| {
        let facts = AnswerFacts { max_running_requests: engine, ..facts() };
        answer(document.clone(), asked.clone(), facts)
    };
    assert!(!has(&dropped(Some(8)).findings, "challenge_cell_missing"));
    assert!(!has(&dropped(None).findings, "challenge_cell_missing"), "the document's own word, where the engine was not asked");
    assert!(has(&dropped(Some(100)).findings, "challenge_cell_missing"), "the engine has more slots than the log says");
}

#[test]
fn the_lightest_cell_is_never_over_capacity() {
    let mut document = genuine();
    document["metadata"]["max_total_tokens"] = json!(1_000);
    document["results"] = json!([]);
    document["summary_table"] = json!({});
    let run = answer(document, spec(), facts());
    assert!(has(&run.findings, "challenge_cell_missing"));
    let smaller = AnswerFacts { kv_tokens: Some(400_000), ..facts() };
    assert!(has(&answer(genuine(), spec(), smaller).findings, "challenge_capacity_differs"));
}

#[test]
fn an_old_document_cannot_answer() {
    let mut document = genuine();
    document["metadata"].as_object_mut().unwrap().remove("version");
    for row in document["results"].as_array_mut().unwrap() {
        row.as_object_mut()
            .unwrap()
            .retain(|key, _| ["concurrency", "context_tokens", "aggregate_tps", "wall_time"].contains(&key.as_str()));
    }
    assert!(has(&answer(document, spec(), facts()).findings, "challenge_uncheckable"));
}

#[test]
fn the_commands_are_exact_and_quoted() {
    let spec = draw(&request(Profile::Sandbox, 7));
    let target = CommandTarget { engine_url: "http://127.0.0.1:9000", server_url: "http://127.0.0.1:8080", challenge_id: "chl_1" };
    let (contexts, levels) = (&spec.contexts, &spec.concurrency_levels);
    assert_eq!(
        tool_command(&spec, &target),
        format!(
            "python3 llm_decode_bench.py --host http://127.0.0.1:9000 --model bench --contexts {},{},{} --concurrency {},{} --prefill-contexts 8192 \
             --duration 2 --max-tokens 2048 --display-mode plain --output chl_1.json",
            contexts[0], contexts[1], contexts[2], levels[0], levels[1]
        )
    );
    let expected = "rigmark measure --url http://127.0.0.1:9000 --model bench --challenge chl_1 --server http://127.0.0.1:8080 --upload";
    assert_eq!(measure_command(&spec, &target), expected);
    let hostile = ChallengeSpec { model: Some("a; rm -rf ~ 'x'\n".to_owned()), ..spec };
    assert!(tool_command(&hostile, &target).contains(r"--model 'a; rm -rf ~ '\''x'\'''"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_drawing_is_fair(
        seed in any::<u64>(),
        sandbox in any::<bool>(),
        len in proptest::option::of(2_048_u64..300_000),
        running in proptest::option::of(1_u32..300),
    ) {
        let profile = if sandbox { Profile::Sandbox } else { Profile::Standard };
        let request = DrawRequest { max_model_len: len, max_running_requests: running, ..request(profile, seed) };
        let spec = draw(&request);
        prop_assert_eq!(&spec, &draw(&request));
        prop_assert_eq!(spec.contexts[0], 0);
        prop_assert_eq!(spec.concurrency_levels[0], 1);
        prop_assert!(spec.contexts.iter().filter(|context| !is_usual_context(**context)).count() >= 2);
        prop_assert!(spec.contexts.windows(2).all(|pair| pair[0] < pair[1]) && spec.concurrency_levels.windows(2).all(|pair| pair[0] < pair[1]));
        let labels: std::collections::BTreeSet<_> = spec.contexts.iter().map(|c| rigmark::benchmarks::log::printed(*c)).collect();
        prop_assert_eq!(labels.len(), spec.contexts.len());
        prop_assert!(len.is_none_or(|len| spec.contexts.iter().all(|context| context + spec.max_tokens <= len)));
        prop_assert!(running.is_none_or(|max| spec.concurrency_levels.iter().all(|level| *level <= max)));
        if sandbox {
            prop_assert!(spec.contexts.len() * spec.concurrency_levels.len() <= 6 && spec.duration_seconds == 2.0);
        }
    }
}

#[test]
fn two_drawings_differ_and_reach_a_working_load() {
    let specs: Vec<_> = (0..200).map(|seed| draw(&request(Profile::Sandbox, seed))).collect();
    let different: std::collections::BTreeSet<_> = specs.iter().map(|spec| spec.contexts.clone()).collect();
    assert!(different.len() > 195);
    // A search for 16K and 8 users finds a cell of any sandbox answer.
    assert!(specs.iter().all(|spec| spec.contexts.iter().any(|c| *c >= 16_384) && spec.concurrency_levels.iter().any(|c| *c >= 8)));
    assert!(specs.iter().any(|spec| spec.concurrency_levels.iter().any(|level| !is_usual_concurrency(*level))));
}
