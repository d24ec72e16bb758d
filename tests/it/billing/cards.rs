//! Saved cards, and the customer at Stripe that they hang on.

use futures::future::join_all;
use serde_json::{Value, json};

use super::{Shop, fifty};
use crate::support::{
    hosts::person,
    stripe_double::{Fault, Kind, Release},
};

const METHODS: &str = "/api/v1/payment-methods";

fn event(kind: &str) -> Release {
    Release { events: vec![kind.to_owned()], ..Release::default() }
}

impl Shop {
    fn customers(&self) -> Vec<Value> {
        self.stripe.with(|world| world.all("customer"))
    }

    fn method_at_stripe(&self, id: &str) -> Value {
        self.stripe.with(|world| world.find(id).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_saved_at_once_and_shown_without_its_number() {
    let shop = Shop::new().await;
    let saved = shop.ada.http.post(METHODS).json(&json!({ "payment_method": "pm_card_visa" })).expect(201).await;
    assert_eq!((&saved["status"], saved.get("client_secret")), (&json!("succeeded"), None));
    let card = &shop.cards().await[0];
    assert_eq!(card["id"], saved["payment_method"]);
    let known = json!({ "id": card["id"], "brand": "visa", "last4": "4242", "expires_month": 12, "expires_year": 2034, "is_default": true,
        "created_at": card["created_at"] });
    assert_eq!(*card, known);
    let call = shop.stripe.calls().into_iter().find(|call| call["path"] == "/v1/setup_intents").unwrap();
    assert_eq!(call["idempotency_key"], format!("{}:setup", saved["id"].as_str().unwrap()));
    assert_eq!((&call["params"]["usage"], &call["params"]["confirm"]), (&json!("off_session"), &json!("true")));
    let second = shop.save_card("pm_card_mastercard").await;
    assert_eq!((shop.cards().await.len(), shop.customers().len()), (2, 1));
    let default = || async { shop.cards().await.into_iter().filter(|card| card["is_default"] == true).collect::<Vec<_>>() };
    assert_eq!(default().await[0]["id"], card["id"]);
    let one = format!("{METHODS}/{second}");
    shop.ada.http.patch(&one).json(&json!({ "is_default": true })).expect(200).await;
    assert_eq!((default().await.len(), &default().await[0]["id"]), (1, &json!(second)));
    shop.ada.http.patch(&one).json(&json!({ "is_default": false })).expect_problem(422, "invalid_input").await;
    let first = shop.ada.http.get(&format!("{METHODS}?limit=1")).expect(200).await;
    let rest = shop.ada.http.get(&format!("{METHODS}?limit=1&cursor={}", first["next_cursor"].as_str().unwrap())).expect(200).await;
    assert_eq!((&first["data"][0]["id"], &rest["data"][0]["id"]), (&json!(second), &card["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_card_pays_with_its_customer() {
    let shop = Shop::new().await;
    let card = shop.save_card("pm_card_visa").await;
    let top_up = shop.top_up("k", fifty(&card)).await;
    assert_eq!((&top_up["status"], &top_up["means"]), (&json!("succeeded"), &json!("payment_method")));
    let call = shop.stripe.calls().into_iter().rfind(|call| call["path"] == "/v1/payment_intents").unwrap();
    assert_eq!((&call["params"]["customer"], call["params"].get("off_session")), (&shop.customers()[0]["id"], None));
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_of_another_account_is_refused_and_never_charged() {
    let shop = Shop::new().await;
    let card = shop.save_card("pm_card_visa").await;
    let bob = person(&shop.app, "bob").await;
    let his = bob.http.post(METHODS).json(&json!({ "payment_method": "pm_card_visa" })).expect(201).await;
    assert_ne!(his["payment_method"], json!(card));
    let before = shop.stripe.calls().len();
    let request = bob.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty(&card));
    let problem = request.expect_problem(422, "invalid_input").await;
    assert_eq!(problem["errors"][0]["pointer"], "/payment_method");
    bob.http.post(METHODS).json(&json!({ "payment_method": card })).expect_problem(422, "invalid_input").await;
    let automatic = json!({ "threshold": "10.00", "amount": "50.00", "payment_method": card });
    bob.http.put("/api/v1/automatic-top-up").json(&automatic).expect_problem(422, "invalid_input").await;
    bob.http.patch(&format!("{METHODS}/{card}")).json(&json!({ "is_default": true })).expect_problem(404, "not_found").await;
    bob.http.delete(&format!("{METHODS}/{card}")).expect_problem(404, "not_found").await;
    // Nothing of it has reached Stripe.
    assert_eq!((shop.stripe.calls().len(), shop.payments_made(), shop.count("top_ups").await), (before, 0, 0));
    assert_eq!((shop.customers().len(), shop.cards().await.len()), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_card_is_not_saved_and_another_may_follow() {
    let shop = Shop::new().await;
    let form = json!({ "payment_method": "pm_card_chargeDeclinedInsufficientFunds" });
    let declined = shop.ada.http.post(METHODS).json(&form).expect(201).await;
    assert_eq!((&declined["status"], &declined["failure_code"]), (&json!("requires_payment_method"), &json!("insufficient_funds")));
    assert_eq!(shop.cards().await, Vec::<Value>::new());
    let setup = declined["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    shop.at_stripe(&format!("/v1/setup_intents/{setup}/confirm"), &[("payment_method", "pm_card_visa")]).await;
    let read = shop.ada.http.get(&format!("/api/v1/card-setups/{}", declined["id"].as_str().unwrap())).expect(200).await;
    assert_eq!((&read["status"], &read["failure_code"], read.get("client_secret")), (&json!("succeeded"), &Value::Null, None));
    assert_eq!(shop.cards().await[0]["id"], read["payment_method"]);
    let unknown = json!({ "payment_method": "pm_of_nobody" });
    shop.ada.http.post(METHODS).json(&unknown).expect_problem(422, "invalid_input").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn authentication_is_asked_for_and_its_success_comes_by_webhook() {
    let shop = Shop::new().await;
    let form = json!({ "payment_method": "pm_card_authenticationRequired" });
    let asked = shop.ada.http.post(METHODS).json(&form).expect(201).await;
    assert_eq!(asked["status"], "requires_action");
    assert_eq!(shop.cards().await, Vec::<Value>::new());
    let setup = asked["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    shop.stripe.control("POST", &format!("payment_intents/{setup}"), &json!({ "outcome": "succeeded" })).unwrap();
    assert_eq!(shop.release(event("setup_intent.succeeded")).await, [200]);
    assert_eq!(shop.cards().await[0]["last4"], "3184");
    assert_eq!(shop.text("SELECT status FROM card_setups").await, "succeeded");
    // In whatever order, and again: nothing more.
    assert!(shop.release(Release { reverse: true, copies: 2, ..Release::default() }).await.iter().all(|status| *status == 200));
    assert_eq!((shop.cards().await.len(), shop.text("SELECT status FROM card_setups").await), (1, "succeeded".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_saved_on_a_page_of_stripes() {
    let shop = Shop::new().await;
    let form = json!({ "return_url": "https://example.org/back" });
    let begun = shop.ada.http.post(METHODS).json(&form).expect(201).await;
    assert_eq!((&begun["status"], begun.get("client_secret")), (&json!("requires_payment_method"), None));
    let session = begun["checkout_url"].as_str().unwrap().rsplit('/').next().unwrap();
    shop.stripe
        .control("POST", &format!("checkout/{session}"), &json!({ "card": "4242424242424242", "email": "ada@example.org" }))
        .unwrap();
    assert_eq!(shop.release(event("checkout.session.completed")).await, [200]);
    let card = shop.cards().await.remove(0);
    let read = shop.ada.http.get(&format!("/api/v1/card-setups/{}", begun["id"].as_str().unwrap())).expect(200).await;
    assert_eq!((&read["status"], &read["payment_method"], read.get("checkout_url")), (&json!("succeeded"), &card["id"], None));
    assert!(shop.release(Release::default()).await.iter().all(|status| *status == 200));
    assert_eq!(shop.cards().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_is_charged_no_more_and_does_not_come_back() {
    let shop = Shop::new().await;
    let card = shop.save_card("pm_card_visa").await;
    shop.ada.http.delete(&format!("{METHODS}/{card}")).expect(204).await;
    assert_eq!(shop.cards().await, Vec::<Value>::new());
    // At Stripe it is still there: an event of before, fetched again, says so.
    assert_eq!(shop.method_at_stripe(&card)["customer"], shop.customers()[0]["id"]);
    assert!(shop.release(Release::default()).await.iter().all(|status| *status == 200));
    assert_eq!(shop.cards().await, Vec::<Value>::new());
    let request = shop.ada.http.post("/api/v1/top-ups").idempotency_key("k").json(&fifty(&card));
    request.expect_problem(422, "invalid_input").await;
    shop.ada.http.delete(&format!("{METHODS}/{card}")).expect_problem(404, "not_found").await;
    assert_eq!((shop.payments_made(), shop.count("top_ups").await), (0, 0));
    // The job takes it off the customer, and is tried again while Stripe is away.
    shop.stripe.fault(Fault { path: Some(format!("/v1/payment_methods/{card}/detach")), times: 2, ..Fault::new(Kind::DropAfter) });
    for _ in 0..2 {
        shop.execute("UPDATE jobs SET run_at = created_at WHERE kind = 'card_detach'").await;
        rigmark::jobs::run_due_jobs(shop.app.ctx()).await.unwrap();
    }
    assert_eq!(shop.text("SELECT state FROM jobs WHERE kind = 'card_detach'").await, "done");
    assert_eq!(shop.method_at_stripe(&card)["customer"], Value::Null);
    assert_eq!(shop.release(event("payment_method.detached")).await, [200]);
    assert_eq!(shop.text("SELECT outcome FROM stripe_events WHERE event_type = 'payment_method.detached'").await, "unchanged");
}

#[tokio::test(flavor = "multi_thread")]
async fn stripes_view_of_a_card_wins_whatever_the_event_says() {
    let shop = Shop::new().await;
    let card = shop.save_card("pm_card_visa").await;
    assert!(shop.release(Release::default()).await.iter().all(|status| *status == 200));
    let mut method = shop.method_at_stripe(&card);
    method["card"]["exp_year"] = json!(2039);
    method["card"]["last4"] = json!("1881");
    shop.stripe.with(|world| {
        world.put(&method);
        world.emit("payment_method.automatically_updated", &method);
    });
    let patch = [("/data/object/card/last4".to_owned(), json!("0000"))].into();
    assert_eq!(shop.release(Release { patch, ..event("payment_method.automatically_updated") }).await, [200]);
    let shown = shop.cards().await.remove(0);
    assert_eq!((&shown["last4"], &shown["expires_year"], &shown["is_default"]), (&json!("1881"), &json!(2039), &json!(true)));
    // Of a customer that is nobody's here.
    shop.at_stripe("/v1/customers", &[("payment_method", "pm_card_visa")]).await;
    assert_eq!(shop.release(Release::default()).await, [404, 200]);
    assert_eq!(shop.count("payment_methods").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_deleted_at_stripe_takes_its_cards_along_and_another_follows() {
    let shop = Shop::new().await;
    let card = shop.save_card("pm_card_visa").await;
    let automatic = json!({ "threshold": "10.00", "amount": "50.00" });
    shop.ada.http.put("/api/v1/automatic-top-up").json(&automatic).expect(200).await;
    let customer = shop.customers()[0]["id"].as_str().unwrap().to_owned();
    let request = reqwest::Client::new().delete(format!("{}/v1/customers/{customer}", shop.stripe.url())).bearer_auth("sk_test_other");
    assert_eq!(request.send().await.unwrap().status().as_u16(), 200);
    assert_eq!(shop.release(event("customer.deleted")).await, [200]);
    assert_eq!(shop.cards().await, Vec::<Value>::new());
    let read = shop.ada.http.get("/api/v1/automatic-top-up").expect(200).await;
    assert_eq!((&read["state"], &read["paused_reason"]), (&json!("paused"), &json!("payment_method_removed")));
    let next = shop.save_card("pm_card_visa").await;
    assert_ne!(next, card);
    assert_ne!(shop.method_at_stripe(&next)["customer"], json!(customer));
    assert_eq!(shop.cards().await[0]["is_default"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_one_customer_however_often_stripe_is_asked() {
    let shop = Shop::new().await;
    let path = Some("/v1/customers".to_owned());
    // The answers are lost, then the answers to the question too: the customer is there, and nobody knows.
    shop.stripe.fault(Fault { method: Some("POST".to_owned()), path: path.clone(), times: 2, ..Fault::new(Kind::DropAfter) });
    shop.stripe.fault(Fault { method: Some("GET".to_owned()), path, times: 2, ..Fault::new(Kind::DropBefore) });
    let form = json!({ "payment_method": "pm_card_visa" });
    shop.ada.http.post(METHODS).json(&form).expect_problem(503, "unavailable").await;
    assert_eq!((shop.customers().len(), shop.text("SELECT customer_id IS NULL FROM stripe_customers").await), (1, "true".to_owned()));
    shop.save_card("pm_card_visa").await;
    assert_eq!(shop.customers().len(), 1);
    let row = &shop.customers()[0]["metadata"]["rigmark_id"];
    assert!(row.as_str().unwrap().starts_with("scu_"), "{row}");
    let bob = person(&shop.app, "bob").await;
    let answers = join_all((0..4).map(|_| bob.http.post(METHODS).json(&form).answer())).await;
    assert!(answers.iter().any(|answer| answer.status.as_u16() == 201));
    assert_eq!(shop.customers().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_that_stripe_made_long_ago_is_found_and_one_that_came_to_nothing_is_made_anew() {
    for (kind, kept) in [(Kind::DropAfter, false), (Kind::Status, true)] {
        let shop = Shop::new().await;
        let path = Some("/v1/customers".to_owned());
        let times = if kept { 1 } else { 2 };
        shop.stripe.fault(Fault { method: Some("POST".to_owned()), path: path.clone(), times, kept, ..Fault::new(kind) });
        shop.stripe.fault(Fault { method: Some("GET".to_owned()), path, times: 2, ..Fault::new(Kind::DropBefore) });
        let form = json!({ "payment_method": "pm_card_visa" });
        shop.ada.http.post(METHODS).json(&form).expect_problem(503, "unavailable").await;
        let made = shop.customers().len();
        assert_eq!(made, usize::from(!kept), "{kind:?}");
        shop.execute("UPDATE stripe_customers SET created_at = created_at - interval '11 minutes'").await;
        shop.stripe.with(|world| {
            for mut customer in world.all("customer") {
                customer["created"] = json!(customer["created"].as_i64().unwrap() - 660);
                world.put(&customer);
            }
        });
        shop.save_card("pm_card_visa").await;
        assert_eq!(shop.customers().len(), 1, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_said_before_stripe_hears_of_it() {
    let shop = Shop::new().await;
    let rows = [
        json!({ "payment_method": "card_1" }),
        json!({ "return_url": "javascript:alert(1)" }),
        json!({ "payment_method": "pm_card_visa", "return_url": "https://example.org" }),
        json!({ "number": "4242424242424242" }),
    ];
    for form in rows {
        shop.ada.http.post(METHODS).json(&form).expect_problem(422, "invalid_input").await;
    }
    assert_eq!(shop.stripe.calls().len(), 0);
    let path = format!("{METHODS}/pm_card_visa");
    shop.ada.http.patch(&path).json(&json!({ "is_default": true })).expect_problem(404, "not_found").await;
}
