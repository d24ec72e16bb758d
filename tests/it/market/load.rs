//! A market of some thousands of listings, made by `load.sql`: the search answers what a plain scan would, and reads no more of `run_cells`
//! than the listings of one model. `load.sql` says how to make a hundred thousand by hand.

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use rigmark::market::price::per_million_sql;
use serde_json::Value;

use crate::support::TestApp;

const LISTINGS: u32 = 3_000;

#[derive(QueryableByName)]
struct Expected {
    #[diesel(sql_type = sql::Uuid)]
    id: uuid::Uuid,
}

#[derive(QueryableByName)]
struct Reads {
    #[diesel(sql_type = sql::BigInt)]
    scans: i64,
}

async fn full_scans(app: &TestApp, table: &str) -> i64 {
    let mut conn = app.connect().await;
    conn.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    let text = "SELECT seq_scan AS scans FROM pg_stat_user_tables WHERE relname = $1";
    sql_query(text).bind::<sql::Text, _>(table).get_result::<Reads>(&mut conn).await.unwrap().scans
}

#[tokio::test]
async fn searching_thousands_answers_as_a_scan_would_and_scans_no_cells() {
    let app = TestApp::new().await;
    let mut conn = app.connect().await;
    conn.batch_execute(&format!("SET load.listings = '{LISTINGS}'")).await.unwrap();
    conn.batch_execute(include_str!("load.sql")).await.unwrap();
    let before = full_scans(&app, "run_cells").await;
    let open = "state = 'published' AND NOT is_taken";
    let costs = format!(
        "SELECT l.id FROM listings l CROSS JOIN LATERAL (
             SELECT * FROM run_cells c WHERE c.run_id = l.run_id AND status = 'valid' AND context_tokens >= 16000 AND concurrency >= 4
             ORDER BY context_tokens, concurrency LIMIT 1) cell {}
         WHERE model = 'load-model-0' AND {open} ORDER BY per_million.micros, l.id",
        per_million_sql("4")
    );
    let cell = "SELECT id, price_per_hour_micros, (SELECT total_tokens_per_second / concurrency FROM run_cells c WHERE c.run_id = l.run_id
                    AND status = 'valid' AND context_tokens >= 16000 AND concurrency >= 4 ORDER BY context_tokens, concurrency LIMIT 1) AS speed,
                    (SELECT cold_ttft_ms FROM run_cells c WHERE c.run_id = l.run_id
                    AND status = 'valid' AND context_tokens >= 16000 AND concurrency >= 4 ORDER BY context_tokens, concurrency LIMIT 1)
                FROM listings l WHERE model = 'load-model-0' AND state = 'published' AND NOT is_taken";
    for (query, expected) in [
        ("sort=price", format!("SELECT id FROM listings WHERE {open} ORDER BY price_per_hour_micros, id")),
        (
            "region=us&gpu_count=2&max_price=3.5&vram_gib=24",
            format!(
                "SELECT id FROM listings WHERE {open} AND region LIKE 'us%' AND gpu_count = 2 AND price_per_hour_micros <= 3500000
                 AND vram_gib = 24 ORDER BY price_per_hour_micros, id"
            ),
        ),
        (
            "model=load-model-0&context=16000&concurrency=4&sort=tokens_per_second",
            format!("SELECT id FROM ({cell}) x WHERE speed IS NOT NULL ORDER BY speed DESC, id"),
        ),
        ("model=load-model-0&context=16000&concurrency=4", costs),
        (
            "model=load-model-0&context=16000&concurrency=4&sort=ttft",
            format!("SELECT id FROM ({cell}) x WHERE speed IS NOT NULL ORDER BY cold_ttft_ms NULLS LAST, id"),
        ),
        (
            "model=load-model-0&context=16000&concurrency=4&sort=price&min_tokens_per_second=30",
            format!("SELECT id FROM ({cell}) x WHERE speed >= 30 ORDER BY price_per_hour_micros, id"),
        ),
    ] {
        let expected: Vec<Expected> = sql_query(format!("{expected} LIMIT 250")).load(&mut conn).await.unwrap();
        let (mut found, mut cursor) = (Vec::new(), String::new());
        while found.len() < expected.len() {
            let page = app.http.get(&format!("/api/v1/listings?{query}&limit=100{cursor}")).expect(200).await;
            let ids = page["data"].as_array().unwrap().iter().map(|row: &Value| row["id"].as_str().unwrap().to_owned());
            found.extend(ids);
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let expected: Vec<String> = expected.iter().map(|row| rigmark::base::id::ListingId::from_uuid(row.id).to_string()).collect();
        assert!(expected.len() > 3, "{query}: the market is too small to tell");
        assert_eq!(found[..expected.len()], expected, "{query}");
    }
    drop(conn);
    assert_eq!(full_scans(&app, "run_cells").await, before);
}
