//! Connected accounts: onboarding, transfers, reversals, payouts, and who sees what.

use serde_json::json;

use super::{Stripe, text};

/// An account that may be paid.
pub async fn onboarded(stripe: &Stripe) -> String {
    let account = stripe.post("/v1/accounts", "type=express&email=h@example.org&capabilities[transfers][requested]=true", 200).await;
    assert_eq!((&account["payouts_enabled"], &account["capabilities"]["transfers"]), (&json!(false), &json!("inactive")));
    let id = text(&account["id"]);
    let page = format!("/_double/onboard/{id}");
    stripe
        .post("/v1/account_links", &format!("account={id}&refresh_url=http://r/&return_url=http://b/&type=account_onboarding"), 200)
        .await;
    let form = "application/x-www-form-urlencoded";
    let done = stripe.http.post(&page).header("content-type", form).body("outcome=complete").answer().await;
    assert_eq!(done.header("location"), Some("http://b/".to_owned()));
    id
}

/// Available cents of an account.
async fn available(stripe: &Stripe, account: &str) -> i64 {
    let balance = stripe.http.get("/v1/balance").header("stripe-account", account).expect(200).await;
    balance["available"][0]["amount"].as_i64().unwrap()
}

#[tokio::test]
async fn a_host_is_paid_and_a_dead_bank_gives_it_back() {
    let stripe = Stripe::start();
    let new = stripe.post("/v1/accounts", "type=express", 200).await;
    let form = |to: &str, cents: u32| format!("amount={cents}&currency=usd&destination={to}");
    let error = stripe.post("/v1/transfers", &form(&text(&new["id"]), 100), 400).await;
    assert_eq!(error["error"]["code"], "insufficient_capabilities_for_transfer");

    let host = onboarded(&stripe).await;
    stripe.pay(20_000, "pm_card_visa").await;
    let error = stripe.post("/v1/transfers", &form(&host, 10_000), 400).await;
    assert_eq!(error["error"]["code"], "balance_insufficient");
    stripe.double.advance(3 * 86_400);
    let transfer = stripe.post("/v1/transfers", &form(&host, 10_000), 200).await;
    assert_eq!(available(&stripe, &host).await, 10_000);

    let reversals = format!("/v1/transfers/{}/reversals", text(&transfer["id"]));
    stripe.post(&reversals, "amount=10001", 400).await;
    stripe.post(&reversals, "amount=2500", 200).await;
    assert_eq!(available(&stripe, &host).await, 7500);

    stripe.post_as("/v1/payouts", "amount=7501&currency=usd", &host, 400).await;
    let payout = text(&stripe.post_as("/v1/payouts", "amount=5000&currency=usd", &host, 200).await["id"]);
    stripe.post(&reversals, "amount=7500", 400).await;
    stripe.double.advance(3 * 86_400);
    let path = format!("/v1/payouts/{payout}");
    let paid = stripe.http.get(&path).header("stripe-account", &host).expect(200).await;
    assert_eq!((&paid["status"], available(&stripe, &host).await), (&json!("paid"), 2500));
    assert_eq!(stripe.http.get(&path).answer().await.status, 404);

    stripe.double.control("POST", &format!("accounts/{host}"), &json!({ "outcome": "dead_bank" })).unwrap();
    stripe.post_as("/v1/payouts", "amount=2500&currency=usd", &host, 200).await;
    stripe.double.advance(3 * 86_400);
    assert_eq!((stripe.events().last().map(String::as_str), available(&stripe, &host).await), (Some("payout.failed"), 2500));

    stripe.double.control("POST", &format!("accounts/{host}"), &json!({ "outcome": "restrict" })).unwrap();
    let error = stripe.post_as("/v1/payouts", "amount=100&currency=usd", &host, 400).await;
    assert_eq!(error["error"]["code"], "payouts_not_allowed");
    stripe.post_as("/v1/payouts", "amount=100&currency=usd", "acct_unknown", 403).await;
}

#[tokio::test]
async fn a_dispute_takes_the_money_and_a_won_one_brings_it_back() {
    let stripe = Stripe::start();
    let paid = stripe.pay(10_000, "pm_card_createDispute").await;
    let disputes = stripe.get(&format!("/v1/disputes?payment_intent={}", text(&paid["id"]))).await;
    let dispute = text(&disputes["data"][0]["id"]);
    let error = stripe.post("/v1/refunds", &format!("payment_intent={}", text(&paid["id"])), 400).await;
    assert_eq!(error["error"]["code"], "charge_disputed");
    let won = stripe.post(&format!("/v1/disputes/{dispute}"), "evidence[uncategorized_text]=winning_evidence", 200).await;
    assert_eq!((&won["status"], won["balance_transactions"].as_array().unwrap().len()), (&json!("won"), 2));
    let entries = stripe.get("/v1/balance_transactions?type=adjustment").await;
    let sum: i64 = entries["data"].as_array().unwrap().iter().map(|entry| entry["net"].as_i64().unwrap()).sum();
    assert_eq!(sum, -1500);
    stripe.post(&format!("/v1/disputes/{dispute}/close"), "", 400).await;
}
