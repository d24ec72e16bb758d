//! The table of honest oddities: what honest machines, engines and clients make of a document. None is ever rejected, and at least nine in ten
//! stay verified; those that a person has to look at say so here.

use rigmark::benchmarks::{AssessContext, Claim, Verdict, assess};
use serde_json::{Map, Value, json};

use super::forge::*;
use super::{codes, findings, public_documents, value};

/// Name, source and what an honest machine does differently.
type Oddity = (&'static str, &'static str, fn(&mut Case));

const RUN: &str = "reference-run.json";
const WHOLE: &str = "reference-run.nonce.json";
const SMALL: &str = "v04_all_valid.json";
const OVER: &str = "v04_over_capacity.json";
const WRAPPED: &str = "synthetic_lil_bench_wrapped.json";
const CPU: &str = "real_llamacpp_cpu.json";
const K: u64 = 1_024;

const ODDITIES: &[Oddity] = &[
    ("a clock in another zone", RUN, |case| shift(&mut case.document, 0, 9 * 3_600)),
    ("a run over midnight", RUN, |case| shift(&mut case.document, 0, 3 * 3_600)),
    ("a log cut to its last lines", WHOLE, |case| {
        let all = lines(&mut case.document);
        case.document["event_log"] = json!(all[all.len() - 80..]);
    }),
    ("a newer version with keys nobody knows", RUN, |case| {
        case.document["metadata"]["version"] = json!("0.9.1");
        case.document["metadata"]["engine_build"] = json!({ "commit": "abc", "flags": [1, 2] });
        rows(&mut case.document).iter_mut().for_each(|row| row["goodput"] = json!(0.5));
    }),
    ("rows for cells over capacity", OVER, |case| {
        let mut row = cell(&mut case.document, 0, 8).clone();
        zero(&mut row);
        (row["context_tokens"], row["concurrency"], row["aggregate_tps"]) = (json!(8 * K), json!(8), json!(-1.0));
        case.document["summary_table"]["8192"]["8"] = Value::Null;
        rows(&mut case.document).push(row);
    }),
    ("no metrics", SMALL, |case| {
        case.document["metadata"]["metrics_available"] = json!(false);
        case.document["metadata"]["engine"] = json!("openai_proxy");
        case.document["metadata"]["max_total_tokens"] = json!(0);
        for row in rows(&mut case.document) {
            for key in ["avg_running_reqs", "max_running_reqs", "effective_concurrency", "server_output_tokens", "server_gen_throughput"] {
                row[key] = json!(0);
            }
        }
        let kept: Vec<String> = lines(&mut case.document).into_iter().filter(|line| !line.contains("KV cache budget")).collect();
        case.document["event_log"] = json!(kept);
    }),
    ("no nvidia-smi", RUN, |case| {
        let startup = case.document["startup_diagnostics"].as_object_mut().unwrap();
        startup.remove("nvidia_smi_query");
        startup.insert("nvidia_smi_error".to_owned(), json!("nvidia-smi not found"));
    }),
    ("nothing collected at the start", RUN, |case| case.document["startup_diagnostics"] = json!({})),
    ("a client on another machine, with another GPU", RUN, |case| {
        case.document["metadata"]["server"] = json!("http://gpu-box.lan:8000");
        with_telemetry(&mut case.document, json!({ "gpu_util_max_pct": 3.0, "vram_used_max_mb": 900.0 }));
        case.claim = super::reference_claim();
    }),
    ("telemetry that is no number", RUN, |case| {
        with_telemetry(&mut case.document, json!({ "temp_c_max": 71 }));
        case.spell("\"temp_c_max\":71", "\"temp_c_max\":NaN");
    }),
    ("telemetry of zeros", RUN, |case| {
        let zeros = json!({ "gpu_util_max_pct": 0.0, "power_total_avg_w": 0.0, "power_limit_total_w": 0.0, "vram_used_max_mb": 0.0, "vram_total_mb": 0.0 });
        with_telemetry(&mut case.document, zeros);
    }),
    ("a wrapper around it", WRAPPED, |case| case.document["profile"] = json!("standard")),
    ("a wrapper's plan that leaves out what the cache cannot hold", WRAPPED, |case| {
        hide_cell(case.plain(), 4 * K, 8, true);
        case.document["server"]["limits"]["kv_tokens"] = json!(40_000);
        for step in case.document["plan"].as_array_mut().unwrap() {
            if step["concurrency"] == 8 && step["context"] == 4 * K {
                step["status"] = json!("skipped");
            }
        }
    }),
    ("speculation", RUN, |case| {
        for row in rows(&mut case.document) {
            row["server_spec_accept_rate"] = json!(0.61);
            row["server_accept_len_effective"] = json!(2.2);
            samples(row).iter_mut().for_each(|sample| scale(sample, "chunk_inter_token_latency_avg", 2.2));
            restate(row);
        }
    }),
    ("speculation whose luck depends on the text", RUN, |case| {
        let luck = |context: u64, level: u64| 1.0 + 0.6 * ((context / K + level) % 3) as f64;
        speed_up(&mut case.document, luck);
        for row in rows(&mut case.document) {
            row["server_spec_accept_rate"] = json!(0.4);
            samples(row).iter_mut().for_each(|sample| scale(sample, "chunk_inter_token_latency_avg", 1.9));
            restate(row);
        }
    }),
    ("a machine that grows hot", RUN, |case| {
        speed_up(&mut case.document, |context, level| if level == 1 { 1.0 } else { 1.0 - 0.2 * (context as f64 / (248.0 * K as f64)) });
    }),
    ("noise of some per cent", RUN, |case| {
        speed_up(&mut case.document, |context, level| {
            let mut seed = 3 * context + level;
            noise(&mut seed);
            1.0 + 0.06 * noise(&mut seed)
        });
    }),
    ("a state-space model: contexts cost nothing", RUN, |case| {
        let totals = case.document["summary_table"].clone();
        let total = |context: u64, level: u64| totals[context.to_string()][level.to_string()].as_f64().unwrap();
        speed_up(&mut case.document, |context, level| if context < 200 * K { total(0, level) / total(context, level) } else { 1.0 });
    }),
    ("a large card on which eight requests cost little", RUN, |case| {
        let totals = case.document["summary_table"].clone();
        speed_up(&mut case.document, |context, level| {
            let each = totals[context.to_string()][level.to_string()].as_f64().unwrap() / level as f64;
            100.0 * (1.0 - 0.01 * level as f64) / each
        });
    }),
    ("a mixture of experts that spreads early", RUN, |case| {
        speed_up(&mut case.document, |_, level| if level > 1 { 0.6 } else { 1.0 });
    }),
    ("a slow machine: tokens every third of a second", RUN, |case| speed_up(&mut case.document, |_, _| 0.03)),
    ("four cards of the kind", RUN, |case| {
        speed_up(&mut case.document, |_, _| 2.6);
        let list = &mut case.document["startup_diagnostics"]["nvidia_smi_query"]["stdout"];
        let row = list.as_str().unwrap().to_owned();
        *list = json!((0..4).map(|n| row.replacen('0', &n.to_string(), 1)).collect::<Vec<_>>().join("\n"));
        case.claims("RTX 3090", 4, None);
    }),
    ("a tokenizer that makes short prompts", RUN, |case| stretch(&mut case.document, 0.93)),
    ("a tokenizer that makes long prompts", RUN, |case| stretch(&mut case.document, 1.11)),
    ("a first prefill that compiles", RUN, |case| prefill(&mut case.document, 8 * K, 4.1, true)),
    ("small prompts that cost the same", SMALL, |case| {
        prefill(&mut case.document, K, 0.3, true);
        prefill(&mut case.document, 2 * K, 0.31, true);
        prefill(&mut case.document, 4 * K, 0.33, true);
    }),
    ("a few cached tokens of the template", RUN, |case| {
        case.document["prefill"]["16384"]["server_validation"]["cached_tokens"] = json!(96);
    }),
    ("no prefill asked for", SMALL, |case| {
        case.document["prefill"] = json!({});
        case.document["metadata"]["skip_prefill"] = json!(true);
        case.document["metadata"]["prefill_mode"] = json!("skipped");
        let kept: Vec<String> = lines(&mut case.document).into_iter().filter(|line| !line.contains("prefill")).collect();
        case.document["event_log"] = json!(kept);
    }),
    ("a busy client that opens windows late", SMALL, |case| {
        let row = cell(&mut case.document, 0, 8);
        for key in ["measurement_wall_seconds", "wall_time"] {
            let late = number(row, key) + 0.3;
            row[key] = json!(late);
        }
    }),
    ("whole numbers written as decimals and the reverse", SMALL, |case| {
        for row in rows(&mut case.document) {
            for key in ["client_output_tokens", "avg_running_reqs", "max_running_reqs", "num_completed"] {
                row[key] = json!(number(row, key));
            }
            row["queue_fraction"] = json!(0);
        }
    }),
    ("names in any script", RUN, |case| {
        case.document["metadata"]["model"] = json!("通义千问/Qwen3-测试 \u{1f680} \"<b>\"");
        case.document["_note"] = json!("Ünïcode");
    }),
    ("keys in another order", RUN, |case| {
        let Value::Object(map) = &case.document else { return };
        let turned: Map<String, Value> = map.iter().rev().map(|(key, value)| (key.clone(), value.clone())).collect();
        case.bytes = Some(serde_json::to_vec_pretty(&Value::Object(turned)).unwrap());
    }),
    ("a byte-order mark", RUN, |case| {
        let mut bytes = vec![0xef, 0xbb, 0xbf];
        bytes.extend(serde_json::to_vec(&case.document).unwrap());
        case.bytes = Some(bytes);
    }),
    ("a document of the oldest shape and its time", RUN, |case| {
        case.document["metadata"]["version"] = json!("0.3.0");
        case.document["metadata"]["timestamp"] = json!("2026-02-11T10:00:00.000001");
        case.document["event_log"] = json!([]);
        case.document["prefill"] = json!({});
        let kept = [
            "concurrency",
            "context_tokens",
            "aggregate_tps",
            "ttft_p50",
            "wall_time",
            "num_completed",
            "num_errors",
            "queue_fraction",
            "avg_queue_reqs",
            "max_queue_reqs",
        ];
        rows(&mut case.document).iter_mut().for_each(|row| row.as_object_mut().unwrap().retain(|key, _| kept.contains(&key.as_str())));
    }),
    ("slots that the engine tells", SMALL, |case| {
        case.document["metadata"]["engine"] = json!("sglang");
        for context in [0, 2 * K, 4 * K] {
            hide_cell(&mut case.document, context, 8, true);
        }
        rows(&mut case.document).iter_mut().for_each(|row| row["server_output_tokens"] = json!(0));
        case.document["event_log"].as_array_mut().unwrap().insert(5, json!("02:34:14 startup max running requests: 4; dropped C=8"));
    }),
    ("an engine with a shorter longest context", WHOLE, |case| {
        hide_context(&mut case.document, 248 * K);
        edit_log(&mut case.document, |line| line.replace("model context length: 262,144", "model context length: 140,000"));
    }),
    ("a noisy processor", CPU, |case| case.document["metadata"]["model"] = json!("tiny")),
    ("a processor claimed as it is", CPU, |case| case.claims("Apple M3 Max", 1, None)),
    ("a run ended by hand", RUN, |case| hide_cell(&mut case.document, 248 * K, 2, true)),
    ("a stall of the engine in one cell", RUN, |case| {
        speed_up(&mut case.document, |context, level| if (context, level) == (16 * K, 4) { 0.5 } else { 1.0 });
    }),
];

/// Those that a person has to look at.
const LOOKED_AT: &[(&str, &str)] = &[
    ("a run ended by hand", "what the last cells would have shown is unknown"),
    ("a stall of the engine in one cell", "it looks like a neighbour made faster"),
];

/// All numbers of a row that is none.
fn zero(row: &mut Value) {
    for value in row.as_object_mut().unwrap().values_mut() {
        match value {
            Value::Number(_) => *value = json!(0),
            Value::Array(items) => items.clear(),
            _ => {}
        }
    }
    row["aggregate_source"] = json!("");
}

/// Every prompt with `factor` times its tokens: the same text under another tokenizer.
fn stretch(document: &mut Value, factor: f64) {
    for row in rows(document).iter_mut().filter(|row| row["context_tokens"] != 0) {
        for sample in samples(row) {
            let tokens = (number(sample, "input_tokens") * factor).round();
            sample["input_tokens"] = json!(tokens);
        }
        restate(row);
    }
    let contexts: Vec<String> = document["prefill"].as_object().unwrap().keys().cloned().collect();
    for context in contexts {
        let row = &mut document["prefill"][&context];
        let (tokens, seconds) = ((number(row, "prompt_tokens") * factor).round(), number(row, "ttft_seconds"));
        row["prompt_tokens"] = json!(tokens);
        prefill(document, context.parse().unwrap(), seconds, false);
    }
}

#[test]
fn honest_oddities_are_never_rejected_and_nearly_always_verified() {
    let mut faults = Vec::new();
    let mut verified = 0;
    for (index, (name, source, change)) in ODDITIES.iter().enumerate() {
        assert!(ODDITIES.iter().skip(index + 1).all(|(other, ..)| other != name), "{name} stands twice");
        let mut case = Case::of(source);
        change(&mut case);
        let run = match case.judge() {
            Ok(run) => run,
            Err(error) => {
                faults.push(format!("{name}: {error}"));
                continue;
            }
        };
        let expected = if LOOKED_AT.iter().any(|(known, _)| known == name) { Verdict::NeedsReview } else { Verdict::Verified };
        verified += usize::from(run.verdict == Verdict::Verified);
        if run.verdict != expected {
            faults.push(format!("{name}: {:?} with {:?}", run.verdict, codes(&run.findings)));
        }
    }
    println!("{} honest kinds, {verified} verified", ODDITIES.len());
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(ODDITIES.len() >= 20 && verified * 10 >= ODDITIES.len() * 9);
    assert!(LOOKED_AT.iter().all(|(name, why)| !why.is_empty() && ODDITIES.iter().any(|(known, ..)| known == name)));
}

/// Whatever stands in the folders of genuine documents, but for the one that was typed off a page.
#[test]
fn no_genuine_document_is_rejected() {
    let mut files: Vec<_> = std::fs::read_dir(super::path("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.extend(public_documents().into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path()));
    let (mut verified, mut all) = (0, 0);
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.contains("meta") || name == "page-transcribed.json" || !(name.ends_with(".json") || name.ends_with(".gz")) {
            continue;
        }
        let run = assess(&std::fs::read(&path).unwrap(), &Claim::default(), &AssessContext::default()).unwrap();
        assert_ne!(run.verdict, Verdict::Rejected, "{name}: {:#?}", run.findings);
        // Dead ends that say so themselves are no part of the nine in ten: nothing was measured, a loop, a failed wrapper, a wrong count.
        let told = ["prefill_only", "error_and_loop", "failed", "completed"].iter().any(|word| name.contains(word));
        all += usize::from(!told);
        verified += usize::from(!told && run.verdict == Verdict::Verified);
    }
    assert!(all >= 15 && verified * 10 >= all * 9, "{verified} of {all}");
    assert!(value(RUN).is_object());
}

/// A short prompt's time is rounded to a large share of itself, and its rate was computed before that.
#[test]
fn a_prompt_of_few_milliseconds_does_not_contradict_its_rate() {
    for (tokens, seconds) in [(300.0_f64, 0.001_52_f64), (300.0, 0.002_52), (1_200.0, 0.007_51), (598.0, 0.031_502)] {
        let mut document = value(RUN);
        let row = &mut document["prefill"]["8192"];
        row["prompt_tokens"] = json!(tokens);
        row["ttft_seconds"] = json!((seconds * 1e3).round() / 1e3);
        row["tok_per_sec"] = json!((tokens / seconds).round());
        let found = findings(&document);
        assert!(found.iter().all(|finding| finding.code != "prefill_rate_mismatch"), "{tokens} tokens in {seconds} s");
    }
}
