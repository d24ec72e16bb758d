//! The public routes.

use std::collections::HashSet;

use rigmark::catalog::Catalog;
use serde_json::{Value, json};

use crate::support::TestApp;

fn slugs(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|row| row["slug"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn resolve_gives_one_row_or_the_candidates() {
    let app = TestApp::new().await;
    for name in ["rtx-3090", "RTX_3090", "NVIDIA%20GeForce%20RTX%203090", "RTX+3090"] {
        let row = app.http.get(&format!("/api/v1/hardware/resolve?name={name}")).expect(200).await;
        assert_eq!((&row["slug"], &row["name"], &row["memory_gib"]), (&json!("rtx-3090"), &json!("RTX 3090"), &json!(24.0)), "{name}");
    }
    let problem = app.http.get("/api/v1/hardware/resolve?name=RTX%206000").expect_problem(409, "ambiguous_name").await;
    let candidates = problem["candidates"].as_array().unwrap();
    let found: Vec<&str> = candidates.iter().map(|row| row["slug"].as_str().unwrap()).collect();
    assert_eq!(
        found,
        [
            "quadro-rtx-6000",
            "rtx-6000-ada",
            "rtx-pro-6000-blackwell-workstation",
            "rtx-pro-6000-blackwell-max-q",
            "rtx-pro-6000-blackwell-server"
        ]
    );
    assert_eq!(candidates[1], json!({"slug": "rtx-6000-ada", "name": "RTX 6000 Ada"}));
    let row = app.http.get("/api/v1/hardware/resolve?name=RTX%203080&vram_gib=12").expect(200).await;
    assert_eq!(row["slug"], "rtx-3080-12gb");
    let row = app.http.get("/api/v1/hardware/resolve?name=NVIDIA%20GB10&vram_gib=0").expect(200).await;
    assert_eq!((&row["slug"], &row["unified"], &row["kind"]), (&json!("gb10"), &json!(true), &json!("unified_memory")));
    app.http.get("/api/v1/hardware/resolve?name=Voodoo%202").expect_problem(404, "not_found").await;
    app.http.get("/api/v1/hardware/resolve?name=").expect_problem(404, "not_found").await;
    app.http.get(&format!("/api/v1/hardware/resolve?name={}", "x".repeat(5_000))).expect_problem(404, "not_found").await;
}

#[tokio::test]
async fn what_is_not_asked_for_rightly_is_422() {
    let app = TestApp::new().await;
    for (query, pointer) in [
        ("hardware/resolve", "?name"),
        ("hardware/resolve?name=a&memory=12", "?memory"),
        ("hardware/resolve?name=a&vram_gib=NaN", "?vram_gib"),
        ("hardware/resolve?name=a&vram_gib=-1", "?vram_gib"),
        ("hardware/resolve?name=a&vram_gib=big", "?vram_gib"),
        ("hardware?kind=toaster", "?kind"),
        ("hardware?vram_gb=24", "?vram_gb"),
        ("hardware?limit=0", "?limit"),
        ("hardware?limit=101", "?limit"),
        ("models?family=Qwen3", "?family"),
        ("hardware/rtx-3090?verbose=1", "?verbose"),
    ] {
        let problem = app.http.get(&format!("/api/v1/{query}")).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{query}: {problem}");
    }
    let long = format!("/api/v1/hardware?q={}", "x".repeat(201));
    assert_eq!(app.http.get(&long).expect_problem(422, "invalid_input").await["errors"][0]["pointer"], "?q");
}

#[tokio::test]
async fn single_rows() {
    let app = TestApp::new().await;
    let row = app.http.get("/api/v1/hardware/rtx-3090").expect(200).await;
    assert_eq!((&row["vendor"], &row["bandwidth_gb_s"], &row["fp8_dense_tflops"]), (&json!("NVIDIA"), &json!(936.2), &Value::Null));
    let model = app.http.get("/api/v1/models/nemotron-cascade-2-30b-a3b").expect(200).await;
    assert_eq!((&model["publisher"], &model["hf_id"]), (&json!("nvidia"), &json!("nvidia/Nemotron-Cascade-2-30B-A3B")));
    let repositories = model["repositories"].as_array().unwrap();
    assert!(repositories.iter().any(|repo| repo["repo"] == "cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit"), "{model}");
    for path in ["hardware/rtx-3091", "hardware/RTX-3090", "hardware/%00", "models/nope", "models/nvidia%2FNemotron-Cascade-2-30B-A3B"] {
        app.http.get(&format!("/api/v1/{path}")).expect_problem(404, "not_found").await;
    }
}

#[tokio::test]
async fn lists_search_narrow_and_page() {
    let app = TestApp::new().await;
    assert_eq!(slugs(&app.http.get("/api/v1/hardware?q=RTX%203090").expect(200).await), ["rtx-3090"]);
    assert_eq!(slugs(&app.http.get("/api/v1/hardware?q=rtx%20309").expect(200).await), ["rtx-3090", "rtx-3090-ti"]);
    let cpus = app.http.get("/api/v1/hardware?kind=cpu&vendor=GENERIC&limit=100").expect(200).await;
    assert!(slugs(&cpus).len() > 10 && slugs(&cpus).iter().all(|slug| slug.starts_with("cpu-")));
    assert_eq!(slugs(&app.http.get("/api/v1/models?publisher=openai").expect(200).await), ["gpt-oss-20b", "gpt-oss-120b"]);

    for (list, total) in [("hardware", Catalog::builtin().hardware_models().len()), ("models", Catalog::builtin().models().len())] {
        let (mut seen, mut cursor) = (HashSet::new(), String::new());
        loop {
            let page = app.http.get(&format!("/api/v1/{list}?limit=50{cursor}")).expect(200).await;
            assert!(slugs(&page).iter().all(|slug| seen.insert((*slug).to_owned())), "a row came twice");
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen.len(), total);
    }
    let next = app.http.get("/api/v1/hardware?q=nvidia").expect(200).await["next_cursor"].as_str().unwrap().to_owned();
    app.http.get(&format!("/api/v1/hardware?q=nvidia&limit=5&cursor={next}")).expect(200).await;
    for foreign in [format!("hardware?q=amd&cursor={next}"), format!("models?q=nvidia&cursor={next}"), "hardware?cursor=AAAA".to_owned()] {
        app.http.get(&format!("/api/v1/{foreign}")).expect_problem(400, "invalid_cursor").await;
    }
}

#[tokio::test]
async fn reads_carry_an_etag() {
    let app = TestApp::new().await;
    let first = app.http.get("/api/v1/hardware/rtx-3090").answer().await;
    let tag = first.header("etag").unwrap();
    let again = app.http.get("/api/v1/hardware/rtx-3090").header("If-None-Match", &tag).answer().await;
    assert_eq!((again.status.as_u16(), again.body.as_str()), (304, ""));
}
