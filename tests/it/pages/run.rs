//! The page of the reference run shows every figure of the published page, in its order and with its words.

use diesel_async::SimpleAsyncConnection;
use rigmark::web::html::{LANGUAGES, Messages};
use serde_json::{Value, json};

use super::{assert_in_order, html, market::market, page, text, upload};
use crate::support::TestApp;

const HEAD: &[&str] = &[
    "Speed test matrix",
    "Nemotron-Cascade-2-30B-A3B-AWQ-4bit on RTX 3090 24GB",
    "vllm · 0.32.0 · AWQ 4-bit",
    "6 contexts (0–248K) × 8 concurrency levels (1–128) · prefill at 8K, 16K, 32K, 64K, 128K",
    "by @sandberg",
    "llm-inference-bench v0.8.0",
    "Measured",
    "Hardware",
    "Type Discrete GPU GPU RTX 3090 VRAM 24 GB CPU AMD Ryzen 9 7900X (12C) RAM 32 GB OS Ubuntu 24.04.5",
    "Engine Engine vllm Version 0.32.0 Quantization AWQ 4-bit Backend cuda Build vllm/vllm-openai:v0.32.0-x86_64",
    "Run Served model bench Revision main Decode test Fixed duration Prefill mode Measured during decode warm-up \
     Time per measurement 30 s Max output 8,192 tokens",
    "Launch command",
    "# Untuned out-of-the-box baseline. Spec decode: none. KV cache: int4_per_token_head \
     # 1x RTX 3090 24GB (Zagitta/gpu-unlock), 350 W limit (VBIOS max), PCIe Gen4 x16 | AMD Ryzen 9 7900X 12C | 32 GB DDR5 | \
     Ubuntu 24.04.5, NVIDIA driver 595.99.02 \
     vllm serve cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit --max-model-len 262144 --gpu-memory-utilization 0.94 --max-num-seqs 105 \
     --enable-prefix-caching --trust-remote-code --kv-cache-dtype int4_per_token_head --attention-backend TRITON_ATTN",
    "Prefill",
    "8K 8,169 1,030",
    "16K 6,886 2,416",
    "32K 5,205 6,359",
    "64K 3,525 18,727",
    "128K 2,144 61,490",
    "Sustained decode",
    "Rows are context length, columns are simultaneous requests.",
    "1 2 4 8 16 32 64 128",
    "0 145.0 33 ms 257.7 50 ms 422.8 76 ms 667.2 116 ms 993.5 160 ms 1,075.9 245 ms queued 1,073.4 267 ms queued Over capacity",
    "16K 131.1 217 ms 230.2 318 ms 390.7 523 ms 616.1 943 ms 918.9 1,792 ms Over capacity Over capacity Over capacity",
    "32K 120.0 501 ms 211.8 738 ms 350.7 1,208 ms 541.7 2,168 ms Over capacity Over capacity Over capacity Over capacity",
    "64K 102.5 1,501 ms 180.4 2,266 ms 306.9 3,678 ms 520.2 6,621 ms Over capacity Over capacity Over capacity Over capacity",
    "128K 79.3 5,069 ms 140.4 7,557 ms 230.8 12,511 ms Over capacity Over capacity Over capacity Over capacity Over capacity",
    "248K 45.1 6,153 ms queued 61.2 9,063 ms queued Over capacity Over capacity Over capacity Over capacity Over capacity Over capacity",
    "Requests queued: the server could not run all requests at once, so some waited in a queue.",
    "Over capacity: not run because this many requests at this context would exceed the server's KV cache.",
    "TTFT is measured after the benchmark warms the server's prompt cache, so it mostly excludes prefill.",
    "All measurements",
    "Latencies are medians. Total tok/s is output across all simultaneous requests.",
];

/// The published table, units left to the heads.
const MEASUREMENTS: &str = "\
Prefill 8K 1 Valid 8,169.0 — 1,030 — — 1 — —
Prefill 16K 1 Valid 6,886.0 — 2,416 — — 1 — —
Prefill 32K 1 Valid 5,205.0 — 6,359 — — 1 — —
Prefill 64K 1 Valid 3,525.0 — 18,727 — — 1 — —
Prefill 128K 1 Valid 2,144.0 — 61,490 — — 1 — —
Sustained decode 0 1 Valid 145.0 145.4 33 6.9 1.0 0 4,349 30.0
Sustained decode 0 2 Valid 257.7 129.1 50 7.7 2.0 0 7,730 30.0
Sustained decode 0 4 Valid 422.8 106.1 76 9.4 4.0 0 12,684 30.0
Sustained decode 0 8 Valid 667.2 83.7 116 11.9 8.0 0 20,016 30.0
Sustained decode 0 16 Valid 993.5 62.5 160 16.0 16.0 0 29,792 30.0
Sustained decode 0 32 Requests queued 1,075.9 52.4 245 19.1 21.0 0 32,277 30.0
Sustained decode 0 64 Requests queued 1,073.4 52.2 267 19.2 21.0 0 32,193 30.0
Sustained decode 0 128 Over capacity — — — — — — — —
Sustained decode 16K 1 Valid 131.1 131.3 217 7.6 1.0 0 3,932 30.0
Sustained decode 16K 2 Valid 230.2 114.9 318 8.7 2.0 0 6,905 30.0
Sustained decode 16K 4 Valid 390.7 97.1 523 10.3 4.0 0 11,720 30.0
Sustained decode 16K 8 Valid 616.1 75.7 943 13.2 8.0 0 18,480 30.0
Sustained decode 16K 16 Valid 918.9 55.2 1,792 18.1 16.0 0 27,552 30.0
Sustained decode 16K 32 Over capacity — — — — — — — —
Sustained decode 16K 64 Over capacity — — — — — — — —
Sustained decode 16K 128 Over capacity — — — — — — — —
Sustained decode 32K 1 Valid 120.0 120.1 501 8.3 1.0 0 3,598 30.0
Sustained decode 32K 2 Valid 211.8 105.3 738 9.5 2.0 0 6,354 30.0
Sustained decode 32K 4 Valid 350.7 86.1 1,208 11.6 4.0 0 10,521 30.0
Sustained decode 32K 8 Valid 541.7 64.7 2,168 15.4 8.0 0 16,248 30.0
Sustained decode 32K 16 Over capacity — — — — — — — —
Sustained decode 32K 32 Over capacity — — — — — — — —
Sustained decode 32K 64 Over capacity — — — — — — — —
Sustained decode 32K 128 Over capacity — — — — — — — —
Sustained decode 64K 1 Valid 102.5 102.7 1,501 9.7 1.0 0 3,076 30.0
Sustained decode 64K 2 Valid 180.4 88.4 2,266 11.3 2.0 0 5,410 30.0
Sustained decode 64K 4 Valid 306.9 72.2 3,678 13.8 4.0 0 9,204 30.0
Sustained decode 64K 8 Valid 520.2 56.7 6,621 17.6 8.0 0 15,600 30.0
Sustained decode 64K 16 Over capacity — — — — — — — —
Sustained decode 64K 32 Over capacity — — — — — — — —
Sustained decode 64K 64 Over capacity — — — — — — — —
Sustained decode 64K 128 Over capacity — — — — — — — —
Sustained decode 128K 1 Valid 79.3 79.4 5,069 12.6 1.0 0 2,379 30.0
Sustained decode 128K 2 Valid 140.4 65.8 7,557 15.3 2.0 0 4,210 30.0
Sustained decode 128K 4 Valid 230.8 47.6 12,511 21.1 4.0 0 6,924 30.0
Sustained decode 128K 8 Over capacity — — — — — — — —
Sustained decode 128K 16 Over capacity — — — — — — — —
Sustained decode 128K 32 Over capacity — — — — — — — —
Sustained decode 128K 64 Over capacity — — — — — — — —
Sustained decode 128K 128 Over capacity — — — — — — — —
Sustained decode 248K 1 Requests queued 45.1 55.5 6,153 18.0 0.9 0 1,352 30.0
Sustained decode 248K 2 Requests queued 61.2 43.6 9,063 23.4 1.7 0 1,836 30.0
Sustained decode 248K 4 Over capacity — — — — — — — —
Sustained decode 248K 8 Over capacity — — — — — — — —
Sustained decode 248K 16 Over capacity — — — — — — — —
Sustained decode 248K 32 Over capacity — — — — — — — —
Sustained decode 248K 64 Over capacity — — — — — — — —
Sustained decode 248K 128 Over capacity — — — — — — — —";

#[tokio::test]
async fn the_reference_run_shows_the_published_page() {
    let app = TestApp::new().await;
    let id = upload(&app, &[]).await;
    let html = page(&app, &format!("/en/runs/{id}"), 200).await.body;
    let shown = text(&html);
    let rows: Vec<&str> = MEASUREMENTS.lines().collect();
    assert_eq!(rows.len(), 53);
    assert_in_order(&shown, &[HEAD, rows.as_slice()].concat());
    assert_eq!(html.matches("class=\"over\">Over capacity<").count(), 23, "cells that were not run have no shade");
    assert_eq!(html.matches("queued\"><b>").count(), 4, "queued cells are measured and marked");
    let measured = (1..=8).map(|shade| html.matches(&format!("<td class=\"h{shade}")).count()).sum::<usize>();
    assert_eq!(measured, 25, "every measured cell has a shade");
    let list = text(&page(&app, "/en/runs", 200).await.body);
    assert_in_order(&list, &["Nemotron-Cascade-2-30B-A3B-AWQ-4bit on RTX 3090 24GB", "145.0", "993.5", "8,169", "Measured", "@sandberg"]);
}

/// The page's figures are the API's, rounded as its heads say.
#[tokio::test]
async fn the_figures_are_those_of_the_api() {
    let app = TestApp::new().await;
    let id = upload(&app, &[]).await;
    let shown = text(&page(&app, &format!("/en/runs/{id}"), 200).await.body);
    let run: Value = serde_json::from_str(&app.http.get(&format!("/api/v1/matrix-runs/{id}")).answer().await.body).unwrap();
    let t = Messages::of(&LANGUAGES[0]);
    let mut rows = Vec::new();
    for row in run["prefill"].as_array().unwrap() {
        let speed = t.figure(row["tokens_per_second"].as_f64(), 1);
        let ttft = t.figure(row["ttft_ms"].as_f64(), 0);
        rows.push(format!("Prefill {} 1 Valid {speed} — {ttft} — — 1 — —", t.context(row["context_tokens"].as_u64().unwrap())));
    }
    for cell in run["decode"].as_array().unwrap() {
        let status = match cell["status"].as_str().unwrap() {
            "valid" => "Valid",
            "queued" => "Requests queued",
            "over_capacity" => "Over capacity",
            other => panic!("{other}"),
        };
        let figure = |name: &str, decimals| t.figure(cell[name].as_f64(), decimals);
        rows.push(format!(
            "Sustained decode {} {} {status} {} {} {} {} {} {} {} {}",
            t.context(cell["context_tokens"].as_u64().unwrap()),
            cell["concurrency"],
            figure("total_tokens_per_second", 1),
            figure("per_request_tokens_per_second", 1),
            figure("ttft_ms", 0),
            figure("itl_ms", 1),
            figure("average_active_requests", 1),
            t.count(cell["completed_requests"].as_u64()),
            t.count(cell["output_tokens"].as_u64()),
            figure("measured_seconds", 1),
        ));
    }
    assert_eq!(rows.len(), 53);
    assert_in_order(&shown, &rows);
}

/// One line a context in both pictures of decode, one point for each measured cell, hollow where requests queued.
#[tokio::test]
async fn the_curves_draw_every_measured_cell() {
    let app = TestApp::new().await;
    let id = upload(&app, &[]).await;
    let html = page(&app, &format!("/en/runs/{id}"), 200).await.body;
    let charts: Vec<&str> = html.split("<svg class=\"chart\"").skip(1).map(|rest| rest.split("</svg>").next().unwrap()).collect();
    let points: Vec<_> = charts.iter().map(|chart| (chart.matches("<circle").count(), chart.matches(" hollow\"").count())).collect();
    assert_eq!(points, [(25, 4), (25, 4), (5, 0)]);
    for chart in &charts[..2] {
        let names: Vec<_> =
            ["0", "16K", "32K", "64K", "128K", "248K"].iter().filter(|name| chart.contains(&format!(">{name}</text>"))).collect();
        assert_eq!(names.len(), 6, "{chart}");
    }
    for place in html.split(" cx=\"").chain(html.split(" cy=\"")).skip(1).filter_map(|rest| rest.split('"').next()) {
        let at: f64 = place.parse().unwrap_or(0.0);
        assert!((0.0..=336.0).contains(&at), "{place} is outside");
    }
    // The slowest and the fastest valid total without context: 145.0 at 1 request, 993.5 at 16, on one scale from 0 at 216.
    let height = |text: &str| 216.0 - text.parse::<f64>().unwrap();
    let ys: Vec<&str> = charts[0].split("cy=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let (low, high) = (height(ys[ys.len() - 7]), height(ys[ys.len() - 3]));
    assert!((high / low - 993.5 / 145.0).abs() < 0.02, "{low} {high}");
}

/// A run of one level has no curve over levels, and one without prefill no prefill curve; the page stands all the same.
#[tokio::test]
async fn a_small_run_has_a_sound_page() {
    let app = TestApp::new().await;
    let id = upload(&app, &[]).await;
    let sql = "UPDATE runs SET detail = jsonb_set(jsonb_set(jsonb_set(detail, '{matrix,prefill}', '[]'), '{matrix,decode}',
        (SELECT jsonb_agg(cell) FROM jsonb_array_elements(detail->'matrix'->'decode') cell
         WHERE (cell->>'concurrency')::int = 1 AND (cell->>'context_tokens')::int = 0)), '{claim,launch_command}', 'null')";
    app.connect().await.batch_execute(sql).await.unwrap();
    let path = format!("/en/runs/{id}");
    let html = page(&app, &path, 200).await.body;
    html::assert_sound(&path, &html);
    assert!(!html.contains("<svg class=\"chart\"") && !text(&html).contains("Curves"), "{html}");
    assert_in_order(&text(&html), &["One request, no context", "145.0", "Sustained decode", "145.0", "All measurements"]);
}

/// The list's filters narrow it, their faults stand beside them, and the orders are the API's.
#[tokio::test]
async fn the_list_is_filtered_and_says_what_is_wrong() {
    let app = market().await;
    let all = page(&app, "/en/runs", 200).await.body;
    assert!(text(&all).contains("All public runs"), "{all}");
    let fast = text(&page(&app, "/en/runs?hardware=rtx-5090&sort=decode_peak", 200).await.body);
    assert_in_order(&fast, &["Runs that fit", "RTX 5090", "Clear all", "on RTX 5090", "Measured", "@sandberg"]);
    assert!(!fast.contains("on RTX 4090"), "{fast}");
    let none = text(&page(&app, "/en/runs?engine=sglang", 200).await.body);
    assert_in_order(&none, &["No run fits", "sglang", "Take away one of the conditions above."]);
    let first = page(&app, "/en/runs?limit=3&sort=decode_single", 200).await.body;
    assert!(first.contains("aria-sort=\"descending\"") && first.contains("rel=\"next\""), "{first}");
    let wrong = page(&app, "/en/runs?gpu_count=two&by=nobody-here&model=kept", 422).await.body;
    assert!(wrong.contains("id=\"e-gpu_count\">Enter a whole number, at least 1.<") && wrong.contains("value=\"kept\""), "{wrong}");
    let nobody = page(&app, "/en/runs?by=nobody-here", 422).await.body;
    assert!(nobody.contains("id=\"e-by\">There is no account with this handle.<") && nobody.contains("value=\"nobody-here\""), "{nobody}");
    html::assert_sound("/en/runs?by=nobody-here", &nobody);
}

#[tokio::test]
async fn what_an_uploader_writes_is_text() {
    let app = TestApp::new().await;
    let hostile = "\"><script>alert(1)</script><img src=x onerror=alert(1)>";
    let changes = [
        ("/launch_command", json!(format!("# {hostile}\nvllm serve {hostile}"))),
        ("/notes", json!(format!("line\n{hostile}"))),
        ("/model/revision", json!(hostile)),
        ("/engine/build", json!(hostile)),
        ("/hardware/cpu", json!(hostile)),
        ("/hardware/os", json!(hostile)),
    ];
    let id = upload(&app, &changes).await;
    for path in [format!("/en/runs/{id}"), "/en/runs".to_owned()] {
        let html = page(&app, &path, 200).await.body;
        assert!(!html.contains("<script>") && !html.contains("<img"), "{path}: {html}");
        assert_eq!(html.matches("<script").count(), 1, "only our own file");
    }
    let shown = text(&page(&app, &format!("/en/runs/{id}"), 200).await.body);
    assert!(shown.contains(&format!("vllm serve {hostile}")), "the text is there, as text");
}
