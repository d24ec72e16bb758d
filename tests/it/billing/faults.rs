//! What goes wrong between us and Stripe: nothing is paid twice, and what was paid is credited.

use futures::future::join_all;
use serde_json::json;

use super::{Shop, fifty};
use crate::support::stripe_double::{Fault, Kind};

#[tokio::test(flavor = "multi_thread")]
async fn passing_refusals_are_tried_again_with_the_same_key() {
    for status in [409, 429, 500, 503] {
        let shop = Shop::new().await;
        let path = Some("/v1/payment_intents".to_owned());
        shop.stripe.fault(Fault { status, path, ..Fault::new(Kind::Status) });
        assert_eq!(shop.top_up("k", fifty("pm_card_visa")).await["status"], "succeeded");
        let keys: Vec<_> = shop.stripe.calls().iter().map(|call| call["idempotency_key"].clone()).collect();
        assert!(keys.len() == 2 && keys[0] == keys[1] && keys[0].is_string(), "{status}: {keys:?}");
        shop.assert_credited_once("50.00").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_after_stripe_has_acted_is_asked_for() {
    for kind in [Kind::DropAfter, Kind::DelayAfter] {
        let shop = Shop::new().await;
        let path = Some("/v1/payment_intents".to_owned());
        shop.stripe.fault(Fault { method: Some("POST".to_owned()), path, times: 10, delay_ms: 2_000, ..Fault::new(kind) });
        let top_up = shop.top_up("k", fifty("pm_card_visa")).await;
        assert_eq!(top_up["status"], "succeeded", "{kind:?}");
        assert!(shop.stripe.calls().iter().any(|call| call["method"] == "GET" && call["path"] == "/v1/payment_intents"), "{kind:?}");
        assert_eq!(shop.payments_made(), 1);
        shop.assert_credited_once("50.00").await;
    }
}

/// What a process that dies between Stripe's answer and its own commit leaves behind: money taken, a row that knows nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_but_never_written_down_is_settled_by_the_poller() {
    let shop = Shop::new().await;
    shop.fault(Kind::DropAfter, "POST", 2);
    shop.fault(Kind::DropBefore, "GET", 2);
    let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty("pm_card_visa"));
    request.expect_problem(503, "unavailable").await;
    assert_eq!(shop.payments_made(), 1);
    assert_eq!(shop.text("SELECT status || ' ' || (payment_intent_id IS NULL) FROM top_ups").await, "pending true");
    shop.assert_nothing_credited().await;
    shop.poll().await;
    shop.assert_credited_once("50.00").await;
    let repeat = shop.top_up("k", fifty("pm_card_visa")).await;
    assert_eq!((&repeat["status"], shop.payments_made()), (&json!("succeeded"), 1));
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_but_never_written_down_is_settled_by_the_webhook() {
    let shop = Shop::new().await;
    shop.fault(Kind::DropAfter, "POST", 2);
    shop.fault(Kind::DropBefore, "GET", 2);
    let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty("pm_card_visa"));
    request.expect_problem(503, "unavailable").await;
    assert_eq!(shop.release(Default::default()).await, [200, 200, 200]);
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_never_arrived_is_repeated_with_its_key() {
    let shop = Shop::new().await;
    shop.fault(Kind::DropBefore, "POST", 2);
    let request = || shop.ada.http.post("/api/v1/top-ups").idempotency_key("k");
    request().json(&fifty("pm_card_visa")).expect_problem(503, "unavailable").await;
    assert_eq!(shop.payments_made(), 0);
    // The claim is free again, but the row remembers what was asked.
    let other = json!({ "amount": "60.00", "payment_method": "pm_card_visa" });
    request().json(&other).expect_problem(422, "idempotency_key_reused").await;
    let shop2 = shop.count("top_ups").await;
    assert_eq!((shop2, shop.payments_made()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_after_an_unknown_outcome_is_the_same_top_up() {
    let shop = Shop::new().await;
    shop.fault(Kind::DropBefore, "POST", 2);
    let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty("pm_card_visa"));
    let problem = request.answer().await;
    assert_eq!((problem.status.as_u16(), problem.header("retry-after").as_deref()), (503, Some("5")));
    assert_eq!(shop.top_up("k", fifty("pm_card_visa")).await["status"], "succeeded");
    assert_eq!((shop.count("top_ups").await, shop.payments_made()), (1, 1));
    shop.assert_credited_once("50.00").await;
}

/// Stripe keeps a 500 under its key: it is given again for ever, and nothing will come of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_came_to_nothing_ends_canceled() {
    let shop = Shop::new().await;
    let path = Some("/v1/payment_intents".to_owned());
    shop.stripe.fault(Fault { method: Some("POST".to_owned()), path, kept: true, ..Fault::new(Kind::Status) });
    let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty("pm_card_visa"));
    request.expect_problem(503, "unavailable").await;
    shop.poll().await;
    assert_eq!(shop.text("SELECT status FROM top_ups").await, "pending");
    shop.execute("UPDATE top_ups SET created_at = created_at - interval '31 minutes'").await;
    shop.poll().await;
    assert_eq!(shop.text("SELECT status || ' ' || failure_code FROM top_ups").await, "canceled never_arrived");
    assert_eq!(shop.top_up("k", fifty("pm_card_visa")).await["status"], "canceled");
    assert_eq!(shop.payments_made(), 0);
    shop.assert_nothing_credited().await;
}

/// cases.md 1: the charge takes longer than we wait, and the customer presses again.
#[tokio::test(flavor = "multi_thread")]
async fn pressing_three_times_while_the_charge_is_slow_pays_once() {
    let shop = Shop::new().await;
    let path = Some("/v1/payment_intents".to_owned());
    shop.stripe.fault(Fault { method: Some("POST".to_owned()), path, delay_ms: 1_500, ..Fault::new(Kind::DelayAfter) });
    let press = || async {
        let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty("pm_card_visa"));
        let answer = request.answer().await;
        (answer.status.as_u16(), answer.json())
    };
    let answers = join_all((0..3).map(|_| press())).await;
    let done: Vec<_> = answers.iter().filter(|(status, _)| *status == 201).collect();
    assert!(!done.is_empty() && answers.iter().all(|(status, _)| [201, 409].contains(status)), "{answers:?}");
    let (status, last) = press().await;
    assert_eq!(status, 201);
    assert!(done.iter().all(|(_, body)| body["id"] == last["id"]), "{answers:?}");
    assert_eq!((shop.payments_made(), shop.count("top_ups").await), (1, 1));
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_top_up_is_shown_as_last_seen_while_stripe_is_away() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", json!({ "amount": "50.00" })).await;
    shop.fault(Kind::DropBefore, "GET", 4);
    let read = shop.read(&top_up).await;
    assert_eq!((&read["status"], read.get("client_secret")), (&json!("requires_payment_method"), None));
    shop.poll().await;
    assert_eq!(shop.text("SELECT status FROM top_ups").await, "requires_payment_method");
}

/// A status that Stripe may come to have is no reason to credit, or to give up.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_is_not_known_changes_nothing() {
    let shop = Shop::new().await;
    shop.top_up("k", json!({ "amount": "50.00" })).await;
    let mut payment = shop.stripe.with(|world| world.all("payment_intent").remove(0));
    payment["status"] = json!("paid_in_part");
    payment["amount_received"] = json!(5_000);
    shop.stripe.with(|world| world.put(&payment));
    shop.poll().await;
    assert_eq!(shop.text("SELECT status || ' ' || (ask_at IS NOT NULL) FROM top_ups").await, "requires_payment_method true");
    shop.assert_nothing_credited().await;
    payment["status"] = json!("succeeded");
    shop.stripe.with(|world| world.put(&payment));
    shop.poll().await;
    shop.assert_credited_once("50.00").await;
}
