//! The pure parts: questions and answers, the drawing of cells, the comparison.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rigmark::benchmarks::matrix::Matrix;
use rigmark::benchmarks::model::RunDetail;
use rigmark::benchmarks::remeasure::{Expected, Limits, Measured, Quantity, Reference, Status, Tolerances, compare, draw, judge};
use rigmark::benchmarks::staleness::{BaseLine, Stated, by_document, by_engine, by_statement};
use rigmark::measure::inspect::Identity;
use rigmark::measure::prompt::Prompts;
use rigmark::measure::question::{Answer, Needles, read_and_answer};
use rigmark::measure::spot::Answers;
use serde_json::json;

use super::{config, detail};

fn matrix() -> Matrix {
    serde_json::from_value::<RunDetail>(detail(&config().law)).unwrap().matrix
}

#[test]
fn only_who_read_all_of_the_context_answers_right() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let needles = Needles::draw(&mut random);
        let padding = Prompts::new("test".to_owned()).padding("purpose", if seed % 3 == 0 { 0 } else { 9_000 });
        let context = needles.context(&padding);
        let question = needles.ask(&mut random);
        let prompt = format!("{context}\n{}", question.text);
        let answer = read_and_answer(&prompt).unwrap();
        let judge = |said: &str| question.judge(said, 100, false);
        assert_eq!(judge(&answer), Answer::Right, "{answer}");
        assert_eq!(judge(&format!("The codes are: {}. It was in 1987 that", answer.replace(' ', ", "))), Answer::Right);
        assert_eq!(judge(&prompt), Answer::Wrong, "an echo");
        assert_eq!(judge("Once upon a time there was a keeper"), Answer::Wrong, "ready answers");
        let codes: Vec<&str> = answer.split(' ').collect();
        assert_eq!(judge(&format!("{} {} {}", codes[1], codes[0], codes[2])), Answer::Wrong, "another order");
        // Whichever third of the context is missing.
        let lines: Vec<&str> = context.lines().collect();
        for third in 0..3 {
            let (from, to) = (lines.len() * third / 3, lines.len() * (third + 1) / 3);
            let rest: Vec<&str> = lines[..from].iter().chain(&lines[to..]).copied().collect();
            let without = read_and_answer(&format!("{}\n{}", rest.join("\n"), question.text)).unwrap();
            assert_eq!(judge(&without), Answer::Wrong, "without third {third}: {without}");
        }
        assert_eq!(question.judge(codes[0], 10, false), Answer::Unfinished);
        assert_eq!(question.judge("Let me think", 100, true), Answer::Unfinished);
        assert_eq!(question.judge("Let me think", 400, true), Answer::Wrong);
    }
}

#[test]
fn cells_are_drawn_between_the_measured_ones_and_off_their_grid() {
    let reference = Reference::of(&matrix());
    let limits = Limits { max_model_len: Some(16_384), kv_tokens: 100_000, max_running: None, max_tokens: 2_048 };
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let plan = draw(&reference, &limits, &mut StdRng::seed_from_u64(seed));
        assert!((3..=5).contains(&plan.len()), "{plan:?}");
        assert_eq!(plan[0].concurrency, 1);
        assert!(plan[1..].iter().all(|cell| (2..=6).contains(&cell.concurrency)), "{plan:?}");
        for cell in &plan {
            assert!(cell.context_tokens > 511 && cell.context_tokens < 4_096 && cell.context_tokens != 1_024, "{cell:?}");
            assert!(reference.expected(cell.context_tokens, cell.concurrency).is_some());
            seen.insert((cell.context_tokens, cell.concurrency));
        }
    }
    assert!(seen.len() > 500, "{} different cells", seen.len());
    // What the engine of today cannot run is not drawn.
    let small = Limits { max_model_len: Some(3_000), max_running: Some(2), ..limits };
    for seed in 0..50 {
        let plan = draw(&reference, &small, &mut StdRng::seed_from_u64(seed));
        assert!(plan.iter().all(|cell| cell.context_tokens <= 952 && cell.concurrency <= 2), "{plan:?}");
    }
    assert_eq!(draw(&reference, &Limits { max_model_len: Some(100), ..limits }, &mut StdRng::seed_from_u64(1)), []);
    assert_eq!(draw(&Reference::default(), &limits, &mut StdRng::seed_from_u64(1)), []);
}

#[test]
fn what_the_matrix_says_lies_near_the_law_between_its_cells() {
    let (reference, law) = (Reference::of(&matrix()), config().law);
    for (context, concurrency) in [(700, 1), (2_500, 1), (3_000, 4), (1_500, 3), (4_096, 5), (0, 1)] {
        let expected = reference.expected(context, concurrency).unwrap();
        let right = f64::from(concurrency) / law.decode_step(concurrency, context as f64 + 300.0).as_secs_f64();
        let share = expected.total_tokens_per_second / right;
        assert!((share - 1.0).abs() < 0.06, "{context} x {concurrency}: {share}");
    }
    let ttft = reference.ttft(2_500).unwrap() / law.read(0, 2_500).as_secs_f64();
    assert!((ttft - 1.0).abs() < 0.05, "{ttft}");
    assert_eq!((reference.ttft(0), reference.ttft(5_000), reference.expected(5_000, 1)), (None, None, None));
    assert_eq!(reference.expected(1_024, 7), None);
    let is_bound = |context| reference.expected(context, 1).unwrap().ttft_is_bound;
    assert_eq!((is_bound(600), is_bound(1_024), is_bound(2_500)), (true, false, false));
}

const TOLERANCES: Tolerances = Tolerances { time_between_tokens: 0.15, total: 0.20, cold_ttft: 0.25, right_answers: 0.6 };
const EXPECTED: Expected = Expected { total_tokens_per_second: 100.0, ttft_seconds: Some(1.0), ttft_is_bound: false };

fn measured(concurrency: u32) -> Measured {
    Measured {
        context_tokens: 1_000,
        concurrency,
        total_tokens_per_second: 100.0,
        inter_token_latency_seconds: 0.010,
        ttft_seconds: Some(1.1),
        latency_seconds: 0.1,
        answers: Answers { right: concurrency, wrong: 0, unfinished: 0 },
        text_bytes_per_token: Some(4.5),
        chars_per_prompt_token: 5.5,
        inconclusive: None,
    }
}

#[test]
fn slower_counts_and_faster_does_not_until_it_cannot_be() {
    type Change = fn(&mut Measured);
    let cases: [(u32, Change, bool, Option<Quantity>); 13] = [
        (1, |_| (), true, None),
        (1, |m| m.inter_token_latency_seconds = 0.0114, true, None),
        (1, |m| m.inter_token_latency_seconds = 0.0116, false, None),
        (1, |m| m.inter_token_latency_seconds = 0.0084, true, Some(Quantity::TimeBetweenTokens)),
        (1, |m| m.inter_token_latency_seconds = 0.0051, true, Some(Quantity::TimeBetweenTokens)),
        (1, |m| m.inter_token_latency_seconds = 0.0049, false, Some(Quantity::TimeBetweenTokens)),
        (4, |m| m.total_tokens_per_second = 81.0, true, None),
        (4, |m| m.total_tokens_per_second = 79.0, false, None),
        (4, |m| m.total_tokens_per_second = 199.0, true, Some(Quantity::TotalTokensPerSecond)),
        (4, |m| m.total_tokens_per_second = 201.0, false, Some(Quantity::TotalTokensPerSecond)),
        (4, |m| m.ttft_seconds = Some(1.37), true, None),
        (4, |m| m.ttft_seconds = Some(1.39), false, None),
        (4, |m| m.ttft_seconds = Some(0.15), true, Some(Quantity::ColdTtft)),
    ];
    for (number, (concurrency, change, within, faster)) in cases.into_iter().enumerate() {
        let mut measured = measured(concurrency);
        change(&mut measured);
        let sample = compare(&measured, &EXPECTED, &TOLERANCES);
        let noted = sample.figures.iter().find(|figure| figure.is_faster).map(|figure| figure.quantity);
        assert_eq!((sample.within, noted), (within, faster), "case {number}: {sample:?}");
    }
    // The time of a longer prompt says nothing about being fast.
    let bound = Expected { ttft_is_bound: true, ..EXPECTED };
    let sample = compare(&Measured { ttft_seconds: Some(0.15), ..measured(4) }, &bound, &TOLERANCES);
    assert!(sample.within && sample.figures.iter().all(|figure| !figure.is_faster), "{sample:?}");
    // Twice the tokens for the same text.
    let sample = compare(&Measured { text_bytes_per_token: Some(2.25), ..measured(1) }, &EXPECTED, &TOLERANCES);
    assert!(sample.is_inflated && !sample.within);
}

#[test]
fn what_could_not_be_measured_decides_nothing() {
    let good = compare(&measured(1), &EXPECTED, &TOLERANCES);
    let many = compare(&measured(4), &EXPECTED, &TOLERANCES);
    let lost = compare(&Measured { inconclusive: Some("It was queued.".to_owned()), ..measured(4) }, &EXPECTED, &TOLERANCES);
    let slow = compare(&Measured { total_tokens_per_second: 50.0, ..measured(4) }, &EXPECTED, &TOLERANCES);
    let outcome = |samples: &[_]| judge(samples, &TOLERANCES).outcome;
    assert_eq!(outcome(&[good.clone(), many.clone(), lost.clone()]), Status::Agreed);
    assert_eq!(outcome(&[good.clone(), lost.clone(), lost.clone()]), Status::Failed);
    assert_eq!(outcome(&[many.clone(), many.clone()]), Status::Failed, "no single stream");
    assert_eq!(outcome(&[good.clone(), slow, lost.clone()]), Status::Disagreed);
    assert_eq!(outcome(&[]), Status::Failed);
    // Six in ten must be right; who was cut off is not counted.
    let answering = |right, wrong, unfinished| {
        let mut sample = good.clone();
        sample.answers = Answers { right, wrong, unfinished };
        outcome(&[sample])
    };
    assert_eq!(answering(6, 4, 90), Status::Agreed);
    assert_eq!(answering(5, 4, 0), Status::Disagreed);
    assert_eq!(answering(0, 0, 9), Status::Failed);
}

fn run_detail(change: impl FnOnce(&mut serde_json::Value)) -> RunDetail {
    let mut value = detail(&config().law);
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

#[test]
fn only_what_both_sides_say_can_differ() {
    let old = run_detail(|_| ());
    let changed = |old: &RunDetail, new: &RunDetail| by_document(old, &BaseLine::default(), None, new);
    assert_eq!(changed(&old, &old), Vec::<String>::new());
    assert_eq!(changed(&old, &run_detail(|d| d["hardware_seen"] = json!({"gpus": []}))), Vec::<String>::new());
    let new = run_detail(|d| {
        d["hardware_seen"]["driver"] = json!("580.1");
        d["hardware_seen"]["gpus"][0]["power_limit_w"] = json!(250.0);
        let gpu = d["hardware_seen"]["gpus"][0].clone();
        d["hardware_seen"]["gpus"].as_array_mut().unwrap().push(gpu);
    });
    let expected = [
        "the driver changed from 570.10 to 580.1",
        "the power limit changed from 350 W to 250 W",
        "the set of GPUs changed from NVIDIA GeForce RTX 3090 to NVIDIA GeForce RTX 3090 + NVIDIA GeForce RTX 3090",
    ];
    assert_eq!(changed(&old, &new), expected);
    let revision = |text: &str| run_detail(|d| d["claim"]["model"] = json!({"hf_id": "a/b", "revision": text}));
    assert_eq!(changed(&revision("abc"), &revision("def")), ["the model's revision changed from abc to def"]);
    let stated = |driver: Option<&str>, power_limit_w| Stated { driver: driver.map(str::to_owned), power_limit_w, ..Stated::default() };
    assert_eq!(by_statement(&old, &BaseLine::default(), &stated(None, Some(349.0))), Vec::<String>::new());
    assert_eq!(by_statement(&old, &BaseLine::default(), &stated(Some("580.1"), None)), ["the driver changed from 570.10 to 580.1"]);
}

#[test]
fn a_version_that_is_cut_short_is_the_same_version() {
    let versioned = |text: &str| run_detail(|d| d["run"]["engine_version"] = json!(text));
    let engine = |version: &str| Identity { version: version.to_owned(), models: vec!["org/model".to_owned()] };
    for (old, now, is_same) in [
        ("0.11", "0.11.0", true),
        ("v0.11.0", "0.11.0", true),
        ("0.11.0", "0.11.0+cu128", true),
        ("0.11.0", "", true),
        ("0.11.0", "0.11.1", false),
        ("0.1", "0.11", false),
    ] {
        assert_eq!(by_engine(&versioned(old), None, &engine(now)).is_empty(), is_same, "{old} {now}");
    }
    let silent = run_detail(|_| ());
    assert_eq!(by_engine(&silent, None, &engine("1.0")), Vec::<String>::new());
    assert_eq!(by_engine(&silent, Some("1.0"), &engine("2.0")), ["the engine's version changed from 1.0 to 2.0"]);
    let other = Identity { version: String::new(), models: vec!["x".to_owned()] };
    assert_eq!(by_engine(&silent, None, &other), ["the served model changed from org/model to x"]);
}
