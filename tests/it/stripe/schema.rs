//! Every object that the double makes, and every copy of one in an event, is what Stripe's published schema says.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Stripe, text};
use crate::web::conforms::conforms;

fn published() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stripe/schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Members that async-stripe's version has and the published one has no longer, or not yet: the object and a pointer within.
const BEYOND: [(&str, &str, &str); 3] =
    [("subscription_item", "", "plan"), ("product", "", "type"), ("dispute", "/payment_method_details/card", "network")];
/// Sent only when it is expanded, though the schema has it nullable.
const ON_DEMAND: [(&str, &str); 1] = [("charge", "refunds")];

/// What is wrong with an object by the schema of its own name.
fn faults(document: &Value, object: &Value) -> Vec<String> {
    let kind = text(&object["object"]);
    if object["deleted"] == true {
        return Vec::new();
    }
    let schema = &document["components"]["schemas"][&kind];
    assert!(schema.is_object(), "no schema of {kind}");
    let mut object = object.clone();
    without_beyond(&mut object);
    let mut faults = conforms(document, schema, &object);
    for (name, member) in schema["properties"].as_object().unwrap() {
        let may_be_null = member["type"].as_array().is_some_and(|types| types.iter().any(|kind| kind == "null"))
            || member["anyOf"].as_array().is_some_and(|all| all.iter().any(|one| one["type"] == "null"));
        if may_be_null && object.get(name).is_none() && !ON_DEMAND.contains(&(&kind, name)) {
            faults.push(format!("/{name}: Stripe always sends it, if only null"));
        }
    }
    faults.into_iter().map(|fault| format!("{kind}{fault}")).collect()
}

fn without_beyond(value: &mut Value) {
    for (kind, place, name) in BEYOND {
        if value.get("object").is_some_and(|object| object == kind)
            && let Some(members) = value.pointer_mut(place).and_then(Value::as_object_mut)
        {
            members.remove(name);
        }
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(without_beyond),
        Value::Array(items) => items.iter_mut().for_each(without_beyond),
        _ => {}
    }
}

#[tokio::test]
async fn every_object_is_what_stripe_publishes() {
    let stripe = Stripe::start();
    payments(&stripe).await;
    sessions(&stripe).await;
    subscriptions(&stripe).await;
    hosts(&stripe).await;

    let document = published();
    let all = stripe.double.with(|world| world.everything());
    let mut broken = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for object in &all {
        kinds.insert(text(&object["object"]));
        broken.extend(faults(&document, object));
        let inside = &object["data"]["object"];
        if object["object"] == "event" && inside["object"] != "application" {
            broken.extend(faults(&document, inside).into_iter().map(|fault| format!("in {}: {fault}", object["type"])));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(kinds.len() >= 20, "the double makes more kinds than these: {kinds:?}");
}

async fn payments(stripe: &Stripe) {
    let customer = stripe.customer("pm_card_visa").await;
    let paid = stripe.pay(5000, "pm_card_visa").await;
    stripe.post("/v1/refunds", &format!("payment_intent={}&amount=1000&metadata[a]=b", text(&paid["id"])), 200).await;
    stripe.pay(5000, "pm_card_createDispute").await;
    stripe.pay(5000, "pm_card_createDisputeInquiry").await;
    let failing = stripe.pay(5000, "pm_card_refundFail").await;
    stripe.post("/v1/refunds", &format!("payment_intent={}", text(&failing["id"])), 200).await;
    let pending = stripe.pay(5000, "pm_card_pendingRefund").await;
    stripe.post("/v1/refunds", &format!("payment_intent={}", text(&pending["id"])), 200).await;
    let asked = stripe.pay(5000, "pm_card_authenticationRequired").await;
    stripe.post(&format!("/v1/payment_intents/{}/cancel", text(&asked["id"])), "", 200).await;
    let held = "amount=2000&currency=usd&payment_method=pm_card_visa&confirm=true&capture_method=manual&receipt_email=a@example.org";
    let held = stripe.post("/v1/payment_intents", held, 200).await;
    stripe.post(&format!("/v1/payment_intents/{}/capture", text(&held["id"])), "amount_to_capture=1500", 200).await;
    let declined = "amount=2000&currency=usd&payment_method=pm_card_chargeDeclined&confirm=true";
    let error = stripe.post("/v1/payment_intents", declined, 402).await;
    let broken = conforms(&published(), &published()["components"]["schemas"]["error"], &error);
    assert!(broken.is_empty(), "{broken:?}");
    let balance = stripe.get("/v1/balance").await;
    assert_eq!(faults(&published(), &balance), Vec::<String>::new());
    let setup = stripe.post("/v1/setup_intents", &format!("customer={customer}&payment_method=pm_card_visa&confirm=true"), 200).await;
    assert_eq!(setup["status"], "succeeded");
    stripe.post("/v1/setup_intents", "payment_method=pm_card_chargeDeclined&confirm=true", 402).await;
}

async fn sessions(stripe: &Stripe) {
    let line = "line_items[0][price_data][currency]=usd&line_items[0][price_data][unit_amount]=2500\
                &line_items[0][price_data][product_data][name]=Credit&success_url=http://x/{CHECKOUT_SESSION_ID}";
    for form in [format!("mode=payment&{line}"), "mode=setup&success_url=http://x/".to_owned()] {
        let session = stripe.post("/v1/checkout/sessions", &form, 200).await;
        let path = format!("checkout/{}", text(&session["id"]));
        let done = stripe.double.control("POST", &path, &serde_json::json!({ "card": "pm_card_visa", "email": "a@example.org" })).unwrap();
        assert_eq!(done["status"], "complete");
        let expanded = stripe.get(&format!("/v1/checkout/sessions/{}?expand[]=line_items", text(&session["id"]))).await;
        assert_eq!(expanded["line_items"]["object"], "list");
        assert_eq!(faults(&published(), &expanded), Vec::<String>::new());
    }
    let customer = stripe.customer("pm_card_visa").await;
    let portal = stripe.post("/v1/billing_portal/sessions", &format!("customer={customer}&return_url=http://x/"), 200).await;
    assert!(text(&portal["url"]).contains("/_double/portal/"));
}

async fn subscriptions(stripe: &Stripe) {
    let monthly = super::billing::price(stripe, 2000, "month").await;
    let yearly = super::billing::price(stripe, 20_000, "year").await;
    let customer = stripe.customer("pm_card_visa").await;
    let form = format!("customer={customer}&items[0][price]={monthly}&items[0][quantity]=2&metadata[account]=1");
    let subscription = text(&stripe.post("/v1/subscriptions", &form, 200).await["id"]);
    let path = format!("/v1/subscriptions/{subscription}");
    stripe.post(&path, "items[0][quantity]=3&proration_behavior=always_invoice", 200).await;
    stripe.double.advance(40 * 86_400);
    stripe.post(&path, &format!("items[0][price]={yearly}"), 200).await;
    let preview = format!("subscription={subscription}&subscription_details[items][0][quantity]=9");
    let preview = stripe.post("/v1/invoices/create_preview", &preview, 200).await;
    assert_eq!(faults(&published(), &preview), Vec::<String>::new());
    stripe.http.delete(&path).expect(200).await;
    let trial = format!("customer={customer}&items[0][price]={monthly}&trial_period_days=7");
    assert_eq!(stripe.post("/v1/subscriptions", &trial, 200).await["status"], "trialing");
}

async fn hosts(stripe: &Stripe) {
    let host = super::hosts::onboarded(stripe).await;
    stripe.pay(50_000, "pm_card_bypassPending").await;
    let transfer = stripe.post("/v1/transfers", &format!("amount=10000&currency=usd&destination={host}"), 200).await;
    stripe.post(&format!("/v1/transfers/{}/reversals", text(&transfer["id"])), "amount=1000", 200).await;
    let payout = stripe.post_as("/v1/payouts", "amount=4000&currency=usd", &host, 200).await;
    assert_eq!(payout["status"], "pending");
    stripe.double.advance(3 * 86_400);
    let link = format!("account={host}&refresh_url=http://x/&return_url=http://x/&type=account_onboarding");
    let link = stripe.post("/v1/account_links", &link, 200).await;
    assert_eq!(faults(&published(), &link), Vec::<String>::new());
    stripe.pay(5000, "pm_card_visa").await;
}
