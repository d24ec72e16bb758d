//! Webhooks: signed, in any order, more than once, old, and broken in the ways that an endpoint must refuse.

use std::time::Duration;

use serde_json::json;

use super::receiver::Receiver;
use super::{SECRET, Stripe, text};
use crate::support::stripe_double::{Release, Signature, signature};
use crate::support::wait_for;

/// The time of a signature, if it is one over this body.
fn signed_at(header: &str, body: &str) -> Option<i64> {
    let at = header.strip_prefix("t=")?.split_once(',')?.0.parse().ok()?;
    (signature(SECRET, at, body) == header).then_some(at)
}

#[test]
fn a_signature_is_hmac_sha256_over_time_and_body() {
    // Computed with `printf '1.{}' | openssl dgst -sha256 -hmac whsec_test`.
    let expected = "t=1,v1=7500d5d4be4b3ef07af1fe56f7d522d135cdaa7530de557e67cc1049c52de094";
    assert_eq!(signature(SECRET, 1, "{}"), expected);
}

#[tokio::test]
async fn events_go_out_in_order_and_come_again_until_they_are_taken() {
    let receiver = Receiver::start().await;
    receiver.statuses.lock().unwrap().extend([503, 500]);
    let stripe = Stripe::with_webhook(Some(receiver.url.clone()));
    stripe.post("/v1/customers", "email=a@example.org", 200).await;
    wait_for("three attempts", Duration::from_secs(20), async || receiver.received().len() == 3).await;
    let ids: Vec<_> = receiver.received().iter().map(|received| received.event()["id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let one = &receiver.received()[0];
    assert!(signed_at(&one.signature, &one.body).is_some(), "{one:?}");

    stripe.pay(1000, "pm_card_visa").await;
    wait_for("all events", Duration::from_secs(20), async || receiver.received().len() == 6).await;
    assert_eq!(receiver.types()[3..], ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"]);
}

#[tokio::test]
async fn held_events_go_out_as_told() {
    let receiver = Receiver::start().await;
    let stripe = Stripe::with_webhook(Some(receiver.url.clone()));
    stripe.double.hold_webhooks();
    let paid = stripe.pay(1000, "pm_card_visa").await;
    stripe.post("/v1/refunds", &format!("payment_intent={}", text(&paid["id"])), 200).await;
    assert_eq!(receiver.received().len(), 0);

    let order = ["charge.refunded", "payment_intent.succeeded", "payment_intent.created"];
    let how = Release { events: order.map(str::to_owned).into(), copies: 2, ..Release::default() };
    let sent = stripe.double.release(&how).await.unwrap();
    assert!(sent.iter().all(|sent| sent["status"] == 200) && sent.len() == 6);
    let twice: Vec<&str> = order.iter().flat_map(|kind| [*kind, *kind]).collect();
    assert_eq!(receiver.types(), twice);

    let rest = stripe.http.post("/_double/webhooks/release").json(&json!({ "reverse": true })).expect(200).await;
    let rest: Vec<_> = rest.as_array().unwrap().iter().map(|sent| text(&sent["type"])).collect();
    assert_eq!(rest, ["refund.created", "charge.succeeded"]);
    assert_eq!(stripe.double.release(&Release::default()).await.unwrap().len(), 0);
}

#[tokio::test]
async fn events_can_go_to_several_endpoints_at_once() {
    let (one, two) = (Receiver::start().await, Receiver::start().await);
    let stripe = Stripe::with_webhook(Some(one.url.clone()));
    stripe.double.hold_webhooks();
    stripe.pay(1000, "pm_card_visa").await;
    let endpoints = vec![one.url.clone(), two.url.clone()];
    let sent = stripe.double.release(&Release { endpoints, copies: 2, parallel: 4, ..Release::default() }).await.unwrap();
    let mut types = (one.types(), two.types());
    types.0.sort();
    types.1.sort();
    assert_eq!((sent.len(), types.0.len()), (6, 3));
    assert_eq!(types.0, types.1);
}

#[tokio::test]
async fn deliveries_can_be_broken_in_every_way_an_endpoint_must_refuse() {
    let receiver = Receiver::start().await;
    let stripe = Stripe::with_webhook(Some(receiver.url.clone()));
    stripe.double.hold_webhooks();
    stripe.post("/v1/customers", "email=a@example.org", 200).await;
    let event = vec!["customer.created".to_owned()];
    let now = text(&json!(stripe.double.with(|world| world.now()).to_string())).parse::<i64>().unwrap();
    for (broken, holds) in [
        (Signature::Right, true),
        (Signature::Wrong, false),
        (Signature::Missing, false),
        (Signature::Untimed, false),
        (Signature::Reserialized, false),
    ] {
        stripe.double.release(&Release { events: event.clone(), signature: broken, ..Release::default() }).await.unwrap();
        let last = receiver.received().pop().unwrap();
        assert_eq!(signed_at(&last.signature, &last.body).is_some(), holds, "{broken:?}");
        assert_eq!(last.signature.is_empty(), broken == Signature::Missing);
    }
    stripe.double.release(&Release { events: event.clone(), age_seconds: 301, ..Release::default() }).await.unwrap();
    let old = receiver.received().pop().unwrap();
    assert!(signed_at(&old.signature, &old.body).unwrap() <= now - 301 + 60);

    let patch = [("/type".to_owned(), json!("customer.unheard_of")), ("/data/object/id".to_owned(), json!("cus_unknown"))];
    stripe.double.release(&Release { events: event, patch: patch.into(), ..Release::default() }).await.unwrap();
    let patched = receiver.received().pop().unwrap();
    assert_eq!(
        (&patched.event()["type"], &patched.event()["data"]["object"]["id"]),
        (&json!("customer.unheard_of"), &json!("cus_unknown"))
    );
    assert!(signed_at(&patched.signature, &patched.body).is_some());
}
