//! What a customer sees of a top-up.

use std::time::Duration;

use rigmark::{base::secret::Secret, config::StripeConfig};
use serde_json::{Value, json};

use super::{Shop, fifty};
use crate::support::{TestApp, hosts::person};

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_charged_at_once_and_credited_once() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", fifty("pm_card_visa")).await;
    assert_eq!((&top_up["status"], &top_up["received"], &top_up["currency"]), (&json!("succeeded"), &json!("50.00"), &json!("usd")));
    assert_eq!((&top_up["client_secret"], &top_up["failure_code"]), (&Value::Null, &Value::Null));
    shop.assert_credited_once("50.00").await;
    let entries = shop.ada.http.get("/api/v1/ledger-entries").expect(200).await;
    let entry = &entries["data"][0];
    assert_eq!((&entry["code"], &entry["amount"], &entry["ledger_account"]), (&json!("top_up"), &json!("50.00"), &json!("available")));
    assert!(entry["payment"].as_str().unwrap().starts_with("pi_"), "{entry}");
    let call = shop.stripe.calls().into_iter().find(|call| call["method"] == "POST").unwrap();
    assert_eq!(call["idempotency_key"], format!("{}:payment", top_up["id"].as_str().unwrap()));
    assert_eq!(call["params"]["metadata"]["rigmark_id"], top_up["id"]);
    assert_eq!((&call["params"]["amount"], &call["params"]["currency"]), (&json!("5000"), &json!("usd")));
    assert_eq!(shop.read(&top_up).await["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_card_costs_nothing_and_another_may_follow() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", fifty("pm_card_chargeDeclinedInsufficientFunds")).await;
    assert_eq!((&top_up["status"], &top_up["failure_code"]), (&json!("requires_payment_method"), &json!("insufficient_funds")));
    shop.assert_nothing_credited().await;
    let secret = top_up["client_secret"].as_str().unwrap();
    let payment = secret.split("_secret_").next().unwrap();
    assert_eq!(shop.pay(payment, "pm_card_visa").await["status"], "succeeded");
    let read = shop.read(&top_up).await;
    assert_eq!((&read["status"], &read["failure_code"], &read["client_secret"]), (&json!("succeeded"), &Value::Null, &Value::Null));
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn authentication_is_asked_for_and_may_fail_first() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", fifty("pm_card_authenticationRequired")).await;
    assert_eq!(top_up["status"], "requires_action");
    let payment = top_up["client_secret"].as_str().unwrap().split("_secret_").next().unwrap().to_owned();
    shop.stripe.control("POST", &format!("payment_intents/{payment}"), &json!({ "outcome": "failed" })).unwrap();
    let read = shop.read(&top_up).await;
    assert_eq!(read["status"], "requires_payment_method");
    assert_eq!(read["failure_code"], "payment_intent_authentication_failure");
    shop.assert_nothing_credited().await;
    assert_eq!(shop.pay(&payment, "pm_card_authenticationRequired").await["status"], "requires_action");
    shop.stripe.control("POST", &format!("payment_intents/{payment}"), &json!({ "outcome": "succeeded" })).unwrap();
    assert_eq!(shop.read(&top_up).await["status"], "succeeded");
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_payment_is_processing_until_it_is_paid() {
    let shop = Shop::new().await;
    shop.stripe.with(|world| world.payments_wait = true);
    let top_up = shop.top_up("k", fifty("pm_card_visa")).await;
    assert_eq!(top_up["status"], "processing");
    shop.poll().await;
    shop.assert_nothing_credited().await;
    let payment = shop.text("SELECT payment_intent_id FROM top_ups").await;
    shop.stripe.control("POST", &format!("payment_intents/{payment}"), &json!({ "outcome": "succeeded" })).unwrap();
    shop.poll().await;
    shop.poll().await;
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_payment_is_over_and_credits_nothing() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", json!({ "amount": "50.00" })).await;
    let payment = top_up["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    shop.at_stripe(&format!("/v1/payment_intents/{payment}/cancel"), &[]).await;
    shop.poll().await;
    let read = shop.read(&top_up).await;
    assert_eq!((&read["status"], &read["client_secret"]), (&json!("canceled"), &Value::Null));
    assert!(read["settled_at"].is_string());
    assert_eq!(shop.count("top_ups WHERE ask_at IS NOT NULL").await, 0);
    shop.assert_nothing_credited().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_said_before_stripe_hears_of_it() {
    let shop = Shop::new().await;
    let rows = [
        (json!({ "amount": "4.99" }), "/amount", "too_small"),
        (json!({ "amount": "10000.01" }), "/amount", "too_large"),
        (json!({ "amount": "50.005" }), "/amount", "not_whole_cents"),
        (json!({ "amount": "50.00", "payment_method": "card_1" }), "/payment_method", "invalid"),
        (json!({ "amount": "50.00", "payment_method": "pm_a/../../charges" }), "/payment_method", "invalid"),
        (json!({ "amount": "50.00", "return_url": "javascript:alert(1)" }), "/return_url", "invalid"),
        (json!({ "amount": "50.00", "payment_method": "pm_card_visa", "return_url": "https://example.org" }), "/return_url", "not_both"),
    ];
    for (at, (form, pointer, code)) in rows.iter().enumerate() {
        let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key(format!("k{at}")).json(form);
        let problem = request.expect_problem(422, "invalid_input").await;
        assert_eq!((&problem["errors"][0]["pointer"], &problem["errors"][0]["code"]), (&json!(pointer), &json!(code)), "{form}");
    }
    for form in [json!({ "amount": "50.00", "currency": "eur" }), json!({ "amount": 50 }), json!({ "amount": "5e1" }), json!({})] {
        shop.ada.http.post("/api/v1/top-ups").idempotency_key(form.to_string()).json(&form).expect_problem(422, "invalid_input").await;
    }
    shop.ada.http.post("/api/v1/top-ups").json(&fifty("pm_card_visa")).expect_problem(400, "idempotency_key_required").await;
    assert_eq!((shop.stripe.calls().len(), shop.count("top_ups").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_method_that_stripe_does_not_know_is_the_requests_fault() {
    let shop = Shop::new().await;
    for _ in 0..2 {
        let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty("pm_of_somebody_else"));
        let problem = request.expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], "/payment_method", "{problem}");
    }
    assert_eq!(shop.text("SELECT status || ' ' || failure_code FROM top_ups").await, "canceled resource_missing");
    shop.poll().await;
    shop.assert_nothing_credited().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_top_up_and_belongs_to_its_account() {
    let shop = Shop::new().await;
    let first = shop.top_up("k", fifty("pm_card_visa")).await;
    assert_eq!(shop.top_up("k", fifty("pm_card_visa")).await, first);
    let other = json!({ "amount": "60.00", "payment_method": "pm_card_visa" });
    let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&other);
    request.expect_problem(422, "idempotency_key_reused").await;
    shop.assert_credited_once("50.00").await;
    let bob = person(&shop.app, "bob").await;
    let his = bob.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty("pm_card_visa")).expect(201).await;
    assert_ne!(his["id"], first["id"]);
    bob.http.get(&format!("/api/v1/top-ups/{}", first["id"].as_str().unwrap())).expect_problem(404, "not_found").await;
    assert_eq!(bob.http.get("/api/v1/top-ups").expect(200).await["data"].as_array().unwrap().len(), 1);
    assert_eq!(shop.payments_made(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_free_again_after_a_day() {
    let shop = Shop::new().await;
    let first = shop.top_up("k", fifty("pm_card_visa")).await;
    shop.execute("DELETE FROM idempotency_keys").await;
    assert_eq!(shop.top_up("k", fifty("pm_card_visa")).await["id"], first["id"]);
    shop.execute("DELETE FROM idempotency_keys").await;
    shop.execute("UPDATE top_ups SET created_at = created_at - interval '25 hours 1 minute'").await;
    assert_ne!(shop.top_up("k", fifty("pm_card_visa")).await["id"], first["id"]);
    assert_eq!((shop.payments_made(), shop.available().await), (2, "100.00".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_newest_first_in_pages_and_by_status() {
    let shop = Shop::new().await;
    let mut ids = Vec::new();
    for (key, card) in [("a", "pm_card_visa"), ("b", "pm_card_chargeDeclined"), ("c", "pm_card_visa")] {
        ids.insert(0, shop.top_up(key, fifty(card)).await["id"].clone());
    }
    let listed = |page: &Value| page["data"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    let first = shop.ada.http.get("/api/v1/top-ups?limit=2").expect(200).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = shop.ada.http.get(&format!("/api/v1/top-ups?limit=2&cursor={cursor}")).expect(200).await;
    assert_eq!([listed(&first), listed(&second)].concat(), ids);
    let declined = shop.ada.http.get("/api/v1/top-ups?status=requires_payment_method").expect(200).await;
    assert_eq!(listed(&declined), [ids[1].clone()]);
    assert!(declined["data"][0].get("client_secret").is_none());
    shop.ada.http.get("/api/v1/top-ups?status=paid").expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn the_sandbox_refuses_and_names_its_own_credits() {
    let app = TestApp::new().await;
    let ada = person(&app, "ada").await;
    let request = ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty("pm_card_visa"));
    let problem = request.expect_problem(409, "no_payment_provider").await;
    assert!(problem["detail"].as_str().unwrap().contains("/api/v1/sandbox/credits"), "{problem}");
    app.http.post(super::WEBHOOK).json(&json!({})).expect_problem(409, "no_payment_provider").await;
}

/// Whoever never pays is not asked about for ever, and cannot pay by accident later.
#[tokio::test(flavor = "multi_thread")]
async fn a_top_up_that_nobody_pays_is_canceled_after_a_month() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", json!({ "amount": "50.00" })).await;
    let payment = top_up["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    shop.execute("UPDATE top_ups SET created_at = created_at - interval '29 days'").await;
    shop.poll().await;
    assert_eq!(shop.text("SELECT status FROM top_ups").await, "requires_payment_method");
    shop.execute("UPDATE top_ups SET created_at = created_at - interval '2 days'").await;
    shop.poll().await;
    assert_eq!(shop.text("SELECT status || ' ' || (ask_at IS NULL) FROM top_ups").await, "canceled true");
    assert_eq!(shop.pay(payment, "pm_card_visa").await["error"]["code"], "payment_intent_unexpected_state");
    shop.assert_nothing_credited().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_old_top_up_that_was_paid_all_the_same_is_credited() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", json!({ "amount": "50.00" })).await;
    shop.pay(top_up["client_secret"].as_str().unwrap().split("_secret_").next().unwrap(), "pm_card_visa").await;
    shop.execute("UPDATE top_ups SET created_at = created_at - interval '31 days'").await;
    shop.poll().await;
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_answer_holds_no_client_secret_and_a_repeat_has_it() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", json!({ "amount": "50.00" })).await;
    let secret = top_up["client_secret"].as_str().unwrap();
    let kept = shop.text("SELECT response FROM idempotency_keys WHERE state = 'done'").await;
    assert!(kept.starts_with("sealed:") && !kept.contains(secret), "{kept}");
    let repeat = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&json!({ "amount": "50.00" })).answer().await;
    assert_eq!((repeat.status.as_u16(), repeat.header("idempotency-replayed").as_deref()), (201, Some("true")));
    assert_eq!(repeat.json(), top_up);
}

/// Otherwise a second attempt would begin what the first is still doing.
#[tokio::test]
async fn asking_stripe_ends_before_the_lease_of_its_key() {
    let config = StripeConfig::new(Secret::new("sk_test_x".to_owned()), Vec::new(), None);
    let max = rigmark::billing::service::STRIPE_MAX;
    // To make it, and to ask what became of it.
    assert!(config.request_max() * 2 <= max, "{:?}", config.request_max());
    let app = TestApp::new().await;
    let lease = u64::try_from(app.ctx().config.tunables.idempotency_lease_seconds).unwrap();
    assert!(max + Duration::from_secs(5) < Duration::from_secs(lease));
}

#[tokio::test]
async fn the_tunables_are_published() {
    let app = TestApp::new().await;
    let answer = app.http.get("/api/v1/tunables").answer().await;
    let body = answer.json();
    assert_eq!((&body["top_up_min_cents"], &body["fee_basis_points"], &body["earnings_hold_days"]), (&json!(500), &json!(1000), &json!(7)));
    assert_eq!(answer.header("cache-control").as_deref(), Some("public, max-age=300"));
    let tag = answer.header("etag").unwrap();
    let again = app.http.get("/api/v1/tunables").header("If-None-Match", tag).answer().await;
    assert_eq!(again.status.as_u16(), 304);
}
