//! What a stream's bytes mean, and that a cell's figures are those of what was sent: instants here are made up, so nothing depends on how
//! busy the computer is.

use std::time::{Duration, Instant};

use rigmark::base::clock::monotonic;
use rigmark::measure::cell::{CellPlan, CellRecord, Readiness, ServerView};
use rigmark::measure::document::CellRow;
use rigmark::measure::inspect::EngineKind;
use rigmark::measure::record::StreamRecord;
use rigmark::measure::sse::Scanner;

/// A stream whose pieces come a millisecond apart.
fn read(pieces: &[&[u8]]) -> StreamRecord {
    let started = monotonic();
    let mut record = StreamRecord::new(started);
    let mut scanner = Scanner::default();
    for (at, piece) in (1..).zip(pieces) {
        record.take(&mut scanner, piece, started + Duration::from_millis(at));
    }
    record
}

fn chunk(delta: &str, more: &str) -> String {
    format!("data: {{\"id\":\"1\",\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":null}}]{more}}}\n\n")
}

fn word(more: &str) -> String {
    chunk(r#""content":"a""#, more)
}

const ROLE: &str = r#""role":"assistant","content":"""#;
const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";

/// (tokens, tokens reported, whether usage was counted, prompt tokens, whether it completed, the error) of a stream.
fn outcome(text: &str) -> (u64, Option<u64>, bool, Option<u64>, bool, Option<String>) {
    let lines: Vec<&[u8]> = text.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
    let record = read(&lines);
    (record.tokens(), record.reported_tokens, record.has_continuous_usage, record.prompt_tokens, record.completed.is_some(), record.error)
}

fn usage(tokens: u64) -> String {
    format!(",\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{tokens}}}")
}

#[test]
fn every_way_of_telling_tokens_is_counted() {
    let end = |tokens: u64| format!("data: {{\"choices\":[]{}}}\n\ndata: [DONE]\n\n", usage(tokens));
    let role = chunk(ROLE, "");
    let three = word("").repeat(3);
    let ok = |tokens, reported, continuous, prompt| (tokens, reported, continuous, prompt, true, None);
    // Usage with every chunk, the first being empty.
    let text = format!("{}{}{}{}data: [DONE]\n\n", chunk(ROLE, &usage(0)), word(&usage(1)), word(&usage(2)), word(&usage(3)));
    assert_eq!(outcome(&text), ok(3, Some(3), true, Some(7)));
    // Several tokens in a chunk.
    let text = format!("{role}{}{}{}", word(&usage(4)), word(&usage(8)), end(8));
    assert_eq!(outcome(&text), ok(8, Some(8), true, Some(7)));
    // Usage at the end only: in an event of its own, or with the finish, which has a choice.
    assert_eq!(outcome(&format!("{role}{three}{FINISH}{}", end(3))), ok(3, Some(3), false, Some(7)));
    let finish = FINISH.replace("}]}", &format!("}}]{}}}", usage(9)));
    assert_eq!(outcome(&format!("{role}{three}{finish}data: [DONE]\n\n")), ok(3, Some(9), false, Some(7)));
    // A usage of zeros until then.
    let zeros = word(&usage(0)).repeat(3);
    assert_eq!(outcome(&format!("{zeros}{finish}data: [DONE]\n\n")), ok(3, Some(9), false, Some(7)));
    // None at all.
    assert_eq!(outcome(&format!("{role}{three}{FINISH}data: [DONE]\n\n")), ok(3, None, false, None));
    // Reasoning counts, under each of its names; an unknown field with usage does as well.
    let thought = chunk(r#""reasoning_content":"a","content":null"#, "") + &chunk(r#""reasoning":"b""#, "");
    assert_eq!(outcome(&format!("{role}{thought}{three}{FINISH}data: [DONE]\n\n")), ok(5, None, false, None));
    let hidden = chunk(r#""thinking":"a""#, &usage(1)) + &chunk(r#""thinking":"b""#, &usage(2));
    assert_eq!(outcome(&format!("{role}{hidden}{}{}", word(&usage(3)), end(3))), ok(3, Some(3), true, Some(7)));
    // Comments, other fields, Windows line ends, no space after the colon.
    let text = format!(": keep-alive\r\n\r\n{}: ping\r\n\r\nevent: message\r\n", three.replace('\n', "\r\n").replace("data: ", "data:"));
    assert_eq!(outcome(&format!("{text}data: [DONE]\r\n\r\n")), ok(3, None, false, None));
    // An error of null in each chunk is none.
    assert_eq!(outcome(&format!("{}data: [DONE]\n\n", word(",\"error\":null").repeat(3))), ok(3, None, false, None));
}

#[test]
fn an_error_in_the_middle_is_one_in_every_spelling() {
    for error in [
        r#"data: {"error":{"message":"out of memory","code":500}}"#,
        r#"data: { "error" : "out of memory" }"#,
        r#"data: {"object":"error","message":"out of memory","code":40303}"#,
        r#"data: {"id":"1","error":{"message":"out of memory"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        r#"error: {"message":"out of memory"}"#,
    ] {
        let (tokens, _, _, _, is_complete, said) = outcome(&format!("{}{error}\n\n{}data: [DONE]\n\n", word(""), word("")));
        assert_eq!((tokens, is_complete), (1, false), "{error}");
        assert!(said.is_some_and(|said| said.contains("out of memory")), "{error}");
    }
}

#[test]
fn a_letter_cut_in_two_is_one_token_at_the_instant_of_its_end() {
    let line = chunk(r#""content":"日本""#, "");
    let cut = line.find('本').unwrap() + 1;
    let (head, tail) = line.as_bytes().split_at(cut);
    let record = read(&[head, tail, b"data: [DONE]\n\n"]);
    assert_eq!((record.tokens(), record.ttft()), (1, Some(Duration::from_millis(2))));
}

#[test]
fn an_endless_line_is_given_up() {
    let piece = vec![b'x'; 1 << 20];
    let record = read(&[&piece[..]; 6]);
    assert_eq!(record.error.as_deref(), Some("a line of the stream is too long"));
}

/// A cell whose streams get a token each `step` after a first at `first`, all told to the records as they come.
struct Schedule {
    streams: u32,
    first: Duration,
    step: Duration,
    /// Later than the one before.
    stagger: Duration,
    tokens: u32,
    has_usage: bool,
}

impl Schedule {
    fn sent(&self, stream: u32, number: u32) -> Duration {
        self.first + self.stagger * stream + self.step * number
    }

    fn record(&self, started: Instant, window: (Duration, Duration)) -> CellRecord {
        let streams = (0..self.streams).map(|stream| {
            let mut record = StreamRecord { stream: stream as usize, ..StreamRecord::new(started) };
            let mut scanner = Scanner::default();
            let role = chunk(ROLE, "");
            record.take(&mut scanner, role.as_bytes(), started + self.sent(stream, 0) / 2);
            for number in 0..self.tokens {
                let usage = if self.has_usage { usage(u64::from(number) + 1) } else { String::new() };
                let text = word(&usage);
                // The network cuts where it likes: a token is there when its line is.
                let (head, tail) = text.as_bytes().split_at((stream + number) as usize % (text.len() - 1));
                record.take(&mut scanner, head, started + self.sent(stream, number) - self.step / 8);
                record.take(&mut scanner, tail, started + self.sent(stream, number));
            }
            record
        });
        let (from, to) = (started + window.0, started + window.1);
        CellRecord {
            plan: CellPlan {
                context_tokens: 0,
                concurrency: self.streams,
                bodies: Vec::new(),
                hears: false,
                max_tokens: 100_000,
                window: window.1 - window.0,
                stable: Duration::from_secs(1),
                warmup_max: Duration::from_secs(60),
                kind: EngineKind::Proxy,
            },
            started,
            ready: Readiness { at: from, timed_out: false, reason: String::new() },
            window_start: from,
            window_end: to,
            joined: to,
            streams: streams.collect(),
            failed_workers: 0,
            server: ServerView::default(),
        }
    }
}

#[test]
fn the_figures_of_a_known_schedule_are_its_own() {
    for (streams, step_ms, has_usage) in [(1, 7, true), (1, 7, false), (128, 40, true), (128, 40, false)] {
        let (first, step) = (Duration::from_millis(250), Duration::from_millis(step_ms));
        let schedule = Schedule { streams, first, step, stagger: Duration::from_micros(31), tokens: 3_000, has_usage };
        let (from, to) = (Duration::from_millis(3_003), Duration::from_millis(13_003));
        let record = schedule.record(monotonic(), (from, to));
        let all = (0..streams).flat_map(|stream| (0..schedule.tokens).map(move |number| (stream, number)));
        let sent: Vec<Duration> = all.map(|(stream, number)| schedule.sent(stream, number)).filter(|at| *at > from && *at <= to).collect();
        let seconds = (*sent.iter().max().unwrap() - from).as_secs_f64();
        let (tokens, counted_seconds) = record.counted();
        assert_eq!(tokens, sent.len() as u64);
        assert!((counted_seconds - seconds).abs() < 1e-6, "{counted_seconds} instead of {seconds}");
        let row = CellRow::of(&record, 100);
        let number = |name: &str| row.json[name].as_f64().unwrap();
        let near = |name: &str, right: f64, share: f64| {
            assert!((number(name) / right - 1.0).abs() < share, "{streams} streams: {name} is {}, not {right}", number(name));
        };
        near("aggregate_tps", sent.len() as f64 / seconds, 1e-6);
        near("aggregate_tps", f64::from(streams) / step.as_secs_f64(), 0.01);
        near("per_request_avg_tps", 1.0 / step.as_secs_f64(), 0.01);
        near("output_tps_per_user_p50", 1.0 / step.as_secs_f64(), 1e-9);
        near("inter_token_latency_p99", step.as_secs_f64(), 1e-9);
        near("time_to_second_token_p50", step.as_secs_f64(), 1e-9);
        let middle = first + schedule.stagger * (streams - 1) / 2;
        near("ttft_p50", middle.as_secs_f64(), 1e-6);
        assert_eq!(number("request_count"), f64::from(streams));
        let source = if has_usage { "openai_continuous_usage" } else { "openai_stream_chunks_fallback" };
        assert_eq!(row.json["aggregate_source"], source);
    }
}

#[test]
fn chunks_of_several_tokens_are_told_from_tokens() {
    let started = monotonic();
    let text = format!("{}{}data: {{\"choices\":[]{}}}\n\ndata: [DONE]\n\n", word("").repeat(10), FINISH, usage(26));
    let mut stream = StreamRecord::new(started);
    stream.take(&mut Scanner::default(), text.as_bytes(), started + Duration::from_millis(5));
    let schedule = Schedule {
        streams: 1,
        first: Duration::ZERO,
        step: Duration::from_millis(1),
        stagger: Duration::ZERO,
        tokens: 1,
        has_usage: false,
    };
    let mut record = schedule.record(started, (Duration::ZERO, Duration::from_secs(1)));
    assert_eq!(record.reported_tokens_per_chunk(), None, "it has not completed");
    record.streams = vec![stream];
    assert_eq!((record.counted().0, record.reported_tokens_per_chunk()), (10, Some(2.6)));
}
