//! What people type in: kept apart, held to what the hardware can do, and theirs to take back.

use serde_json::{Value, json};

use super::{board, host, run, single};
use crate::support::TestApp;
use crate::support::hosts::person;

fn report(tokens_per_second: f64) -> Value {
    json!({"model": "openai/gpt-oss-20b", "hardware": "RTX 3090", "engine": "vLLM", "quantization": "MXFP4", "context_tokens": 0,
        "concurrency": 1, "rate": "total", "tokens_per_second": tokens_per_second})
}

#[tokio::test]
async fn a_report_is_listed_as_reported_and_never_ranked() {
    let app = TestApp::new().await;
    let (_, machine) = host(&app, "ann").await;
    run(&app, machine, &single(100.0)).await;
    let bob = person(&app, "bob").await;
    let made = bob.http.post("/api/v1/reports").json(&report(150.0)).expect(201).await;
    assert_eq!((&made["evidence_level"], &made["by"], &made["model"]), (&json!("reported"), &json!("@bob"), &json!("gpt-oss-20b")));
    assert_eq!((&made["hardware"], &made["quantization"], &made["engine"]), (&json!("rtx-3090"), &json!("mxfp4"), &json!("vllm")));
    assert_eq!((&made["publisher"], &made["is_above_ceiling"], &made["rate"]), (&json!("openai"), &json!(false), &json!("total")));
    assert!(made["total_ceiling_tokens_per_second"].as_f64().unwrap() > 150.0);
    let rows = board(&app, "").await;
    assert_eq!((rows.len(), &rows[0]["figure"], &rows[0]["run_count"], &rows[0]["highest"]), (1, &json!(100.0), &json!(1), &json!(100.0)));
    let id = made["id"].as_str().unwrap();
    assert_eq!(app.http.get(&format!("/api/v1/reports/{id}")).expect(200).await, made);
    app.http.get(&format!("/api/v1/matrix-runs/{}", id.replace("rep_", "run_"))).expect_problem(404, "not_found").await;
    // Others' are not there to be deleted.
    let path = format!("/api/v1/reports/{id}");
    person(&app, "eve").await.http.delete(&path).expect_problem(404, "not_found").await;
    bob.http.delete(&path).expect(204).await;
    bob.http.delete(&path).expect_problem(404, "not_found").await;
    app.http.post("/api/v1/reports").json(&report(1.0)).expect_problem(401, "unauthenticated").await;
}

#[tokio::test]
async fn what_no_hardware_does_is_refused_with_the_bound() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let made = ann.http.post("/api/v1/reports").json(&report(100.0)).expect(201).await;
    let ceiling = made["total_ceiling_tokens_per_second"].as_f64().unwrap();
    let above = ann.http.post("/api/v1/reports").json(&report(ceiling * 1.5)).expect(201).await;
    assert_eq!(above["is_above_ceiling"], true, "speculation, or an error");
    let refused = ann.http.post("/api/v1/reports").json(&report(ceiling * 17.0)).expect_problem(422, "invalid_input").await;
    assert_eq!((&refused["errors"][0]["pointer"], &refused["errors"][0]["code"]), (&json!("/tokens_per_second"), &json!("implausible")));
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains(&format!("{ceiling:.1}")), "{refused}");
    // The same speed of each of eight requests is eight times as much.
    let mut each = report(ceiling * 1.5);
    (each["rate"], each["concurrency"]) = (json!("per_request"), json!(8));
    assert_eq!(ann.http.post("/api/v1/reports").json(&each).expect(201).await["is_above_ceiling"], true);
    // Names that the catalog does not know are kept, and bounded by what any engine does.
    let mut unknown = report(4_000.0);
    (unknown["model"], unknown["hardware"]) = (json!("my/own-model"), json!("Abacus 9000"));
    let kept = ann.http.post("/api/v1/reports").json(&unknown).expect(201).await;
    assert_eq!(
        (&kept["model"], &kept["model_name"], &kept["hardware_name"]),
        (&Value::Null, &json!("my/own-model"), &json!("Abacus 9000"))
    );
    assert_eq!((&kept["total_ceiling_tokens_per_second"], &kept["publisher"]), (&Value::Null, &Value::Null));
    unknown["tokens_per_second"] = json!(5_001.0);
    ann.http.post("/api/v1/reports").json(&unknown).expect_problem(422, "invalid_input").await;
    for (field, value) in [
        ("tokens_per_second", json!(0)),
        ("tokens_per_second", json!(-1)),
        ("concurrency", json!(0)),
        ("context_tokens", json!(-1)),
        ("gpu_count", json!(0)),
        ("ttft_ms", json!(0)),
        ("engine", json!(" ")),
        ("model", json!("")),
        ("source_url", json!("javascript:alert(1)")),
        ("source_url", json!("file:///etc/passwd")),
        ("notes", json!("x".repeat(2_001))),
        ("hardware", json!("a\u{0}b")),
    ] {
        let mut form = report(10.0);
        form[field] = value;
        let problem = ann.http.post("/api/v1/reports").json(&form).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], format!("/{field}"), "{problem}");
    }
}

#[tokio::test]
async fn reports_are_listed_by_what_they_are_of() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let bob = person(&app, "bob").await;
    let mut ids = Vec::new();
    for (number, who) in [&ann, &bob, &ann, &bob, &ann].into_iter().enumerate() {
        let mut form = report(50.0 + number as f64);
        if number == 3 {
            (form["model"], form["gpu_count"]) = (json!("my/own-model"), json!(2));
        }
        ids.push(who.http.post("/api/v1/reports").json(&form).expect(201).await["id"].as_str().unwrap().to_owned());
    }
    ids.reverse();
    let list = async |query: &str| -> Vec<String> {
        let page = app.http.get(&format!("/api/v1/reports?{query}")).expect(200).await;
        page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list("").await, ids);
    assert_eq!(list("model=my/own-model").await, [ids[1].clone()]);
    assert_eq!(list("by=@bob&gpu_count=2").await, [ids[1].clone()]);
    assert_eq!(list("publisher=openai&hardware=rtx-3090&engine=vllm&quantization=mxfp4").await.len(), 4);
    app.http.get("/api/v1/reports?by=@nobody").expect_problem(404, "not_found").await;
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.http.get(&format!("/api/v1/reports?limit=2{cursor}")).expect(200).await;
        found.extend(page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, ids);
    let answer = app.http.get("/api/v1/reports").answer().await;
    let tag = answer.header("etag").unwrap();
    assert_eq!(app.http.get("/api/v1/reports").header("if-none-match", tag).answer().await.status, 304);
}
