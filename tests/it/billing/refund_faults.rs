//! What goes wrong between us and Stripe when money goes back: it goes back once or not at all, and the books know which.

use futures::future::join_all;
use serde_json::json;

use super::Shop;
use crate::support::stripe_double::{Fault, Kind, Release};

impl Shop {
    fn refund_fault(&self, kind: Kind, method: &str, times: u32) {
        let path = Some("/v1/refunds".to_owned());
        self.stripe.fault(Fault { method: Some(method.to_owned()), path, times, delay_ms: 2_000, ..Fault::new(kind) });
    }
}

const BACK: &str = "available 10000, stripe:clearing -10000";
const GONE: &str = "available 4000, stripe:clearing -4000";
const ON_ITS_WAY: &str = "available 4000, stripe:clearing -10000, stripe:refunds_in_transit 6000";

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_after_stripe_has_refunded_is_asked_for() {
    for kind in [Kind::DropAfter, Kind::DelayAfter] {
        let shop = Shop::new().await;
        let top_up = shop.paid("t", "100.00").await;
        shop.refund_fault(kind, "POST", 10);
        assert_eq!(shop.refund("k", &top_up, "60.00").await["status"], "succeeded", "{kind:?}");
        assert_eq!((shop.refunds_at_stripe().len(), shop.books().await.as_str()), (1, GONE));
    }
}

/// What a process that dies after it has sent, or before, leaves behind: money in transit and a row that knows nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_left_halfway_is_taken_up_by_the_poller_the_webhook_the_reader_or_a_repeat() {
    for sent in [true, false] {
        for finder in ["poller", "webhook", "reader", "repeat"] {
            if !sent && finder == "webhook" {
                continue;
            }
            let shop = Shop::new().await;
            let top_up = shop.paid("t", "100.00").await;
            shop.refund_fault(if sent { Kind::DropAfter } else { Kind::DropBefore }, "POST", 2);
            shop.refund_fault(Kind::DropBefore, "GET", 2);
            let refund = shop.refund("k", &top_up, "60.00").await;
            assert_eq!(refund["status"], "pending");
            assert_eq!((shop.refunds_at_stripe().len(), shop.books().await.as_str()), (usize::from(sent), ON_ITS_WAY));
            shop.execute("DELETE FROM idempotency_keys").await;
            match finder {
                "poller" => shop.poll_moves().await,
                "webhook" => shop.told(&["charge.refunded"], 2).await,
                "reader" => drop(shop.read_refund(&refund).await),
                _ => assert_eq!(shop.refund("k", &top_up, "60.00").await["id"], refund["id"]),
            }
            assert_eq!((shop.refunds_at_stripe().len(), shop.books().await.as_str()), (1, GONE), "{sent} {finder}");
            assert_eq!(shop.read_refund(&refund).await["status"], "succeeded");
            assert_eq!(shop.count("refunds").await, 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_take_up_one_refund_at_once_refund_it_once() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    shop.refund_fault(Kind::DropBefore, "POST", 2);
    let refund = shop.refund("k", &top_up, "60.00").await;
    assert_eq!((&refund["status"], shop.books().await.as_str()), (&json!("pending"), ON_ITS_WAY));
    join_all((0..6).map(|_| shop.read_refund(&refund))).await;
    shop.poll_moves().await;
    assert_eq!((shop.refunds_at_stripe().len(), shop.books().await.as_str()), (1, GONE));
    assert_eq!(shop.count("transfers WHERE code = 'refund_settled'").await, 1);
}

/// Stripe keeps a 500 under its key and gives it again: nothing will come of it, and the money goes back to the balance.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_came_to_nothing_is_given_back_and_not_sent_again() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    let path = Some("/v1/refunds".to_owned());
    shop.stripe.fault(Fault { method: Some("POST".to_owned()), path, kept: true, ..Fault::new(Kind::Status) });
    let refund = shop.refund("k", &top_up, "60.00").await;
    shop.poll_moves().await;
    assert_eq!((&refund["status"], shop.books().await.as_str()), (&json!("pending"), ON_ITS_WAY));
    // An hour later it is not sent any more, but may still be under way.
    shop.execute("UPDATE refunds SET created_at = created_at - interval '61 minutes'").await;
    let sent = || shop.stripe.calls().iter().filter(|call| call["path"] == "/v1/refunds" && call["method"] == "POST").count();
    let before = sent();
    shop.poll_moves().await;
    assert_eq!((sent(), shop.books().await.as_str()), (before, ON_ITS_WAY));
    shop.execute("UPDATE refunds SET created_at = created_at - interval '30 minutes'").await;
    for _ in 0..2 {
        shop.poll_moves().await;
        assert_eq!(shop.books().await, BACK);
    }
    let read = shop.read_refund(&refund).await;
    assert_eq!((&read["status"], &read["failure_code"]), (&json!("failed"), &json!("never_arrived")));
    assert_eq!((sent(), shop.refunds_at_stripe().len()), (before, 0));
    // Should it have come about after all, it is booked as what it is: money that has left.
    let payment = shop.payment_of(&top_up).await;
    let id = refund["id"].as_str().unwrap();
    shop.at_stripe("/v1/refunds", &[("payment_intent", payment.as_str()), ("amount", "6000"), ("metadata[rigmark_id]", id)]).await;
    shop.told(&["charge.refunded"], 2).await;
    assert_eq!(shop.books().await, GONE);
    assert_eq!(shop.read_refund(&refund).await["status"], "failed");
    assert_eq!(
        shop.text("SELECT string_agg(origin || ' ' || status, ', ' ORDER BY id) FROM refunds").await,
        "request failed, stripe succeeded"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stripe_refuses_is_given_back_once_and_what_was_not_known_is_learned() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    let payment = shop.payment_of(&top_up).await;
    shop.refund_at_stripe(&payment, "7000").await;
    // 100 − 70 is less than 60: here that is not known yet.
    let refund = shop.refund("k", &top_up, "60.00").await;
    assert_eq!(refund["status"], "failed", "{refund}");
    let books = "available 3000, stripe:clearing -3000";
    assert_eq!(shop.books().await, books);
    shop.poll_moves().await;
    assert!(shop.release(Release { copies: 2, ..Release::default() }).await.iter().all(|status| *status == 200));
    assert_eq!(shop.books().await, books);
    assert_eq!(shop.refund("k", &top_up, "60.00").await, refund);
    shop.refund_request("l", &top_up, "60.00").expect_problem(422, "invalid_input").await;
    assert_eq!(shop.refund("m", &top_up, "30.00").await["status"], "succeeded");
    assert_eq!(shop.books().await, "");
}

/// A status that Stripe may come to have moves no money.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_status_that_is_not_known_changes_nothing() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    shop.stripe.with(|world| world.refunds_wait = true);
    let refund = shop.refund("k", &top_up, "60.00").await;
    let mut stored = shop.refunds_at_stripe().remove(0);
    stored["status"] = json!("halfway");
    shop.stripe.with(|world| world.put(&stored));
    shop.poll_moves().await;
    assert_eq!((shop.read_refund(&refund).await["status"].clone(), shop.books().await.as_str()), (json!("pending"), ON_ITS_WAY));
    stored["status"] = json!("succeeded");
    shop.stripe.with(|world| world.put(&stored));
    shop.poll_moves().await;
    assert_eq!(shop.books().await, GONE);
}
