//! Payouts that a host asks for.

use futures::future::join_all;
use serde_json::{Value, json};

use super::Hosting;
use crate::support::hosts::person;

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_leaves_what_is_payable_and_arrives_at_the_payout_account() {
    let hosting = Hosting::with_payable("9.00").await;
    let payout = hosting.pay_out("k", "5.00").await;
    assert_eq!((&payout["status"], &payout["amount"], &payout["reversed"]), (&json!("sent"), &json!("5.00"), &json!("0.00")));
    hosting.assert_payable("4.00").await;
    let transfers = hosting.transfers();
    assert_eq!(transfers.len(), 1);
    assert_eq!((&transfers[0]["amount"], &transfers[0]["destination"]), (&json!(500), &json!(hosting.stripe_account().await)));
    let calls = hosting.shop.stripe.calls();
    let call = calls.iter().find(|call| call["path"] == "/v1/transfers").unwrap();
    assert_eq!(call["idempotency_key"], format!("{}:transfer:0", payout["id"].as_str().unwrap()));
    assert_eq!(call["params"]["metadata"]["rigmark_id"], payout["id"]);
    // The same request again, also after a crash that lost the answer.
    assert_eq!(hosting.pay_out("k", "5.00").await, payout);
    hosting.shop.execute("DELETE FROM idempotency_keys").await;
    assert_eq!(hosting.pay_out("k", "5.00").await["id"], payout["id"]);
    hosting.request("k", &json!({ "amount": "4.00" })).expect_problem(422, "idempotency_key_reused").await;
    assert_eq!(hosting.transfers().len(), 1);
    let entries = hosting.shop.ada.http.get("/api/v1/ledger-entries?code=payout").expect(200).await;
    let entry = &entries["data"][0];
    assert_eq!((&entry["amount"], &entry["ledger_account"], &entry["payment"]), (&json!("-5.00"), &json!("payable"), &payout["id"]));
    assert_eq!(entry["actor"]["kind"], "user");
    hosting.poll().await;
    assert_eq!(hosting.read(&payout).await["status"], "sent");
    assert_eq!(hosting.release("transfer.created").await, [200, 200]);
    hosting.assert_payable("4.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_amount_all_is_paid_and_the_rest_of_a_cent_stays() {
    let hosting = Hosting::with_payable("9.004500").await;
    assert_eq!(hosting.account().await["payable"], "9.00");
    let payout = hosting.request("k", &json!({})).expect(201).await;
    assert_eq!(payout["amount"], "9.00");
    hosting.assert_payable("0.0045").await;
    hosting.make_payable("1.80").await;
    let payout = hosting.request("l", &json!({})).expect(201).await;
    assert_eq!(payout["amount"], "1.80");
    hosting.assert_payable("0.0045").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_takes_nothing() {
    let hosting = Hosting::new().await;
    hosting.make_payable("9.00").await;
    hosting.request("a", &json!({ "amount": "5.00" })).expect_problem(409, "payouts_not_enabled").await;
    hosting.onboard().await;
    hosting.request("a", &json!({ "amount": "5.00" })).expect_problem(409, "payouts_not_enabled").await;
    hosting.at_stripe_becomes("complete").await;
    hosting.account().await;
    let rows = [("0.99", "too_small"), ("1.005", "not_whole_cents")];
    for (at, (amount, code)) in rows.iter().enumerate() {
        let problem = hosting.request(&format!("k{at}"), &json!({ "amount": amount })).expect_problem(422, "invalid_input").await;
        assert_eq!((&problem["errors"][0]["pointer"], &problem["errors"][0]["code"]), (&json!("/amount"), &json!(code)), "{amount}");
    }
    for form in
        [json!({ "amount": "-5.00" }), json!({ "amount": "0.00" }), json!({ "amount": 5 }), json!({ "amount": "5.00", "currency": "eur" })]
    {
        hosting.request(&form.to_string(), &form).expect_problem(422, "invalid_input").await;
    }
    let problem = hosting.request("m", &json!({ "amount": "9.01" })).expect_problem(402, "insufficient_funds").await;
    assert_eq!((&problem["required"], &problem["available"]), (&json!("9.01"), &json!("9.00")));
    let bare = hosting.shop.ada.http.post("/api/v1/payouts").json(&json!({ "amount": "5.00" }));
    bare.expect_problem(400, "idempotency_key_required").await;
    hosting.assert_payable("9.00").await;
    assert_eq!(hosting.shop.count("payouts").await, 0);
    // Too little for the least that is paid.
    let poor = Hosting::with_payable("0.90").await;
    poor.request("k", &json!({})).expect_problem(402, "insufficient_funds").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_never_pay_more_than_there_is() {
    let hosting = Hosting::enabled().await;
    for round in 0..20 {
        hosting.make_payable("9.00").await;
        let press = async |key: String| hosting.request(&key, &json!({ "amount": "6.00" })).answer().await.status.as_u16();
        let mut statuses = join_all(["a", "b"].map(|key| press(format!("{key}{round}")))).await;
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 402], "round {round}");
        let rest = hosting.request(&format!("c{round}"), &json!({})).expect(201).await;
        assert_eq!(rest["amount"], "3.00");
    }
    hosting.assert_payable("0.00").await;
    assert_eq!(hosting.transfers().len(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn payouts_are_listed_newest_first_and_are_their_owners() {
    let hosting = Hosting::with_payable("9.00").await;
    let mut ids: Vec<Value> = Vec::new();
    for key in ["a", "b", "c"] {
        ids.insert(0, hosting.pay_out(key, "2.00").await["id"].clone());
    }
    let listed = |page: &Value| page["data"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    let first = hosting.shop.ada.http.get("/api/v1/payouts?limit=2").expect(200).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = hosting.shop.ada.http.get(&format!("/api/v1/payouts?limit=2&cursor={cursor}")).expect(200).await;
    assert_eq!([listed(&first), listed(&second)].concat(), ids);
    assert_eq!(listed(&hosting.shop.ada.http.get("/api/v1/payouts?status=failed").expect(200).await), Vec::<Value>::new());
    let bob = person(&hosting.shop.app, "bob").await;
    bob.http.get(&format!("/api/v1/payouts/{}", ids[0].as_str().unwrap())).expect_problem(404, "not_found").await;
    assert_eq!(listed(&bob.http.get("/api/v1/payouts").expect(200).await), Vec::<Value>::new());
}

/// cases.md E6: what was paid out and is then given back is the host's debt, which later earnings pay before anything is paid out.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_after_the_payout_lessens_the_next_one() {
    let hosting = Hosting::enabled().await;
    let refunded = hosting.make_payable("9.00").await;
    hosting.pay_out("a", "9.00").await;
    hosting.give_back(refunded).await;
    hosting.give_back(refunded).await;
    assert_eq!(hosting.balance().await, ("-9.00".to_owned(), "0.00".to_owned()));
    hosting.make_payable("4.50").await;
    assert_eq!(hosting.balance().await, ("-4.50".to_owned(), "0.00".to_owned()));
    hosting.request("b", &json!({})).expect_problem(402, "insufficient_funds").await;
    hosting.make_payable("13.50").await;
    assert_eq!(hosting.balance().await, ("0.00".to_owned(), "9.00".to_owned()));
    assert_eq!(hosting.request("c", &json!({})).expect(201).await["amount"], "9.00");
    hosting.assert_payable("0.00").await;
}

/// Money that comes back while the host owes is not paid out again before the debt.
#[tokio::test(flavor = "multi_thread")]
async fn who_owes_is_paid_what_is_left_after_the_debt() {
    let hosting = Hosting::enabled().await;
    let refunded = hosting.make_payable("4.50").await;
    hosting.make_payable("4.50").await;
    let payout = hosting.pay_out("a", "9.00").await;
    hosting.give_back(refunded).await;
    let transfer = hosting.transfers()[0]["id"].as_str().unwrap().to_owned();
    hosting.shop.at_stripe(&format!("/v1/transfers/{transfer}/reversals"), &[]).await;
    assert_eq!(hosting.release("transfer.reversed").await, [200, 200]);
    assert_eq!(hosting.read(&payout).await["status"], "reversed");
    assert_eq!(hosting.balance().await, ("-4.50".to_owned(), "9.00".to_owned()));
    assert_eq!(hosting.account().await["payable"], "4.50");
    hosting.request("b", &json!({ "amount": "4.51" })).expect_problem(402, "insufficient_funds").await;
    hosting.pay_out("c", "4.50").await;
    hosting.assert_payable("4.50").await;
}
