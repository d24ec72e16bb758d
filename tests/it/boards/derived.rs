//! Whatever happens to runs, the rows are what a plain computation over all runs and cells gives, and what a rebuild gives.

use std::collections::BTreeMap;

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::id::RunId;

use super::{change, count, host, run, with};
use crate::support::TestApp;
use crate::support::hosts::{RunRow, cell, execute};

#[derive(QueryableByName, Clone)]
struct Figure {
    #[diesel(sql_type = sql::Text)]
    group: String,
    #[diesel(sql_type = sql::Text)]
    account: String,
    #[diesel(sql_type = sql::Text)]
    run: String,
    #[diesel(sql_type = sql::Double)]
    figure: f64,
    #[diesel(sql_type = sql::Double)]
    age: f64,
}

#[derive(QueryableByName, Debug, PartialEq)]
struct Entry {
    #[diesel(sql_type = sql::Text)]
    group: String,
    #[diesel(sql_type = sql::Text)]
    run: String,
    #[diesel(sql_type = sql::Double)]
    figure: f64,
    #[diesel(sql_type = sql::Double)]
    lowest: f64,
    #[diesel(sql_type = sql::Double)]
    highest: f64,
    #[diesel(sql_type = sql::Integer)]
    run_count: i32,
    #[diesel(sql_type = sql::Integer)]
    account_count: i32,
}

/// The rows of `decode_at` over runs of any level and engine, as they stand.
async fn entries(app: &TestApp) -> Vec<Entry> {
    sql_query(
        r#"SELECT concat_ws('|', e.model, e.quantization, e.kv_cache_dtype, e.hardware_slug, e.gpu_count, b.context_tokens, b.concurrency) AS "group",
                  e.run_id::text AS run, e.figure, e.lowest, e.highest, e.run_count, e.account_count
           FROM leaderboard_entries e JOIN boards b ON b.id = e.board_id
           WHERE b.metric = 'decode_at' AND b.least_evidence = 'document' AND b.engine = '' ORDER BY 1"#,
    )
    .load(&mut app.connect().await)
    .await
    .unwrap()
}

/// The same from nothing but runs and cells, by sorting in Rust.
async fn computed(app: &TestApp) -> Vec<Entry> {
    let figures: Vec<Figure> = sql_query(
        r#"SELECT concat_ws('|', coalesce(r.model_slug, r.model_name), r.quantization, coalesce(r.kv_cache_dtype, 'auto'), r.hardware_slug,
                            r.gpu_count, c.context_tokens, c.concurrency) AS "group",
                  r.account_id::text AS account, r.id::text AS run, c.total_tokens_per_second AS figure,
                  -extract(epoch FROM r.created_at)::double precision AS age
           FROM runs r JOIN run_cells c ON c.run_id = r.id LEFT JOIN run_standings s ON s.run_id = r.id
           WHERE r.status = 'verified' AND r.visibility = 'public' AND s.disputed_at IS NULL AND c.status = 'valid'
             AND r.quantization IS NOT NULL AND r.hardware_slug IS NOT NULL"#,
    )
    .load(&mut app.connect().await)
    .await
    .unwrap();
    let mut groups: BTreeMap<String, BTreeMap<String, Vec<Figure>>> = BTreeMap::new();
    for figure in figures {
        groups.entry(figure.group.clone()).or_default().entry(figure.account.clone()).or_default().push(figure);
    }
    let entry = |(group, accounts): (String, BTreeMap<String, Vec<Figure>>)| {
        let all: Vec<&Figure> = accounts.values().flatten().collect();
        let (lowest, highest) = all.iter().fold((f64::MAX, f64::MIN), |(low, high), f| (low.min(f.figure), high.max(f.figure)));
        let (run_count, account_count) = (i32::try_from(all.len()).unwrap(), i32::try_from(accounts.len()).unwrap());
        let median = median(accounts.values().map(|own| median(own.clone())).collect());
        Entry { group, run: median.run, figure: median.figure, lowest, highest, run_count, account_count }
    };
    groups.into_iter().map(entry).collect()
}

/// Best first, newest of equals first; of two in the middle the weaker one.
fn median(mut figures: Vec<Figure>) -> Figure {
    figures.sort_by(|a, b| b.figure.total_cmp(&a.figure).then(a.age.total_cmp(&b.age)).then(a.run.cmp(&b.run)));
    figures.swap_remove(figures.len() / 2)
}

/// A sequence of numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

#[tokio::test]
async fn rows_are_what_a_computation_from_scratch_gives() {
    let app = TestApp::new().await;
    let mut machines = Vec::new();
    for number in 0..4 {
        machines.push(host(&app, &format!("host{number}")).await.1);
    }
    for seed in [1, 20_261_130, 987_654_321] {
        let mut numbers = Numbers(seed);
        let mut runs: Vec<RunId> = Vec::new();
        for step in 0..80 {
            if runs.len() < 3 || numbers.below(3) == 0 {
                let machine = numbers.pick(&machines);
                let row = random_run(&mut numbers, step);
                runs.push(run(&app, machine, &row).await);
            } else {
                let run = numbers.pick(&runs);
                random_change(&app, &mut numbers, run).await;
            }
            if step % 10 == 9 {
                assert_eq!(entries(&app).await, computed(&app).await, "seed {seed}, step {step}");
            }
        }
        let before = entries(&app).await;
        assert!(before.len() > 5 && before.iter().any(|entry| entry.account_count > 1), "too little to tell");
        execute(&app, "SELECT leaderboard_rebuild()").await;
        assert_eq!(entries(&app).await, before, "a rebuild, seed {seed}");
        execute(&app, "DELETE FROM leaderboard_entries").await;
        execute(&app, "DELETE FROM run_series").await;
        execute(&app, "SELECT leaderboard_rebuild()").await;
        assert_eq!(entries(&app).await, before, "a rebuild out of nothing, seed {seed}");
    }
}

fn random_run(numbers: &mut Numbers, step: i64) -> RunRow {
    let cells = [(0, 1), (0, 8), (16_384, 1)];
    let taken = 1 + numbers.below(cells.len());
    RunRow {
        status: numbers.pick(&["verified", "verified", "verified", "needs_review", "rejected"]),
        level: numbers.pick(&["document", "challenged", "remeasured"]),
        visibility: numbers.pick(&["public", "public", "public", "unlisted"]),
        quantization: numbers.pick(&[Some("mxfp4"), Some("mxfp4"), Some("fp8"), None]),
        hardware_slug: numbers.pick(&[Some("rtx-3090"), Some("rtx-3090"), Some("rtx-4090")]),
        age_seconds: 1_000 - step,
        // Few values, so that there are ties.
        ..with(cells.iter().take(taken).map(|(context, level)| cell(*context, *level, 50.0 + 10.0 * numbers.below(6) as f64)).collect())
    }
}

async fn random_change(app: &TestApp, numbers: &mut Numbers, run: RunId) {
    let changes = [
        "status = 'rejected'",
        "status = 'verified'",
        "visibility = 'unlisted'",
        "visibility = 'public'",
        "stale_at = now()",
        "evidence_level = 'remeasured'",
        "kv_cache_dtype = 'fp8'",
        "quantization = 'fp8'",
        "gpu_count = 2",
    ];
    match numbers.below(changes.len() + 2) {
        0 => {
            execute(
                app,
                &format!("UPDATE run_cells SET total_tokens_per_second = {} WHERE run_id = '{}'", 40 + numbers.below(9), run.uuid()),
            )
            .await;
            count(app, run).await;
        }
        1 => {
            let dispute = "INSERT INTO run_standings (run_id, disputed_at) VALUES";
            let text = format!("{dispute} ('{}', now()) ON CONFLICT (run_id) DO UPDATE SET disputed_at = NULL", run.uuid());
            execute(app, &text).await;
            count(app, run).await;
        }
        other => change(app, run, changes[other - 2]).await,
    }
}
