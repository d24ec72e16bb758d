//! The pollers themselves, killed while they find out what became of a top-up, a refund and a payout whose answers were lost.

use std::cell::Cell;

use rigmark::billing;
use rigmark::config::Mode;
use serde_json::json;

use super::stripe::{Card, Payout, Refund, TOP_UPS, available};
use super::{Scenario, World, prove, text};
use crate::support::{
    hosts::Person,
    http::Http,
    stripe_double::{Fault, Kind},
};

#[derive(Default)]
struct Poller {
    cases: Cell<usize>,
}

struct Case {
    /// Whether Stripe did what it was asked for the first time.
    was_done: bool,
    refunded: String,
}

impl World {
    /// The next such request to Stripe is done or not, and is not answered; nor is the question what became of it.
    fn loses(&self, path: &str, is_done: bool) {
        let fault = |kind: Kind, method: &str| Fault { method: Some(method.to_owned()), path: Some(path.to_owned()), ..Fault::new(kind) };
        self.stripe.fault(fault(if is_done { Kind::DropAfter } else { Kind::DropBefore }, "POST"));
        self.stripe.fault(fault(Kind::DropBefore, "GET"));
    }
}

impl Scenario for Poller {
    type Case = Case;

    async fn prepare(&self, world: &World, who: &Person) -> Case {
        self.cases.set(self.cases.get() + 1);
        let was_done = self.cases.get().is_multiple_of(2);
        let paid = who.http.post(TOP_UPS).idempotency_key("paid").json(&json!({ "amount": "100.00", "payment_method": "pm_card_visa" }));
        let refunded = text(&paid.expect(201).await["id"]).to_owned();
        let host = Payout.prepare(world, who).await;
        Payout::onboard(&who.http).await.unwrap();
        Payout::complete(world, &host).await;
        assert_eq!(who.http.get("/api/v1/payout-account").expect(200).await["status"], "enabled");
        world.deliver_webhooks(&who.http).await;
        world.loses("/v1/payment_intents", was_done);
        Card::request(&who.http).expect_problem(503, "unavailable").await;
        world.loses("/v1/refunds", was_done);
        assert_eq!(Refund::request(&who.http, &refunded).expect(201).await["status"], "pending");
        world.loses("/v1/transfers", was_done);
        assert_eq!(Payout::request(&who.http).expect(201).await["status"], "pending");
        world.stripe.with(|world| world.faults.clear());
        Case { was_done, refunded }
    }

    async fn act(&self, world: &World, _: &Http, _: &Case) {
        world.pass(200);
        let ctx = world.app.ctx();
        billing::service::ask_due(ctx).await.ok();
        billing::refunds::service::ask_due(ctx).await.ok();
        billing::payouts::service::ask_due(ctx).await.ok();
    }

    async fn repeat(&self, _: &World, http: &Http, case: &Case) {
        Card::request(http).expect(201).await;
        Refund::request(http, &case.refunded).expect(201).await;
        Payout::request(http).expect(201).await;
    }

    /// What was promised comes about also when the client has left; only a top-up that nobody has paid does not.
    async fn check(&self, _: &World, http: &Http, case: &Case, is_repeated: bool) {
        let statuses = async |path: &str| {
            let list = http.get(path).expect(200).await;
            let rows = list["data"].as_array().unwrap();
            rows.iter().map(|row| text(&row["status"]).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(statuses("/api/v1/refunds").await, ["succeeded"]);
        assert_eq!(statuses("/api/v1/payouts").await, ["sent"]);
        assert_eq!(http.get("/api/v1/balance").expect(200).await["payable"], "4.00");
        let (last, amount) = if case.was_done || is_repeated { ("succeeded", "90.00") } else { ("canceled", "40.00") };
        assert_eq!(statuses(TOP_UPS).await, [last, "succeeded"]);
        assert_eq!(available(http).await, amount);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pollers() {
    let mut world = World::new(Mode::Test).await;
    world.fund(1_000_000).await;
    prove("pollers", &mut world, &Poller::default()).await;
}
