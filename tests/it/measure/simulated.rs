//! The stand-in engine: speed by its law, books like vLLM's.

use std::time::Duration;

use bytes::Bytes;
use rigmark::base::clock;
use rigmark::engines::{EngineAddress, EngineClient, Target};
use rigmark::measure::cell::{CellPlan, CellRecord, run_cell};
use rigmark::measure::inspect::{EngineKind, Gauges};
use rigmark::measure::record::StreamRecord;
use rigmark::measure::simulated::law::{self, SpeedLaw};
use rigmark::measure::simulated::{self, SimulatedConfig, SimulatedEngine};
use rigmark::measure::spot::{SpotMeter, SpotPlan};
use rigmark::measure::stream::{request_body, run_request};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{http::Http, wait_for};

pub fn target(engine: &SimulatedEngine) -> Target {
    Target { address: EngineAddress::parse(engine.url()).unwrap(), api_key: None, allow_private: true }
}

fn start(config: SimulatedConfig) -> (SimulatedEngine, EngineClient, Target) {
    let engine = simulated::start(config, "127.0.0.1:0").unwrap();
    let target = target(&engine);
    (engine, EngineClient::new().unwrap(), target)
}

async fn ask(client: &EngineClient, target: &Target, prompt: &str, max_tokens: u64) -> StreamRecord {
    let record = run_request(client, target, request_body("m", prompt, max_tokens), &CancellationToken::new(), |_| ()).await;
    assert_eq!(record.error, None);
    record
}

async fn cell(client: &EngineClient, target: &Target, concurrency: u32, window_ms: u64) -> CellRecord {
    let plan = CellPlan {
        context_tokens: 0,
        concurrency,
        bodies: vec![request_body("m", "count the ships", 100_000)],
        hears: false,
        max_tokens: 100_000,
        window: Duration::from_millis(window_ms),
        stable: Duration::from_millis(100),
        warmup_max: Duration::from_secs(5),
        kind: EngineKind::Vllm,
    };
    run_cell(client, target, plan, |_| ()).await
}

/// The published matrix of the RTX 3090, valid cells off its edges: (context, concurrency, total tokens/s).
const REFERENCE: [(u64, u32, f64); 10] = [
    (0, 1, 145.0),
    (0, 2, 257.7),
    (0, 4, 422.8),
    (0, 8, 667.2),
    (0, 16, 993.5),
    (16_384, 1, 131.1),
    (16_384, 16, 918.9),
    (32_768, 4, 350.7),
    (65_536, 1, 102.5),
    (131_072, 1, 79.3),
];

#[test]
fn the_law_gives_the_reference_matrix_and_scales_with_bandwidth() {
    let (reference, kv_tokens) = law::of_hardware("rtx-3090").unwrap();
    assert_eq!(kv_tokens, law::REFERENCE_KV_TOKENS);
    for (context, concurrency, total) in REFERENCE {
        let step = reference.decode_step(concurrency, context as f64 + 1_000.0).as_secs_f64();
        let given = f64::from(concurrency) / step;
        assert!((given / total - 1.0).abs() < 0.03, "({context}, {concurrency}): {given} for {total}");
    }
    for (context, seconds) in [(8_414, 1.03), (16_640, 2.416), (131_837, 61.49)] {
        let read = reference.read(0, context).as_secs_f64();
        assert!((read / seconds - 1.0).abs() < 0.02, "{context}: {read} for {seconds}");
    }
    let (faster, _) = law::of_hardware("rtx-5090").unwrap();
    assert!(faster.decode_step(1, 0.0) < reference.decode_step(1, 0.0).mul_f64(0.75));
    assert!(law::of_hardware("abacus").is_err());
}

#[test]
fn a_law_by_wished_speeds_has_those_speeds() {
    let law = SpeedLaw::at_speed(50.0, 1_000.0).unwrap();
    assert!((law.decode_step(1, 0.0).as_secs_f64() * 50.0 - 1.0).abs() < 1e-6);
    assert!((law.read(0, 100).as_secs_f64() * 10.0 - 1.0).abs() < 0.01);
    for from in [0, 1_000, 100_000] {
        let tokens = law.readable(from, Duration::from_millis(100));
        let seconds = law.read(from, from + tokens).as_secs_f64();
        assert!((0.08..=0.101).contains(&seconds), "{from}: {tokens} tokens in {seconds}");
    }
    assert!(SpeedLaw::at_speed(0.0, 1.0).is_err() && SpeedLaw::at_speed(f64::NAN, 1.0).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_stream_and_many_run_at_the_laws_rate_in_lockstep() {
    let config = SimulatedConfig::at_speed("m", 200.0, 100_000.0).unwrap();
    let law = config.law;
    let (_engine, client, target) = start(config);
    for concurrency in [1, 12] {
        let record = cell(&client, &target, concurrency, 700).await;
        let expected = f64::from(concurrency) / law.decode_step(concurrency, 80.0).as_secs_f64();
        let total = record.total_tokens_per_second();
        assert!((total / expected - 1.0).abs() < 0.04, "C={concurrency}: {total} instead of {expected}");
        let counts: Vec<u64> = record.streams.iter().map(|s| s.tokens_within(record.window_start, record.window_end).0).collect();
        assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 2, "not in lockstep: {counts:?}");
        let served = record.server.output_tokens as f64 / record.counted().0 as f64;
        assert!((served - 1.0).abs() < 0.05, "the engine counts {served} of the client's tokens");
    }
}

#[tokio::test]
async fn usage_counts_exactly_what_is_sent() {
    let (engine, _, _) = start(SimulatedConfig::at_speed("m", 5_000.0, 1e6).unwrap());
    let http = Http::new(engine.url());
    for (path, chat) in [("/v1/chat/completions", true), ("/v1/completions", false)] {
        for max_tokens in [1, 2, 37] {
            let mut body = json!({"model": "m", "max_tokens": max_tokens, "ignore_eos": true});
            if chat {
                body["messages"] =
                    json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}]);
            } else {
                body["prompt"] = json!("hello");
            }
            let whole = http.post(path).json(&body).expect(200).await;
            let text = if chat { &whole["choices"][0]["message"]["content"] } else { &whole["choices"][0]["text"] };
            assert_eq!(text.as_str().unwrap().split(' ').count(), max_tokens);
            assert_eq!(whole["choices"][0]["finish_reason"], "length");
            assert_eq!(whole["usage"]["completion_tokens"], max_tokens);
            // Chat: "system:Be brief." is 4 tokens, "hello" 2, 4 for each message, 3 for the head.
            assert_eq!(whole["usage"]["prompt_tokens"], if chat { 17 } else { 2 });

            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true, "continuous_usage_stats": true});
            let streamed = http.post(path).json(&body).answer().await.body;
            let events: Vec<&str> = streamed.split("\n\n").filter_map(|e| e.strip_prefix("data: ")).collect();
            assert_eq!(*events.last().unwrap(), "[DONE]");
            let chunks: Vec<Value> = events[..events.len() - 1].iter().map(|e| serde_json::from_str(e).unwrap()).collect();
            let texts: Vec<&str> = chunks
                .iter()
                .filter_map(|c| if chat { c["choices"][0]["delta"]["content"].as_str() } else { c["choices"][0]["text"].as_str() })
                .filter(|t| !t.is_empty())
                .collect();
            assert_eq!(texts.len(), max_tokens);
            assert_eq!(texts.concat(), text.as_str().unwrap(), "the same prompt gives the same answer");
            let last = chunks.last().unwrap();
            assert_eq!((last["choices"].as_array().unwrap().len(), &last["usage"]["completion_tokens"]), (0, &json!(max_tokens)));
            let counts: Vec<u64> = chunks.iter().map(|c| c["usage"]["completion_tokens"].as_u64().unwrap()).collect();
            assert!(counts.windows(2).all(|pair| pair[1] - pair[0] <= 1), "{counts:?}");
        }
    }
}

#[tokio::test]
async fn answers_end_by_themselves_and_vary() {
    let (engine, _, _) = start(SimulatedConfig::at_speed("m", 20_000.0, 1e6).unwrap());
    let http = Http::new(engine.url());
    let mut answers = Vec::new();
    for prompt in ["one", "two", "three"] {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": prompt}]});
        let whole = http.post("/v1/chat/completions").json(&body).expect(200).await;
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
        assert!((32..512).contains(&whole["usage"]["completion_tokens"].as_u64().unwrap()));
        let text = whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        let words: Vec<&str> = text.split(' ').collect();
        assert!(words.windows(4).all(|w| w.iter().any(|word| *word != w[0])), "four equal tokens in a row: {text}");
        answers.push(text);
    }
    answers.dedup();
    assert_eq!(answers.len(), 3);
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_as_vllm_does() {
    let (engine, _, _) = start(SimulatedConfig::at_speed("m", 5_000.0, 1e6).unwrap().with_max_model_len(1_000));
    let http = Http::new(engine.url());
    let chat = |change: &str, value: Value| {
        let mut body = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]});
        body[change] = value;
        http.post("/v1/chat/completions").json(&body)
    };
    let long = json!([{"role": "user", "content": "x".repeat(4_000)}]);
    for (request, status) in [
        (chat("model", json!("other")), 404),
        (chat("messages", json!([])), 400),
        (chat("messages", long), 400),
        (chat("max_tokens", json!(1_000)), 400),
        (chat("max_tokens", json!(0)), 400),
        (chat("n", json!(2)), 400),
        (http.post("/v1/completions").json(&json!({"model": "m"})), 400),
        (http.post("/v1/chat/completions").body("{"), 400),
    ] {
        let error = request.expect(status).await;
        assert!(error["error"]["message"].is_string() && error["error"]["code"] == status, "{error}");
    }
}

#[tokio::test]
async fn requests_beyond_max_running_wait_and_the_gauges_say_so() {
    let (engine, client, target) = start(SimulatedConfig::at_speed("m", 100.0, 1e6).unwrap().with_max_running(2));
    let stop = CancellationToken::new();
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let (client, target, stop) = (client.clone(), target.clone(), stop.clone());
        streams.spawn(async move { run_request(&client, &target, request_body("m", "hello", 10_000), &stop, |_| ()).await });
    }
    wait_for("two running, three waiting", Duration::from_secs(2), async || engine.load() == (2, 3)).await;
    let metrics = Http::new(engine.url()).get("/metrics").answer().await.body;
    let gauges = Gauges::parse(EngineKind::Vllm, &metrics).unwrap();
    assert_eq!((gauges.running, gauges.waiting), (2.0, 3.0));
    assert!(gauges.kv_usage > 0.0 && metrics.contains("num_gpu_blocks=\"38912\""));
    stop.cancel();
    wait_for("all gone", Duration::from_secs(1), async || engine.load() == (0, 0)).await;
    let records = streams.join_all().await;
    assert_eq!(records.iter().filter(|record| record.marks.is_empty()).count(), 3);
}

#[tokio::test]
async fn requests_beyond_the_kv_cache_wait_and_are_preempted_when_it_fills() {
    // Two prompts of 260 tokens fit 640 tokens, three do not; two answers of 200 tokens do not either.
    let (engine, client, target) = start(SimulatedConfig::at_speed("m", 2_000.0, 1e6).unwrap().with_kv_tokens(640));
    let mut streams = tokio::task::JoinSet::new();
    for word in ["a", "b", "c"] {
        let (client, target) = (client.clone(), target.clone());
        streams.spawn(async move { ask(&client, &target, &word.repeat(1_010), 200).await });
    }
    wait_for("two running, one waiting", Duration::from_secs(2), async || engine.load() == (2, 1)).await;
    for record in streams.join_all().await {
        assert_eq!((record.tokens(), record.prompt_tokens), (200, Some(260)));
        assert!(record.completed.is_some());
    }
    let metrics = Http::new(engine.url()).get("/metrics").answer().await.body;
    let preemptions = metrics.lines().find_map(|l| l.strip_prefix("vllm:num_preemptions_total{engine=\"0\",model_name=\"m\"} ")).unwrap();
    assert!(preemptions.parse::<f64>().unwrap() >= 1.0);
}

#[tokio::test]
async fn a_known_prefix_is_not_read_again() {
    let (_engine, client, target) = start(SimulatedConfig::at_speed("m", 1_000.0, 10_000.0).unwrap());
    let prompt = (0..1_600).map(|n| format!("{n:04}")).collect::<String>();
    let cold = ask(&client, &target, &prompt, 1).await.ttft().unwrap();
    let warm = ask(&client, &target, &format!("{prompt} and more"), 1).await.ttft().unwrap();
    let other = ask(&client, &target, &format!("x{prompt}"), 1).await.ttft().unwrap();
    assert!(cold > Duration::from_millis(155) && other > Duration::from_millis(155), "{cold:?} {other:?}");
    assert!(warm < cold / 3, "{warm:?} after {cold:?}");
}

#[tokio::test]
async fn several_engines_live_side_by_side_and_one_can_be_slowed_or_stopped() {
    let (first, client, first_target) = start(SimulatedConfig::at_speed("m", 400.0, 1e6).unwrap());
    let (second, _, second_target) = start(SimulatedConfig::at_speed("m", 400.0, 1e6).unwrap());
    second.set_speed_factor(0.25);
    let time = async |target: &Target| {
        let started = clock::monotonic();
        ask(&client, target, "hello", 40).await;
        started.elapsed().as_secs_f64()
    };
    let (fast, slow) = (time(&first_target).await, time(&second_target).await);
    assert!(slow / fast > 3.0, "{slow} against {fast}");
    let body = Bytes::from(
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 100_000, "stream": true, "ignore_eos": true})
            .to_string(),
    );
    let running = {
        let (client, target) = (client.clone(), first_target.clone());
        tokio::spawn(async move { run_request(&client, &target, body, &CancellationToken::new(), |_| ()).await })
    };
    wait_for("the stream", Duration::from_secs(1), async || first.load() == (1, 0)).await;
    first.stop().await;
    assert!(running.await.unwrap().error.is_some(), "the answer breaks off");
    ask(&client, &second_target, "hello", 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spot_measurement_agrees_with_the_law_and_sees_a_slowed_engine() {
    let config = SimulatedConfig::at_speed("m", 250.0, 20_000.0).unwrap();
    let law = config.law;
    let (engine, client, target) = start(config);
    let meter = SpotMeter::start(&client, &target, None, 3_000).await.unwrap();
    let plan = SpotPlan { context_tokens: 3_000, concurrency: 3, window: Duration::from_millis(600), max_tokens: 4_096 };
    let spot = meter.measure(&plan).await.unwrap();
    let (prefill, speed) = (spot.prefill.unwrap(), spot.cell.speed());
    let read = law.read(0, prefill.prompt_tokens).as_secs_f64();
    assert!((prefill.ttft_seconds / read - 1.0).abs() < 0.1, "{} instead of {read}", prefill.ttft_seconds);
    let total = 3.0 / law.decode_step(3, 3_150.0).as_secs_f64();
    assert!((speed.total_tokens_per_second / total - 1.0).abs() < 0.05, "{speed:?} instead of {total}");
    assert_eq!(speed.text_chunks_share, 1.0);
    engine.set_speed_factor(0.5);
    let slowed = meter.measure(&plan).await.unwrap().cell.speed();
    let share = slowed.total_tokens_per_second / speed.total_tokens_per_second;
    assert!((share - 0.5).abs() < 0.03, "{share}");
}
