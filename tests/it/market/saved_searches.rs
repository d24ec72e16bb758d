//! Saved searches: who may keep them, what they find, and that each tells of a listing once.

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{Offer, Person, RunRow, engine, execute, give_pro, person, published};

#[derive(QueryableByName)]
struct Letter {
    #[diesel(sql_type = sql::Text)]
    text: String,
}

/// What was written about searches, oldest first.
async fn letters(app: &TestApp) -> Vec<String> {
    let rows: Vec<Letter> = sql_query(
        "SELECT payload->>'subject' AS text FROM jobs
         WHERE kind = 'identity_letter' AND payload->>'subject' LIKE 'New on the market%' ORDER BY id",
    )
    .load(&mut app.connect().await)
    .await
    .unwrap();
    rows.into_iter().map(|row| row.text.trim_start_matches("New on the market: ").to_owned()).collect()
}

async fn save(person: &Person, name: &str, query: Value) -> Value {
    person.http.post("/api/v1/saved-searches").json(&json!({ "name": name, "query": query })).expect(201).await
}

/// A listing at this price; what follows from it has been done.
async fn publish(app: &TestApp, host: &Person, url: &str, price: &str) -> Offer {
    let offer = published(app, host, url, price, &RunRow::default()).await;
    app.work().await;
    offer
}

async fn reprice(app: &TestApp, host: &Person, offer: &Offer, price: &str) {
    host.http.patch(&format!("/api/v1/listings/{}", offer.listing)).json(&json!({ "price_per_hour": price })).expect(200).await;
    app.work().await;
}

#[tokio::test]
async fn a_search_is_kept_with_pro_listed_and_forgotten() {
    let app = TestApp::new().await;
    let ada = person(&app, "ada").await;
    let form = json!({ "name": "cheap", "query": { "hardware": "RTX 3090", "max_price": "0.50" } });
    ada.http.post("/api/v1/saved-searches").json(&form).expect_problem(403, "pro_required").await;
    give_pro(&app, &ada).await;
    let kept = ada.http.post("/api/v1/saved-searches").json(&form).expect(201).await;
    assert_eq!(kept["query"], json!({ "hardware": "RTX 3090", "max_price": "0.50", "include_unavailable": false }));
    let faults = [
        (json!({ "name": " ", "query": {} }), "/name"),
        (json!({ "name": "x", "query": { "hardware": "no such card" } }), "/query/hardware"),
        (json!({ "name": "x", "query": { "model": "gpt-oss-20b" } }), "/query/context"),
        (json!({ "name": "x", "query": { "limit": 3 } }), "/query/limit"),
        (json!({ "name": "x", "query": { "sort": "price" } }), "/query/sort"),
    ];
    for (form, pointer) in faults {
        let problem = ada.http.post("/api/v1/saved-searches").json(&form).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    for n in 1..50 {
        save(&ada, &format!("search {n}"), json!({})).await;
    }
    ada.http.post("/api/v1/saved-searches").json(&form).expect_problem(409, "invalid_state").await;
    let page = ada.http.get("/api/v1/saved-searches?limit=30").expect(200).await;
    let rest = ada.http.get(&format!("/api/v1/saved-searches?limit=30&cursor={}", page["next_cursor"].as_str().unwrap())).expect(200).await;
    let names: Vec<&str> =
        page["data"].as_array().unwrap().iter().chain(rest["data"].as_array().unwrap()).map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!((names.len(), names[0], names[49]), (50, "search 49", "cheap"));
    let path = format!("/api/v1/saved-searches/{}", kept["id"].as_str().unwrap());
    assert_eq!(ada.http.delete(&path).answer().await.status, 204);
    assert_eq!(ada.http.delete(&path).answer().await.status, 404);
}

#[tokio::test]
async fn what_fits_is_told_once_to_who_saved_it() {
    let app = TestApp::new().await;
    let (host, ada, bob) = (person(&app, "host").await, person(&app, "ada").await, person(&app, "bob").await);
    for person in [&host, &ada, &bob] {
        give_pro(&app, person).await;
    }
    save(&ada, "any 3090", json!({ "hardware": "rtx-3090" })).await;
    save(&ada, "cheap", json!({ "hardware": "rtx-3090", "max_price": "1.00" })).await;
    save(&ada, "a 4090", json!({ "hardware": "rtx-4090" })).await;
    let workload = |model: &str, min: u32| json!({ "model": model, "context": "16k", "concurrency": 4, "min_tokens_per_second": min });
    save(&bob, "fast", workload("gpt-oss-20b", 25)).await;
    save(&bob, "too fast", workload("gpt-oss-20b", 60)).await;
    save(&bob, "another model", workload("gpt-oss-120b", 1)).await;
    save(&bob, "everything", json!({})).await;
    // One's own listings are no news.
    save(&host, "mine", json!({})).await;
    let engine = engine();
    let first = publish(&app, &host, engine.url(), "2.00").await;
    assert_eq!(letters(&app).await, ["any 3090", "fast", "everything"]);
    // A change of price: only who hears of it for the first time.
    reprice(&app, &host, &first, "0.90").await;
    reprice(&app, &host, &first, "0.80").await;
    assert_eq!(letters(&app).await[3..], ["cheap"]);
    // Down and up again is no news either.
    host.http.post(&format!("/api/v1/listings/{}/pause", first.listing)).expect(200).await;
    host.http.post(&format!("/api/v1/listings/{}/publish", first.listing)).expect(200).await;
    app.work().await;
    assert_eq!(letters(&app).await.len(), 4);
    publish(&app, &host, engine.url(), "3.00").await;
    assert_eq!(letters(&app).await[4..], ["any 3090", "fast", "everything"]);
}

#[tokio::test]
async fn who_has_lost_pro_hears_nothing_and_keeps_the_search() {
    let app = TestApp::new().await;
    let (host, ada) = (person(&app, "host").await, person(&app, "ada").await);
    give_pro(&app, &ada).await;
    save(&ada, "any", json!({})).await;
    execute(&app, "UPDATE entitlements SET granted_until = now() - interval '1 day'").await;
    let engine = engine();
    let offer = publish(&app, &host, engine.url(), "2.00").await;
    assert_eq!(letters(&app).await.len(), 0);
    assert_eq!(ada.http.get("/api/v1/saved-searches").expect(200).await["data"].as_array().unwrap().len(), 1);
    give_pro(&app, &ada).await;
    reprice(&app, &host, &offer, "1.90").await;
    assert_eq!(letters(&app).await, ["any"]);
}

/// More searches than one statement asks, some of which have told already; a second run of the job changes nothing.
#[tokio::test]
async fn many_searches_are_told_in_batches() {
    let app = TestApp::new().await;
    let (host, ada) = (person(&app, "host").await, person(&app, "ada").await);
    give_pro(&app, &ada).await;
    for n in 0..45 {
        save(&ada, &format!("{n}"), if n % 3 == 0 { json!({ "max_price": "1.00" }) } else { json!({ "hardware": "rtx-3090" }) }).await;
    }
    let engine = engine();
    let offer = publish(&app, &host, engine.url(), "2.00").await;
    assert_eq!(letters(&app).await.len(), 30);
    for _ in 0..2 {
        rigmark::market::saved_searches::tell(app.ctx(), offer.listing).await.unwrap();
    }
    assert_eq!(letters(&app).await.len(), 30);
}
