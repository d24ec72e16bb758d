//! Forgeries by name: each is an edit somebody with something to gain would make. None may end verified.

use rigmark::benchmarks::{CellStatus, Severity, Verdict, redact};
use serde_json::{Value, json};

use super::{codes, findings, has, value, verdict};

fn reference() -> Value {
    redact::document(value("reference-run.json")).value
}

fn forged(name: &str, edit: impl FnOnce(&mut Value)) -> Value {
    let mut document = redact::document(value(name)).value;
    assert_eq!(verdict(&document), Verdict::Verified, "{name} is sound before the edit");
    edit(&mut document);
    document
}

/// Index of a cell in `results`.
fn cell(document: &Value, context: u64, concurrency: u64) -> usize {
    let rows = document["results"].as_array().unwrap();
    rows.iter().position(|row| row["context_tokens"] == context && row["concurrency"] == concurrency).unwrap()
}

fn remove_cell(document: &mut Value, context: u64, concurrency: u64) {
    let index = cell(document, context, concurrency);
    document["results"].as_array_mut().unwrap().remove(index);
    document["summary_table"][context.to_string()].as_object_mut().unwrap().remove(&concurrency.to_string());
}

fn assert_caught(document: &Value, code: &str) {
    let found = findings(document);
    assert!(has(&found, code), "{code} is not in {:?}", codes(&found));
    assert_ne!(Verdict::of(&found), Verdict::Verified);
}

#[test]
fn a_faster_total_is_caught_however_many_copies_are_edited() {
    let faster = |document: &mut Value, depth: usize| {
        let index = cell(document, 16_384, 8);
        let row = &mut document["results"][index];
        let tps = row["aggregate_tps"].as_f64().unwrap() * 1.2;
        row["aggregate_tps"] = json!(tps);
        if depth > 0 {
            row["per_request_avg_tps"] = json!(tps / 8.0);
        }
        if depth > 1 {
            document["summary_table"]["16384"]["8"] = json!(tps);
        }
        if depth > 2 {
            let tokens = (tps * document["results"][index]["measurement_seconds"].as_f64().unwrap()).round();
            let exact = tokens / document["results"][index]["measurement_seconds"].as_f64().unwrap();
            let row = &mut document["results"][index];
            row["client_output_tokens"] = json!(tokens as u64);
            row["total_tokens"] = json!(tokens as u64);
            row["aggregate_tps"] = json!(exact);
            row["per_request_avg_tps"] = json!(exact / 8.0);
            document["summary_table"]["16384"]["8"] = json!(exact);
        }
    };
    for depth in 0..=3 {
        let document = forged("reference-run.json", |document| faster(document, depth));
        assert_caught(&document, "log_total_mismatch");
        assert_eq!(verdict(&document), Verdict::Rejected, "depth {depth}");
    }
}

#[test]
fn a_slow_cell_does_not_vanish() {
    let deleted = forged("reference-run.json", |document| remove_cell(document, 65_536, 8));
    assert_caught(&deleted, "cell_missing");
    assert_caught(&deleted, "log_cell_not_in_results");
    let last = forged("reference-run.json", |document| remove_cell(document, 253_952, 2));
    assert_caught(&last, "log_cell_not_in_results");
    assert_caught(&last, "run_interrupted");
    let with_its_lines = forged("reference-run.json", |document| {
        remove_cell(document, 65_536, 8);
        document["event_log"].as_array_mut().unwrap().retain(|line| !line.as_str().unwrap().contains("C=8 ctx=64k"));
    });
    assert_caught(&with_its_lines, "cell_missing");
    let interrupted = forged("reference-run.json", |document| {
        remove_cell(document, 253_952, 2);
        document["event_log"].as_array_mut().unwrap().retain(|line| !line.as_str().unwrap().contains("C=2 ctx=248k"));
    });
    assert_caught(&interrupted, "run_interrupted");
    let skipped = forged("reference-run.json", |document| {
        remove_cell(document, 65_536, 8);
        for line in document["event_log"].as_array_mut().unwrap() {
            let text = line.as_str().unwrap().to_owned();
            if text.contains("cell done C=8 ctx=64k") {
                *line = json!(format!("{} cell skipped C=8 ctx=64k", &text[..8]));
            }
        }
    });
    assert_caught(&skipped, "cells_skipped");
}

#[test]
fn a_slow_cell_is_not_called_something_else() {
    for (tps, code) in
        [(-1.0, "over_capacity_unexplained"), (-2.0, "cells_skipped"), (-3.0, "log_contradicts_status"), (-4.0, "log_contradicts_status")]
    {
        let document = forged("reference-run.json", |document| {
            let index = cell(document, 131_072, 2);
            document["results"][index]["aggregate_tps"] = json!(tps);
            document["summary_table"]["131072"]["2"] = Value::Null;
        });
        assert_caught(&document, code);
        assert_caught(&document, "log_contradicts_status");
    }
    // An all-zero row, as 0.4 leaves behind a cell whose streams died.
    let zeroed = forged("v04_all_valid.json", |document| {
        let index = cell(document, 4_096, 8);
        for (_, field) in document["results"][index]
            .as_object_mut()
            .unwrap()
            .iter_mut()
            .filter(|(key, _)| !key.ends_with("s_tokens") && *key != "concurrency")
        {
            if field.is_number() {
                *field = json!(0);
            }
        }
        document["results"][index]["context_tokens"] = json!(4_096);
        document["results"][index]["aggregate_source"] = json!("");
        document["summary_table"]["4096"]["8"] = json!(0.0);
    });
    assert_caught(&zeroed, "log_contradicts_status");
    assert_eq!(verdict(&zeroed), Verdict::Rejected);
}

#[test]
fn a_context_or_level_does_not_vanish() {
    let context = forged("reference-run.json", |document| {
        for concurrency in [1, 2] {
            remove_cell(document, 253_952, concurrency);
        }
        document["summary_table"].as_object_mut().unwrap().remove("253952");
        document["metadata"]["context_lengths"].as_array_mut().unwrap().retain(|context| *context != 253_952);
    });
    assert_caught(&context, "arguments_differ");
    assert_caught(&context, "log_cell_not_in_results");
    let level = forged("reference-run.json", |document| {
        remove_cell(document, 0, 64);
        document["metadata"]["concurrency_levels"].as_array_mut().unwrap().retain(|level| *level != 64);
    });
    assert_caught(&level, "arguments_differ");
    let prefill = forged("reference-run.json", |document| {
        document["prefill"].as_object_mut().unwrap().remove("131072");
    });
    assert_caught(&prefill, "prefill_row_missing");
}

#[test]
fn one_kv_capacity_explains_everything() {
    for (budget, code) in [(700_000, "cell_missing"), (500_000, "ran_over_capacity"), (0, "cell_missing")] {
        let document = forged("reference-run.json", |document| document["metadata"]["max_total_tokens"] = json!(budget));
        assert_caught(&document, code);
        assert_eq!(verdict(&document), Verdict::Rejected);
    }
    // Slow cells hidden behind a smaller budget: the larger one among those that stay gives it away.
    let hidden = forged("reference-run.json", |document| {
        for concurrency in [4, 8] {
            remove_cell(document, 65_536, concurrency);
        }
        document["metadata"]["max_total_tokens"] = json!(280_000);
        document["event_log"].as_array_mut().unwrap().retain(|line| !line.as_str().unwrap().contains("ctx=64k"));
    });
    assert_caught(&hidden, "ran_over_capacity");
    let longer = forged("reference-run.json", |document| document["metadata"]["max_tokens"] = json!(2_048));
    assert_caught(&longer, "arguments_differ");
}

#[test]
fn queued_cells_are_not_made_valid() {
    let document = forged("reference-run.json", |document| {
        let index = cell(document, 0, 32);
        document["results"][index]["capacity_limited"] = json!(false);
    });
    assert_caught(&document, "flag_mismatch");
    assert_eq!(verdict(&document), Verdict::Rejected);
    let gauges_too = forged("reference-run.json", |document| {
        let index = cell(document, 0, 32);
        let row = &mut document["results"][index];
        row["capacity_limited"] = json!(false);
        row["underfilled"] = json!(false);
        row["warmup_timed_out"] = json!(false);
        row["queue_fraction"] = json!(0.0);
        row["max_queue_reqs"] = json!(0);
        row["avg_queue_reqs"] = json!(0);
        for key in ["avg_running_reqs", "max_running_reqs", "effective_concurrency"] {
            row[key] = json!(32);
        }
    });
    assert_caught(&gauges_too, "log_time_mismatch");
}

#[test]
fn evidence_that_is_taken_away_is_missed() {
    let no_log = forged("reference-run.json", |document| document["event_log"] = json!([]));
    assert_caught(&no_log, "log_missing");
    let no_samples = forged("reference-run.json", |document| {
        for row in document["results"].as_array_mut().unwrap() {
            row["request_samples"] = json!([]);
        }
    });
    assert_caught(&no_samples, "cell_incomplete");
    let no_window = forged("reference-run.json", |document| {
        for row in document["results"].as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove("measurement_seconds");
        }
    });
    assert_caught(&no_window, "cell_incomplete");
    let no_summary = forged("reference-run.json", |document| {
        document.as_object_mut().unwrap().remove("summary_table");
    });
    assert_caught(&no_summary, "summary_mismatch");
}

#[test]
fn an_old_version_is_no_way_around_the_checks() {
    for (version, code) in
        [(json!("0.3.0"), "version_implausible"), (json!("0.4.2"), "version_implausible"), (Value::Null, "version_missing")]
    {
        let document = forged("reference-run.json", |document| document["metadata"]["version"] = version.clone());
        assert_caught(&document, code);
        let edited = forged("reference-run.json", |document| {
            document["metadata"]["version"] = version;
            document["results"][0]["aggregate_tps"] = json!(999.123_456_789);
        });
        assert_eq!(verdict(&edited), Verdict::Rejected);
    }
    for version in ["banana", "0", "-1.2.3", "999.0.0", "0.0.0", "1.2.3.4.5"] {
        let document = forged("reference-run.json", |document| document["metadata"]["version"] = json!(version));
        assert_caught(&document, "version_implausible");
    }
    // Stripped to the shape of 0.3: nothing to check, and too young to be one.
    let stripped = forged("reference-run.json", |document| {
        document["metadata"].as_object_mut().unwrap().remove("version");
        let kept = [
            "concurrency",
            "context_tokens",
            "aggregate_tps",
            "per_request_avg_tps",
            "ttft_p50",
            "wall_time",
            "num_completed",
            "num_errors",
        ];
        for row in document["results"].as_array_mut().unwrap() {
            row.as_object_mut().unwrap().retain(|key, _| kept.contains(&key.as_str()));
            row["aggregate_tps"] = json!(row["aggregate_tps"].as_f64().unwrap() * 2.0);
        }
    });
    assert_caught(&stripped, "version_uncheckable");
}

#[test]
fn newer_versions_are_accepted_with_a_note_and_not_believed_blindly() {
    for version in ["0.9.0", "1.0.0", "0.12.3-rc1"] {
        let document = forged("reference-run.json", |document| document["metadata"]["version"] = json!(version));
        let found = findings(&document);
        assert_eq!(Verdict::of(&found), Verdict::Verified, "{version}: {found:#?}");
        assert!(has(&found, "version_unknown"));
        let edited = forged("reference-run.json", |document| {
            document["metadata"]["version"] = json!(version);
            document["results"][0]["client_output_tokens"] = json!(5_000);
        });
        assert_eq!(verdict(&edited), Verdict::Rejected, "an unknown version may count otherwise, but then in every cell");
        let counted_otherwise = forged("reference-run.json", |document| {
            document["metadata"]["version"] = json!(version);
            for row in document["results"].as_array_mut().unwrap() {
                row["client_output_tokens"] = json!((row["client_output_tokens"].as_f64().unwrap() * 1.2).round());
            }
        });
        assert_eq!(verdict(&counted_otherwise), Verdict::NeedsReview, "a person looks");
    }
}

#[test]
fn the_source_of_the_count_is_no_way_around_the_arithmetic() {
    for source in ["prometheus_fallback", "none", "trust_me", "openai_stream_chunks_fallback"] {
        let document = forged("reference-run.json", |document| {
            let row = &mut document["results"][0];
            row["aggregate_source"] = json!(source);
            row["client_output_tokens"] = json!(9_000);
        });
        assert_ne!(verdict(&document), Verdict::Verified, "{source}");
    }
}

/// The whole matrix scaled by hand, consistently, but for the clock of the log.
#[test]
fn a_scaled_matrix_breaks_on_the_clock() {
    let document = forged("reference-run.nonce.json", |document| {
        for row in document["results"].as_array_mut().unwrap() {
            for key in ["measurement_seconds", "measurement_wall_seconds", "wall_time", "warmup_duration"] {
                row[key] = json!(row[key].as_f64().unwrap() / 2.0);
            }
        }
    });
    assert_caught(&document, "window_length");
    assert_caught(&document, "total_mismatch");
}

#[test]
fn genuine_cells_that_failed_stay_notes() {
    for name in ["v04_error_drop.json", "v04_dead_server.json"] {
        let document = redact::document(value(name)).value;
        let found = findings(&document);
        let failed = found.iter().find(|finding| finding.code == "cells_failed").unwrap();
        assert_eq!((failed.severity, failed.cells.len()), (Severity::Note, 1));
    }
    assert_eq!(CellStatus::Error.as_str(), "error");
    assert_eq!(verdict(&reference()), Verdict::Verified);
}

#[test]
fn a_total_is_round_when_it_has_few_digits_and_not_when_it_is_large() {
    let total = |tps: f64| {
        forged("reference-run.json", |document| {
            let index = cell(document, 16_384, 8);
            document["results"][index]["aggregate_tps"] = json!(tps);
        })
    };
    for quotient in [1_000_000.0 / 7.0, 987_654.0 / 3.1, 123_457.0 / 1.003, 250_001.0 / 29.997] {
        assert!(!has(&findings(&total(quotient)), "total_rounded"), "{quotient}");
    }
    for typed in [143_000.5, 318_598.065, 0.125, 8_334.259] {
        assert!(has(&findings(&total(typed)), "total_rounded"), "{typed}");
    }
}
