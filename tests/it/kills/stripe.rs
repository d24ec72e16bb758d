//! What goes through Stripe: top-ups, a refund, a payout, an automatic top-up.

use chrono::TimeDelta;
use rigmark::config::Mode;
use serde_json::{Value, json};

use super::{Scenario, World, id_of, prove, text};
use crate::support::{
    hosts::{Person, business_now},
    http::{Http, Request},
};

pub const TOP_UPS: &str = "/api/v1/top-ups";

pub async fn available(http: &Http) -> Value {
    http.get("/api/v1/balance").expect(200).await["available"].clone()
}

/// Requests carry this key; they are their account's.
pub fn post(http: &Http, path: &str, form: &Value) -> Request {
    http.post(path).idempotency_key("the-one").json(form)
}

/// A top-up with a card, told by webhooks too, and read by the page that the payer comes back to.
pub struct Card;

impl Card {
    pub fn request(http: &Http) -> Request {
        post(http, TOP_UPS, &json!({ "amount": "50.00", "payment_method": "pm_card_visa" }))
    }
}

impl Scenario for Card {
    type Case = ();

    async fn prepare(&self, _: &World, _: &Person) {}

    async fn act(&self, world: &World, http: &Http, (): &()) {
        let top_up = id_of(Self::request(http)).await;
        world.deliver_webhooks(http).await;
        if let Some(top_up) = top_up {
            http.get(&format!("{TOP_UPS}/{top_up}")).try_answer().await;
        }
    }

    async fn repeat(&self, _: &World, http: &Http, (): &()) {
        Self::request(http).expect(201).await;
    }

    async fn check(&self, _: &World, http: &Http, (): &(), is_repeated: bool) {
        check_top_up(http, is_repeated, "canceled").await;
    }
}

/// One top-up that came about, or none: then the row is `otherwise`.
async fn check_top_up(http: &Http, is_repeated: bool, otherwise: &str) {
    let list = http.get(TOP_UPS).expect(200).await;
    let statuses: Vec<&str> = list["data"].as_array().unwrap().iter().map(|row| text(&row["status"])).collect();
    let done = statuses == ["succeeded"];
    assert!(done || (!is_repeated && (statuses.is_empty() || statuses == [otherwise])), "{list}");
    assert_eq!(available(http).await, if done { "50.00" } else { "0.00" });
}

/// A top-up by a page of Stripe's.
pub struct Checkout;

impl Checkout {
    async fn pay(world: &World, top_up: &Value) {
        // What the double's page is at names the session.
        let url = text(&top_up["checkout_url"]);
        let session = url.split(['/', '?', '#']).find(|part| part.starts_with("cs_")).unwrap_or_else(|| panic!("{url}"));
        world.stripe.control("POST", &format!("checkout/{session}"), &json!({ "card": "4242424242424242" })).unwrap();
    }

    pub fn request(http: &Http) -> Request {
        post(http, TOP_UPS, &json!({ "amount": "50.00", "return_url": "https://example.org/paid" }))
    }
}

impl Scenario for Checkout {
    type Case = ();

    async fn prepare(&self, _: &World, _: &Person) {}

    async fn act(&self, world: &World, http: &Http, (): &()) {
        let Some(answer) = Self::request(http).try_answer().await.filter(|answer| answer.status == 201) else { return };
        let top_up = answer.json();
        Self::pay(world, &top_up).await;
        http.get(&format!("{TOP_UPS}/{}", text(&top_up["id"]))).try_answer().await;
        world.deliver_webhooks(http).await;
    }

    async fn repeat(&self, world: &World, http: &Http, (): &()) {
        let top_up = Self::request(http).expect(201).await;
        let path = format!("{TOP_UPS}/{}", text(&top_up["id"]));
        let now = http.get(&path).expect(200).await;
        if now["status"] != "succeeded" {
            Self::pay(world, &now).await;
        }
    }

    async fn check(&self, _: &World, http: &Http, (): &(), is_repeated: bool) {
        let list = http.get(TOP_UPS).expect(200).await;
        let rows = list["data"].as_array().unwrap();
        // Nobody has paid, and the page is open for a day.
        let otherwise = if rows.first().is_some_and(|row| row["status"] == "canceled") { "canceled" } else { "requires_payment_method" };
        check_top_up(http, is_repeated, otherwise).await;
    }
}

/// 60 of 100 dollars.
pub struct Refund;

impl Refund {
    pub fn request(http: &Http, top_up: &str) -> Request {
        post(http, "/api/v1/refunds", &json!({ "top_up_id": top_up, "amount": "60.00" }))
    }
}

impl Scenario for Refund {
    type Case = String;

    async fn prepare(&self, world: &World, who: &Person) -> String {
        let form = json!({ "amount": "100.00", "payment_method": "pm_card_visa" });
        let top_up = post(&who.http, TOP_UPS, &form).expect(201).await;
        assert_eq!(top_up["status"], "succeeded");
        world.deliver_webhooks(&who.http).await;
        text(&top_up["id"]).to_owned()
    }

    async fn act(&self, world: &World, http: &Http, top_up: &String) {
        Self::request(http, top_up).try_answer().await;
        world.deliver_webhooks(http).await;
    }

    async fn repeat(&self, _: &World, http: &Http, top_up: &String) {
        Self::request(http, top_up).expect(201).await;
    }

    async fn check(&self, _: &World, http: &Http, _: &String, is_repeated: bool) {
        let list = http.get("/api/v1/refunds").expect(200).await;
        let statuses: Vec<&str> = list["data"].as_array().unwrap().iter().map(|row| text(&row["status"])).collect();
        let done = statuses == ["succeeded"];
        assert!(done || (!is_repeated && statuses.is_empty()), "{list}");
        assert_eq!(available(http).await, if done { "40.00" } else { "100.00" });
    }
}

/// 5 of 9 dollars, to an account that is set up within the same run.
pub struct Payout;

impl Payout {
    pub async fn onboard(http: &Http) -> Option<()> {
        let form = json!({ "return_url": "https://example.org/back" });
        http.post("/api/v1/payout-account").json(&form).try_answer().await.filter(|answer| answer.status == 201).map(drop)
    }

    /// The host tells Stripe all it wants to know.
    pub async fn complete(world: &World, host: &str) {
        let account =
            format!("SELECT coalesce((SELECT stripe_account_id FROM payout_accounts WHERE account_id = '{host}' AND is_current), '')");
        let account = world.text(&account).await;
        if !account.is_empty() {
            world.stripe.control("POST", &format!("accounts/{account}"), &json!({ "outcome": "complete" })).unwrap();
        }
    }

    pub fn request(http: &Http) -> Request {
        post(http, "/api/v1/payouts", &json!({ "amount": "5.00" }))
    }
}

impl Scenario for Payout {
    type Case = String;

    async fn prepare(&self, world: &World, who: &Person) -> String {
        let host = world.account(who).await;
        let old = business_now(&world.app).await - TimeDelta::days(8);
        let account = rigmark::base::id::AccountId::from_uuid(host.parse().unwrap());
        crate::billing::payouts::earn(&world.app, account, "9.00", old).await;
        crate::support::hosts::execute(&world.app, "UPDATE earnings_maturity SET due_at = now() - interval '1 year'").await;
        rigmark::ledger::service::mature_due(world.app.ctx(), business_now(&world.app).await).await.unwrap();
        host
    }

    async fn act(&self, world: &World, http: &Http, host: &String) {
        if Self::onboard(http).await.is_none() {
            return;
        }
        Self::complete(world, host).await;
        if http.get("/api/v1/payout-account").try_answer().await.is_none() {
            return;
        }
        Self::request(http).try_answer().await;
        world.deliver_webhooks(http).await;
    }

    async fn repeat(&self, world: &World, http: &Http, host: &String) {
        let account = http.get("/api/v1/payout-account").answer().await;
        if account.status != 200 || account.json()["status"] != "enabled" {
            Self::onboard(http).await.expect("a payout account");
            Self::complete(world, host).await;
            assert_eq!(http.get("/api/v1/payout-account").expect(200).await["status"], "enabled");
        }
        Self::request(http).expect(201).await;
    }

    async fn check(&self, world: &World, http: &Http, host: &String, is_repeated: bool) {
        let list = http.get("/api/v1/payouts").expect(200).await;
        let statuses: Vec<&str> = list["data"].as_array().unwrap().iter().map(|row| text(&row["status"])).collect();
        let done = statuses == ["sent"];
        assert!(done || (!is_repeated && statuses.is_empty()), "{list}");
        let payable = http.get("/api/v1/balance").expect(200).await["payable"].clone();
        assert_eq!(payable, if done { "4.00" } else { "9.00" });
        assert!(world.count(&format!("payout_accounts WHERE account_id = '{host}'")).await <= 1);
    }
}

/// 50 dollars by itself.
pub struct Automatic;

impl Scenario for Automatic {
    type Case = ();

    async fn prepare(&self, world: &World, who: &Person) {
        let saved = who.http.post("/api/v1/payment-methods").json(&json!({ "payment_method": "pm_card_visa" })).expect(201).await;
        assert_eq!(saved["status"], "succeeded", "{saved}");
        who.http.put("/api/v1/automatic-top-up").json(&json!({ "threshold": "10.00", "amount": "50.00" })).expect(200).await;
        world.deliver_webhooks(&who.http).await;
    }

    async fn act(&self, world: &World, http: &Http, (): &()) {
        rigmark::billing::automatic::service::top_up_due(world.app.ctx()).await.ok();
        world.deliver_webhooks(http).await;
    }

    async fn repeat(&self, _: &World, _: &Http, (): &()) {}

    /// Nobody has to ask for it: it is done in any case, perhaps an hour later.
    async fn check(&self, _: &World, http: &Http, (): &(), _: bool) {
        let list = http.get(TOP_UPS).expect(200).await;
        let done = list["data"].as_array().unwrap().iter().filter(|row| row["status"] == "succeeded").count();
        assert_eq!(done, 1, "{list}");
        assert_eq!(available(http).await, "50.00");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_top_up_with_a_card() {
    prove("top-up with a card", &mut World::new(Mode::Test).await, &Card).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_top_up_by_checkout() {
    prove("top-up by checkout", &mut World::new(Mode::Test).await, &Checkout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund() {
    prove("refund", &mut World::new(Mode::Test).await, &Refund).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payout() {
    let mut world = World::new(Mode::Test).await;
    world.fund(1_000_000).await;
    prove("payout", &mut world, &Payout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automatic_top_up() {
    prove("automatic top-up", &mut World::new(Mode::Test).await, &Automatic).await;
}

impl World {
    /// Money of the platform's at Stripe, in cents, which is no top-up of ours; nobody is told of it.
    pub async fn fund(&self, cents: i64) {
        let form = format!("amount={cents}&currency=usd&payment_method=pm_card_bypassPending&confirm=true");
        let request = reqwest::Client::new().post(format!("{}/v1/payment_intents", self.stripe.url())).bearer_auth("sk_test_other");
        let answer = request.header("content-type", "application/x-www-form-urlencoded").body(form).send().await.unwrap();
        assert!(answer.status().is_success());
        self.stripe.with(|world| world.outbox.fresh.clear());
    }
}
