//! Taking in the events of one payment in every order, doubled, by several workers of two processes: the same books (money.md 20, cases.md 25).

use futures::future::join_all;
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use rigmark::billing;
use serde_json::{Value, json};

use super::{Shop, WEBHOOK, WEBHOOK_SECRET};
use crate::support::{
    Program, TempDir,
    stripe_double::{Release, signature},
};

/// What a payment of 100 dollars leaves behind of which 20 and 30 were refunded, and of whose rest the bank took 40 back for a while.
const TRANSFERS: &str = "chargeback 4000, chargeback_reversed 4000, refund_at_stripe 2000, refund_at_stripe 3000, refund_settled 2000, refund_settled 3000, top_up 10000";

/// A payment that has been through all that at Stripe; here nothing is known of it but the top-up that was begun.
struct Lived {
    payment: String,
    /// The oldest first.
    events: Vec<Value>,
}

async fn lived(shop: &Shop, key: &str) -> Lived {
    let top_up = shop.top_up(key, json!({ "amount": "100.00" })).await;
    let payment = top_up["client_secret"].as_str().unwrap().split("_secret_").next().unwrap().to_owned();
    shop.pay(&payment, "pm_card_visa").await;
    shop.refund_at_stripe(&payment, "2000").await;
    shop.refund_at_stripe(&payment, "3000").await;
    let dispute = shop.dispute(&payment, "fraudulent", 4_000);
    shop.decide(&dispute, "won");
    let events = shop.stripe.with(|world| {
        let mut events = world.all("event");
        events.reverse();
        events.retain(|event| {
            let object = &event["data"]["object"];
            object["id"] == payment.as_str() || object["payment_intent"] == payment.as_str()
        });
        events
    });
    Lived { payment, events }
}

impl Lived {
    /// The events of these types, one each.
    fn pick(&self, kinds: &[&str]) -> Vec<Value> {
        let newest = |kind: &&str| self.events.iter().rev().find(|event| event["type"] == **kind).cloned();
        kinds.iter().map(|kind| newest(kind).unwrap_or_else(|| panic!("no {kind}: {:?}", self.events))).collect()
    }

    async fn transfers(&self, shop: &Shop) -> String {
        let payment = &self.payment;
        let query = format!(
            "SELECT string_agg(t.code || ' ' || p.amount_micros / 10000, ', ' ORDER BY t.code, p.amount_micros)
             FROM transfers t JOIN postings p ON p.transfer_id = t.id AND p.amount_micros > 0 WHERE t.payment_ref = '{payment}'"
        );
        shop.text(&query).await
    }
}

/// Gives the event to the intake as the route does.
async fn take(shop: &Shop, event: &Value) {
    let ctx = shop.app.ctx();
    let body = serde_json::to_string_pretty(event).unwrap();
    let header = signature(WEBHOOK_SECRET, ctx.clock.wall_now().timestamp(), &body);
    billing::service::event_take(ctx, Some(&header), body.as_bytes()).await.unwrap();
}

/// Every order of `0..count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    let inserted = shorter.iter().flat_map(|order| {
        (0..count).map(move |at| {
            let mut longer = order.clone();
            longer.insert(at, count - 1);
            longer
        })
    });
    inserted.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_of_a_payments_events_doubled_gives_the_same_books() {
    const KINDS: [&str; 5] =
        ["payment_intent.created", "payment_intent.succeeded", "charge.refunded", "charge.dispute.created", "charge.dispute.closed"];
    let shop = Shop::new().await;
    let orders = orders(KINDS.len());
    assert_eq!(orders.len(), 120);
    for (at, order) in orders.iter().enumerate() {
        let lived = lived(&shop, &format!("k{at}")).await;
        let events = lived.pick(&KINDS);
        let doubled_at_once = at % 2 == 0;
        for index in order {
            take(&shop, &events[*index]).await;
            if doubled_at_once {
                take(&shop, &events[*index]).await;
            }
        }
        if !doubled_at_once {
            for index in order {
                take(&shop, &events[*index]).await;
            }
        }
        assert_eq!(lived.transfers(&shop).await, TRANSFERS, "{order:?}");
    }
    // 100 − 20 − 30 of each: what was taken has come back.
    assert_eq!(shop.books().await, "available 600000, stripe:clearing -600000");
    assert_eq!((shop.count("stripe_events").await, shop.count("account_freezes").await), (600, 0));
}

/// Stripe's state moves on between the events, as it does when they come in time or late.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_come_while_the_payment_moves_on_give_the_same_books() {
    let mut random = StdRng::seed_from_u64(25);
    let shop = Shop::new().await;
    for round in 0..20 {
        let top_up = shop.top_up(&format!("k{round}"), json!({ "amount": "100.00" })).await;
        let payment = top_up["client_secret"].as_str().unwrap().split("_secret_").next().unwrap().to_owned();
        let mut dispute = String::new();
        for step in 0..5 {
            match step {
                0 => drop(shop.pay(&payment, "pm_card_visa").await),
                1 => drop(shop.refund_at_stripe(&payment, "2000").await),
                2 => drop(shop.refund_at_stripe(&payment, "3000").await),
                3 => dispute = shop.dispute(&payment, "fraudulent", 4_000),
                _ => shop.decide(&dispute, "won"),
            }
            let mut waiting: Vec<String> = shop.stripe.with(|world| world.outbox.fresh.clone());
            waiting.shuffle(&mut random);
            // Some of what there is comes now, the rest late.
            waiting.truncate(if step == 4 { waiting.len() } else { waiting.len() / 2 });
            if !waiting.is_empty() {
                let copies = 1 + round % 2;
                let sent = shop.release(Release { events: waiting, copies, parallel: 3, ..Release::default() }).await;
                assert!(sent.iter().all(|status| *status == 200), "{sent:?}");
            }
        }
        let lived = Lived { payment, events: Vec::new() };
        assert_eq!(lived.transfers(&shop).await, TRANSFERS, "round {round}");
    }
    assert_eq!(shop.books().await, "available 100000, stripe:clearing -100000");
}

/// The second server is a process of its own, with its own workers, on the same database.
#[tokio::test(flavor = "multi_thread")]
async fn four_workers_of_two_processes_give_the_same_books_over_http() {
    let mut random = StdRng::seed_from_u64(2);
    let shop = Shop::new().await;
    let data_dir = TempDir::new();
    let (database, stripe) = (shop.app.database.url().to_owned(), shop.stripe.url());
    let arguments = [
        "--database-url",
        &database,
        "--stripe-secret-key",
        "sk_test_rigmark",
        "--stripe-webhook-secret",
        WEBHOOK_SECRET,
        "--stripe-api-base",
        &stripe,
        "--jwt-secret",
        "a secret of more than 32 characters",
        "--encryption-key",
        "another of more than 32 characters",
        "--redis-url=",
    ];
    let other = Program::serve(data_dir.path(), &arguments);
    let endpoints = vec![format!("{}{WEBHOOK}", shop.app.http.base_url()), format!("{}{WEBHOOK}", other.base_url)];
    for round in 0..12 {
        let lived = lived(&shop, &format!("k{round}")).await;
        let mut events: Vec<String> = lived.events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
        assert!(events.len() >= 10, "{events:?}");
        events.extend(events.clone());
        events.shuffle(&mut random);
        let mut waiting = events;
        for tries in 0.. {
            // One that meets another change of its payment may be refused, and then comes again as Stripe's would.
            assert!(tries < 5, "{waiting:?} are never taken");
            let how = Release { events: waiting.clone(), parallel: 4, endpoints: endpoints.clone(), ..Release::default() };
            let sent = shop.stripe.release(&how).await.unwrap();
            waiting = sent.iter().filter(|sent| sent["status"] != 200).map(|sent| sent["event"].as_str().unwrap().to_owned()).collect();
            if waiting.is_empty() {
                break;
            }
        }
        assert_eq!(lived.transfers(&shop).await, TRANSFERS, "round {round}");
    }
    assert_eq!(shop.books().await, "available 60000, stripe:clearing -60000");
    assert_eq!((shop.count("refunds").await, shop.count("disputes").await), (24, 12));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_or_dispute_of_a_payment_that_is_not_known_makes_stripe_come_again() {
    let shop = Shop::new().await;
    let lived = lived(&shop, "k").await;
    let kinds = ["charge.refunded", "refund.created", "charge.dispute.created"];
    // As if this database were behind.
    shop.execute("CREATE TABLE aside AS TABLE top_ups").await;
    shop.execute("DELETE FROM top_ups").await;
    for kind in kinds {
        let events = vec![kind.to_owned()];
        assert_eq!(shop.release(Release { events, ..Release::default() }).await, [404], "{kind}");
    }
    for (kind, id) in kinds.into_iter().zip(["ch_nobody_knows", "re_nobody_knows", "du_nobody_knows"]) {
        let patch = [("/data/object/id".to_owned(), json!(id))].into();
        assert_eq!(shop.release(Release { events: vec![kind.to_owned()], patch, ..Release::default() }).await, [404], "{kind}");
    }
    assert_eq!((shop.count("stripe_events").await, shop.count("transfers").await), (0, 0));
    shop.execute("INSERT INTO top_ups TABLE aside").await;
    shop.told(&kinds, 2).await;
    assert_eq!(lived.transfers(&shop).await, TRANSFERS);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_stripe_does_not_answer_no_event_is_taken() {
    use crate::support::stripe_double::{Fault, Kind};
    let shop = Shop::new().await;
    let lived = lived(&shop, "k").await;
    let path = Some("/v1/disputes".to_owned());
    shop.stripe.fault(Fault { method: Some("GET".to_owned()), path, times: 2, ..Fault::new(Kind::DropBefore) });
    let refunded = || Release { events: vec!["charge.refunded".to_owned()], ..Release::default() };
    assert_eq!(shop.release(refunded()).await, [503]);
    assert_eq!((shop.count("stripe_events").await, shop.count("transfers").await), (0, 0));
    assert_eq!(shop.release(refunded()).await, [200]);
    assert_eq!(lived.transfers(&shop).await, TRANSFERS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_or_dispute_in_another_currency_is_an_alarm_and_moves_nothing() {
    let shop = Shop::new().await;
    let lived = lived(&shop, "k").await;
    shop.stripe.with(|world| {
        for kind in ["refund", "dispute"] {
            for mut object in world.all(kind) {
                object["currency"] = json!("eur");
                world.put(&object);
            }
        }
    });
    shop.told(&["charge.refunded", "charge.dispute.closed"], 1).await;
    assert_eq!(shop.text("SELECT string_agg(outcome, ' ') FROM stripe_events").await, "alarm alarm");
    assert_eq!(lived.transfers(&shop).await, "top_up 10000");
    assert_eq!((shop.count("refunds").await, shop.count("disputes").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_event_at_once_on_many_connections_is_one_effect() {
    let shop = Shop::new().await;
    let lived = lived(&shop, "k").await;
    let event = lived.pick(&["charge.dispute.closed"]).remove(0);
    join_all((0..8).map(|_| take(&shop, &event))).await;
    assert_eq!((lived.transfers(&shop).await.as_str(), shop.count("stripe_events").await), (TRANSFERS, 1));
}
