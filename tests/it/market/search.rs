//! The public search: filters, workloads, orders, and pages of a market that moves.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rigmark::base::Money;
use rigmark::market::workload::{MeasuredCell, lightest_at_least};
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{Cell, Person, RunRow, cell, draft, engine, execute, id, person, published, run};

async fn data(app: &TestApp, query: &str) -> Vec<Value> {
    app.http.get(&format!("/api/v1/listings?{query}")).expect(200).await["data"].as_array().unwrap().clone()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

/// A published listing of this hardware.
async fn offer(app: &TestApp, host: &Person, url: &str, hardware: Value, region: Option<&str>, price: &str, row: &RunRow) -> String {
    let form = json!({ "name": "a", "hardware": hardware, "region": region, "endpoint": { "url": url } });
    let body = host.http.post("/api/v1/machines").json(&form).expect(201).await;
    let machine = id(&body["id"]);
    run(app, machine, &RunRow { hardware_slug: None, gpu_count: None, ..row.clone() }).await;
    let listing = draft(host, machine, price).await;
    host.http.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
    listing.to_string()
}

#[tokio::test]
async fn each_filter_keeps_what_it_names() {
    let app = TestApp::new().await;
    let (ann, bob) = (person(&app, "ann").await, person(&app, "bob").await);
    let engine = engine();
    let url = engine.url();
    let row = RunRow::default();
    let fp8 = RunRow { quantization: Some("fp8"), ..RunRow::default() };
    let r3090 = offer(&app, &ann, url, json!({ "gpu": "RTX 3090", "gpu_count": 1 }), Some("us-ca"), "0.30", &row).await;
    let ti = offer(&app, &ann, url, json!({ "gpu": "RTX 3090 Ti", "gpu_count": 1 }), Some("us"), "0.35", &row).await;
    let r4090 = offer(&app, &bob, url, json!({ "gpu": "RTX 4090", "gpu_count": 2, "vram_gib": 23.988 }), Some("de"), "0.90", &fp8).await;
    let ten = offer(&app, &bob, url, json!({ "gpu": "RTX 3080", "gpu_count": 1, "vram_gib": 10 }), None, "0.20", &row).await;
    let twelve = offer(&app, &bob, url, json!({ "gpu": "RTX 3080", "gpu_count": 8, "vram_gib": 12 }), Some("kr"), "16", &row).await;
    for (query, expected) in [
        ("", vec![&ten, &r3090, &ti, &r4090, &twelve]),
        ("hardware=RTX%203090", vec![&r3090]),
        ("hardware=rtx_3090", vec![&r3090]),
        ("hardware=NVIDIA+GeForce+RTX+3090", vec![&r3090]),
        ("hardware=rtx-3090-ti", vec![&ti]),
        ("vram_gib=24", vec![&r3090, &ti, &r4090]),
        ("vram_gib=23.988", vec![&r3090, &ti, &r4090]),
        ("vram_gib=10", vec![&ten]),
        ("vram_gib=12", vec![&twelve]),
        ("hardware=RTX+3080&vram_gib=12", vec![&twelve]),
        ("gpu_count=2", vec![&r4090]),
        ("region=us", vec![&r3090, &ti]),
        ("region=us-ca", vec![&r3090]),
        ("region=us-tx", vec![]),
        // Per machine, never per GPU: sixteen dollars for eight GPUs are not two.
        ("max_price=2", vec![&ten, &r3090, &ti, &r4090]),
        ("max_price=0.35", vec![&ten, &r3090, &ti]),
        ("max_price=0.349999", vec![&ten, &r3090]),
        ("quantization=FP8", vec![&r4090]),
        ("quantization=float8", vec![&r4090]),
        ("quantization=something", vec![]),
        ("by=@ann", vec![&r3090, &ti]),
        ("by=ann&region=us-ca&gpu_count=1&vram_gib=24&max_price=1&quantization=mxfp4&hardware=rtx-3090", vec![&r3090]),
        ("by=@nobody", vec![]),
    ] {
        let rows = data(&app, query).await;
        assert_eq!(ids(&rows), expected, "{query}");
    }
    assert_eq!(data(&app, "gpu_count=8").await[0]["price_per_hour"], "16.00");
}

#[tokio::test]
async fn what_is_no_search_is_refused_with_the_parameter() {
    let app = TestApp::new().await;
    for (query, pointers) in [
        ("vram_gb=24", vec!["?vram_gb"]),
        ("model=gpt-oss-20b", vec!["?context", "?concurrency"]),
        ("context=16k", vec!["?model", "?concurrency"]),
        ("model=gpt-oss-20b&concurrency=8", vec!["?context"]),
        ("model=gpt-oss-20b&context=16x&concurrency=0", vec!["?context", "?concurrency"]),
        ("sort=tokens_per_second", vec!["?sort"]),
        ("sort=ttft&max_ttft_ms=100&min_tokens_per_second=1", vec!["?min_tokens_per_second", "?max_ttft_ms", "?sort"]),
        ("sort=fastest", vec!["?sort"]),
        ("hardware=RTX+6000", vec!["?hardware"]),
        ("hardware=Voodoo+2", vec!["?hardware"]),
        ("region=US", vec!["?region"]),
        ("max_price=1e3", vec!["?max_price"]),
        ("max_price=-1", vec!["?max_price"]),
        ("vram_gib=NaN", vec!["?vram_gib"]),
        ("gpu_count=0", vec!["?gpu_count"]),
        ("limit=0", vec!["?limit"]),
        ("limit=101", vec!["?limit"]),
    ] {
        let problem = app.http.get(&format!("/api/v1/listings?{query}")).expect_problem(422, "invalid_input").await;
        let found: Vec<&str> = problem["errors"].as_array().unwrap().iter().map(|e| e["pointer"].as_str().unwrap()).collect();
        assert_eq!(found, pointers, "{query}: {problem}");
    }
    let problem = app.http.get("/api/v1/listings?hardware=RTX+6000").expect_problem(422, "invalid_input").await;
    assert_eq!(problem["candidates"].as_array().unwrap().len(), 5);
    let cursor = "/api/v1/listings?cursor=nonsense";
    app.http.get(cursor).expect_problem(400, "invalid_cursor").await;
}

#[tokio::test]
async fn a_workload_finds_the_lightest_valid_cell_that_is_at_least_as_heavy() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let invalid = |context, users, status| Cell { status, ..cell(context, users, 9_999.0) };
    let cells = vec![
        cell(0, 1, 100.0),
        cell(8_000, 4, 200.0),
        invalid(16_384, 4, "queued"),
        cell(16_384, 8, 240.0),
        invalid(16_384, 16, "over_capacity"),
        cell(32_768, 4, 120.0),
        cell(32_768, 16, 320.0),
    ];
    let offer = published(&app, &ann, engine.url(), "0.36", &RunRow { cells, ..RunRow::default() }).await;
    for (context, users, found) in [
        ("0", 1, Some((0, 1))),
        ("0", 2, Some((8_000, 4))),
        ("1", 1, Some((8_000, 4))),
        ("8000", 4, Some((8_000, 4))),
        ("8001", 1, Some((16_384, 8))),
        ("16k", 8, Some((16_384, 8))),
        ("16384", 9, Some((32_768, 16))),
        ("32k", 4, Some((32_768, 4))),
        ("32k", 5, Some((32_768, 16))),
        ("32k", 17, None),
        ("32769", 1, None),
    ] {
        let rows = data(&app, &format!("model=gpt-oss-20b&context={context}&concurrency={users}")).await;
        let matched = rows.first().map(|row| &row["match"]["cell"]);
        let cell = matched.map(|cell| (cell["context_tokens"].as_i64().unwrap(), cell["concurrency"].as_i64().unwrap()));
        assert_eq!(cell, found, "{context} x {users}");
    }
    let row = &data(&app, "model=openai/gpt-oss-20b&context=16k&concurrency=6").await[0]["match"];
    assert_eq!(row["run_id"], offer.run.to_string());
    assert_eq!((row["tokens_per_second_per_user"].as_f64(), row["ttft_ms"].as_f64()), (Some(30.0), Some(50.0)));
    assert_eq!((row["cold_ttft_ms"].as_f64(), row["cell"]["total_tokens_per_second"].as_f64()), (Some(1_738.4), Some(240.0)));
    // 0.36 $/h ÷ (30 tokens/s × 6 users × 3600 s) × 10^6.
    assert_eq!(row["price_per_million_output_tokens"], "0.555556");
    let rows =
        data(&app, "model=gpt-oss-20b&context=16k&concurrency=6&quantization=MXFP4&min_tokens_per_second=30&max_ttft_ms=1738.4").await;
    assert_eq!(rows.len(), 1);
    for tighter in ["min_tokens_per_second=30.001", "max_ttft_ms=1738.3", "quantization=fp8"] {
        assert_eq!(data(&app, &format!("model=gpt-oss-20b&context=16k&concurrency=6&{tighter}")).await.len(), 0, "{tighter}");
    }
    assert_eq!(data(&app, "model=gpt-oss-120b&context=0&concurrency=1").await.len(), 0);
    assert!(data(&app, "").await[0].get("match").is_none(), "without a workload there is no match");
}

#[tokio::test]
async fn a_model_that_the_catalog_does_not_know_is_found_under_its_name() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let row = RunRow { model_slug: None, model_name: "Org/My-Model v2", quantization: None, ..RunRow::default() };
    published(&app, &ann, engine.url(), "0.36", &row).await;
    assert_eq!(data(&app, "model=Org/My-Model+v2&context=0&concurrency=1").await.len(), 1);
    assert_eq!(data(&app, "model=Org/My-Model&context=0&concurrency=1").await.len(), 0);
}

/// Several listings whose only difference is their runs' cells and their price.
async fn market(app: &TestApp, host: &Person, url: &str, rows: &[(&str, Vec<Cell>)]) -> Vec<String> {
    let mut made = Vec::new();
    for (price, cells) in rows {
        let row = RunRow { cells: cells.clone(), ..RunRow::default() };
        made.push(published(app, host, url, price, &row).await.listing.to_string());
    }
    made
}

#[tokio::test]
async fn orders_go_by_what_they_say() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let no_cold = Cell { cold_ttft_ms: None, ..cell(16_384, 8, 1_000.0) };
    let slow_start = Cell { cold_ttft_ms: Some(9_000.0), ..cell(16_384, 8, 500.0) };
    let quick_start = Cell { cold_ttft_ms: Some(300.0), ..cell(16_384, 8, 80.0) };
    let rows = [("2.00", vec![no_cold]), ("0.50", vec![slow_start]), ("0.40", vec![quick_start])];
    let made = market(&app, &ann, engine.url(), &rows).await;
    let [fast, cheap_output, quick] = [&made[0], &made[1], &made[2]];
    let workload = "model=gpt-oss-20b&context=16k&concurrency=8";
    for (sort, expected) in [
        ("", [cheap_output, fast, quick]),
        ("&sort=price_per_million_tokens", [cheap_output, fast, quick]),
        ("&sort=price", [quick, cheap_output, fast]),
        ("&sort=tokens_per_second", [fast, cheap_output, quick]),
        ("&sort=ttft", [quick, cheap_output, fast]),
    ] {
        assert_eq!(ids(&data(&app, &format!("{workload}{sort}")).await), expected, "{sort}");
    }
    // A TTFT that was not measured meets no bound.
    assert_eq!(ids(&data(&app, &format!("{workload}&max_ttft_ms=100000&sort=price")).await), [quick, cheap_output]);
    assert_eq!(data(&app, &format!("{workload}&sort=ttft")).await[2]["match"]["cold_ttft_ms"], Value::Null);
}

/// All pages of a search; `between` may change the market after each page.
async fn walk(app: &TestApp, query: &str, limit: usize, mut between: impl AsyncFnMut(usize)) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    for page_number in 0.. {
        let page = app.http.get(&format!("/api/v1/listings?{query}&limit={limit}{cursor}")).expect(200).await;
        let found = page["data"].as_array().unwrap();
        assert!(found.len() <= limit);
        rows.extend(found.iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
        between(page_number).await;
    }
    rows
}

const WORKLOAD: &str = "model=gpt-oss-20b&context=16k&concurrency=8";

#[tokio::test]
async fn pages_of_a_moving_market_neither_skip_nor_repeat_what_did_not_move() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    // Many equal prices and speeds, so that the id decides.
    let rows: Vec<(&str, Vec<Cell>)> = (0..12)
        .map(|i| {
            let cold_ttft_ms = if i % 4 == 0 { None } else { Some(100.0 * f64::from(i % 3)) };
            (["0.30", "0.40", "0.50"][i as usize % 3], vec![Cell { cold_ttft_ms, ..cell(16_384, 8, f64::from(100 + i % 2)) }])
        })
        .collect();
    let made = market(&app, &ann, engine.url(), &rows).await;
    for query in [
        "sort=price".to_owned(),
        format!("{WORKLOAD}&sort=price"),
        format!("{WORKLOAD}&sort=price_per_million_tokens"),
        format!("{WORKLOAD}&sort=tokens_per_second"),
        format!("{WORKLOAD}&sort=ttft"),
    ] {
        let whole = data(&app, &query).await;
        assert_eq!(whole.len(), 12, "{query}");
        for limit in [1, 3, 5, 12] {
            let walked = walk(&app, &query, limit, async |_| {}).await;
            assert_eq!(ids(&walked), ids(&whole), "{query} by {limit}");
        }
        // A row goes, another's price rises past the end, a third falls before the start.
        let (gone, risen, fallen) = (&made[3], &made[7], &made[10]);
        let patch = async |id: &str, price: &str| {
            ann.http.patch(&format!("/api/v1/listings/{id}")).json(&json!({ "price_per_hour": price })).expect(200).await
        };
        let walked = walk(&app, &query, 2, async |page| {
            if page == 1 {
                ann.http.post(&format!("/api/v1/listings/{gone}/pause")).expect(200).await;
                patch(risen, "9").await;
                patch(fallen, "0.01").await;
            }
        })
        .await;
        let moved = BTreeSet::from([gone.as_str(), risen.as_str(), fallen.as_str()]);
        let stayed: Vec<&str> = ids(&walked).into_iter().filter(|id| !moved.contains(id)).collect();
        let expected: Vec<&str> = ids(&whole).into_iter().filter(|id| !moved.contains(id)).collect();
        assert_eq!(stayed, expected, "{query}");
        ann.http.post(&format!("/api/v1/listings/{gone}/publish")).expect(200).await;
        for (id, number) in [(risen, 7), (fallen, 10)] {
            patch(id, rows[number].0).await;
        }
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_search() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    for _ in 0..2 {
        published(&app, &ann, engine.url(), "0.30", &RunRow::default()).await;
    }
    let page = app.http.get("/api/v1/listings?limit=1").expect(200).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(app.http.get(&format!("/api/v1/listings?limit=1&cursor={cursor}")).expect(200).await["next_cursor"], Value::Null);
    for foreign in [format!("max_price=1&cursor={cursor}"), format!("{WORKLOAD}&cursor={cursor}"), format!("cursor={}", &cursor[1..])] {
        app.http.get(&format!("/api/v1/listings?{foreign}")).expect_problem(400, "invalid_cursor").await;
    }
}

/// SQL against the definition, on matrices of every shape.
#[tokio::test]
async fn every_workload_gets_the_cell_of_the_definition() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "0.37", &RunRow { cells: Vec::new(), ..RunRow::default() }).await;
    let contexts = prop_oneof![Just(0), Just(4_096), Just(16_384), 0..70_000_i32];
    let one = (contexts.clone(), 1..20_i32, any::<bool>(), 1.0..500.0_f64);
    let cells = prop::collection::btree_map((0..7_usize, 0..5_usize), one, 0..20);
    let mut runner = TestRunner::default();
    for _ in 0..12 {
        execute(&app, "DELETE FROM run_cells").await;
        let drawn: std::collections::BTreeMap<(i32, i32), (bool, f64)> =
            cells.new_tree(&mut runner).unwrap().current().into_values().map(|(c, u, valid, total)| ((c, u), (valid, total))).collect();
        let mut measured = Vec::new();
        for ((context_tokens, concurrency), (valid, total)) in drawn {
            let status = if valid { "valid" } else { "queued" };
            let values = format!("'{}', {context_tokens}, {concurrency}, '{status}', {total}", offer.run.uuid());
            let columns = "run_id, context_tokens, concurrency, status, total_tokens_per_second";
            execute(&app, &format!("INSERT INTO run_cells ({columns}) VALUES ({values})")).await;
            if valid {
                measured.push(MeasuredCell {
                    context_tokens,
                    concurrency,
                    total_tokens_per_second: total,
                    ttft_ms: None,
                    cold_ttft_ms: None,
                });
            }
        }
        execute(&app, "SELECT listing_answers_refresh(array_agg(id)) FROM listings").await;
        for _ in 0..15 {
            let (context, users) =
                (contexts.new_tree(&mut runner).unwrap().current(), (1..20_i32).new_tree(&mut runner).unwrap().current());
            let rows = data(&app, &format!("model=gpt-oss-20b&context={context}&concurrency={users}")).await;
            let expected = lightest_at_least(&measured, context, users);
            assert_eq!(rows.len(), usize::from(expected.is_some()), "{context} x {users} of {measured:?}");
            let Some(expected) = expected else { continue };
            let found = &rows[0]["match"];
            let cell = json!({
                "context_tokens": expected.context_tokens, "concurrency": expected.concurrency,
                "total_tokens_per_second": expected.total_tokens_per_second,
            });
            assert_eq!(found["cell"], cell, "{context} x {users} of {measured:?}");
            let price = expected.price_per_million_output_tokens(Money::usd_micros(370_000), users).unwrap();
            assert_eq!(found["price_per_million_output_tokens"], price.to_string());
        }
    }
}
