//! What comes back: reversals, and banks that send money back.

use rigmark::billing::payouts::service::pay_weekly;
use serde_json::json;

use super::{DAY, Hosting};
use crate::support::{hosts::business_now, stripe_double::Release};

#[tokio::test(flavor = "multi_thread")]
async fn what_stripe_takes_back_is_booked_back_by_its_cumulative_figure() {
    let hosting = Hosting::with_payable("9.00").await;
    let payout = hosting.pay_out("k", "5.00").await;
    let path = format!("/v1/transfers/{}/reversals", hosting.transfers()[0]["id"].as_str().unwrap());
    hosting.shop.at_stripe(&path, &[("amount", "150")]).await;
    assert_eq!(hosting.release("transfer.reversed").await, [200, 200]);
    let read = hosting.read(&payout).await;
    assert_eq!((&read["status"], &read["reversed"]), (&json!("sent"), &json!("1.50")));
    hosting.assert_payable("5.50").await;
    // Two more before anybody looks; the poller sees the sum, the webhooks nothing new.
    hosting.shop.at_stripe(&path, &[("amount", "50")]).await;
    hosting.shop.at_stripe(&path, &[]).await;
    hosting.poll().await;
    let read = hosting.read(&payout).await;
    assert_eq!((&read["status"], &read["reversed"]), (&json!("reversed"), &json!("5.00")));
    hosting.assert_payable("9.00").await;
    assert_eq!(hosting.release("transfer.reversed").await, [200; 4]);
    hosting.assert_payable("9.00").await;
    assert_eq!(hosting.shop.count("transfers WHERE code = 'payout_failed'").await, 2);
    assert_eq!(hosting.shop.count("payouts WHERE ask_at IS NOT NULL").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_orders_of_its_events_at_once_book_a_reversal_once() {
    for reverse in [false, true] {
        let hosting = Hosting::with_payable("9.00").await;
        let payout = hosting.pay_out("k", "5.00").await;
        let path = format!("/v1/transfers/{}/reversals", hosting.transfers()[0]["id"].as_str().unwrap());
        hosting.shop.at_stripe(&path, &[("amount", "200")]).await;
        hosting.shop.at_stripe(&path, &[]).await;
        let statuses = hosting.shop.release(Release { copies: 3, parallel: 4, reverse, ..Release::default() }).await;
        // Events of the payment that funded the platform are not of ours.
        assert!(statuses.iter().all(|status| [200, 404].contains(status)), "{statuses:?}");
        futures::future::join_all((0..3).map(|_| hosting.poll())).await;
        assert_eq!(hosting.read(&payout).await["status"], "reversed");
        hosting.assert_payable("9.00").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_bank_has_is_paid() {
    let hosting = Hosting::with_payable("9.00").await;
    let payout = hosting.pay_out("k", "5.00").await;
    hosting.to_the_bank(500).await;
    assert_eq!(hosting.release("payout.created").await, [200, 200]);
    assert_eq!(hosting.read(&payout).await["status"], "sent");
    hosting.shop.stripe.advance(2 * DAY);
    // Sent after the bank's money had left.
    let later = hosting.pay_out("l", "2.00").await;
    assert_eq!(hosting.release("payout.paid").await, [200, 200]);
    let read = hosting.read(&payout).await;
    assert!(read["status"] == "paid" && read["settled_at"].is_string(), "{read}");
    assert_eq!(hosting.read(&later).await["status"], "sent");
    hosting.assert_payable("2.00").await;
}

/// cases.md E6: a dead payout account.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_bank_sends_back_is_payable_again_and_payouts_stop() {
    let hosting = Hosting::with_payable("27.00").await;
    hosting.schedule("weekly").await;
    let payout = hosting.pay_out("k", "5.00").await;
    hosting.at_stripe_becomes("dead_bank").await;
    hosting.to_the_bank(500).await;
    hosting.shop.stripe.advance(2 * DAY);
    assert_eq!(hosting.release("payout.failed").await, [200, 200]);
    assert_eq!(hosting.account().await["paused_reason"], "account_closed");
    hosting.poll().await;
    hosting.poll().await;
    let read = hosting.read(&payout).await;
    assert_eq!((&read["status"], &read["failure_code"]), (&json!("reversed"), &json!("account_closed")));
    hosting.assert_payable("27.00").await;
    assert_eq!(hosting.letters().await, ["Your bank sent a payout back"]);
    hosting.request("l", &json!({ "amount": "5.00" })).expect_problem(409, "payouts_not_enabled").await;
    hosting.advance(7 * DAY).await;
    assert_eq!(hosting.shop.count("payouts").await, 1);
    // The host has put it right.
    hosting.at_stripe_becomes("complete").await;
    assert_eq!(hosting.schedule("weekly").await["paused_reason"], json!(null));
    hosting.advance(7 * DAY).await;
    assert_eq!(hosting.shop.count("payouts WHERE week IS NOT NULL AND status = 'sent'").await, 1);
    hosting.assert_payable("0.00").await;
}

/// A bank may send back what it had taken; then Stripe may have nothing left to take back.
#[tokio::test(flavor = "multi_thread")]
async fn what_stripe_no_longer_has_is_not_booked_back() {
    let hosting = Hosting::with_payable("9.00").await;
    let payout = hosting.pay_out("k", "5.00").await;
    hosting.to_the_bank(500).await;
    hosting.at_stripe_becomes("reject").await;
    assert_eq!(hosting.account().await["status"], "disabled");
    hosting.poll().await;
    let read = hosting.read(&payout).await;
    assert_eq!((&read["status"], &read["failure_code"]), (&json!("sent"), &json!("balance_insufficient")));
    hosting.assert_payable("4.00").await;
}

/// What waits for Stripe's balance when the account dies is payable again, and what is still on the account is taken back.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_or_stands_on_a_dead_account_is_payable_again() {
    let hosting = Hosting::new().await;
    hosting.onboard().await;
    hosting.at_stripe_becomes("complete").await;
    hosting.account().await;
    hosting.fund(600).await;
    hosting.make_payable("9.00").await;
    let sent = hosting.pay_out("a", "5.00").await;
    let waiting = hosting.pay_out("b", "4.00").await;
    assert_eq!((&sent["status"], &waiting["status"]), (&json!("sent"), &json!("pending")));
    hosting.assert_payable("0.00").await;
    hosting.at_stripe_becomes("reject").await;
    assert_eq!(hosting.release("account.updated").await, [200; 4]);
    hosting.poll().await;
    hosting.poll().await;
    assert_eq!((&hosting.read(&sent).await["status"], &hosting.read(&waiting).await["status"]), (&json!("reversed"), &json!("failed")));
    hosting.assert_payable("9.00").await;
    assert_eq!(hosting.shop.count("payouts WHERE ask_at IS NOT NULL").await, 0);
}

/// The process stops after a payout was begun and before Stripe was asked; another goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_was_begun_is_sent_after_a_restart() {
    let mut hosting = Hosting::with_payable("27.00").await;
    hosting.schedule("weekly").await;
    let now = business_now(&hosting.shop.app).await + chrono::TimeDelta::days(8);
    assert_eq!(pay_weekly(hosting.shop.app.ctx(), now).await.unwrap(), 1);
    hosting.shop.app.restart().await;
    assert_eq!(pay_weekly(hosting.shop.app.ctx(), now).await.unwrap(), 0);
    hosting.poll().await;
    assert_eq!(hosting.transfers().len(), 1);
    assert_eq!(hosting.shop.text("SELECT status FROM payouts").await, "sent");
}
