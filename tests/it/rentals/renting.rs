//! Accepting: what is held, what is refused, and who sees it.

use chrono::TimeDelta;
use rigmark::base::id::{ListingId, RentalId, TransferId};
use serde_json::{Value, json};

use crate::support::hosts::{RunRow, person, published};
use crate::support::renting::{Stage, balance, credit, event_kinds, instant, micros, rental_id, request, seconds_between};

#[tokio::test]
async fn renting_takes_the_machine_and_holds_the_first_hour() {
    let stage = Stage::new("10").await;
    let rental = stage.rent(json!({})).await;
    assert_eq!((&rental["status"], &rental["price_per_hour"], &rental["hold"]), (&json!("held"), &json!("3.60"), &json!("3.60")));
    assert_eq!((&rental["renter"], &rental["host"], &rental["currency"]), (&json!("@renter"), &json!("@host"), &json!("usd")));
    assert_eq!((&rental["spend"], &rental["ends_at"], &rental["end_reason"]), (&json!("0.00"), &Value::Null, &Value::Null));
    assert_eq!(rental["access"], json!({ "base_url": format!("{}/v1", stage.app.http.base_url()), "model": "org/model" }));
    assert_eq!(balance(&stage.renter).await, ("6.40".to_owned(), "3.60".to_owned()));
    assert!(!stage.is_available().await);
    let search = stage.app.http.get("/api/v1/listings").expect(200).await;
    assert_eq!(search["data"], json!([]));
    assert_eq!(stage.fetch(&rental).await, rental);
    assert_eq!(event_kinds(&stage, &rental).await, ["accepted"]);
    stage.assert_books().await;

    let active = stage.rent_again(&rental).await;
    assert_eq!((&active["status"], &active["access"]["model"]), (&json!("active"), &json!("org/model")));
    assert_eq!(event_kinds(&stage, &rental).await[..3], ["accepted", "provisioning", "active"]);
    let stopped = stage.stop(&rental).await;
    assert_eq!((&stopped["status"], &stopped["end_reason"], &stopped["hold"]), (&json!("ended"), &json!("renter_stopped"), &json!("0.00")));
    assert!(stage.is_available().await);
    stage.assert_books().await;
}

impl Stage {
    /// The same rental once its machine has answered.
    async fn rent_again(&self, rental: &Value) -> Value {
        crate::support::renting::start(&self.app, &self.renter, rental_id(rental)).await
    }
}

#[tokio::test]
async fn the_first_hold_follows_length_cap_and_least_length() {
    let stage = Stage::new("100").await;
    let soon = (stage.now().await + TimeDelta::minutes(30)).to_rfc3339();
    let cases = [
        (json!({}), 3_600_000..=3_600_000),
        (json!({ "hours": 1 }), 3_600_000..=3_600_000),
        (json!({ "hours": 7 }), 3_600_000..=3_600_000),
        (json!({ "ends_at": soon }), 1_500_000..=1_800_000),
        (json!({ "max_spend": "0.5" }), 500_000..=500_000),
        (json!({ "hours": 7, "max_spend": "2" }), 2_000_000..=2_000_000),
    ];
    for (form, expected) in cases {
        let rental = stage.rent(form.clone()).await;
        assert!(expected.contains(&micros(&rental["hold"])), "{form}: {}", rental["hold"]);
        stage.stop(&rental).await;
    }
    stage.terms(json!({ "min_hours": 5 })).await;
    for (form, hold) in [(json!({}), "18.00"), (json!({ "hours": 6 }), "18.00"), (json!({ "max_spend": "18" }), "18.00")] {
        let rental = stage.rent(form.clone()).await;
        assert_eq!(rental["hold"], hold, "{form}");
        stage.stop(&rental).await;
    }
    // A limit of the listing's is the length of an open rental.
    let until = (stage.now().await + TimeDelta::minutes(20)).to_rfc3339();
    stage.terms(json!({ "min_hours": 0, "available_until": until })).await;
    let rental = stage.rent(json!({})).await;
    assert!((1_000_000..=1_200_000).contains(&micros(&rental["hold"])), "{rental}");
    stage.stop(&rental).await;
    assert_eq!(balance(&stage.renter).await, ("100.00".to_owned(), "0.00".to_owned()));
    stage.assert_books().await;
}

#[tokio::test]
async fn without_the_money_nothing_is_taken() {
    let stage = Stage::new("3.599999").await;
    let problem = stage.request(json!({})).expect_problem(402, "insufficient_funds").await;
    assert_eq!((&problem["required"], &problem["available"]), (&json!("3.60"), &json!("3.599999")));
    assert!(stage.is_available().await);
    assert_eq!(balance(&stage.renter).await, ("3.599999".to_owned(), "0.00".to_owned()));
    assert_eq!(stage.renter.http.get("/api/v1/rentals").expect(200).await["data"], json!([]));
    // What it does cover can be had, under the same key too: a 402 is not kept.
    let key = TransferId::new().to_string();
    let post = |form: Value| stage.renter.http.post("/api/v1/rentals").idempotency_key(&key).json(&form);
    let form = stage.with_listing(json!({}));
    post(form.clone()).expect_problem(402, "insufficient_funds").await;
    credit(&stage.renter.http, "0.000001").await;
    post(form).expect(201).await;
    assert_eq!(balance(&stage.renter).await, ("0.00".to_owned(), "3.60".to_owned()));
    stage.assert_books().await;
}

#[tokio::test]
async fn a_request_that_says_something_else_is_refused_where_it_does() {
    let stage = Stage::new("100").await;
    let (now, listing) = (stage.now().await, stage.offer.listing);
    let at = |seconds: i64| (now + TimeDelta::seconds(seconds)).to_rfc3339();
    let cases = [
        (json!({ "listing_id": listing, "hours": 0 }), "/hours"),
        (json!({ "listing_id": listing, "hours": -1 }), "/hours"),
        (json!({ "listing_id": listing, "hours": 8_761 }), "/hours"),
        (json!({ "listing_id": listing, "hours": 1.5 }), "/hours"),
        (json!({ "listing_id": listing, "hours": "1h" }), "/hours"),
        (json!({ "listing_id": listing, "hours": "1" }), "/hours"),
        (json!({ "listing_id": listing, "ends_at": "1h" }), "/ends_at"),
        (json!({ "listing_id": listing, "ends_at": at(-1) }), "/ends_at"),
        (json!({ "listing_id": listing, "ends_at": at(86_400), "hours": 1 }), "/ends_at"),
        (json!({ "listing_id": listing, "ends_at": at(600), "starts_at": at(600) }), "/ends_at"),
        (json!({ "listing_id": listing, "ends_at": "9999-12-31T23:59:59Z" }), "/ends_at"),
        (json!({ "listing_id": listing, "ends_at": "+262000-01-01T00:00:00Z" }), "/ends_at"),
        (json!({ "listing_id": listing, "starts_at": at(-600) }), "/starts_at"),
        (json!({ "listing_id": listing, "starts_at": at(90_000) }), "/starts_at"),
        (json!({ "listing_id": listing, "starts_at": "9999-12-31T23:59:59Z" }), "/starts_at"),
        (json!({ "listing_id": listing, "starts_at": 5 }), "/starts_at"),
        (json!({ "listing_id": listing, "max_spend": "0" }), "/max_spend"),
        (json!({ "listing_id": listing, "max_spend": "-1" }), "/max_spend"),
        (json!({ "listing_id": listing, "max_spend": 5 }), "/max_spend"),
        (json!({ "listing_id": listing, "max_spend": "1e3" }), "/max_spend"),
        (json!({ "listing_id": listing, "max_spend": "0.1234567" }), "/max_spend"),
        (json!({ "listing_id": listing, "currency": "eur" }), "/currency"),
        (json!({ "listing_id": listing, "stop_after": "1h" }), "/stop_after"),
        (json!({ "listing_id": listing, "quote": "abc" }), "/listing_id"),
        (json!({ "listing_id": "lst_1" }), "/listing_id"),
        (json!({ "listing_id": 7 }), "/listing_id"),
        (json!({}), "/listing_id"),
    ];
    for (form, pointer) in cases {
        let problem = request(&stage.renter.http, form.clone()).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{form}: {problem}");
    }
    let missing = stage.renter.http.post("/api/v1/rentals").json(&json!({ "listing_id": listing }));
    missing.expect_problem(400, "idempotency_key_required").await;
    request(&stage.renter.http, json!({ "listing_id": ListingId::new() })).expect_problem(404, "not_found").await;
    request(&stage.app.http, json!({ "listing_id": listing })).expect_problem(401, "unauthenticated").await;
    assert_eq!(balance(&stage.renter).await, ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(stage.renter.http.get("/api/v1/rentals").expect(200).await["data"], json!([]));
}

#[tokio::test]
async fn the_listings_own_limits_hold() {
    let stage = Stage::new("1000").await;
    stage.terms(json!({ "min_hours": 2, "max_hours": 10 })).await;
    let now = stage.now().await;
    let at = |seconds: i64| (now + TimeDelta::seconds(seconds)).to_rfc3339();
    let refused = async |form: Value, pointer: &str, code: &str| {
        let problem = stage.request(form.clone()).expect_problem(422, "invalid_input").await;
        let error = &problem["errors"][0];
        assert_eq!((&error["pointer"], &error["code"]), (&json!(pointer), &json!(code)), "{form}");
    };
    refused(json!({ "hours": 1 }), "/hours", "too_short").await;
    refused(json!({ "hours": 11 }), "/hours", "too_long").await;
    refused(json!({ "ends_at": at(3_600) }), "/ends_at", "too_short").await;
    refused(json!({ "ends_at": at(40_000) }), "/ends_at", "too_long").await;
    refused(json!({ "max_spend": "7.19" }), "/max_spend", "too_small").await;
    // An open rental gets the limit as its deadline.
    let rental = stage.rent(json!({})).await;
    assert_eq!(seconds_between(&rental["starts_at"], &rental["ends_at"]), 36_000);
    stage.stop(&rental).await;

    stage.terms(json!({ "min_hours": 0, "max_hours": null, "available_until": at(7_200) })).await;
    refused(json!({ "hours": 3 }), "/hours", "too_long").await;
    refused(json!({ "ends_at": at(7_260) }), "/ends_at", "too_long").await;
    refused(json!({ "starts_at": at(7_200) }), "/starts_at", "too_late").await;
    refused(json!({ "starts_at": at(50_000) }), "/starts_at", "too_late").await;
    let rental = stage.rent(json!({})).await;
    assert!((instant(&rental["ends_at"]) - (now + TimeDelta::seconds(7_200))).abs() < TimeDelta::milliseconds(1), "{rental}");
    stage.stop(&rental).await;
    // Less time is left than the least that is billed.
    stage.terms(json!({ "min_hours": 3 })).await;
    stage.request(json!({})).expect_problem(409, "listing_not_available").await;
    assert_eq!(balance(&stage.renter).await, ("1000.00".to_owned(), "0.00".to_owned()));
}

#[tokio::test]
async fn a_quote_holds_its_price_for_two_minutes_or_nothing_is_rented() {
    let stage = Stage::new("100").await;
    let quote = async |form: Value| {
        let body = stage.renter.http.post("/api/v1/quotes").json(&stage.with_listing(form)).expect(201).await;
        body["quote"].as_str().unwrap().to_owned()
    };
    let old = quote(json!({})).await;
    stage.terms(json!({ "price_per_hour": "7.2" })).await;
    // The old price, in the hold and in the bill.
    let rental = stage.rent_active(json!({ "quote": old })).await;
    assert_eq!((&rental["price_per_hour"], &rental["hold"]), (&json!("3.60"), &json!("3.60")));
    stage.app.advance(1_000).await;
    let spent = micros(&stage.stop(&rental).await["spend"]);
    assert!((1_000_000..1_100_000).contains(&spent), "{spent}");
    let by_listing = stage.rent(json!({})).await;
    assert_eq!(by_listing["price_per_hour"], "7.20");
    stage.stop(&by_listing).await;

    // A quote for some hours is for those, unless the request says otherwise.
    let hours = quote(json!({ "hours": 3 })).await;
    let rental = stage.rent(json!({ "quote": hours })).await;
    assert_eq!((&rental["hours"], seconds_between(&rental["starts_at"], &rental["ends_at"])), (&json!(3), 10_800));
    stage.stop(&rental).await;
    let rental = stage.rent(json!({ "quote": hours, "hours": 2 })).await;
    assert_eq!(rental["hours"], 2);
    stage.stop(&rental).await;

    let late = quote(json!({})).await;
    stage.app.advance(121).await;
    stage.request(json!({ "quote": late })).expect_problem(409, "quote_expired").await;
    let mut forged = quote(json!({})).await;
    let last = forged.pop().unwrap();
    forged.push(if last == 'A' { 'B' } else { 'A' });
    stage.request(json!({ "quote": forged })).expect_problem(422, "invalid_quote").await;
    stage.request(json!({ "quote": "" })).expect_problem(422, "invalid_quote").await;
    // A paused listing's quote promises a price, not the machine.
    let paused = quote(json!({})).await;
    stage.host.http.post(&format!("/api/v1/listings/{}/pause", stage.offer.listing)).expect(200).await;
    stage.request(json!({ "quote": paused })).expect_problem(409, "listing_not_available").await;
    stage.assert_books().await;
}

#[tokio::test]
async fn one_does_not_rent_ones_own_machine() {
    let stage = Stage::new("10").await;
    credit(&stage.host.http, "10").await;
    request(&stage.host.http, stage.with_listing(json!({}))).expect_problem(403, "forbidden").await;
    assert!(stage.is_available().await);
    assert_eq!(balance(&stage.host).await, ("10.00".to_owned(), "0.00".to_owned()));
}

#[tokio::test]
async fn to_a_stranger_a_rental_does_not_exist() {
    let stage = Stage::new("10").await;
    let rental = stage.rent_active(json!({ "hours": 1 })).await;
    let (id, stranger) = (rental_id(&rental), person(&stage.app, "stranger").await);
    for id in [id, RentalId::new()] {
        let path = format!("/api/v1/rentals/{id}");
        for suffix in ["", "/usage", "/events"] {
            stranger.http.get(&format!("{path}{suffix}")).expect_problem(404, "not_found").await;
            stage.app.http.get(&format!("{path}{suffix}")).expect_problem(401, "unauthenticated").await;
        }
        stranger.http.post(&format!("{path}/stop")).expect_problem(404, "not_found").await;
        let extend = stranger.http.post(&format!("{path}/extend")).idempotency_key(TransferId::new().to_string());
        extend.json(&json!({ "hours": 1 })).expect_problem(404, "not_found").await;
    }
    assert_eq!(stranger.http.get("/api/v1/rentals").expect(200).await["data"], json!([]));
    assert_eq!(stage.fetch(&rental).await["status"], "active");
    // The host sees it and may stop it, but not make it longer.
    let path = format!("/api/v1/rentals/{id}");
    assert_eq!(stage.host.http.get(&path).expect(200).await["id"], rental["id"]);
    assert_eq!(stage.host.http.get("/api/v1/rentals").expect(200).await["data"][0]["id"], rental["id"]);
    let extend = stage.host.http.post(&format!("{path}/extend")).idempotency_key("k").json(&json!({ "hours": 1 }));
    extend.expect_problem(403, "forbidden").await;
}

#[tokio::test]
async fn keys_do_what_their_scopes_say_and_lists_go_on_by_cursor() {
    let stage = Stage::new("100").await;
    let key = async |scope: &str| {
        let form = json!({ "name": "a key", "scopes": [scope] });
        let body = stage.renter.http.post("/api/v1/api-keys").json(&form).expect(201).await;
        stage.app.http.with_bearer(body["key"].as_str().unwrap())
    };
    let (reads, writes, infers) = (key("rentals:read").await, key("rentals:write").await, key("inference").await);
    let form = stage.with_listing(json!({}));
    request(&reads, form.clone()).expect_problem(403, "insufficient_scope").await;
    request(&infers, form.clone()).expect_problem(403, "insufficient_scope").await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        let rental = request(&writes, form.clone()).expect(201).await;
        reads.post(&format!("/api/v1/rentals/{}/stop", rental_id(&rental))).expect_problem(403, "insufficient_scope").await;
        writes.post(&format!("/api/v1/rentals/{}/stop", rental_id(&rental))).expect(200).await;
        ids.insert(0, rental["id"].as_str().unwrap().to_owned());
    }
    infers.get("/api/v1/rentals").expect_problem(403, "insufficient_scope").await;
    let mut found = Vec::new();
    let mut path = "/api/v1/rentals?limit=2&status=ended".to_owned();
    loop {
        let page = reads.get(&path).expect(200).await;
        found.extend(page["data"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/rentals?limit=2&status=ended&cursor={cursor}");
    }
    assert_eq!(found, ids);
    // A cursor is its account's, and its query's.
    let page = reads.get("/api/v1/rentals?limit=2&status=ended").expect(200).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let path = format!("/api/v1/rentals?limit=2&status=ended&cursor={cursor}");
    stage.host.http.get(&path).expect_problem(400, "invalid_cursor").await;
    reads.get(&format!("/api/v1/rentals?limit=2&cursor={cursor}")).expect_problem(400, "invalid_cursor").await;
    reads.get("/api/v1/rentals?status=running").expect_problem(422, "invalid_input").await;
    reads.get("/api/v1/rentals?state=ended").expect_problem(422, "invalid_input").await;
    // The entry of the ledger names the key.
    let entries = stage.renter.http.get("/api/v1/ledger-entries?code=hold&limit=1").expect(200).await;
    assert_eq!(entries["data"][0]["actor"]["kind"], "api_key");
}

#[tokio::test]
async fn the_price_is_that_of_the_whole_machine() {
    let stage = Stage::new("100").await;
    let form = json!({ "name": "eight", "hardware": { "gpu": "RTX 3090", "gpu_count": 8 }, "endpoint": { "url": stage.engine.url() } });
    let machine = crate::support::hosts::id(&stage.host.http.post("/api/v1/machines").json(&form).expect(201).await["id"]);
    crate::support::hosts::run(&stage.app, machine, &RunRow { gpu_count: Some(8), ..RunRow::default() }).await;
    let listing = crate::support::hosts::draft(&stage.host, machine, "16").await;
    stage.host.http.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
    let quote = stage.renter.http.post("/api/v1/quotes").json(&json!({ "listing_id": listing, "hours": 1 })).expect(201).await;
    assert_eq!((&quote["price_per_hour"], &quote["total"]), (&json!("16.00"), &json!("16.00")));
    let rental = stage.rent(json!({ "listing_id": listing })).await;
    assert_eq!((&rental["price_per_hour"], &rental["hold"]), (&json!("16.00"), &json!("16.00")));
    let rental = crate::support::renting::start(&stage.app, &stage.renter, rental_id(&rental)).await;
    stage.app.advance(3_600).await;
    let spent = micros(&stage.stop(&rental).await["spend"]);
    assert!((16_000_000..16_500_000).contains(&spent), "{spent}");
}

#[tokio::test]
async fn a_listing_that_leaves_the_market_leaves_its_rental_alone() {
    let stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({})).await;
    stage.host.http.post(&format!("/api/v1/listings/{}/pause", stage.offer.listing)).expect(200).await;
    stage.app.advance(1_800).await;
    assert_eq!(stage.fetch(&rental).await["status"], "active");
    // Also when what backed it is gone.
    crate::support::hosts::execute(&stage.app, "UPDATE runs SET status = 'rejected'").await;
    stage.app.advance(1_800).await;
    let running = stage.fetch(&rental).await;
    assert_eq!((&running["status"], &running["price_per_hour"]), (&json!("active"), &json!("3.60")));
    assert!(micros(&running["spend"]) >= 3_600_000);
    stage.host.http.delete(&format!("/api/v1/machines/{}", stage.offer.machine)).expect_problem(409, "machine_in_use").await;
    stage.stop(&rental).await;
    stage.assert_books().await;
    // Now it can go, and with it the chance to rent it.
    assert_eq!(stage.host.http.delete(&format!("/api/v1/machines/{}", stage.offer.machine)).answer().await.status, 204);
}

#[tokio::test]
async fn the_fee_is_the_hosts_plan_at_acceptance() {
    let stage = Stage::new("100").await;
    let host = crate::support::hosts::account_id(&stage.app, &stage.host).await;
    let first = stage.rent_active(json!({})).await;
    assert_eq!(first["fee_basis_points"], 1_000);
    let until = stage.now().await + TimeDelta::days(30);
    let set = async |tx: &mut rigmark::db::Tx<'_>| rigmark::identity::service::set_pro_until(tx, host, until).await;
    stage.app.ctx().db.tx("test", set).await.unwrap();
    stage.app.advance(1_000).await;
    let usage = {
        stage.stop(&first).await;
        stage.usage(&first).await
    };
    assert_eq!(micros(&usage["platform_fee"]), (micros(&usage["gross"]) + 5) / 10, "{usage}");
    let second = stage.rent_active(json!({})).await;
    assert_eq!(second["fee_basis_points"], 500);
    stage.app.advance(1_000).await;
    stage.stop(&second).await;
    let usage = stage.usage(&second).await;
    assert!((micros(&usage["platform_fee"]) * 20 - micros(&usage["gross"])).abs() <= 20, "{usage}");
    assert_eq!(micros(&usage["platform_fee"]) + micros(&usage["host_share"]), micros(&usage["gross"]));
    stage.assert_books().await;
}

#[tokio::test]
async fn two_listings_of_one_host_are_rented_apart() {
    let stage = Stage::new("100").await;
    let other = published(&stage.app, &stage.host, stage.engine.url(), "1.8", &RunRow::default()).await;
    let (first, second) = (stage.rent(json!({})).await, stage.rent(json!({ "listing_id": other.listing })).await);
    stage.request(json!({})).expect_problem(409, "already_rented").await;
    stage.stop(&first).await;
    assert!(stage.is_available().await);
    assert_eq!(stage.fetch(&second).await["status"], "held");
    stage.assert_books().await;
}
