//! Random times: drawn for listed machines, kept, and never a crowd.

use chrono::{DateTime, Utc};
use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;

use super::{Stage, detail, quick, run_with};
use crate::support::hosts::{self, RunRow, draft, execute};

const DAY: i64 = 86_400;

#[derive(QueryableByName, Debug, PartialEq)]
struct Row {
    #[diesel(sql_type = sql::Timestamptz)]
    due_at: DateTime<Utc>,
    #[diesel(sql_type = sql::Text)]
    reason: String,
    #[diesel(sql_type = sql::Integer)]
    failures: i32,
}

async fn rows(stage: &Stage) -> Vec<Row> {
    sql_query("SELECT due_at, reason, failures FROM remeasure_schedules ORDER BY machine_id")
        .load(&mut stage.app.connect().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listed_machine_is_measured_at_an_instant_that_was_drawn_for_it() {
    let stage = Stage::new(quick).await;
    stage.app.work().await;
    assert_eq!(rows(&stage).await, []);
    let listing = stage.publish().await;
    stage.app.work().await;
    let drawn = rows(&stage).await;
    assert_eq!(drawn.len(), 1);
    stage.app.work().await;
    assert_eq!(rows(&stage).await, drawn, "an instant stays until it has come");
    // However far the clock moves, one is queued, and measuring waits for the workers.
    stage.app.advance(80 * DAY).await;
    let all = stage.all().await;
    assert_eq!((all.len(), all[0]["reason"].as_str(), all[0]["status"].as_str()), (1, Some("random"), Some("queued")), "{all:?}");
    assert_eq!(stage.app.measure().await, 1);
    assert_eq!(stage.all().await[0]["status"], "agreed");
    stage.app.work().await;
    assert_ne!(rows(&stage).await, drawn);
    // Off the market nothing is drawn for it.
    stage.host.http.post(&format!("/api/v1/listings/{listing}/pause")).expect(200).await;
    stage.app.work().await;
    assert_eq!(rows(&stage).await, []);
}

#[tokio::test]
async fn of_many_that_are_due_two_are_open_at_a_time() {
    let stage = Stage::new(quick).await;
    for _ in 0..4 {
        let machine = hosts::machine(&stage.host, Some(stage.engine.url())).await;
        run_with(&stage.app, machine, &RunRow::default(), &detail(&super::config().law)).await;
        let listing = draft(&stage.host, machine, "1").await;
        stage.host.http.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
    }
    stage.app.work().await;
    stage.app.advance(85 * DAY).await;
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = sql::BigInt)]
        open: i64,
    }
    let count: Count = sql_query("SELECT count(*) AS open FROM remeasurements WHERE status = 'queued'")
        .get_result(&mut stage.app.connect().await)
        .await
        .unwrap();
    assert_eq!(count.open, 2);
}

#[tokio::test]
async fn an_engine_that_gives_nothing_is_tried_again_later_and_later() {
    let stage = Stage::new(quick).await;
    let listing = stage.publish().await;
    stage.app.work().await;
    execute(&stage.app, "UPDATE machines SET endpoint_url = 'http://127.0.0.1:9'").await;
    let mut waits = Vec::new();
    for failures in 1..=3 {
        execute(&stage.app, "UPDATE remeasure_schedules SET due_at = '2000-01-01'").await;
        stage.app.work().await;
        assert_eq!(stage.app.measure().await, 1);
        let row = rows(&stage).await.remove(0);
        assert_eq!((row.failures, row.reason.as_str()), (failures, "random"));
        waits.push((row.due_at - hosts::business_now(&stage.app).await).num_minutes());
    }
    assert_eq!(waits, [19, 39, 79]);
    assert_eq!(stage.listing(listing).await["state"], "published");
}
