//! Success page, webhook and poller, in any order, any number of times, at once: one credit.

use futures::future::{FutureExt, LocalBoxFuture, join_all};
use serde_json::json;

use super::{Shop, fifty};
use crate::support::stripe_double::Release;

/// Who finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finder {
    SuccessPage,
    Webhook,
    Poller,
}
use Finder::{Poller, SuccessPage, Webhook};

const ORDERS: [[Finder; 3]; 6] = [
    [SuccessPage, Webhook, Poller],
    [SuccessPage, Poller, Webhook],
    [Webhook, SuccessPage, Poller],
    [Webhook, Poller, SuccessPage],
    [Poller, SuccessPage, Webhook],
    [Poller, Webhook, SuccessPage],
];

/// Events of one payment; the first comes from before it was paid.
const EVENTS: [&str; 3] = ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"];

async fn find_out(shop: &Shop, top_up: &serde_json::Value, finder: Finder, reverse: bool) {
    match finder {
        SuccessPage => assert_eq!(shop.read(top_up).await["status"], "succeeded"),
        Poller => shop.poll().await,
        Webhook => {
            let events = EVENTS.map(str::to_owned).to_vec();
            let statuses = shop.release(Release { events, reverse, copies: 2, parallel: 1, ..Release::default() }).await;
            assert_eq!(statuses, vec![200; 6]);
        }
    }
}

/// Paid by the payer's browser, with nothing known of it here.
async fn paid() -> (Shop, serde_json::Value) {
    let shop = Shop::new().await;
    let top_up = shop.top_up("k", json!({ "amount": "50.00" })).await;
    assert_eq!(top_up["status"], "requires_payment_method");
    let payment = top_up["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    assert_eq!(shop.pay(payment, "pm_card_visa").await["status"], "succeeded");
    shop.assert_nothing_credited().await;
    (shop, top_up)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_order_twice_over_gives_one_credit() {
    for (at, order) in ORDERS.iter().enumerate() {
        let (shop, top_up) = paid().await;
        for finder in order.iter().chain(order) {
            find_out(&shop, &top_up, *finder, at % 2 == 1).await;
            shop.assert_credited_once("50.00").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_at_once_by_many_workers_give_one_credit() {
    for _ in 0..5 {
        let (shop, top_up) = paid().await;
        let mut finders: Vec<LocalBoxFuture<'_, ()>> = Vec::new();
        for reverse in [false, true, false, true] {
            finders.push(async { shop.read(&top_up).map(drop).await }.boxed_local());
            finders.push(async { shop.poll().await }.boxed_local());
            let events = EVENTS.map(str::to_owned).to_vec();
            let how = Release { events, reverse, copies: 2, parallel: 4, ..Release::default() };
            finders.push(async { assert_eq!(shop.release(how).await, vec![200; 6]) }.boxed_local());
        }
        join_all(finders).await;
        shop.assert_credited_once("50.00").await;
        assert_eq!(shop.count("stripe_events").await, 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_answer_that_is_written_late_changes_nothing() {
    let (shop, top_up) = paid().await;
    shop.poll().await;
    // The event of its creation says `requires_payment_method`; it is the object, fetched again, that counts.
    let created = Release { events: vec!["payment_intent.created".to_owned()], ..Release::default() };
    assert_eq!(shop.release(created).await, [200]);
    assert_eq!(shop.read(&top_up).await["status"], "succeeded");
    assert_eq!(shop.text("SELECT outcome FROM stripe_events").await, "unchanged");
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_of_a_payment_that_the_answer_had_settled_changes_nothing() {
    let shop = Shop::new().await;
    shop.top_up("k", fifty("pm_card_visa")).await;
    assert_eq!(shop.release(Release { copies: 2, parallel: 4, ..Release::default() }).await, vec![200; 6]);
    shop.assert_credited_once("50.00").await;
}
