//! A whole run against the simulated engine: the document keeps the exact relations because it was measured.

use std::sync::Mutex;
use std::time::Duration;

use rigmark::engines::EngineClient;
use rigmark::measure::matrix::{MatrixPlan, Progress, run_matrix};
use rigmark::measure::simulated::{self, SimulatedConfig};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::simulated::target;

pub fn plan() -> MatrixPlan {
    MatrixPlan {
        contexts: vec![0, 512],
        concurrency_levels: vec![1, 3],
        prefill_contexts: vec![1_024],
        duration: Duration::from_millis(500),
        max_tokens: 40,
    }
}

fn number(cell: &Value, name: &str) -> f64 {
    cell[name].as_f64().unwrap_or_else(|| panic!("{name} is {}", cell[name]))
}

fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        return 0.0;
    }
    let place = (values.len() - 1) as f64 * percent / 100.0;
    let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// I1 to I5, I8 and I9 of a measured cell.
pub fn check_cell(document: &Value, cell: &Value) {
    let (seconds, tokens, total) =
        (number(cell, "measurement_seconds"), number(cell, "client_output_tokens"), number(cell, "aggregate_tps"));
    let concurrency = number(cell, "concurrency");
    assert!((total * seconds / tokens - 1.0).abs() < 1e-12, "I1: {total} x {seconds} is not {tokens}");
    assert_eq!(number(cell, "per_request_avg_tps"), total / concurrency, "I2");
    let table = &document["summary_table"][cell["context_tokens"].to_string()][cell["concurrency"].to_string()];
    assert_eq!(table.as_f64(), Some(total), "I2: the table");
    let samples = cell["request_samples"].as_array().unwrap();
    for (name, member) in [
        ("ttft", "ttft"),
        ("time_to_second_token", "time_to_second_token"),
        ("request_latency", "latency"),
        ("inter_token_latency", "inter_token_latency_avg"),
        ("chunk_inter_token_latency", "chunk_inter_token_latency_avg"),
        ("output_tps_per_user", "output_tps_per_user"),
        ("e2e_output_tps_per_user", "e2e_output_tps_per_user"),
    ] {
        let mut values: Vec<f64> = samples.iter().map(|s| number(s, member)).filter(|v| *v > 0.0).collect();
        for percent in [50.0, 90.0, 99.0] {
            let (given, right) = (number(cell, &format!("{name}_p{percent}")), percentile(&mut values, percent));
            assert!((given - right).abs() <= 1e-12 * right, "I3: {name} p{percent} is {given}, not {right}");
        }
    }
    for sample in samples {
        let itl = number(sample, "inter_token_latency_avg");
        assert!(itl == 0.0 || number(sample, "output_tps_per_user") == 1.0 / itl, "I4");
        let (latency, tokens) = (number(sample, "latency"), number(sample, "output_tokens"));
        let parts = number(sample, "ttft") + itl * (tokens - 1.0);
        assert!(latency == 0.0 || (parts / latency - 1.0).abs() < 1e-9, "a completed request's latency is not the sum of its parts");
    }
    assert_eq!(cell["request_count"], samples.len(), "I4");
    assert_eq!(cell["completed_request_count"], samples.iter().filter(|s| s["completed"] == true).count(), "I4");
    assert_eq!(cell["effective_concurrency"], cell["avg_running_reqs"], "I5");
    assert!(number(cell, "avg_running_reqs") <= number(cell, "max_running_reqs") && number(cell, "max_running_reqs") <= concurrency, "I5");
    let wall = number(cell, "measurement_wall_seconds");
    assert!((0.5..0.6).contains(&wall) && seconds <= wall, "I8: {seconds} of {wall}");
    let rest = number(cell, "wall_time") - number(cell, "warmup_duration") - wall;
    assert!((-0.002..1.0).contains(&rest), "I9: {rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_keeps_the_exact_relations() {
    // Room for 3 x 40 tokens and for 552, not for 3 x 552; answers of 40 tokens end and begin again all the time.
    let config = SimulatedConfig::at_speed("org/model", 300.0, 20_000.0).unwrap().with_kv_tokens(1_600);
    let engine = simulated::start(config, "127.0.0.1:0").unwrap();
    let lines = Mutex::new(Vec::new());
    let see = |progress: Progress<'_>| {
        if let Progress::Line(line) = progress {
            lines.lock().unwrap().push(line.to_owned());
        }
    };
    let outcome =
        run_matrix(&EngineClient::new().unwrap(), &target(&engine), None, &plan(), &see, &CancellationToken::new()).await.unwrap();
    assert!(outcome.is_complete);
    let document = outcome.document;
    let metadata = &document["metadata"];
    assert_eq!((metadata["engine"].as_str(), metadata["model"].as_str()), (Some("vllm"), Some("org/model")));
    assert!(metadata["client"].as_str().unwrap().starts_with("rigmark-measure "));
    assert_eq!(metadata["max_total_tokens"], 1_600);
    let cells = document["results"].as_array().unwrap();
    let places: Vec<(u64, u64)> =
        cells.iter().map(|c| (c["context_tokens"].as_u64().unwrap(), c["concurrency"].as_u64().unwrap())).collect();
    assert_eq!(places, [(0, 1), (512, 1), (0, 3)], "(512, 3) is over capacity");
    for cell in cells {
        assert_eq!((cell["aggregate_source"].as_str(), cell["failure_reason"].as_str()), (Some("openai_continuous_usage"), Some("")));
        check_cell(&document, cell);
    }
    for (context, method) in [("512", "integrated_scout"), ("1024", "scout_only")] {
        let row = &document["prefill"][context];
        assert_eq!(row["method"], method);
        let (speed, ttft, tokens) = (number(row, "tok_per_sec"), number(row, "ttft_seconds"), number(row, "prompt_tokens"));
        assert_eq!(speed, speed.round());
        assert!((speed * ttft - tokens).abs() <= speed * 0.0005 + 0.5 * (ttft + 0.0005) + 1e-9, "I12: {speed} x {ttft} is not {tokens}");
        assert!((tokens - context.parse::<f64>().unwrap() - 95.0).abs() < 15.0, "I13: {tokens} tokens for {context}");
        let validation = &row["server_validation"];
        assert_eq!(
            (&validation["cached_tokens"], &validation["request_prompt_tokens"]),
            (&0.into(), &row["prompt_tokens"]),
            "the prompt was not cold"
        );
        // Slower is a busy computer; faster than the engine's law is a prompt that it had.
        assert!(speed < 20_500.0, "{speed} tok/s: the prompt was not cold");
    }
    let log: Vec<String> = document["event_log"].as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_owned()).collect();
    assert_eq!(log, *lines.lock().unwrap());
    for cell in cells {
        let line = format!("cell done C={} ctx={} {:.1} tok/s", cell["concurrency"], cell["context_tokens"], number(cell, "aggregate_tps"));
        assert!(log.iter().any(|l| l.ends_with(&line)), "I6: no {line:?} in {log:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_run_keeps_what_was_measured() {
    let engine = simulated::start(SimulatedConfig::at_speed("m", 300.0, 50_000.0).unwrap(), "127.0.0.1:0").unwrap();
    let cancel = CancellationToken::new();
    let see = |progress: Progress<'_>| {
        if matches!(progress, Progress::Line(line) if line.contains("cell done")) {
            cancel.cancel();
        }
    };
    let outcome = run_matrix(&EngineClient::new().unwrap(), &target(&engine), Some("m"), &plan(), &see, &cancel).await.unwrap();
    assert!(!outcome.is_complete);
    assert_eq!(outcome.document["results"].as_array().unwrap().len(), 1);
    check_cell(&outcome.document, &outcome.document["results"][0]);
}

#[tokio::test]
async fn a_dying_engine_makes_failed_cells_and_no_numbers() {
    let engine = Mutex::new(Some(simulated::start(SimulatedConfig::at_speed("m", 300.0, 50_000.0).unwrap(), "127.0.0.1:0").unwrap()));
    let target = target(engine.lock().unwrap().as_ref().unwrap());
    let see = |progress: Progress<'_>| {
        if matches!(progress, Progress::Line(line) if line.contains("ready C=3 ctx=0")) {
            engine.lock().unwrap().take();
        }
    };
    let plan = MatrixPlan { contexts: vec![0], prefill_contexts: vec![], ..plan() };
    let outcome = run_matrix(&EngineClient::new().unwrap(), &target, None, &plan, &see, &CancellationToken::new()).await.unwrap();
    let failed = &outcome.document["results"][1];
    assert_eq!((number(failed, "aggregate_tps"), failed["num_errors"].as_u64()), (-4.0, Some(3)));
    assert!(failed["failure_reason"].as_str().unwrap().contains("3 of 3 streams failed"));
    assert!(outcome.document["summary_table"]["0"]["3"].is_null());
    assert!(number(&outcome.document["results"][0], "aggregate_tps") > 0.0);
}
