//! Checkout, saved cards, and subscriptions under a clock that a test moves.

use serde_json::{Value, json};

use super::{Stripe, text};

const DAY_SECONDS: i64 = 86_400;

pub async fn price(stripe: &Stripe, cents: u32, interval: &str) -> String {
    let form = format!("currency=usd&unit_amount={cents}&recurring[interval]={interval}&product_data[name]=Pro&nickname={interval}");
    text(&stripe.post("/v1/prices", &form, 200).await["id"])
}

async fn subscribe(stripe: &Stripe, card: &str) -> Value {
    let monthly = price(stripe, 3000, "month").await;
    let customer = stripe.customer(card).await;
    let form = format!("customer={customer}&items[0][price]={monthly}");
    stripe.post("/v1/subscriptions", &form, 200).await
}

async fn again(stripe: &Stripe, subscription: &Value) -> Value {
    stripe.get(&format!("/v1/subscriptions/{}?expand[]=latest_invoice", text(&subscription["id"]))).await
}

#[tokio::test]
async fn the_hosted_page_completes_a_session() {
    let stripe = Stripe::start();
    let form = "mode=payment&success_url=http://rigmark/ok?s={CHECKOUT_SESSION_ID}&cancel_url=http://rigmark/no\
                &line_items[0][price_data][currency]=usd&line_items[0][price_data][unit_amount]=2500\
                &line_items[0][price_data][product_data][name]=Credit&line_items[0][quantity]=2&payment_intent_data[metadata][topup]=7";
    let session = stripe.post("/v1/checkout/sessions", form, 200).await;
    let path = text(&session["url"]).replace(&stripe.double.url(), "");
    let page = stripe.http.get(&path).answer().await;
    assert!(page.body.contains("Pay 50.00 USD"), "{}", page.body);

    let form = "application/x-www-form-urlencoded";
    let post = |body: &'static str| stripe.http.post(&path).header("content-type", form).body(body);
    assert_eq!(post("outcome=cancel").answer().await.header("location"), Some("http://rigmark/no".to_owned()));
    let declined = post("outcome=complete&card=4000000000000002").answer().await;
    assert!(declined.body.contains("Your card was declined."), "{}", declined.body);
    let asks = post("outcome=complete&card=4000002760003184").answer().await;
    assert!(asks.body.contains("Complete authentication"), "{}", asks.body);
    let done = post("outcome=complete&card=4000002760003184&bank=succeeded").answer().await;
    assert_eq!(done.header("location"), Some(format!("http://rigmark/ok?s={}", text(&session["id"]))));

    let session = stripe.get(&format!("/v1/checkout/sessions/{}?expand[]=payment_intent", text(&session["id"]))).await;
    assert_eq!((&session["status"], &session["payment_status"]), (&json!("complete"), &json!("paid")));
    assert_eq!(session["payment_intent"]["metadata"]["topup"], "7");
    assert_eq!(session["payment_intent"]["amount_received"], 5000);
    assert_eq!(stripe.events().last().map(String::as_str), Some("checkout.session.completed"));
}

#[tokio::test]
async fn a_session_runs_out() {
    let stripe = Stripe::start();
    let session = stripe.post("/v1/checkout/sessions", "mode=setup&success_url=http://rigmark/", 200).await;
    stripe.double.advance(2 * DAY_SECONDS);
    let session = stripe.get(&format!("/v1/checkout/sessions/{}", text(&session["id"]))).await;
    assert_eq!(session["status"], "expired");
}

#[tokio::test]
async fn a_card_set_up_once_pays_alone() {
    let stripe = Stripe::start();
    let customer = text(&stripe.post("/v1/customers", "", 200).await["id"]);
    let form = format!("customer={customer}&payment_method=pm_card_authenticationRequiredOnSetup&confirm=true");
    let setup = stripe.post("/v1/setup_intents", &form, 200).await;
    assert_eq!(setup["status"], "requires_action");
    let path = format!("payment_intents/{}", text(&setup["id"]));
    stripe.double.control("POST", &path, &json!({ "outcome": "succeeded" })).unwrap();
    let method = text(&setup["payment_method"]);
    let form = format!("amount=1000&currency=usd&customer={customer}&payment_method={method}&off_session=true&confirm=true");
    assert_eq!(stripe.post("/v1/payment_intents", &form, 200).await["status"], "succeeded");
}

#[tokio::test]
async fn the_clock_renews_and_a_declined_card_falls_behind() {
    let stripe = Stripe::start();
    let subscription = subscribe(&stripe, "pm_card_visa").await;
    assert_eq!(subscription["status"], "active");
    stripe.double.advance(32 * DAY_SECONDS);
    let renewed = again(&stripe, &subscription).await;
    assert_eq!(renewed["latest_invoice"]["billing_reason"], "subscription_cycle");
    assert_eq!((&renewed["status"], &renewed["latest_invoice"]["amount_paid"]), (&json!("active"), &json!(3000)));

    let customer = text(&subscription["customer"]);
    let method = stripe.post("/v1/payment_methods/pm_card_chargeCustomerFail/attach", &format!("customer={customer}"), 200).await;
    let default = format!("invoice_settings[default_payment_method]={}", text(&method["id"]));
    stripe.post(&format!("/v1/customers/{customer}"), &default, 200).await;
    stripe.double.advance(31 * DAY_SECONDS);
    let behind = again(&stripe, &subscription).await;
    assert_eq!((&behind["status"], &behind["latest_invoice"]["status"]), (&json!("past_due"), &json!("open")));

    let pay = format!("/v1/invoices/{}/pay", text(&behind["latest_invoice"]["id"]));
    stripe.post(&pay, "", 402).await;
    stripe.post(&pay, "payment_method=pm_card_visa", 200).await;
    assert_eq!(again(&stripe, &subscription).await["status"], "active");
}

#[tokio::test]
async fn attempts_end_and_so_does_the_subscription() {
    let stripe = Stripe::start();
    let monthly = price(&stripe, 3000, "month").await;
    let customer = stripe.customer("pm_card_chargeCustomerFail").await;
    let form = format!("customer={customer}&items[0][price]={monthly}");
    assert_eq!(stripe.post("/v1/subscriptions", &form, 200).await["status"], "incomplete");
    stripe.post("/v1/subscriptions", &format!("{form}&payment_behavior=error_if_incomplete"), 402).await;
    let trial = stripe.post("/v1/subscriptions", &format!("{form}&trial_period_days=3"), 200).await;
    stripe.double.advance(4 * DAY_SECONDS);
    assert_eq!(again(&stripe, &trial).await["status"], "past_due");
    for _ in 0..4 {
        stripe.double.advance(3 * DAY_SECONDS + 60);
    }
    let ended = again(&stripe, &trial).await;
    assert_eq!((&ended["status"], &ended["cancellation_details"]["reason"]), (&json!("canceled"), &json!("payment_failed")));
}

#[tokio::test]
async fn cancelling_takes_effect_at_the_end_and_can_be_taken_back() {
    let stripe = Stripe::start();
    let subscription = subscribe(&stripe, "pm_card_visa").await;
    let path = format!("/v1/subscriptions/{}", text(&subscription["id"]));
    let cancelling = stripe.post(&path, "cancel_at_period_end=true", 200).await;
    assert_eq!(cancelling["cancel_at"], cancelling["items"]["data"][0]["current_period_end"]);
    let resumed = stripe.post(&path, "cancel_at_period_end=false", 200).await;
    assert!(resumed["cancel_at"].is_null());
    stripe.post(&path, "cancel_at_period_end=true", 200).await;
    stripe.double.advance(10 * DAY_SECONDS);
    assert_eq!(again(&stripe, &subscription).await["status"], "active");
    stripe.double.advance(22 * DAY_SECONDS);
    assert_eq!(again(&stripe, &subscription).await["status"], "canceled");
    assert_eq!(stripe.get("/v1/subscriptions").await["data"], json!([]));
    assert_eq!(stripe.get("/v1/subscriptions?status=all").await["data"].as_array().unwrap().len(), 1);
    assert_eq!(stripe.events().last().map(String::as_str), Some("customer.subscription.deleted"));
}

#[tokio::test]
async fn a_change_within_a_period_is_prorated() {
    let stripe = Stripe::start();
    let subscription = subscribe(&stripe, "pm_card_visa").await;
    let item = &subscription["items"]["data"][0];
    let (start, end) = (item["current_period_start"].as_i64().unwrap(), item["current_period_end"].as_i64().unwrap());
    let half = start + (end - start) / 2;
    let path = format!("/v1/subscriptions/{}", text(&subscription["id"]));
    let form = format!("items[0][quantity]=3&proration_behavior=always_invoice&proration_date={half}");
    stripe.post(&path, &form, 200).await;
    let invoice = again(&stripe, &subscription).await["latest_invoice"].clone();
    let amounts: Vec<_> = invoice["lines"]["data"].as_array().unwrap().iter().map(|line| line["amount"].as_i64().unwrap()).collect();
    assert_eq!((amounts, &invoice["total"]), (vec![-1500, 4500], &json!(3000)));
    assert_eq!((&invoice["status"], &invoice["billing_reason"]), (&json!("paid"), &json!("subscription_update")));
}
