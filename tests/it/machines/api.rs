//! The routes of machines.

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::id::MachineId;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{engine, id, machine, person};

#[tokio::test]
async fn any_usual_name_is_the_same_hardware() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    for (gpu, vram_gib, slug, nominal) in [
        ("RTX 3090", None, "rtx-3090", 24.0),
        ("rtx-3090", Some(24.0), "rtx-3090", 24.0),
        ("RTX_3090", None, "rtx-3090", 24.0),
        ("NVIDIA GeForce RTX 3090", None, "rtx-3090", 24.0),
        ("RTX 3090 Ti", None, "rtx-3090-ti", 24.0),
        // A 24,564 MiB card is one of 24 GiB.
        ("NVIDIA GeForce RTX 4090", Some(24_564.0 / 1024.0), "rtx-4090", 24.0),
        ("RTX 3080", Some(10.0), "rtx-3080-10gb", 10.0),
        ("RTX 3080", Some(12.0), "rtx-3080-12gb", 12.0),
    ] {
        let form = json!({ "name": "a", "hardware": { "gpu": gpu, "gpu_count": 1, "vram_gib": vram_gib } });
        let body = ann.http.post("/api/v1/machines").json(&form).expect(201).await;
        assert_eq!(
            (body["hardware"]["slug"].as_str(), body["hardware"]["vram_gib"].as_f64()),
            (Some(slug), Some(nominal)),
            "{gpu}: {body}"
        );
    }
}

#[tokio::test]
async fn every_fault_is_named_at_once() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let form = json!({
        "name": " ", "region": "US",
        "hardware": { "gpu": "RTX 6000", "gpu_count": 65, "vram_gib": -1, "ram_gib": 0, "power_limit_w": 1e9, "os": "x".repeat(201) },
        "endpoint": { "url": "http://user:pw@example.org/v1", "api_key": "a key" },
    });
    let problem = ann.http.post("/api/v1/machines").json(&form).expect_problem(422, "invalid_input").await;
    let mut pointers: Vec<&str> = problem["errors"].as_array().unwrap().iter().map(|e| e["pointer"].as_str().unwrap()).collect();
    pointers.sort_unstable();
    let expected = [
        "/endpoint/api_key",
        "/endpoint/url",
        "/hardware/gpu",
        "/hardware/gpu_count",
        "/hardware/os",
        "/hardware/power_limit_w",
        "/hardware/ram_gib",
        "/hardware/vram_gib",
        "/name",
        "/region",
    ];
    assert_eq!(pointers, expected, "{problem}");
    assert_eq!(problem["candidates"].as_array().unwrap().len(), 5, "{problem}");
    for (form, pointer, code) in [
        (json!({ "name": "a", "hardware": { "gpu": "Voodoo 2", "gpu_count": 1 } }), "/hardware/gpu", "unknown_hardware"),
        (
            json!({ "name": "a", "hardware": { "gpu": "RTX 3090", "gpu_count": 1, "vram_gib": 48 } }),
            "/hardware/vram_gib",
            "contradicts_hardware",
        ),
        (json!({ "name": "a", "hardware": { "gpu": "RTX 3090" } }), "/hardware/gpu_count", "missing_field"),
        (json!({ "name": "a", "hardware": { "gpu": "RTX 3090", "gpu_count": 1, "vram_gb": 24 } }), "/hardware/vram_gb", "unknown_field"),
        (json!({ "name": "a", "hardware": { "gpu": "RTX 3090", "gpu_count": 1, "kind": "toaster" } }), "/hardware/kind", "unknown_value"),
    ] {
        let problem = ann.http.post("/api/v1/machines").json(&form).expect_problem(422, "invalid_input").await;
        let found = &problem["errors"][0];
        assert_eq!((found["pointer"].as_str(), found["code"].as_str()), (Some(pointer), Some(code)), "{problem}");
    }
}

#[derive(QueryableByName)]
struct Sealed {
    #[diesel(sql_type = sql::Nullable<sql::Bytea>)]
    endpoint_key_sealed: Option<Vec<u8>>,
}

async fn sealed(app: &TestApp, id: MachineId) -> Option<Vec<u8>> {
    let query = sql_query("SELECT endpoint_key_sealed FROM machines WHERE id = $1").bind::<sql::Uuid, _>(id);
    query.get_result::<Sealed>(&mut app.connect().await).await.unwrap().endpoint_key_sealed
}

#[tokio::test]
async fn an_engines_key_is_sealed_shown_to_nobody_and_stays_with_its_address() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let form = json!({
        "name": "a", "hardware": { "gpu": "RTX 3090", "gpu_count": 1 },
        "endpoint": { "url": "http://127.0.0.1:9/", "api_key": "sk-very-secret" },
    });
    let body = ann.http.post("/api/v1/machines").json(&form).expect(201).await;
    assert_eq!(body["endpoint"], json!({ "url": "http://127.0.0.1:9", "has_api_key": true }));
    let machine: MachineId = id(&body["id"]);
    let path = format!("/api/v1/machines/{machine}");
    for text in [
        body.to_string(),
        ann.http.get(&path).expect(200).await.to_string(),
        ann.http.get("/api/v1/machines").expect(200).await.to_string(),
    ] {
        assert!(!text.contains("secret"), "{text}");
    }
    let stored = sealed(&app, machine).await.unwrap();
    assert!(!stored.windows(6).any(|window| window == b"secret"));
    let row = rigmark::machines::service::fetch(&mut app.connect().await, machine).await.unwrap();
    let target = rigmark::machines::service::target(app.ctx(), &row).unwrap();
    assert_eq!(target.api_key.unwrap().expose(), "sk-very-secret");

    let patch = async |change: Value| ann.http.patch(&path).json(&json!({ "endpoint": change })).expect(200).await["endpoint"].clone();
    // The same address in another spelling keeps it; another address must not get it.
    assert_eq!(patch(json!({ "url": "http://127.0.0.1:9" })).await["has_api_key"], true);
    assert_eq!(patch(json!({ "url": "http://127.0.0.1:10" })).await, json!({ "url": "http://127.0.0.1:10", "has_api_key": false }));
    assert_eq!(sealed(&app, machine).await, None);
    assert_eq!(patch(json!({ "api_key": "sk-2" })).await["has_api_key"], true);
    assert_eq!(patch(json!({})).await["has_api_key"], true);
    assert_eq!(patch(json!({ "api_key": null })).await["has_api_key"], false);
    assert_eq!(patch(Value::Null).await, Value::Null);
    let problem = ann.http.patch(&path).json(&json!({ "endpoint": { "api_key": "x" } })).expect_problem(422, "invalid_input").await;
    assert_eq!(problem["errors"][0]["pointer"], "/endpoint/url");
}

#[tokio::test]
async fn private_addresses_are_refused_where_they_are_not_allowed() {
    let app = TestApp::with(|config| config.allow_private_endpoints = false).await;
    let ann = person(&app, "ann").await;
    let form = |url: &str| json!({ "name": "a", "hardware": { "gpu": "RTX 3090", "gpu_count": 1 }, "endpoint": { "url": url } });
    for url in
        ["http://127.0.0.1:8000", "http://169.254.169.254", "http://2130706433", "http://[::ffff:10.0.0.1]:8000", "http://localhost:8000"]
    {
        let problem = ann.http.post("/api/v1/machines").json(&form(url)).expect_problem(422, "forbidden_address").await;
        assert_eq!(problem["errors"][0]["pointer"], "/endpoint/url", "{url}");
    }
    // A name that does not resolve yet may come up later.
    let body = ann.http.post("/api/v1/machines").json(&form("http://engine.invalid:8000")).expect(201).await;
    let path = format!("/api/v1/machines/{}", body["id"].as_str().unwrap());
    ann.http.patch(&path).json(&json!({ "endpoint": { "url": "http://10.0.0.1" } })).expect_problem(422, "forbidden_address").await;
    assert_eq!(ann.http.get(&path).expect(200).await["endpoint"]["url"], "http://engine.invalid:8000");
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_tells_what_evidence_depends_on() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let machine = machine(&ann, Some("http://127.0.0.1:9")).await;
    let path = format!("/api/v1/machines/{machine}");
    let patch = async |change: Value| ann.http.patch(&path).json(&change).expect(200).await;

    let body = patch(json!({ "name": " attic ", "region": null })).await;
    assert_eq!((body["name"].as_str(), &body["region"], &body["hardware_changed_at"]), (Some("attic"), &Value::Null, &Value::Null));
    // Saying the same again is no change.
    let body = patch(json!({ "hardware": { "gpu": "NVIDIA GeForce RTX 3090", "gpu_count": 1 } })).await;
    assert_eq!(body["hardware_changed_at"], Value::Null);
    let body = patch(json!({ "hardware": { "driver": "580.1", "power_limit_w": 300, "ram_gib": 64 } })).await;
    // What makes a run stale is for benchmarks; what makes it another machine's is this instant.
    assert_eq!(body["hardware_changed_at"], Value::Null);
    let first = patch(json!({ "hardware": { "gpu_count": 2 } })).await["hardware_changed_at"].clone();
    assert!(first.is_string(), "{body}");
    assert_eq!(body["hardware"]["slug"], "rtx-3090");
    let body = patch(json!({ "hardware": { "ram_gib": null } })).await;
    assert_eq!((&body["hardware"]["ram_gib"], body["hardware"]["driver"].as_str()), (&Value::Null, Some("580.1")));
    assert_eq!(body["hardware_changed_at"], first);
    patch(json!({ "hardware": { "gpu_count": 1 } })).await;
    let body = patch(json!({ "hardware": { "gpu": "RTX 4060 Ti", "vram_gib": 16 } })).await;
    assert_ne!(body["hardware_changed_at"], first);
    assert_eq!((body["hardware"]["vram_gib"].as_f64(), body["hardware"]["gpu_count"].as_i64()), (Some(16.0), Some(1)), "{body}");
    // The first address is no change, a second one and none are.
    assert_eq!(body["endpoint_changed_at"], Value::Null);
    assert!(patch(json!({ "endpoint": { "url": "http://127.0.0.1:10" } })).await["endpoint_changed_at"].is_string());
    app.work().await;

    for change in
        [json!({ "hardware": { "gpu_count": 0 } }), json!({ "nme": "x" }), json!({ "name": null, "hardware": { "gpu": "RTX 6000" } })]
    {
        ann.http.patch(&path).json(&change).expect_problem(422, "invalid_input").await;
    }
    assert_eq!(ann.http.get(&path).expect(200).await["name"], "attic");
}

#[tokio::test]
async fn machines_are_private_and_deleting_twice_is_the_same() {
    let app = TestApp::new().await;
    let (ann, bob) = (person(&app, "ann").await, person(&app, "bob").await);
    let machine = machine(&ann, None).await;
    let path = format!("/api/v1/machines/{machine}");
    bob.http.get(&path).expect_problem(404, "not_found").await;
    bob.http.patch(&path).json(&json!({ "name": "mine" })).expect_problem(404, "not_found").await;
    bob.http.delete(&path).expect_problem(404, "not_found").await;
    for _ in 0..2 {
        assert_eq!(ann.http.delete(&path).answer().await.status, 204);
    }
    ann.http.get(&path).expect_problem(404, "not_found").await;
    assert_eq!(ann.http.get("/api/v1/machines").expect(200).await["data"], json!([]));
    app.work().await;
}

#[tokio::test]
async fn a_list_in_pages_is_the_list() {
    let app = TestApp::new().await;
    let (ann, bob) = (person(&app, "ann").await, person(&app, "bob").await);
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.insert(0, machine(&ann, None).await.to_string());
    }
    machine(&bob, None).await;
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ann.http.get(&format!("/api/v1/machines?limit=2{cursor}")).expect(200).await;
        found.extend(page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, expected);
    ann.http.get("/api/v1/machines?cursor=nonsense").expect_problem(400, "invalid_cursor").await;
    ann.http.get("/api/v1/machines?state=x").expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn a_watched_machine_cannot_be_deleted() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let machine = machine(&ann, Some(engine.url())).await;
    let path = format!("/api/v1/machines/{machine}");
    let service = async |watch: bool| {
        let work = async |tx: &mut rigmark::db::Tx<'_>| match watch {
            true => rigmark::machines::service::watch(tx, machine, "rental:1").await,
            false => rigmark::machines::service::unwatch(tx, machine, "rental:1").await,
        };
        app.ctx().db.tx("test", work).await
    };
    service(true).await.unwrap();
    service(true).await.unwrap();
    ann.http.delete(&path).expect_problem(409, "machine_in_use").await;
    service(false).await.unwrap();
    assert_eq!(ann.http.delete(&path).answer().await.status, 204);
    assert_eq!(service(true).await.unwrap_err().code(), rigmark::base::Code::NotFound);
    app.work().await;
}
