//! Declines, authentication, refund bounds, idempotency keys and faults.

use std::time::Duration;

use serde_json::json;

use super::{Stripe, text};
use crate::support::stripe_double::{Fault, Kind};
use crate::support::wait_for;

#[tokio::test]
async fn a_declined_card_leaves_the_payment_and_says_why() {
    let stripe = Stripe::start();
    for (card, code, decline_code) in [
        ("pm_card_chargeDeclined", "card_declined", "generic_decline"),
        ("pm_card_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card", ""),
    ] {
        let form = format!("amount=1000&currency=usd&payment_method={card}&confirm=true");
        let error = stripe.post("/v1/payment_intents", &form, 402).await["error"].clone();
        assert_eq!((&error["type"], &error["code"]), (&json!("card_error"), &json!(code)));
        assert_eq!(error["decline_code"].as_str().unwrap_or_default(), decline_code);
        assert_eq!(error["payment_intent"]["status"], "requires_payment_method");
        let kept = stripe.get(&format!("/v1/payment_intents/{}", text(&error["payment_intent"]["id"]))).await;
        assert_eq!(kept["last_payment_error"]["code"], code);
    }
    let other = stripe.post("/v1/payment_intents", "amount=1000&currency=usd&amonut=1", 400).await;
    assert_eq!(other["error"]["code"], "parameter_unknown");
    assert_eq!(stripe.http.with_bearer("wrong").get("/v1/events").answer().await.status, 401);
}

#[tokio::test]
async fn a_card_that_asks_pays_once_its_owner_has_answered() {
    let stripe = Stripe::start();
    let asked = stripe.pay(1000, "pm_card_authenticationRequired").await;
    assert_eq!((asked["status"].as_str(), asked["latest_charge"].is_null()), (Some("requires_action"), true));
    let page = format!("/_double/authenticate/{}", text(&asked["id"]));
    assert_eq!(stripe.http.get(&page).answer().await.status, 200);
    let form = "application/x-www-form-urlencoded";
    stripe.http.post(&page).header("content-type", form).body("outcome=succeeded").answer().await;
    assert_eq!(stripe.get(&format!("/v1/payment_intents/{}", text(&asked["id"]))).await["status"], "succeeded");

    let alone = "amount=1000&currency=usd&payment_method=pm_card_authenticationRequired&confirm=true&off_session=true";
    let error = stripe.post("/v1/payment_intents", alone, 402).await["error"].clone();
    assert_eq!(error["code"], "authentication_required");
}

#[tokio::test]
async fn refunds_never_exceed_what_was_captured() {
    let stripe = Stripe::start();
    let paid = text(&stripe.pay(10_000, "pm_card_visa").await["id"]);
    let refund = format!("payment_intent={paid}&amount=6000");
    let both = tokio::join!(stripe.keyed("/v1/refunds", &refund, "a", ""), stripe.keyed("/v1/refunds", &refund, "b", ""));
    let mut statuses = [both.0.unwrap().status.as_u16(), both.1.unwrap().status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
    for wrong in ["-5", "0", "4001", "1.5", "100.000001"] {
        stripe.post("/v1/refunds", &format!("payment_intent={paid}&amount={wrong}"), 400).await;
    }
    stripe.post("/v1/refunds", &format!("payment_intent={paid}&amount=4000"), 200).await;
    let error = stripe.post("/v1/refunds", &format!("payment_intent={paid}"), 400).await;
    assert_eq!(error["error"]["code"], "charge_already_refunded");
    let all = stripe.get(&format!("/v1/refunds?payment_intent={paid}")).await;
    let sum: i64 = all["data"].as_array().unwrap().iter().map(|refund| refund["amount"].as_i64().unwrap()).sum();
    assert_eq!(sum, 10_000);
}

#[tokio::test]
async fn a_refund_that_fails_gives_the_money_back() {
    let stripe = Stripe::start();
    let paid = stripe.pay(10_000, "pm_card_pendingRefund").await;
    let refund = stripe.post("/v1/refunds", &format!("payment_intent={}", text(&paid["id"])), 200).await;
    assert_eq!(refund["status"], "pending");
    let path = format!("refunds/{}", text(&refund["id"]));
    let failed = stripe.double.control("POST", &path, &json!({ "status": "failed" })).unwrap();
    assert!(failed["failure_balance_transaction"].is_string());
    assert!(stripe.double.control("POST", &path, &json!({ "status": "failed" })).is_err());
    let charge = stripe.get(&format!("/v1/charges/{}", text(&paid["latest_charge"]))).await;
    assert_eq!((&charge["amount_refunded"], &charge["refunded"]), (&json!(0), &json!(false)));
    let entries = stripe.get("/v1/balance_transactions").await;
    let sum: i64 = entries["data"].as_array().unwrap().iter().map(|entry| entry["amount"].as_i64().unwrap()).sum();
    assert_eq!(sum, 10_000);
}

#[tokio::test]
async fn a_key_gives_one_effect_and_one_answer() {
    let stripe = Stripe::start();
    let form = "amount=1000&currency=usd&payment_method=pm_card_visa&confirm=true";
    let first = stripe.keyed("/v1/payment_intents", form, "k", "").await.unwrap();
    let again = stripe.keyed("/v1/payment_intents", form, "k", "").await.unwrap();
    assert_eq!(first.json(), again.json());
    assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), (None, Some("true".to_owned())));
    let other = stripe.keyed("/v1/payment_intents", "amount=1001&currency=usd", "k", "").await.unwrap();
    assert_eq!((other.status.as_u16(), &other.json()["error"]["type"]), (400, &json!("idempotency_error")));
    assert_eq!(stripe.get("/v1/payment_intents").await["data"].as_array().unwrap().len(), 1);

    let declined = "amount=1000&currency=usd&payment_method=pm_card_chargeDeclined&confirm=true";
    let one = stripe.keyed("/v1/payment_intents", declined, "d", "").await.unwrap().json();
    assert_eq!(one, stripe.keyed("/v1/payment_intents", declined, "d", "").await.unwrap().json());

    stripe.double.advance(25 * 3600);
    let later = stripe.keyed("/v1/payment_intents", form, "k", "").await.unwrap();
    assert_ne!(first.json()["id"], later.json()["id"]);
}

#[tokio::test]
async fn a_key_in_use_is_a_conflict_and_its_effect_survives_a_client_that_left() {
    let stripe = Stripe::start();
    stripe.double.fault(Fault { delay_ms: 600_000, ..Fault::new(Kind::DelayAfter) });
    let form = "amount=1000&currency=usd&payment_method=pm_card_visa&confirm=true";
    tokio::select! {
        _ = stripe.keyed("/v1/payment_intents", form, "slow", "") => panic!("it was to be slow"),
        () = wait_for("the effect", Duration::from_secs(10), async || !stripe.events().is_empty()) => {}
    }
    let second = stripe.keyed("/v1/payment_intents", form, "slow", "").await.unwrap();
    assert_eq!((second.status.as_u16(), &second.json()["error"]["code"]), (409, &json!("idempotency_key_in_use")));
    assert_eq!(stripe.get("/v1/payment_intents").await["data"][0]["status"], "succeeded");
}

#[tokio::test]
async fn faults_strike_as_often_and_where_they_are_told() {
    let stripe = Stripe::start();
    let form = "amount=1000&currency=usd&payment_method=pm_card_visa&confirm=true";
    let on = |kind| Fault { path: Some("/v1/payment_intents".to_owned()), method: Some("POST".to_owned()), ..Fault::new(kind) };
    stripe.double.fault(on(Kind::DropBefore));
    assert!(stripe.keyed("/v1/payment_intents", form, "k", "").await.is_none());
    assert_eq!(stripe.events().len(), 0);
    stripe.double.fault(on(Kind::DropAfter));
    assert!(stripe.keyed("/v1/payment_intents", form, "k", "").await.is_none());
    let known = stripe.keyed("/v1/payment_intents", form, "k", "").await.unwrap();
    assert_eq!(known.header("idempotent-replayed"), Some("true".to_owned()));
    stripe.double.fault(Fault { status: 429, times: 2, ..on(Kind::Status) });
    assert_eq!(stripe.get("/v1/customers").await["object"], "list");
    for expected in [429, 429, 200] {
        assert_eq!(stripe.keyed("/v1/payment_intents", form, "k2", "").await.unwrap().status, expected);
    }
    let calls = stripe.double.calls();
    let keys = calls.iter().filter(|call| call["idempotency_key"] == "k2").count();
    assert_eq!((calls.len(), keys), (7, 3));
}
