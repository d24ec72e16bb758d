//! The runs beside one: copies by their marks, and the same setup by the index; and the document that came in.

use rigmark::base::id::RunId;
use serde_json::{Value, json};

use super::{Stage, needs_review};
use crate::benchmarks;
use crate::support::TestApp;
use crate::support::hosts::{RunRow, cell, execute, person};

#[tokio::test]
async fn a_copy_stands_first_with_how_much_of_it_is_the_same() {
    let app = TestApp::new().await;
    let olga = super::operator(&app, "olga").await;
    let mut body: Value = serde_json::from_slice(&benchmarks::bytes("reference-run.meta.json")).unwrap();
    body["document"] = serde_json::from_slice(&benchmarks::bytes("reference-run.json")).unwrap();
    let upload = async |handle: &str| person(&app, handle).await.http.post("/api/v1/matrix-runs").json(&body).expect(201).await;
    let (original, copy) = (upload("ann").await, upload("mallory").await);
    let path = format!("/api/v1/admin/matrix-runs/{}/similar", copy["id"].as_str().unwrap());
    let found = olga.http.get(&path).expect(200).await;
    assert_eq!(found["data"].as_array().unwrap().len(), 1, "{found}");
    let first = &found["data"][0];
    assert_eq!((&first["id"], &first["by"], &first["is_same_setup"]), (&original["id"], &json!("@ann"), &json!(true)));
    let shared = first["shared_cells"].as_i64().unwrap();
    assert!(shared > 20 && first["own_cells"] == shared, "{first}");
    assert_eq!((&first["is_same_account"], &first["median_ratio"]), (&json!(false), &json!(1.0)));
    let cells = first["cells"].as_array().unwrap();
    assert!(cells.len() > 20 && cells.iter().all(|cell| cell["ratio"] == 1.0), "{first}");
    let unknown = format!("/api/v1/admin/matrix-runs/{}/similar", RunId::new());
    olga.http.get(&unknown).expect_problem(404, "not_found").await;
}

#[tokio::test]
async fn runs_of_the_same_setup_are_compared_cell_by_cell() {
    let stage = Stage::new().await;
    let with = |total: f64| RunRow { cells: vec![cell(0, 1, total), cell(0, 8, total * 4.0), cell(16_384, 2, 7.0)], ..RunRow::default() };
    let run = stage.run(&RunRow { status: "needs_review", ..with(150.0) }, json!([])).await;
    let same = stage.run(&RunRow { cells: vec![cell(0, 1, 100.0), cell(0, 8, 400.0), cell(4_096, 2, 9.0)], ..with(0.0) }, json!([])).await;
    let hidden = stage.run(&RunRow { visibility: "unlisted", age_seconds: 60, ..with(300.0) }, json!([])).await;
    for other in [
        RunRow { quantization: Some("awq-4bit"), ..with(100.0) },
        RunRow { gpu_count: Some(2), ..with(100.0) },
        RunRow { hardware_slug: Some("rtx-4090"), ..with(100.0) },
        RunRow { model_slug: Some("gpt-oss-120b"), ..with(100.0) },
        RunRow { status: "rejected", ..with(100.0) },
    ] {
        stage.run(&other, json!([])).await;
    }
    let found = stage.olga.http.get(&format!("/api/v1/admin/matrix-runs/{run}/similar")).expect(200).await;
    let ids: Vec<&Value> = found["data"].as_array().unwrap().iter().map(|other| &other["id"]).collect();
    assert_eq!(ids, [&json!(same), &json!(hidden)], "{found}");
    let first = &found["data"][0];
    let compared: Vec<Value> =
        first["cells"].as_array().unwrap().iter().map(|cell| json!([cell["context_tokens"], cell["concurrency"], cell["ratio"]])).collect();
    assert_eq!(compared, [json!([0, 1, 1.5]), json!([0, 8, 1.5])]);
    assert_eq!(
        (&first["cells"][1]["own_tokens_per_second"], &first["cells"][1]["other_tokens_per_second"]),
        (&json!(600.0), &json!(400.0))
    );
    assert_eq!((&first["shared_cells"], &first["is_same_machine"], &first["median_ratio"]), (&json!(0), &json!(true), &json!(1.5)));
}

#[tokio::test]
async fn a_shared_device_or_identifier_is_named() {
    let stage = Stage::new().await;
    let run = stage.run(&needs_review(), json!([])).await;
    let other = stage.run(&RunRow { model_slug: None, model_name: "x", ..RunRow::default() }, json!([])).await;
    for (kind, value) in [("device", "d1"), ("nonce", "abcdefghijkl"), ("cell", "0/1/5/6")] {
        for id in [run, other] {
            execute(&stage.app, &format!("INSERT INTO run_marks (run_id, kind, value) VALUES ('{}', '{kind}', '{value}')", id.uuid()))
                .await;
        }
    }
    let found = stage.olga.http.get(&format!("/api/v1/admin/matrix-runs/{run}/similar")).expect(200).await;
    let first = &found["data"][0];
    assert_eq!((&first["id"], &first["shares_device"], &first["shares_run_identifier"]), (&json!(other), &json!(true), &json!(true)));
    assert_eq!((&first["shared_cells"], &first["own_cells"], &first["is_same_setup"]), (&json!(1), &json!(1), &json!(false)));
    assert!(!found.to_string().contains("d1"), "no hash of a device is shown: {found}");
}

#[tokio::test]
async fn the_document_as_it_came_in_is_for_its_owner_and_for_operators() {
    let app = TestApp::new().await;
    let olga = super::operator(&app, "olga").await;
    let (ann, mallory) = (person(&app, "ann").await, person(&app, "mallory").await);
    let mut document: Value = serde_json::from_slice(&benchmarks::bytes("reference-run.json")).unwrap();
    document["startup_diagnostics"]["hostname"] = json!("anns-bedroom");
    let run = ann.http.post("/api/v1/matrix-runs").json(&json!({ "document": document })).expect(201).await;
    let path = format!("/api/v1/matrix-runs/{}/original", run["id"].as_str().unwrap());
    for reader in [&ann, &olga] {
        let answer = reader.http.get(&path).answer().await;
        assert_eq!((answer.status.as_u16(), answer.header("cache-control").as_deref()), (200, Some("private, no-store")));
        assert!(answer.header("content-disposition").unwrap().starts_with("attachment"), "{:?}", answer.headers);
        assert_eq!(answer.json(), document);
    }
    mallory.http.get(&path).expect_problem(404, "not_found").await;
    app.http.get(&path).expect_problem(401, "unauthenticated").await;
    let public = app.http.get(&path.replace("/original", "/document")).answer().await.body;
    assert!(!public.contains("anns-bedroom"));
    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::Text)]
        handle: String,
    }
    let read = diesel::sql_query(
        "SELECT a.handle FROM audit_events e JOIN accounts a ON a.id = e.actor_user_id WHERE e.action = 'run_original.read'",
    );
    let rows: Vec<Row> = diesel_async::RunQueryDsl::load(read, &mut app.connect().await).await.unwrap();
    assert_eq!(
        rows.iter().map(|row| row.handle.as_str()).collect::<Vec<_>>(),
        ["olga"],
        "an operator's reading is audited, the owner's is not"
    );
}
