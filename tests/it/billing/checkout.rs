//! Paying on a page of Stripe's: the double's, and answers written here for what has to come at one moment.

use serde_json::{Value, json};

use super::{Shop, WEBHOOK, WEBHOOK_SECRET, app_at};
use crate::support::{
    TestApp,
    hosts::{Person, person},
    scripted::{Manner, Scripted},
    stripe_double::{Fault, Kind, Release, signature},
};

fn session(status: &str, payment: Value, top_up: &str) -> String {
    let url = if status == "open" { json!("https://checkout.stripe.com/c/pay/cs_test_1") } else { Value::Null };
    json!({ "id": "cs_test_1", "object": "checkout.session", "status": status, "payment_status": "unpaid", "payment_intent": payment,
        "url": url, "metadata": { "rigmark_id": top_up }, "mode": "payment", "currency": "usd", "amount_total": 5000 })
    .to_string()
}

fn payment(status: &str, top_up: &str) -> String {
    let received = if status == "succeeded" { 5000 } else { 0 };
    json!({ "id": "pi_1", "object": "payment_intent", "status": status, "currency": "usd", "amount": 5000, "amount_received": received,
        "client_secret": "pi_1_secret_x", "metadata": { "rigmark_id": top_up } })
    .to_string()
}

struct Begun {
    app: TestApp,
    ada: Person,
    stripe: Scripted,
    top_up: String,
}

async fn begun() -> Begun {
    let stripe = Scripted::start(&[]).await;
    let app = app_at(&stripe.url).await;
    let ada = person(&app, "ada").await;
    stripe.chat(Manner::Answer(200, session("open", Value::Null, "top")));
    let form = json!({ "amount": "50.00", "return_url": "https://example.org/paid?a=b" });
    let top_up = ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&form).expect(201).await;
    assert_eq!(
        (&top_up["status"], &top_up["checkout_url"]),
        (&json!("requires_payment_method"), &json!("https://checkout.stripe.com/c/pay/cs_test_1"))
    );
    assert_eq!(top_up.get("client_secret"), None);
    let top_up = top_up["id"].as_str().unwrap().to_owned();
    Begun { app, ada, stripe, top_up }
}

impl Begun {
    async fn read(&self) -> Value {
        self.ada.http.get(&format!("/api/v1/top-ups/{}", self.top_up)).expect(200).await
    }
    async fn available(&self) -> Value {
        self.ada.http.get("/api/v1/balance").expect(200).await["available"].clone()
    }
    async fn event(&self, id: &str, kind: &str, object: &str) {
        let body = json!({ "id": id, "type": kind, "data": { "object": { "id": object } } }).to_string();
        let header = signature(WEBHOOK_SECRET, self.app.ctx().clock.wall_now().timestamp(), &body);
        self.app.http.post(WEBHOOK).header("Stripe-Signature", header).body(body).expect(200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checkout_names_its_top_up_and_returns_to_the_address() {
    let begun = begun().await;
    let sent: Vec<(String, String)> = serde_urlencoded::from_str(&begun.stripe.bodies()[0]).unwrap();
    let value = |name: &str| sent.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    for (name, expected) in [
        ("mode", "payment"),
        ("success_url", "https://example.org/paid?a=b"),
        ("cancel_url", "https://example.org/paid?a=b"),
        ("line_items[0][price_data][unit_amount]", "5000"),
        ("line_items[0][price_data][currency]", "usd"),
        ("line_items[0][quantity]", "1"),
        ("metadata[rigmark_id]", begun.top_up.as_str()),
        ("payment_intent_data[metadata][rigmark_id]", begun.top_up.as_str()),
    ] {
        assert_eq!(value(name), Some(expected), "{name} in {sent:?}");
    }
    let head = begun.stripe.heads()[0].to_lowercase();
    assert!(head.contains(&format!("idempotency-key: {}:checkout", begun.top_up)), "{head}");
    begun.stripe.models(Manner::Answer(200, session("open", Value::Null, &begun.top_up)));
    assert!(begun.read().await["checkout_url"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_checkout_is_credited_once_whichever_event_comes_first() {
    let begun = begun().await;
    begun.stripe.models(Manner::Answer(200, payment("succeeded", &begun.top_up)));
    begun.event("evt_1", "payment_intent.succeeded", "pi_1").await;
    assert_eq!(begun.available().await, "50.00");
    begun.stripe.models(Manner::Answer(200, session("complete", Value::Null, &begun.top_up)));
    begun.event("evt_2", "checkout.session.completed", "cs_test_1").await;
    let read = begun.read().await;
    assert_eq!((&read["status"], read.get("checkout_url"), begun.available().await), (&json!("succeeded"), None, json!("50.00")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_checkout_is_over_and_money_that_comes_after_all_is_credited() {
    let begun = begun().await;
    begun.stripe.models(Manner::Answer(200, session("expired", Value::Null, &begun.top_up)));
    assert_eq!(begun.read().await["status"], "canceled");
    assert_eq!(begun.available().await, "0.00");
    begun.stripe.models(Manner::Answer(200, payment("succeeded", &begun.top_up)));
    begun.event("evt_1", "payment_intent.succeeded", "pi_1").await;
    assert_eq!(begun.read().await["status"], "succeeded");
    assert_eq!(begun.available().await, "50.00");
}

fn form() -> Value {
    json!({ "amount": "50.00", "return_url": "https://example.org/paid" })
}

fn session_of(top_up: &Value) -> String {
    top_up["checkout_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_of_the_double_is_paid_after_a_declined_try() {
    for reverse in [false, true] {
        let shop = Shop::new().await;
        let top_up = shop.top_up("k", form()).await;
        let path = format!("checkout/{}", session_of(&top_up));
        shop.stripe.control("POST", &path, &json!({ "card": "4000000000000002" })).unwrap_err();
        if !reverse {
            assert!(shop.release(Release::default()).await.iter().all(|status| *status == 200));
            assert_eq!(shop.read(&top_up).await["status"], "requires_payment_method");
        }
        shop.assert_nothing_credited().await;
        shop.stripe.control("POST", &path, &json!({ "card": "4242424242424242" })).unwrap();
        let sent = shop.release(Release { reverse, copies: 2, parallel: 2, ..Release::default() }).await;
        assert!(!sent.is_empty() && sent.iter().all(|status| *status == 200), "{sent:?}");
        shop.assert_credited_once("50.00").await;
        for _ in 0..2 {
            let read = shop.read(&top_up).await;
            assert_eq!((&read["status"], read.get("checkout_url")), (&json!("succeeded"), None));
            shop.poll().await;
        }
        shop.assert_credited_once("50.00").await;
        assert_eq!(shop.count("top_ups WHERE alarm IS NOT NULL").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_is_settled_by_the_page_or_the_poller_without_any_webhook() {
    for polls in [false, true] {
        let shop = Shop::new().await;
        let top_up = shop.top_up("k", form()).await;
        shop.poll().await;
        assert_eq!(shop.read(&top_up).await["checkout_url"], top_up["checkout_url"]);
        shop.stripe.control("POST", &format!("checkout/{}", session_of(&top_up)), &json!({ "card": "4242424242424242" })).unwrap();
        if polls {
            shop.poll().await
        } else {
            assert_eq!(shop.read(&top_up).await["status"], "succeeded")
        }
        shop.assert_credited_once("50.00").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_checkout_of_the_double_is_over() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", form()).await;
    shop.at_stripe(&format!("/v1/checkout/sessions/{}/expire", session_of(&top_up)), &[]).await;
    assert!(shop.release(Release::default()).await.iter().all(|status| *status == 200));
    assert_eq!(shop.text("SELECT status FROM top_ups").await, "canceled");
    shop.assert_nothing_credited().await;
}

/// The checkout was made, and nobody here was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_whose_answer_was_lost_is_found_by_asking() {
    let shop = Shop::new().await;
    let path = Some("/v1/checkout/sessions".to_owned());
    shop.stripe.fault(Fault { method: Some("POST".to_owned()), path, times: 2, ..Fault::new(Kind::DropAfter) });
    let top_up = shop.top_up("k", form()).await;
    assert!(top_up["checkout_url"].is_string(), "{top_up}");
    assert_eq!(shop.stripe.with(|world| world.all("checkout.session").len()), 1);
}
