//! False machines, other people's documents and old ones.

use rigmark::benchmarks::{AnswerFacts, ChallengeSpec, ClaimedModel};
use serde_json::{Value, json};

use super::Outcome::{Caught, OnlyRemeasuring};
use super::{Forgery, K, OVER, RUN, WRAPPED};
use crate::benchmarks::forge::*;
use crate::benchmarks::{challenge, judge, reference_claim};

/// Who and what it is.
pub const IDENTITY: &[Forgery] = &[
    ("eight GPUs claimed", RUN, |case| case.claims("RTX 3090", 8, None), Caught("gpu_count_differs")),
    ("another GPU claimed", RUN, |case| case.claims("H100 SXM", 1, Some(80.0)), Caught("gpu_differs")),
    ("more memory claimed", RUN, |case| case.claims("RTX 3090", 1, Some(48.0)), Caught("gpu_memory_differs")),
    (
        "the listed GPU renamed to the claimed one, telemetry forgotten",
        RUN,
        |case| {
            with_telemetry(&mut case.document, json!({}));
            rename_gpu(&mut case.document);
            case.claims("H100 SXM", 1, Some(80.0));
        },
        Caught("gpu_memory_differs"),
    ),
    (
        "the listed GPU renamed to the claimed one",
        RUN,
        |case| {
            rename_gpu(&mut case.document);
            case.claims("H100 SXM", 1, Some(80.0));
        },
        OnlyRemeasuring("a slower part under a faster one's name shows its own true speeds; only its owner loses by them"),
    ),
    (
        "the listed GPU doubled, telemetry forgotten",
        RUN,
        |case| {
            with_telemetry(&mut case.document, json!({}));
            let list = &mut case.document["startup_diagnostics"]["nvidia_smi_query"]["stdout"];
            let row = list.as_str().unwrap().to_owned();
            *list = json!(format!("{row}\n{}", row.replacen('0', "1", 1)));
            case.claims("RTX 3090", 2, None);
        },
        Caught("telemetry_inconsistent"),
    ),
    (
        "a model larger than the memory claimed",
        RUN,
        |case| {
            case.claim = reference_claim();
            let hf_id = "deepseek-ai/DeepSeek-V3".to_owned();
            case.claim.model = Some(ClaimedModel { hf_id, revision: None, quantization: Some("fp8".to_owned()) });
        },
        Caught("weights_exceed_memory"),
    ),
    (
        "a small model's speed under a large one's name",
        RUN,
        |case| {
            case.claim = reference_claim();
            let hf_id = "meta-llama/Llama-3.1-8B".to_owned();
            case.claim.model = Some(ClaimedModel { hf_id, revision: None, quantization: Some("bf16".to_owned()) });
            case.claim.launch_command = None;
        },
        Caught("decode_above_bandwidth"),
    ),
    (
        "an idle GPU",
        RUN,
        |case| {
            with_telemetry(&mut case.document, json!({ "gpu_util_max_pct": 0.0 }));
            case.claim = reference_claim();
        },
        Caught("gpu_idle"),
    ),
    (
        "too little memory in use",
        RUN,
        |case| {
            with_telemetry(&mut case.document, json!({ "vram_used_max_mb": 900.0 }));
            case.claim = reference_claim();
        },
        Caught("memory_below_weights"),
    ),
    (
        "a GPU busier than it can be",
        RUN,
        |case| with_telemetry(&mut case.document, json!({ "gpu_util_max_pct": 140.0 })),
        Caught("telemetry_inconsistent"),
    ),
    (
        "more memory in use than there is",
        RUN,
        |case| with_telemetry(&mut case.document, json!({ "vram_used_max_mb": 40_000.0 })),
        Caught("telemetry_inconsistent"),
    ),
    (
        "more power than the limit",
        RUN,
        |case| {
            with_telemetry(&mut case.document, json!({ "power_total_avg_w": 600.0 }));
            case.claim = reference_claim();
        },
        Caught("power_above_limit"),
    ),
    ("files of the image changed", WRAPPED, |case| case.document["integrity"]["status"] = json!("modified"), Caught("integrity_modified")),
    (
        "twenty times the speed under a typed claim of speculation",
        RUN,
        |case| {
            speed_up(&mut case.document, |_, _| 20.0);
            case.claim = reference_claim();
            case.claim.launch_command = Some("vllm serve x --kv-cache-dtype int4_per_token_head --num-speculative-tokens 3".to_owned());
        },
        Caught("decode_above_bandwidth"),
    ),
    (
        "four times the speed under a typed claim of speculation",
        RUN,
        |case| {
            speed_up(&mut case.document, |_, _| 4.0);
            case.claim = reference_claim();
            case.claim.launch_command = Some("vllm serve x --speculative-config '{\"num_speculative_tokens\": 7}'".to_owned());
        },
        Caught("speculation_unseen"),
    ),
    (
        "a smaller model under a larger one's name",
        RUN,
        |case| {
            case.document["metadata"]["model"] = json!("Qwen/Qwen3-0.6B");
            case.claim = reference_claim();
        },
        Caught("model_differs"),
    ),
    (
        "another engine claimed",
        RUN,
        |case| {
            case.claim = reference_claim();
            case.claim.engine.as_mut().unwrap().name = "sglang".to_owned();
        },
        Caught("engine_differs"),
    ),
    (
        "another's document with every number but the wall times drawn anew",
        RUN,
        |case| {
            case.others.push(judge(RUN));
            speed_up(&mut case.document, |context, level| if (context / K + level).is_multiple_of(2) { 1.004 } else { 0.996 });
        },
        Caught("near_duplicate"),
    ),
    ("another's document", RUN, |case| case.others.push(judge(RUN)), Caught("duplicate_document")),
    (
        "another's document under another name and time",
        RUN,
        |case| {
            case.others.push(judge(RUN));
            case.document["metadata"]["model"] = json!("mine");
            shift(&mut case.document, 0, 4_000);
        },
        Caught("near_duplicate"),
    ),
    (
        "another's document with noise drawn anew, wall times too",
        RUN,
        |case| {
            case.others.push(judge(RUN));
            speed_up(&mut case.document, |context, level| {
                let mut seed = context + 31 * level;
                noise(&mut seed);
                1.0 + 0.02 * noise(&mut seed)
            });
            for row in rows(&mut case.document) {
                scale(row, "wall_time", 1.000_01);
            }
        },
        OnlyRemeasuring("a second run of the same machine differs as much; a challenge's cells are no one else's"),
    ),
];

fn rename_gpu(document: &mut Value) {
    let list = &mut document["startup_diagnostics"]["nvidia_smi_query"]["stdout"];
    *list = json!(list.as_str().unwrap().replace("NVIDIA GeForce RTX 3090", "NVIDIA H100 80GB HBM3").replace("350.00", "700.00"));
}

/// Replays as an answer to a challenge: the old document is the over-capacity run, which ended on 2026-11-30 at 02:40:47.
pub const REPLAYS: &[Forgery] = &[
    (
        "an old document as it is",
        OVER,
        |case| challenged(case, |spec, _| spec.contexts = vec![0, 4_501, 8_903]),
        Caught("challenge_cell_missing"),
    ),
    (
        "an old document under the asked model's name",
        OVER,
        |case| {
            case.document["metadata"]["model"] = json!("asked");
            challenged(case, |spec, _| (spec.model, spec.contexts) = (Some("asked".to_owned()), vec![0, 4_501, 8_903]));
        },
        Caught("challenge_cell_missing"),
    ),
    (
        "an old document with its contexts renamed",
        OVER,
        |case| {
            rename_context(&mut case.document, 4 * K, 4_501);
            rename_context(&mut case.document, 8 * K, 8_903);
            challenged(case, |spec, _| spec.contexts = vec![0, 4_501, 8_903]);
        },
        Caught("log_context_differs"),
    ),
    (
        "an old document with its contexts renamed in every line",
        OVER,
        |case| {
            rename_context(&mut case.document, 4 * K, 4_501);
            rename_context(&mut case.document, 8 * K, 8_903);
            edit_log(&mut case.document, |line| line.replace("(~4,095 ", "(~4,500 ").replace("(~8,191 ", "(~8,902 "));
            challenged(case, |spec, _| spec.contexts = vec![0, 4_501, 8_903]);
        },
        OnlyRemeasuring("the concurrencies were asked for by luck; a tenth of a prompt is what tokenizers differ by"),
    ),
    ("the same bytes again", OVER, |case| challenged(case, |_, facts| facts.bytes_seen = true), Caught("challenge_document_reused")),
    ("the same run again", OVER, |case| challenged(case, |_, facts| facts.nonce_seen = Some(true)), Caught("challenge_run_reused")),
    ("a run from another day", OVER, |case| challenged(case, |spec, facts| later(spec, facts, 48)), Caught("challenge_timestamp")),
    (
        "a run from another day, its clocks shifted into a window too short",
        OVER,
        |case| {
            shift(&mut case.document, 0, 48 * 3_600);
            challenged(case, |spec, facts| {
                later(spec, facts, 48);
                facts.uploaded_at = spec.issued_at + chrono::TimeDelta::seconds(50);
            });
        },
        Caught("challenge_time"),
    ),
    (
        "a cache smaller than the engine's, to skip by",
        OVER,
        |case| challenged(case, |_, facts| facts.kv_tokens = Some(400_000)),
        Caught("challenge_capacity_differs"),
    ),
    (
        "a context dropped with its arguments and lines",
        OVER,
        |case| {
            hide_context(&mut case.document, 8 * K);
            challenged(case, |_, _| ());
        },
        Caught("challenge_cell_missing"),
    ),
];

fn later(spec: &mut ChallengeSpec, facts: &mut AnswerFacts, hours: i64) {
    for time in [&mut spec.issued_at, &mut spec.expires_at, &mut facts.uploaded_at] {
        *time += chrono::TimeDelta::hours(hours);
    }
}

fn challenged(case: &mut Case, edit: fn(&mut ChallengeSpec, &mut AnswerFacts)) {
    let (mut spec, mut facts) = (challenge::spec(), challenge::facts());
    edit(&mut spec, &mut facts);
    case.context.challenge = Some((spec, facts));
}
