//! Some thousands of runs, made by `market/load.sql`: rankings and lists of runs answer what a plain scan would, and scan no table.

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};

use super::board;
use crate::support::TestApp;

const RUNS: u32 = 3_000;
const TABLES: [&str; 4] = ["runs", "run_cells", "leaderboard_entries", "listing_values"];

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = sql::BigInt)]
    count: i64,
}

#[derive(QueryableByName)]
struct Text {
    #[diesel(sql_type = sql::Text)]
    text: String,
}

async fn full_scans(app: &TestApp) -> Vec<(&'static str, i64)> {
    let mut conn = app.connect().await;
    conn.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    let mut scans = Vec::new();
    for table in TABLES {
        let text = "SELECT seq_scan AS count FROM pg_stat_user_tables WHERE relname = $1";
        scans.push((table, sql_query(text).bind::<sql::Text, _>(table).get_result::<Count>(&mut conn).await.unwrap().count));
    }
    scans
}

const LISTS: [(&str, &str); 9] = [
    ("", "true"),
    ("sort=decode_single", "true"),
    ("sort=decode_peak&engine=vllm", "engine_name = 'vllm'"),
    ("sort=prefill_peak&quantization=fp8", "quantization = 'fp8'"),
    ("model=load-model-0", "model_slug = 'load-model-0'"),
    ("model=load-model-1&sort=decode_peak&status=verified", "model_slug = 'load-model-1'"),
    ("publisher=load-3", "publisher = 'load-3'"),
    ("gpu_count=8&sort=decode_single", "gpu_count = 8"),
    ("status=rejected", "status = 'rejected'"),
];

#[tokio::test]
async fn thousands_of_runs_are_ranked_and_listed_by_index() {
    let app = TestApp::new().await;
    let mut conn = app.connect().await;
    conn.batch_execute(&format!("SET load.listings = '{RUNS}'")).await.unwrap();
    conn.batch_execute(include_str!("../market/load.sql")).await.unwrap();
    let before = full_scans(&app).await;
    for query in [
        "limit=100",
        "metric=decode_peak",
        "metric=decode_at&context=16k&concurrency=8",
        "metric=prefill_at&context=8k",
        "metric=ttft_at&context=16k&concurrency=8&evidence=challenged",
        "metric=tokens_per_dollar&context=16k&concurrency=8",
        "model=load-model-0",
        "publisher=load-3&engine=vllm",
        "quantization=fp8&gpu_count=2&evidence=remeasured",
    ] {
        let rows = board(&app, query).await;
        assert!(rows.len() >= 20, "{query}: {} rows are too few to tell", rows.len());
        let figures: Vec<f64> = rows.iter().map(|row| row["figure"].as_f64().unwrap()).collect();
        let ordered = if query.contains("ttft") { figures.is_sorted() } else { figures.is_sorted_by(|a, b| a >= b) };
        assert!(ordered, "{query}: {figures:?}");
    }
    for (query, _) in LISTS {
        // Deep: three pages.
        let (mut found, mut cursor) = (Vec::new(), String::new());
        for _ in 0..3 {
            let page = app.http.get(&format!("/api/v1/matrix-runs?{query}&limit=50{cursor}")).expect(200).await;
            found.extend(page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
    }
    assert_eq!(full_scans(&app).await, before, "a table was read whole");
    for (query, condition) in LISTS {
        let order = match query.split("sort=").nth(1).map(|rest| rest.split('&').next().unwrap()) {
            Some(figure) => format!("{figure}_tokens_per_second"),
            None => "created_at".to_owned(),
        };
        let text = format!("SELECT id::text AS text FROM runs WHERE {condition} ORDER BY {order} DESC, id DESC LIMIT 100");
        let expected: Vec<Text> = sql_query(text).load(&mut conn).await.unwrap();
        let expected: Vec<String> =
            expected.iter().map(|row| rigmark::base::id::RunId::from_uuid(row.text.parse().unwrap()).to_string()).collect();
        let page = app.http.get(&format!("/api/v1/matrix-runs?{query}&limit=100")).expect(200).await;
        let found: Vec<String> = page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(found, expected, "{query}");
    }
}
