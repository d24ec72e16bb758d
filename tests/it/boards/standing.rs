//! What becomes of a run becomes of its row; what a client says of itself does not.

use rigmark::identity::service::grant_operator;
use serde_json::{Value, json};

use super::{board, change, host, run, single};
use crate::support::TestApp;
use crate::support::hosts::{self, RunRow, account_id, cell, person};

#[tokio::test]
async fn only_accepted_runs_and_valid_cells_count() {
    let app = TestApp::new().await;
    let (_, machine) = host(&app, "ann").await;
    run(&app, machine, &single(100.0)).await;
    for row in [
        RunRow { status: "rejected", ..single(900.0) },
        RunRow { status: "needs_review", ..single(900.0) },
        RunRow { visibility: "unlisted", ..single(900.0) },
        RunRow { quantization: None, ..single(900.0) },
        RunRow { hardware_slug: None, ..single(900.0) },
        RunRow { cells: vec![hosts::Cell { status: "queued", ..cell(0, 1, 900.0) }], ..RunRow::default() },
    ] {
        run(&app, machine, &row).await;
    }
    let rows = board(&app, "").await;
    assert_eq!((rows.len(), &rows[0]["figure"], &rows[0]["run_count"]), (1, &json!(100.0), &json!(1)), "{rows:?}");
}

#[tokio::test]
async fn a_row_follows_its_run() {
    let app = TestApp::new().await;
    let (_, machine) = host(&app, "ann").await;
    let run = run(&app, machine, &single(100.0)).await;
    let (_, other) = host(&app, "bob").await;
    super::run(&app, other, &single(80.0)).await;
    let figures = async |query: &str| -> Vec<f64> { board(&app, query).await.iter().map(|row| row["figure"].as_f64().unwrap()).collect() };
    assert_eq!(figures("").await, [80.0], "of two the weaker one");
    change(&app, run, "stale_at = now(), stale_reason = 'the driver changed'").await;
    let rows = board(&app, "").await;
    assert_eq!((&rows[0]["stale_run_count"], &rows[0]["run_count"]), (&json!(1), &json!(2)), "still there, marked");
    change(&app, run, "visibility = 'unlisted'").await;
    assert_eq!(board(&app, "").await[0]["run_count"], 1);
    change(&app, run, "visibility = 'public', evidence_level = 'remeasured'").await;
    assert_eq!(figures("evidence=remeasured").await, [100.0], "only runs of this level count");
    assert_eq!((figures("evidence=challenged").await, figures("evidence=document").await), (vec![80.0], vec![80.0]));
    change(&app, run, "engine_name = 'vllm'").await;
    assert_eq!((figures("engine=vllm").await, figures("engine=sglang").await), (vec![100.0], vec![]));
    // What it is said to be of changes: it leaves one row and makes another.
    change(&app, run, "quantization = 'fp8'").await;
    assert_eq!(figures("quantization=fp8").await, [100.0]);
    assert_eq!(figures("quantization=mxfp4").await, [80.0]);
    hosts::execute(&app, &format!("INSERT INTO run_standings (run_id, disputed_at) VALUES ('{}', now())", run.uuid())).await;
    super::count(&app, run).await;
    assert_eq!(figures("quantization=fp8").await, Vec::<f64>::new(), "in dispute");
}

/// An upload, its review, and what the leaderboard says of it, over HTTP alone.
#[tokio::test]
async fn uploads_and_reviews_show_at_once_and_only_cells_count() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let document: Value = serde_json::from_str(include_str!("../../documents/reference-run.json")).unwrap();
    let claim: Value = serde_json::from_str(include_str!("../../documents/reference-run.meta.json")).unwrap();
    let mut body = json!({"document": document});
    for part in ["hardware", "model", "engine", "launch_command"] {
        body[part] = claim[part].clone();
    }
    let run = ann.http.post("/api/v1/matrix-runs").json(&body).expect(201).await;
    assert_eq!(run["status"], "verified");
    let single = run["decode"].as_array().unwrap().iter().find(|cell| cell["context_tokens"] == 0 && cell["concurrency"] == 1).unwrap();
    let rows = board(&app, "").await;
    assert_eq!((rows.len(), &rows[0]["figure"], &rows[0]["run"]["id"]), (1, &single["total_tokens_per_second"], &run["id"]));
    assert_eq!(rows[0]["kv_cache_dtype"], "int4_per_token_head", "as the launch command names it");
    let prefill = board(&app, "metric=prefill_at&context=8k").await;
    assert_eq!((&prefill[0]["figure"], &prefill[0]["concurrency"]), (&json!(8_169.0), &Value::Null));
    let peak = board(&app, "metric=decode_peak").await;
    assert_eq!(
        (peak[0]["concurrency"].as_i64(), peak[0]["figure"].as_f64().unwrap().round()),
        (Some(16), 993.0),
        "queued cells are no peak"
    );

    // Another account's copy with a better summary and headline: judged by its cells, and not ranked.
    let bob = person(&app, "bob").await;
    let mut forged = body.clone();
    forged["document"]["summary_table"]["0"]["1"] = json!(999.0);
    let forged = bob.http.post("/api/v1/matrix-runs").json(&forged).expect(201).await;
    assert_ne!(forged["status"], "verified");
    let row = board(&app, "").await[0].clone();
    assert_eq!((&row["run_count"], &row["highest"]), (&json!(1), &single["total_tokens_per_second"]));

    grant_operator(app.ctx(), "bob").await.unwrap();
    let path = format!("/api/v1/admin/matrix-runs/{}/review", run["id"].as_str().unwrap());
    bob.http.post(&path).json(&json!({"decision": "reject", "reason": "Not this machine."})).expect(200).await;
    assert_eq!(board(&app, "").await.len(), 0, "rejected");
    assert!(account_id(&app, &ann).await != account_id(&app, &bob).await);
}

#[tokio::test]
async fn models_hardware_and_publishers_have_what_was_measured() {
    let app = TestApp::new().await;
    let (host, machine) = host(&app, "ann").await;
    let best = run(&app, machine, &single(100.0)).await;
    run(&app, machine, &RunRow { quantization: Some("fp8"), ..single(60.0) }).await;
    let report = json!({"model": "gpt-oss-20b", "hardware": "RTX 3090", "engine": "vllm", "quantization": "mxfp4", "context_tokens": 0,
        "concurrency": 1, "rate": "total", "tokens_per_second": 150.0});
    host.http.post("/api/v1/reports").json(&report).expect(201).await;
    for path in ["/api/v1/models/gpt-oss-20b", "/api/v1/hardware/rtx-3090"] {
        let page = app.http.get(path).expect(200).await;
        assert_eq!((&page["measured"]["accepted_run_count"], &page["reports"]["count"]), (&json!(2), &json!(1)), "{path}");
        let figures = page["measured"]["best"].as_array().unwrap();
        let single = figures.iter().find(|figure| figure["metric"] == "decode_single").unwrap();
        assert_eq!(
            (&single["figure"], &single["run_id"], &single["run_count"]),
            (&json!(100.0), &json!(best), &json!(1)),
            "{path}: no report"
        );
    }
    let models = app.http.get("/api/v1/models?publisher=openai").expect(200).await;
    let counts: Vec<_> =
        models["data"].as_array().unwrap().iter().map(|row| row["measured"]["accepted_run_count"].as_i64().unwrap()).collect();
    assert_eq!(counts, [2, 0]);
    let publisher = app.http.get("/api/v1/publishers/openai").expect(200).await;
    assert_eq!(
        (&publisher["model_count"], &publisher["accepted_run_count"], &publisher["reports"]["count"]),
        (&json!(2), &json!(2), &json!(1))
    );
    assert_eq!(publisher["models"][0]["measured"]["best"][0]["run_id"], json!(best));
    app.http.get("/api/v1/publishers/nobody").expect_problem(404, "not_found").await;
    let (mut slugs, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.http.get(&format!("/api/v1/publishers?limit=7{cursor}")).expect(200).await;
        slugs.extend(page["data"].as_array().unwrap().iter().map(|row| row["slug"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert!(slugs.is_sorted() && slugs.contains(&"openai".to_owned()) && slugs.len() > 7, "{slugs:?}");
}

#[tokio::test]
async fn the_methods_are_the_codes_own() {
    let app = TestApp::new().await;
    let methods = app.http.get("/api/v1/benchmarks").expect(200).await;
    assert_eq!(methods["rules_version"], rigmark::benchmarks::RULES_VERSION);
    let codes: Vec<_> = methods["checks"].as_array().unwrap().iter().map(|check| check["code"].as_str().unwrap()).collect();
    assert_eq!(codes, rigmark::benchmarks::CHECKS.iter().map(|check| check.code).collect::<Vec<_>>());
    let total = &methods["checks"][0];
    assert_eq!((&total["severities"][0]["severity_max"], &total["severities"][1]["severity_max"]), (&json!("error"), &json!("suspicious")));
    assert_eq!(methods["remeasuring"]["total_percent"], app.ctx().config.tunables.remeasure_total_percent);
    let suites: Vec<_> = methods["suites"].as_array().unwrap().iter().map(|suite| suite["id"].as_str().unwrap()).collect();
    assert_eq!(suites, ["sustained_decode", "prefill", "burst"]);
}

/// What the wrapper's quick profile measures is kept out of statistics (evidence.md 2).
#[tokio::test]
async fn a_quick_profile_is_not_ranked() {
    let app = TestApp::new().await;
    let (_, machine) = host(&app, "ann").await;
    let counted = run(&app, machine, &single(100.0)).await;
    assert_eq!(board(&app, "").await.len(), 1);
    let finding = r#"{"findings": [{"code": "profile_quick", "severity": "note", "message": ""}]}"#;
    change(&app, counted, &format!("detail = '{finding}'")).await;
    assert_eq!(board(&app, "").await.len(), 0);
}

/// Five organizations of one person are one voice; a colleague's run for the same organization is another.
#[tokio::test]
async fn a_person_counts_once_whatever_accounts_they_upload_for() {
    let app = TestApp::new().await;
    let (_, honest) = host(&app, "ann").await;
    run(&app, honest, &single(100.0)).await;
    let (_, other) = host(&app, "bob").await;
    run(&app, other, &single(110.0)).await;
    let mallory = person(&app, "mallory").await;
    let mallory_id = account_id(&app, &mallory).await;
    let mut last = None;
    for index in 0..5 {
        let handle = format!("shell-{index}");
        mallory.http.post("/api/v1/organizations").json(&json!({ "handle": handle })).expect(201).await;
        let machine = hosts::machine(&mallory, None).await;
        let run = hosts::run(&app, machine, &single(900.0)).await;
        let organization = hosts::Person { http: mallory.http.clone(), handle };
        let organization = account_id(&app, &organization).await;
        for statement in [
            format!("UPDATE runs SET account_id = '{}' WHERE id = '{}'", organization.uuid(), run.uuid()),
            format!(
                "INSERT INTO run_events (run_id, at, kind, account_id, user_id) VALUES ('{}', now(), 'uploaded', '{}', '{}')",
                run.uuid(),
                organization.uuid(),
                mallory_id.uuid()
            ),
        ] {
            hosts::execute(&app, &statement).await;
        }
        super::count(&app, run).await;
        last = Some(run);
    }
    let row = &board(&app, "").await[0];
    assert_eq!((&row["figure"], &row["account_count"], &row["run_count"]), (&json!(110.0), &json!(3), &json!(7)), "{row}");
    hosts::execute(&app, "SELECT leaderboard_rebuild()").await;
    assert_eq!(board(&app, "").await[0]["figure"], 110.0, "made out of nothing it is the same");
    // Without who uploaded it, a run counts for its account.
    let machine = hosts::machine(&mallory, None).await;
    let unsaid = hosts::run(&app, machine, &single(900.0)).await;
    super::count(&app, unsaid).await;
    assert_eq!(board(&app, "").await[0]["account_count"], 3, "which is the same person's");
    assert!(last.is_some());
}
