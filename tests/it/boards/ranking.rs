//! Medians by hand, accounts that upload a lot, and who shares a rank with whom.

use serde_json::{Value, json};

use super::{board, change, host, run, single, with};
use crate::support::TestApp;
use crate::support::hosts::{RunRow, cell, machine};

#[tokio::test]
async fn the_figure_is_the_median_and_names_the_run_that_has_it() {
    let app = TestApp::new().await;
    let mut runs = Vec::new();
    for (handle, speed) in [("ann", 100.0), ("bob", 80.0), ("cyd", 90.0)] {
        let (_, machine) = host(&app, handle).await;
        runs.push(run(&app, machine, &single(speed)).await.to_string());
    }
    let rows = board(&app, "").await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!(
        (&row["figure"], &row["lowest"], &row["highest"]),
        (&json!(90.0), &json!(80.0), &json!(100.0)),
        "odd: the one in the middle"
    );
    assert_eq!((&row["run_count"], &row["account_count"], &row["stale_run_count"]), (&json!(3), &json!(3), &json!(0)));
    assert_eq!(
        (&row["run"]["id"], &row["run"]["by"], &row["run"]["evidence_level"]),
        (&json!(runs[2]), &json!("@cyd"), &json!("challenged"))
    );
    assert_eq!((&row["model"], &row["quantization"], &row["kv_cache_dtype"]), (&json!("gpt-oss-20b"), &json!("mxfp4"), &json!("auto")));
    assert_eq!((&row["hardware"], &row["gpu_count"], &row["unit"]), (&json!("rtx-3090"), &json!(1), &json!("tokens_per_second")));
    assert_eq!((&row["publisher"], &row["offer"]), (&json!("openai"), &Value::Null));

    let (_, machine) = host(&app, "dee").await;
    let weakest = run(&app, machine, &single(70.0)).await;
    let rows = board(&app, "").await;
    // 100, 90, 80, 70: of 90 and 80 the weaker one.
    assert_eq!((&rows[0]["figure"], &rows[0]["run"]["id"]), (&json!(80.0), &json!(runs[1])), "even");
    // 50 ms in every cell that hosts make; this one is slower, and of two the slower stands.
    let (_, machine) = host(&app, "eve").await;
    let late = run(&app, machine, &RunRow { quantization: Some("fp8"), ..single(60.0) }).await;
    let (_, machine) = host(&app, "fay").await;
    let later = run(&app, machine, &RunRow { quantization: Some("fp8"), ..single(60.0) }).await;
    crate::support::hosts::execute(&app, &format!("UPDATE run_cells SET ttft_ms = 75 WHERE run_id = '{}'", later.uuid())).await;
    super::count(&app, late).await;
    let rows = board(&app, "metric=ttft_at&context=0&concurrency=1&quantization=fp8").await;
    assert_eq!((&rows[0]["figure"], &rows[0]["run"]["id"], &rows[0]["unit"]), (&json!(75.0), &json!(later), &json!("milliseconds")));
    assert_eq!((&rows[0]["lowest"], &rows[0]["highest"]), (&json!(50.0), &json!(75.0)));
    assert!(board(&app, "metric=ttft_at&context=0&concurrency=1&quantization=mxfp4").await.len() == 1 && weakest != late);
}

#[tokio::test]
async fn an_account_counts_once_however_much_it_uploads() {
    let app = TestApp::new().await;
    let (stuffer, first) = host(&app, "stuffer").await;
    let second = machine(&stuffer, None).await;
    for number in 0..10 {
        run(&app, first, &single(200.0 + f64::from(number))).await;
        run(&app, second, &single(210.0 + f64::from(number))).await;
    }
    let mut honest = Vec::new();
    for (handle, speed) in [("ann", 100.0), ("bob", 90.0)] {
        let (_, machine) = host(&app, handle).await;
        honest.push(run(&app, machine, &single(speed)).await);
    }
    let rows = board(&app, "").await;
    // Three accounts: 209 (the weaker in the middle of 219 … 200), 100 and 90.
    assert_eq!((&rows[0]["figure"], &rows[0]["run"]["id"]), (&json!(100.0), &json!(honest[0])));
    assert_eq!((&rows[0]["run_count"], &rows[0]["account_count"], &rows[0]["highest"]), (&json!(22), &json!(3), &json!(219.0)));
}

#[tokio::test]
async fn rows_that_cannot_be_compared_never_share_a_rank() {
    let app = TestApp::new().await;
    let rows = [
        ("ann", RunRow { quantization: Some("awq-4bit"), ..single(100.0) }, None),
        ("bob", RunRow { quantization: Some("awq-4bit"), gpu_count: Some(2), ..single(100.0) }, None),
        ("cyd", RunRow { quantization: Some("fp8"), ..single(100.0) }, None),
        ("dee", RunRow { quantization: Some("awq-4bit"), ..single(100.0) }, Some("fp8")),
        ("eve", RunRow { quantization: Some("awq-4bit"), ..with(vec![cell(0, 8, 80.0), cell(4_096, 1, 100.0)]) }, None),
        ("fay", RunRow { quantization: Some("awq-4bit"), hardware_slug: Some("rtx-4090"), ..single(50.0) }, None),
    ];
    for (handle, row, kv) in rows {
        let (_, machine) = host(&app, handle).await;
        let run = run(&app, machine, &row).await;
        if let Some(kv) = kv {
            change(&app, run, &format!("kv_cache_dtype = '{kv}'")).await;
        }
    }
    let found = board(&app, "").await;
    let ranks: Vec<_> = found.iter().map(|row| (row["rank"].as_i64().unwrap(), row["run"]["by"].as_str().unwrap())).collect();
    // Equal figures: ann and bob differ in hardware alone and share theirs; dee's KV cache and cy's quantization do not compare.
    assert_eq!(ranks, [(1, "@ann"), (1, "@bob"), (3, "@dee"), (4, "@cyd"), (5, "@fay")]);
    let narrow = |query: &'static str| board(&app, query);
    assert_eq!(narrow("kv_cache_dtype=fp8_e4m3").await[0]["run"]["by"], "@dee", "any spelling");
    assert_eq!(narrow("quantization=FP8").await[0]["rank"], 1, "the rank is in the list as asked for");
    assert_eq!(narrow("gpu_count=2&hardware=RTX%203090").await.len(), 1);
    assert_eq!(narrow("publisher=openai&model=gpt-oss-20b").await.len(), 5);
    assert_eq!(narrow("metric=decode_at&context=0&concurrency=8").await[0]["run"]["by"], "@eve");
    assert_eq!(narrow("metric=decode_at&context=4k&concurrency=1").await[0]["context_tokens"], 4_096);
    assert_eq!(narrow("metric=decode_at&context=4k&concurrency=8").await.len(), 0);
    assert_eq!(narrow("metric=decode_peak").await.iter().find(|row| row["run"]["by"] == "@eve").unwrap()["concurrency"], 8);
}

#[tokio::test]
async fn pages_go_on_in_the_middle_of_a_tie() {
    let app = TestApp::new().await;
    for (number, count) in [1, 2, 4, 8].into_iter().enumerate() {
        let (_, machine) = host(&app, &format!("host{number}")).await;
        run(&app, machine, &RunRow { gpu_count: Some(count), ..single(100.0) }).await;
        run(&app, machine, &RunRow { gpu_count: Some(count), quantization: Some("fp8"), ..single(100.0) }).await;
    }
    let whole = board(&app, "limit=100").await;
    let ranks: Vec<_> = whole.iter().map(|row| row["rank"].as_i64().unwrap()).collect();
    assert_eq!(ranks, [1, 1, 1, 1, 5, 5, 5, 5]);
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.http.get(&format!("/api/v1/leaderboard?limit=3{cursor}")).expect(200).await;
        found.extend(page["data"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, whole);
    let foreign = cursor.replace("&cursor=", "");
    app.http.get(&format!("/api/v1/leaderboard?metric=decode_peak&cursor={foreign}")).expect_problem(400, "invalid_cursor").await;
}

#[tokio::test]
async fn what_a_metric_needs_is_said() {
    let app = TestApp::new().await;
    for (query, pointer, code) in [
        ("metric=decode_at&concurrency=1", "?context", "missing_field"),
        ("metric=decode_at&context=16k", "?concurrency", "missing_field"),
        ("metric=prefill_at", "?context", "missing_field"),
        ("concurrency=4", "?concurrency", "not_applicable"),
        ("metric=ttft_at&context=1x&concurrency=1", "?context", "invalid_value"),
        ("metric=ttft_at&context=0&concurrency=0", "?concurrency", "out_of_range"),
        ("evidence=reported", "?evidence", "invalid_value"),
        ("hardware=abacus", "?hardware", "unknown_hardware"),
        ("gpu_count=0", "?gpu_count", "out_of_range"),
    ] {
        let problem = app.http.get(&format!("/api/v1/leaderboard?{query}")).expect_problem(422, "invalid_input").await;
        let errors = problem["errors"].as_array().unwrap();
        assert!(errors.iter().any(|error| error["pointer"] == pointer && error["code"] == code), "{query}: {problem}");
    }
}
