//! Receipts of top-ups.

use serde_json::{Value, json};

use super::{Shop, fifty};
use crate::support::stripe_double::{Fault, Kind};

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_says_who_paid_what_with_which_card() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", fifty("pm_card_mastercard")).await;
    let path = format!("/api/v1/top-ups/{}/receipt", top_up["id"].as_str().unwrap());
    let receipt = shop.ada.http.get(&path).expect(200).await;
    let me = shop.ada.http.get("/api/v1/me").expect(200).await;
    assert_eq!((&receipt["account"], &receipt["account_id"]), (&json!("@ada"), &me["id"]));
    assert_eq!((&receipt["amount"], &receipt["currency"], &receipt["is_test"]), (&json!("50.00"), &json!("usd"), &json!(true)));
    assert_eq!(receipt["card"], json!({ "brand": "mastercard", "last4": "4444" }));
    assert_eq!((&receipt["paid_at"], &receipt["top_up_id"]), (&top_up["settled_at"], &top_up["id"]));
    assert_eq!(receipt["payment"], shop.text("SELECT payment_intent_id FROM top_ups").await);
    assert!(receipt["number"].as_str().unwrap().starts_with("RCT-"), "{receipt}");
    assert_eq!(receipt["refunds"], json!([]));
    // The same again, without asking Stripe again.
    let calls = shop.stripe.calls().len();
    assert_eq!(shop.ada.http.get(&path).expect(200).await, receipt);
    assert_eq!(shop.stripe.calls().len(), calls);
    let pages = [shop.ada.http.get(&path).header("Accept", "text/html"), shop.ada.http.get(&format!("{path}.html"))];
    for page in pages {
        let page = page.answer().await;
        assert_eq!((page.status.as_u16(), page.header("content-type").as_deref()), (200, Some("text/html; charset=utf-8")));
        for text in ["number", "account", "payment"] {
            assert!(page.body.contains(receipt[text].as_str().unwrap()), "{text}: {}", page.body);
        }
        let day = receipt["paid_at"].as_str().unwrap().split('T').next().unwrap();
        assert!(page.body.contains(day) && page.body.contains("mastercard …4444") && page.body.contains("50.00"), "{}", page.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_says_what_was_paid_back() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", fifty("pm_card_visa")).await;
    let form = json!({ "top_up_id": top_up["id"], "amount": "20.00" });
    let refund = shop.ada.http.post("/api/v1/refunds").idempotency_key("r").json(&form).expect(201).await;
    let path = format!("/api/v1/top-ups/{}/receipt", top_up["id"].as_str().unwrap());
    let receipt = shop.ada.http.get(&path).expect(200).await;
    assert_eq!(
        (&receipt["amount"], &receipt["refunds"][0]["id"], &receipt["refunds"][0]["amount"]),
        (&json!("50.00"), &refund["id"], &json!("20.00"))
    );
    let page = shop.ada.http.get(&format!("{path}.html")).answer().await;
    assert!(page.body.contains("Paid back") && page.body.contains("20.00"), "{}", page.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_receipt_for_what_has_not_come_in() {
    let shop = Shop::new().await;
    for (key, form) in [("a", fifty("pm_card_chargeDeclined")), ("b", json!({ "amount": "50.00" }))] {
        let top_up = shop.top_up(key, form).await;
        let path = format!("/api/v1/top-ups/{}/receipt", top_up["id"].as_str().unwrap());
        shop.ada.http.get(&path).expect_problem(409, "invalid_state").await;
        shop.ada.http.get(&format!("{path}.html")).expect_problem(409, "invalid_state").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_does_without_its_card_while_stripe_is_away() {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", fifty("pm_card_visa")).await;
    let path = format!("/api/v1/top-ups/{}/receipt", top_up["id"].as_str().unwrap());
    shop.stripe.fault(Fault { method: Some("GET".to_owned()), times: 2, ..Fault::new(Kind::DropBefore) });
    let receipt = shop.ada.http.get(&path).expect(200).await;
    assert_eq!((&receipt["card"], &receipt["amount"]), (&Value::Null, &json!("50.00")));
    assert_eq!(shop.ada.http.get(&path).expect(200).await["card"]["last4"], "4242");
}
