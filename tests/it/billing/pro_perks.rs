//! What Pro gives, each at its place, through a subscription at the double; and in the sandbox for play money.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use super::pro::{ProShop, monthly, with_key};
use crate::support::TestApp;
use crate::support::hosts::{self, Person, RunRow, business_now, engine, person};
use crate::support::renting::credit;

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A machine on the market. Outside the sandbox a simulated engine cannot be published, so the row is.
async fn offer(shop: &ProShop, host: &Person, engine_url: &str) -> String {
    let machine = hosts::machine(host, Some(engine_url)).await;
    let run = hosts::run(&shop.app, machine, &RunRow { level: "remeasured", ..RunRow::default() }).await;
    let listing = hosts::draft(host, machine, "3.60").await;
    let publish = format!(
        "UPDATE listings SET state = 'published', run_id = '{}', model = 'gpt-oss-20b', valid_until = now() + interval '80 days', published_at = now()
         WHERE id = '{}'",
        run.uuid(),
        listing.uuid()
    );
    shop.execute(&publish).await;
    listing.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_pro_pays_half_the_fee_from_the_next_rental_on() {
    let shop = ProShop::new().await;
    let renter = person(&shop.app, "renter").await;
    let top_up = json!({ "amount": "100.00", "payment_method": "pm_card_visa" });
    renter.http.post("/api/v1/top-ups").idempotency_key("k").json(&top_up).expect(201).await;
    let (first, second) = (engine(), engine());
    let rent = async |listing: &str| {
        let form = json!({ "listing_id": listing, "hours": 1 });
        renter.http.post("/api/v1/rentals").idempotency_key(listing).json(&form).expect(201).await
    };
    let before = rent(&offer(&shop, &shop.ada, first.url()).await).await;
    assert_eq!(before["fee_basis_points"], 1_000);
    shop.subscribe("k", monthly("pm_card_visa")).await;
    let after = rent(&offer(&shop, &shop.ada, second.url()).await).await;
    assert_eq!(after["fee_basis_points"], 500);
    // Fixed at acceptance.
    let path = format!("/api/v1/rentals/{}", before["id"].as_str().unwrap());
    assert_eq!(renter.http.get(&path).expect(200).await["fee_basis_points"], 1_000);
}

async fn policy(person: &Person, organization: Option<&str>) -> String {
    let mut request = person.http.get("/api/v1/me");
    if let Some(handle) = organization {
        request = request.header("Rigmark-Account", handle);
    }
    let answer = request.answer().await;
    assert_eq!(answer.status, 200);
    answer.header("ratelimit-policy").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_ten_times_as_wide() {
    let shop = ProShop::new().await;
    let founder = person(&shop.app, "founder").await;
    founder.http.post("/api/v1/organizations").json(&json!({ "handle": "guild" })).expect(201).await;
    let (free, pro) = ("\"api\";q=6000;w=60", "\"api\";q=60000;w=60");
    assert_eq!((policy(&shop.ada, None).await.as_str(), policy(&founder, Some("@guild")).await.as_str()), (free, free));
    shop.subscribe("k", monthly("pm_card_visa")).await;
    assert_eq!(policy(&shop.ada, None).await, pro);
    let guild = with_key(&shop, &founder, Some("@guild")).await;
    guild.http.post("/api/v1/pro").idempotency_key("k").json(&monthly("pm_card_visa")).expect(201).await;
    // Whoever acts for the organization; not its members by themselves.
    assert_eq!((policy(&guild, None).await.as_str(), policy(&founder, Some("@guild")).await.as_str()), (pro, pro));
    assert_eq!(policy(&founder, None).await, free);
    shop.ada.http.post("/api/v1/pro/cancel").expect(200).await;
    shop.pass(32 * super::pro::DAY);
    assert_eq!(policy(&shop.ada, None).await, free);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rental_may_start_a_month_ahead() {
    let shop = ProShop::new().await;
    let host = person(&shop.app, "host").await;
    let top_up = json!({ "amount": "100.00", "payment_method": "pm_card_visa" });
    shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&top_up).expect(201).await;
    let engine = engine();
    let listing = offer(&shop, &host, engine.url()).await;
    let now = business_now(&shop.app).await;
    let rent = |key: &str, ahead: TimeDelta| {
        let form = json!({ "listing_id": listing, "hours": 1, "starts_at": instant(now + ahead) });
        shop.ada.http.post("/api/v1/rentals").idempotency_key(key).json(&form)
    };
    let stop = async |rental: Value| {
        shop.ada.http.post(&format!("/api/v1/rentals/{}/stop", rental["id"].as_str().unwrap())).expect(200).await;
    };
    let problem = rent("a", TimeDelta::hours(25)).expect_problem(422, "invalid_input").await;
    assert_eq!((&problem["errors"][0]["pointer"], &problem["errors"][0]["code"]), (&json!("/starts_at"), &json!("too_far")));
    stop(rent("b", TimeDelta::hours(23)).expect(201).await).await;
    shop.subscribe("k", monthly("pm_card_visa")).await;
    rent("c", TimeDelta::days(31)).expect_problem(422, "invalid_input").await;
    let rental = rent("d", TimeDelta::days(29)).expect(201).await;
    assert_eq!(rental["status"], "reserved");
}

async fn upload(person: &Person, visibility: &str, name: &str) -> crate::support::http::Answer {
    let mut body: Value = serde_json::from_slice(&crate::benchmarks::bytes("reference-run.meta.json")).unwrap();
    body["document"] = serde_json::from_slice(&crate::benchmarks::bytes("reference-run.json")).unwrap();
    body["visibility"] = json!(visibility);
    // Another command, another run.
    body["launch_command"] = json!(format!("vllm serve model --served-model-name {name}"));
    person.http.post("/api/v1/matrix-runs").json(&body).answer().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_pro_makes_unlisted_runs_and_they_stay_so() {
    let app = TestApp::new().await;
    let ada = person(&app, "ada").await;
    let refused = upload(&ada, "unlisted", "one").await;
    assert_eq!((refused.status.as_u16(), refused.body.contains("pro_required")), (403, true), "{}", refused.body);
    assert_eq!(upload(&ada, "public", "one").await.status, 201);
    credit(&ada.http, "100").await;
    let bought = ada.http.post("/api/v1/pro").idempotency_key("k").json(&json!({ "plan": "monthly" })).expect(201).await;
    assert_eq!((&bought["status"], &bought["renews"]), (&json!("canceled"), &json!(false)));
    let unlisted = upload(&ada, "unlisted", "two").await;
    assert_eq!(unlisted.status, 201, "{}", unlisted.body);
    let id = serde_json::from_str::<Value>(&unlisted.body).unwrap()["id"].as_str().unwrap().to_owned();
    app.advance(32 * 86_400).await;
    let ada = login(&app, "ada").await;
    let run = app.http.get(&format!("/api/v1/matrix-runs/{id}")).expect(200).await;
    assert_eq!(run["visibility"], "unlisted");
    // The same again is the run that is there; another one is refused.
    assert_eq!(upload(&ada, "unlisted", "two").await.status, 201);
    assert_eq!(upload(&ada, "unlisted", "three").await.status, 403);
}

async fn login(app: &TestApp, handle: &str) -> Person {
    let form = json!({ "email": format!("{handle}@example.org"), "password": "correct horse battery" });
    let signed_in = app.http.post("/api/v1/auth/login").json(&form).expect(200).await;
    Person { http: app.http.with_bearer(signed_in["access_token"].as_str().unwrap()), handle: handle.to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_sandbox_play_money_buys_one_period() {
    let app = TestApp::new().await;
    let ada = person(&app, "ada").await;
    let offer = app.http.get("/api/v1/pro").expect(200).await;
    assert_eq!((&offer["plans"][0]["price"], &offer["plans"][1]["price"]), (&json!("30.00"), &json!("300.00")));
    let buy = |key: &str| ada.http.post("/api/v1/pro").idempotency_key(key).json(&json!({ "plan": "monthly" }));
    buy("a").expect_problem(402, "insufficient_funds").await;
    credit(&ada.http, "100").await;
    let bought = buy("a").expect(201).await;
    assert_eq!(buy("a").expect(201).await["id"], bought["id"]);
    buy("b").expect_problem(409, "already_subscribed").await;
    assert_eq!(ada.http.get("/api/v1/balance").expect(200).await["available"], "70.00");
    assert_eq!(ada.http.get("/api/v1/me").expect(200).await["is_pro"], true);
    ada.http.post("/api/v1/pro/cancel").expect_problem(409, "no_payment_provider").await;
    app.advance(32 * 86_400).await;
    let ada = login(&app, "ada").await;
    assert_eq!(ada.http.get("/api/v1/me").expect(200).await["is_pro"], false);
    ada.http.post("/api/v1/pro").idempotency_key("c").json(&json!({ "plan": "monthly" })).expect(201).await;
    assert_eq!(ada.http.get("/api/v1/balance").expect(200).await["available"], "40.00");
    crate::support::renting::assert_books(&mut app.connect().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_purchases_with_play_money_at_once_one_is_paid() {
    let app = TestApp::new().await;
    let ada = person(&app, "ada").await;
    credit(&ada.http, "200").await;
    let buy = |n: u32| {
        let request = ada.http.post("/api/v1/pro").idempotency_key(&format!("at-once-{n}")).json(&json!({ "plan": "monthly" }));
        async move { request.answer().await.status.as_u16() }
    };
    let mut answers = futures::future::join_all((0..5).map(buy)).await;
    answers.sort_unstable();
    assert_eq!(answers, [201, 409, 409, 409, 409]);
    assert_eq!(ada.http.get("/api/v1/balance").expect(200).await["available"], "170.00");
}
