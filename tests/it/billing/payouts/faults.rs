//! What goes wrong between us and Stripe: nothing is sent twice, and what is refused is payable again once.

use serde_json::json;

use super::Hosting;
use crate::support::stripe_double::{Fault, Kind};

fn fault(hosting: &Hosting, kind: Kind, method: &str, times: u32) {
    let path = Some("/v1/transfers".to_owned());
    hosting.shop.stripe.fault(Fault { method: Some(method.to_owned()), path, times, delay_ms: 2_000, ..Fault::new(kind) });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stripe_refuses_is_payable_again_once() {
    let hosting = Hosting::with_payable("9.00").await;
    // Nobody has told us.
    hosting.at_stripe_becomes("reject").await;
    let payout = hosting.pay_out("k", "5.00").await;
    assert_eq!((&payout["status"], &payout["failure_code"]), (&json!("failed"), &json!("insufficient_capabilities_for_transfer")));
    hosting.assert_payable("9.00").await;
    assert_eq!(hosting.pay_out("k", "5.00").await, payout);
    hosting.poll().await;
    hosting.assert_payable("9.00").await;
    assert_eq!(hosting.shop.count("transfers WHERE code = 'payout_failed'").await, 1);
    assert_eq!(hosting.letters().await, ["A payout failed", "Your payout account is closed"]);
    hosting.request("l", &json!({})).expect_problem(409, "payouts_not_enabled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_stripe_has_too_little_of_ours_a_payout_waits() {
    let hosting = Hosting::new().await;
    hosting.onboard().await;
    hosting.at_stripe_becomes("complete").await;
    hosting.account().await;
    hosting.make_payable("9.00").await;
    let payout = hosting.pay_out("k", "5.00").await;
    assert_eq!((&payout["status"], &payout["failure_code"]), (&json!("pending"), &json!("balance_insufficient")));
    hosting.assert_payable("4.00").await;
    // Not at once, and ever later.
    let soon = hosting.shop.count("payouts WHERE ask_at < now() + interval '100 seconds'").await;
    assert_eq!(soon, 0);
    hosting.poll().await;
    assert_eq!(hosting.shop.text("SELECT status || ' ' || attempt FROM payouts").await, "pending 2");
    hosting.fund(1_000).await;
    hosting.poll().await;
    let read = hosting.read(&payout).await;
    assert_eq!((&read["status"], &read["failure_code"]), (&json!("sent"), &json!(null)));
    hosting.poll().await;
    assert_eq!(hosting.transfers().len(), 1);
    hosting.assert_payable("4.00").await;
    assert!(hosting.letters().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_after_stripe_has_acted_is_asked_for() {
    for kind in [Kind::DropAfter, Kind::DelayAfter] {
        let hosting = Hosting::with_payable("9.00").await;
        fault(&hosting, kind, "POST", 2);
        assert_eq!(hosting.pay_out("k", "5.00").await["status"], "sent", "{kind:?}");
        assert_eq!(hosting.transfers().len(), 1);
        hosting.assert_payable("4.00").await;
    }
}

/// What a process that dies between Stripe's answer and its own commit leaves behind.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_but_never_written_down_is_found() {
    let hosting = Hosting::with_payable("9.00").await;
    fault(&hosting, Kind::DropAfter, "POST", 2);
    fault(&hosting, Kind::DropBefore, "GET", 2);
    let payout = hosting.pay_out("k", "5.00").await;
    assert_eq!(payout["status"], "pending");
    assert_eq!(hosting.transfers().len(), 1);
    hosting.poll().await;
    assert_eq!(hosting.read(&payout).await["status"], "sent");
    assert_eq!(hosting.transfers().len(), 1);
    hosting.assert_payable("4.00").await;
    // And by its webhook.
    fault(&hosting, Kind::DropAfter, "POST", 2);
    fault(&hosting, Kind::DropBefore, "GET", 2);
    let payout = hosting.pay_out("l", "2.00").await;
    assert_eq!(payout["status"], "pending");
    assert_eq!(hosting.release("transfer.created").await, [200; 4]);
    assert_eq!(hosting.read(&payout).await["status"], "sent");
    hosting.assert_payable("2.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_never_arrived_is_sent_again() {
    let hosting = Hosting::with_payable("9.00").await;
    fault(&hosting, Kind::DropBefore, "POST", 2);
    let payout = hosting.pay_out("k", "5.00").await;
    assert_eq!((&payout["status"], hosting.transfers().len()), (&json!("pending"), 0));
    hosting.assert_payable("4.00").await;
    hosting.poll().await;
    assert_eq!(hosting.read(&payout).await["status"], "sent");
    let keys: Vec<_> =
        hosting.shop.stripe.calls().into_iter().filter(|call| call["path"] == "/v1/transfers" && call["method"] == "POST").collect();
    assert!(keys.iter().all(|call| call["idempotency_key"] == keys[0]["idempotency_key"]), "{keys:?}");
    hosting.assert_payable("4.00").await;
}

/// Stripe keeps a 500 under its key: only another key leads on, and only once nothing can be on its way.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_stripe_keeps_is_overcome_with_another_key() {
    let hosting = Hosting::with_payable("9.00").await;
    let path = Some("/v1/transfers".to_owned());
    hosting.shop.stripe.fault(Fault { method: Some("POST".to_owned()), path, kept: true, ..Fault::new(Kind::Status) });
    let payout = hosting.pay_out("k", "5.00").await;
    hosting.poll().await;
    assert_eq!(hosting.shop.text("SELECT status || ' ' || attempt FROM payouts").await, "pending 0");
    hosting.shop.execute("UPDATE payouts SET attempted_at = attempted_at - interval '31 minutes'").await;
    hosting.poll().await;
    hosting.poll().await;
    assert_eq!(hosting.read(&payout).await["status"], "sent");
    assert_eq!(hosting.transfers().len(), 1);
    hosting.assert_payable("4.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_pollers_at_once_send_it_once() {
    let hosting = Hosting::with_payable("9.00").await;
    fault(&hosting, Kind::DropBefore, "POST", 2);
    let payout = hosting.pay_out("k", "5.00").await;
    futures::future::join_all((0..4).map(|_| hosting.poll())).await;
    assert_eq!(hosting.read(&payout).await["status"], "sent");
    assert_eq!(hosting.transfers().len(), 1);
    hosting.assert_payable("4.00").await;
}

/// Another transfer under a payout's name is for a person to look at.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_transfer_of_one_payout_is_an_alarm() {
    let hosting = Hosting::with_payable("9.00").await;
    let payout = hosting.pay_out("k", "5.00").await;
    let (account, id) = (hosting.stripe_account().await, payout["id"].as_str().unwrap());
    let second = [("amount", "500"), ("currency", "usd"), ("destination", account.as_str()), ("metadata[rigmark_id]", id)];
    hosting.shop.at_stripe("/v1/transfers", &second).await;
    assert_eq!(hosting.release("transfer.created").await, [200; 4]);
    assert_eq!(hosting.shop.text("SELECT status || ' ' || alarm FROM payouts").await, "sent other_transfer");
    assert_eq!(hosting.balance().await.1, "4.00");
}
