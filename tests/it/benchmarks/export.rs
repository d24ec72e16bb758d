//! The bulk export of cells: for whom it is, and that it is whole.

use diesel::{sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::json;

use crate::support::TestApp;
use crate::support::hosts::{Person, RunRow, cell, give_pro, machine, person, run};

/// Somebody with Pro, and runs of which two are exported.
async fn stage() -> (TestApp, Person) {
    let app = TestApp::new().await;
    let ada = person(&app, "ada").await;
    let machine = machine(&ada, None).await;
    let few = vec![cell(0, 1, 100.0), cell(0, 2, 150.5)];
    run(&app, machine, &RunRow { cells: few.clone(), ..RunRow::default() }).await;
    for hidden in [
        RunRow { visibility: "unlisted", cells: few.clone(), ..RunRow::default() },
        RunRow { status: "rejected", cells: few.clone(), ..RunRow::default() },
        RunRow { status: "needs_review", cells: few, ..RunRow::default() },
    ] {
        run(&app, machine, &hidden).await;
    }
    let mut invalid = cell(0, 2, 1.0);
    invalid.status = "invalid";
    run(&app, machine, &RunRow { cells: vec![cell(0, 1, 90.0), invalid], model_name: "=cmd()", model_slug: None, ..RunRow::default() })
        .await;
    (app, ada)
}

fn lines(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[tokio::test]
async fn the_export_is_for_pro_and_has_what_anybody_may_see() {
    let (app, ada) = stage().await;
    ada.http.get("/api/v1/cells.csv").expect_problem(403, "pro_required").await;
    give_pro(&app, &ada).await;
    let answer = ada.http.get("/api/v1/cells.csv").answer().await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type").as_deref()), (200, Some("text/csv; charset=utf-8")));
    let rows = lines(&answer.body);
    let shown: Vec<[&str; 7]> = rows.iter().map(|row| [1, 4, 6, 8, 12, 13, 14].map(|column| row[column].as_str())).collect();
    assert_eq!(
        shown,
        [
            ["ada", "gpt-oss-20b", "mxfp4", "rtx-3090", "0", "1", "100"],
            ["ada", "gpt-oss-20b", "mxfp4", "rtx-3090", "0", "2", "150.5"],
            ["ada", "'=cmd()", "mxfp4", "rtx-3090", "0", "1", "90"],
        ]
    );
    // A key needs no more than to read.
    let form = json!({ "name": "export", "scopes": ["account:read"] });
    let key = ada.http.post("/api/v1/api-keys").json(&form).expect(201).await;
    let by_key = app.http.with_bearer(key["key"].as_str().unwrap()).get("/api/v1/cells.csv").answer().await;
    assert_eq!(by_key.body, answer.body);
}

/// More than one statement reads, with cells of one run on both sides of a batch's end.
async fn fill(app: &TestApp, ada: &Person, contexts: i32) -> usize {
    let machine = machine(ada, None).await;
    let run = run(app, machine, &RunRow { cells: Vec::new(), ..RunRow::default() }).await;
    sql_query(
        "INSERT INTO run_cells (run_id, context_tokens, concurrency, status, total_tokens_per_second)
         SELECT $1, context, users, 'valid', context + users FROM generate_series(1, $2) context, generate_series(1, 61) users",
    )
    .bind::<sql::Uuid, _>(run)
    .bind::<sql::Integer, _>(contexts)
    .execute(&mut app.connect().await)
    .await
    .unwrap();
    usize::try_from(contexts).unwrap() * 61
}

#[tokio::test]
async fn every_cell_comes_once_across_batches() {
    let app = TestApp::new().await;
    let ada = person(&app, "ada").await;
    give_pro(&app, &ada).await;
    assert_eq!(lines(&ada.http.get("/api/v1/cells.csv").answer().await.body).len(), 0);
    let cells = fill(&app, &ada, 70).await;
    let rows = lines(&ada.http.get("/api/v1/cells.csv").answer().await.body);
    let mut places: Vec<(i32, i32)> = rows.iter().map(|row| (row[12].parse().unwrap(), row[13].parse().unwrap())).collect();
    assert!(places.is_sorted() && places.len() == cells, "{}", places.len());
    places.dedup();
    assert_eq!(places.len(), cells);
}

/// Read back by the format's own reader: types, nulls, and more than one row group.
#[tokio::test]
async fn the_parquet_file_has_the_same_cells() {
    let (app, ada) = stage().await;
    ada.http.get("/api/v1/cells.parquet").expect_problem(403, "pro_required").await;
    give_pro(&app, &ada).await;
    let cells = fill(&app, &ada, 340).await;
    let response = ada.http.get("/api/v1/cells.parquet").send().await;
    assert_eq!(response.headers()["content-type"], "application/vnd.apache.parquet");
    let file = SerializedFileReader::new(response.bytes().await.unwrap()).unwrap();
    assert_eq!(file.metadata().num_row_groups(), 2);
    let csv = lines(&ada.http.get("/api/v1/cells.csv").answer().await.body);
    assert_eq!(csv.len(), cells + 3);
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Int(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::TimestampMicros(micros) => {
            chrono::DateTime::from_timestamp_micros(*micros).unwrap().to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
        }
        other => panic!("{other:?}"),
    };
    for (row, of_csv) in file.get_row_iter(None).unwrap().zip(&csv) {
        let row: Vec<String> = row.unwrap().get_column_iter().map(|(_, field)| text(field)).collect();
        let plain: Vec<&str> = of_csv.iter().map(|text| text.strip_prefix('\'').unwrap_or(text)).collect();
        assert_eq!(row, plain);
    }
    assert_eq!(file.get_row_iter(None).unwrap().count(), csv.len());
}
