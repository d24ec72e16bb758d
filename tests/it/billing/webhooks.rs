//! What is believed of a webhook, and what it does (money.md 20).

use serde_json::json;

use super::{Shop, WEBHOOK, WEBHOOK_SECRET, fifty};
use crate::support::stripe_double::{Release, Signature, signature};

/// A payment that is paid, with its success known to Stripe alone.
async fn paid() -> Shop {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", json!({ "amount": "50.00" })).await;
    let payment = top_up["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    shop.pay(payment, "pm_card_visa").await;
    shop
}

fn success() -> Release {
    Release { events: vec!["payment_intent.succeeded".to_owned()], ..Release::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_stripe_has_signed_now_is_believed() {
    let shop = paid().await;
    for forged in [Signature::Wrong, Signature::Missing, Signature::Untimed, Signature::Reserialized] {
        assert_eq!(shop.release(Release { signature: forged, ..success() }).await, [400], "{forged:?}");
    }
    for age_seconds in [330, 86_400, -330] {
        assert_eq!(shop.release(Release { age_seconds, ..success() }).await, [400], "{age_seconds}");
    }
    shop.assert_nothing_credited().await;
    assert_eq!(shop.count("stripe_events").await, 0);
    assert_eq!(shop.release(Release { age_seconds: 240, ..success() }).await, [200]);
    shop.assert_credited_once("50.00").await;
    // Sent again, whole and well signed: known, and without effect.
    assert_eq!(shop.release(Release { copies: 3, ..success() }).await, [200, 200, 200]);
    assert_eq!(shop.count("stripe_events").await, 1);
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_says_nothing_but_which_object_to_fetch() {
    let shop = Shop::new().await;
    shop.top_up("k", json!({ "amount": "50.00" })).await;
    // Well signed, but ahead of what Stripe says when it is asked.
    let how = Release { events: vec!["payment_intent.created".to_owned()], ..Release::default() };
    let patch = [("/type", json!("payment_intent.succeeded")), ("/data/object/status", json!("succeeded"))];
    let patch = patch.into_iter().map(|(pointer, value)| (pointer.to_owned(), value)).collect();
    assert_eq!(shop.release(Release { patch, ..how }).await, [200]);
    shop.assert_nothing_credited().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_known_makes_stripe_come_again() {
    let shop = paid().await;
    let patch = [("/data/object/id".to_owned(), json!("pi_nobody_knows"))].into();
    assert_eq!(shop.release(Release { patch, ..success() }).await, [404]);
    // At Stripe, but none of ours.
    shop.at_stripe(
        "/v1/payment_intents",
        &[("amount", "5000"), ("currency", "usd"), ("payment_method", "pm_card_visa"), ("confirm", "true")],
    )
    .await;
    let others: Vec<String> = shop.stripe.with(|world| {
        let events = world.all("event").into_iter().filter(|event| event["type"] == "payment_intent.succeeded");
        events.map(|event| event["id"].as_str().unwrap().to_owned()).collect()
    });
    assert_eq!(shop.release(Release { events: vec![others[0].clone()], ..Release::default() }).await, [404]);
    assert_eq!(shop.count("stripe_events").await, 0);
    shop.assert_nothing_credited().await;
    assert_eq!(shop.release(success()).await, [200]);
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_comes_before_its_row_is_taken_when_it_comes_again() {
    let shop = paid().await;
    // As if this database were behind: the row is there once the event comes again.
    shop.execute("CREATE TABLE aside AS TABLE top_ups").await;
    shop.execute("DELETE FROM top_ups").await;
    assert_eq!(shop.release(success()).await, [404]);
    shop.execute("INSERT INTO top_ups TABLE aside").await;
    assert_eq!(shop.release(success()).await, [200]);
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_type_is_noted() {
    let shop = paid().await;
    let patch = [("/type".to_owned(), json!("galaxy.collapsed"))].into();
    assert_eq!(shop.release(Release { patch, ..success() }).await, [200]);
    assert_eq!(shop.text("SELECT event_type || ' ' || outcome FROM stripe_events").await, "galaxy.collapsed noted");
    shop.assert_nothing_credited().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_currency_is_noted_with_an_alarm_and_credits_nothing() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", json!({ "amount": "50.00" })).await;
    let id = top_up["id"].as_str().unwrap();
    let euros =
        [("amount", "5000"), ("currency", "eur"), ("payment_method", "pm_card_visa"), ("confirm", "true"), ("metadata[rigmark_id]", id)];
    shop.at_stripe("/v1/payment_intents", &euros).await;
    assert_eq!(shop.release(success()).await, [200]);
    assert_eq!(shop.text("SELECT outcome FROM stripe_events").await, "alarm");
    assert_eq!(shop.text("SELECT alarm FROM top_ups").await, "other_currency");
    shop.assert_nothing_credited().await;
    // And none of ours.
    shop.at_stripe("/v1/payment_intents", &euros[..4]).await;
    assert!(shop.release(Release::default()).await.contains(&200));
    assert_eq!(shop.count("stripe_events WHERE outcome = 'alarm'").await, 4);
    shop.assert_nothing_credited().await;
}

/// A second payment that names the same top-up must not be credited under its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_payment_for_one_top_up_is_an_alarm() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", fifty("pm_card_visa")).await;
    let id = top_up["id"].as_str().unwrap();
    shop.at_stripe(
        "/v1/payment_intents",
        &[("amount", "5000"), ("currency", "usd"), ("payment_method", "pm_card_visa"), ("confirm", "true"), ("metadata[rigmark_id]", id)],
    )
    .await;
    let statuses = shop.release(Release::default()).await;
    assert_eq!(statuses, vec![200; 6]);
    assert_eq!(shop.text("SELECT status || ' ' || alarm FROM top_ups").await, "succeeded second_payment");
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_bounded_and_must_be_an_event() {
    let shop = Shop::new().await;
    let send = |body: String| {
        let header = signature(WEBHOOK_SECRET, shop.app.ctx().clock.wall_now().timestamp(), &body);
        shop.app.http.post(WEBHOOK).header("Stripe-Signature", header).header("Content-Type", "application/json").body(body)
    };
    for body in ["", "{}", "[]", "no json", r#"{"id":"evt_1","type":"x"}"#, r#"{"id":"evt/1","type":"x","data":{"object":{}}}"#] {
        send(body.to_owned()).expect_problem(400, "malformed_request").await;
    }
    let path = r#"{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"../../v1/balance"}}}"#;
    send(path.to_owned()).expect_problem(400, "malformed_request").await;
    send("x".repeat(1_000_001)).expect_problem(413, "payload_too_large").await;
    send(r#"{"id":"evt_1","type":"balance.available","data":{"object":{"object":"balance"}}}"#.to_owned()).expect(200).await;
    assert_eq!((shop.count("stripe_events").await, shop.stripe.calls().len()), (1, 0));
}
