//! Pro as a subscription at the Stripe double: begun, renewed, behind with a payment, ended; told by answers, webhooks and the poller.

use std::ops::Deref;

use rigmark::billing;
use rigmark::config::ProPriceIds;
use rigmark::ledger;
use serde_json::{Value, json};

use super::{Shop, double, post_to, test_mode};
use crate::support::{
    TestApp,
    hosts::Person,
    stripe_double::{Fault, Kind, Release, StripeDouble},
};

pub const DAY: i64 = 86_400;

/// A shop that sells Pro at 30 dollars a month and 300 a year. Ada holds a key, since sessions are short and periods long.
pub struct ProShop {
    shop: Shop,
}

impl Deref for ProShop {
    type Target = Shop;
    fn deref(&self) -> &Shop {
        &self.shop
    }
}

pub async fn price(stripe: &StripeDouble, cents: &str, interval: &str) -> String {
    let form = [
        ("currency", "usd"),
        ("unit_amount", cents),
        ("recurring[interval]", interval),
        ("product_data[name]", "Pro"),
        ("nickname", interval),
    ];
    post_to(stripe, "/v1/prices", &form).await["id"].as_str().unwrap().to_owned()
}

impl ProShop {
    pub async fn new() -> Self {
        let stripe = double();
        let prices = ProPriceIds { monthly: price(&stripe, "3000", "month").await, yearly: price(&stripe, "30000", "year").await };
        let url = stripe.url();
        let app = TestApp::with(|config| test_mode(config, &url, Some(prices))).await;
        let mut shop = Shop::of(app, stripe).await;
        shop.ada = with_key(&shop, &shop.ada, None).await;
        Self { shop }
    }

    pub async fn subscribe(&self, key: &str, form: Value) -> Value {
        self.ada.http.post("/api/v1/pro").idempotency_key(key).json(&form).expect(201).await
    }

    pub async fn pro(&self) -> Value {
        self.ada.http.get("/api/v1/pro").expect(200).await
    }

    pub async fn is_pro(&self) -> bool {
        self.pro().await["is_pro"].as_bool().unwrap()
    }

    pub async fn status(&self) -> String {
        self.text("SELECT status FROM pro_subscriptions ORDER BY id DESC LIMIT 1").await
    }

    /// Both clocks: Stripe does what falls due.
    pub fn pass(&self, seconds: i64) {
        self.stripe.advance(seconds);
        self.app.shift_wall(seconds);
    }

    /// Makes every open subscription due and lets the poller run.
    pub async fn poll_pro(&self) {
        self.execute("UPDATE pro_subscriptions SET ask_at = created_at WHERE ask_at IS NOT NULL").await;
        billing::pro::service::pro_ask_due(self.app.ctx()).await.unwrap();
    }

    /// Every webhook that waits, in this order, several at once and twice over; all of them are taken.
    pub async fn tell(&self, reverse: bool) {
        let statuses = self.release(Release { reverse, copies: 2, parallel: 2, ..Release::default() }).await;
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    }

    /// What was paid for Pro in all, in micro-dollars, each invoice once; and books that are right.
    pub async fn assert_paid(&self, invoices: i64, micros: &str) {
        assert_eq!(self.count("transfers WHERE code = 'pro_payment'").await, invoices);
        assert_eq!(self.text("SELECT balance_micros FROM ledger_accounts WHERE key = 'platform:fees'").await, micros);
        let report = ledger::service::reconcile(&mut self.app.connect().await).await.unwrap();
        assert_eq!(report.differences, Vec::new());
    }

    pub fn subscription(&self) -> Value {
        self.stripe.with(|world| world.all("subscription")[0].clone())
    }

    /// Another card for what is to come, as the portal sets it.
    pub async fn replace_card(&self, card: &str) {
        let subscription = self.subscription();
        let customer = subscription["customer"].as_str().unwrap();
        let method = self.at_stripe(&format!("/v1/payment_methods/{card}/attach"), &[("customer", customer)]).await;
        let path = format!("/v1/subscriptions/{}", subscription["id"].as_str().unwrap());
        self.at_stripe(&path, &[("default_payment_method", method["id"].as_str().unwrap())]).await;
    }
}

/// The same person with a key that does not run out, for an organization where one is named.
pub async fn with_key(shop: &Shop, person: &Person, organization: Option<&str>) -> Person {
    let scopes = [
        "account:read",
        "machines:read",
        "machines:write",
        "runs:write",
        "listings:write",
        "rentals:read",
        "rentals:write",
        "billing:read",
        "billing:write",
    ];
    let mut request = person.http.post("/api/v1/api-keys");
    if let Some(handle) = organization {
        request = request.header("Rigmark-Account", handle);
    }
    let key = request.json(&json!({ "name": "tests", "scopes": scopes })).expect(201).await;
    Person { http: shop.app.http.with_bearer(key["key"].as_str().unwrap()), handle: person.handle.clone() }
}

pub fn monthly(card: &str) -> Value {
    json!({ "plan": "monthly", "payment_method": card })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_subscription_gives_pro_and_is_booked_once() {
    let shop = ProShop::new().await;
    let offer = shop.app.http.get("/api/v1/pro").expect(200).await;
    assert_eq!((&offer["plans"][0]["price"], &offer["plans"][1]["price"]), (&json!("30.00"), &json!("300.00")));
    assert_eq!((offer["is_pro"].as_bool(), &offer["subscription"]), (Some(false), &Value::Null));
    let view = shop.subscribe("k", monthly("pm_card_visa")).await;
    assert_eq!(
        (&view["status"], &view["renews"], &view["seats"], &view["failure_code"]),
        (&json!("active"), &json!(true), &json!(1), &Value::Null)
    );
    assert!(shop.is_pro().await);
    assert_eq!(shop.ada.http.get("/api/v1/me").expect(200).await["is_pro"], true);
    shop.assert_paid(1, "30000000").await;
    // The same request again, and everything that Stripe has to say of it.
    let again = shop.ada.http.post("/api/v1/pro").idempotency_key("k").json(&monthly("pm_card_visa")).expect(201).await;
    assert_eq!(again["id"], view["id"]);
    shop.tell(true).await;
    shop.poll_pro().await;
    shop.assert_paid(1, "30000000").await;
    assert_eq!((shop.count("pro_subscriptions").await, shop.count("pro_invoices").await, shop.count("top_ups").await), (1, 1, 0));
    assert_eq!(shop.stripe.with(|world| world.all("subscription").len()), 1);
    shop.ada
        .http
        .post("/api/v1/pro")
        .idempotency_key("other")
        .json(&monthly("pm_card_visa"))
        .expect_problem(409, "already_subscribed")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_is_booked_whoever_tells_of_it() {
    for by_webhook in [true, false] {
        let shop = ProShop::new().await;
        shop.subscribe("k", monthly("pm_card_visa")).await;
        let before = shop.pro().await["subscription"]["period_ends_at"].clone();
        shop.pass(31 * DAY);
        // Active is active, also before the news of the next period have come.
        assert!(shop.is_pro().await);
        if by_webhook {
            shop.tell(true).await
        } else {
            shop.poll_pro().await
        }
        shop.assert_paid(2, "60000000").await;
        let after = shop.pro().await["subscription"]["period_ends_at"].clone();
        assert!(after.as_str() > before.as_str(), "{before} {after}");
        shop.tell(false).await;
        shop.poll_pro().await;
        shop.assert_paid(2, "60000000").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_subscription_gives_pro_until_its_period_ends() {
    for is_told in [true, false] {
        let shop = ProShop::new().await;
        shop.subscribe("k", monthly("pm_card_visa")).await;
        let canceled = shop.ada.http.post("/api/v1/pro/cancel").expect(200).await;
        assert_eq!((&canceled["status"], &canceled["renews"]), (&json!("active"), &json!(false)));
        let resumed = shop.ada.http.post("/api/v1/pro/resume").expect(200).await;
        assert_eq!((&resumed["status"], &resumed["renews"]), (&json!("active"), &json!(true)));
        shop.ada.http.post("/api/v1/pro/cancel").expect(200).await;
        shop.ada.http.post("/api/v1/pro/cancel").expect(200).await;
        shop.pass(27 * DAY);
        assert!(shop.is_pro().await);
        shop.pass(5 * DAY);
        // It was to end here: no webhook is needed for that.
        assert!(!shop.is_pro().await);
        if is_told {
            shop.tell(true).await
        } else {
            shop.poll_pro().await
        }
        assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("canceled", false));
        shop.ada.http.post("/api/v1/pro/resume").expect_problem(409, "invalid_state").await;
        shop.assert_paid(1, "30000000").await;
        // And it may begin again.
        assert_eq!(shop.subscribe("later", monthly("pm_card_visa")).await["status"], "active");
        assert!(shop.is_pro().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_ended_at_once_gives_the_rest_of_what_was_paid() {
    let shop = ProShop::new().await;
    shop.subscribe("k", monthly("pm_card_visa")).await;
    let path = format!("{}/v1/subscriptions/{}", shop.stripe.url(), shop.subscription()["id"].as_str().unwrap());
    reqwest::Client::new().delete(path).bearer_auth("sk_test_other").send().await.unwrap();
    shop.tell(false).await;
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("canceled", true));
    // Events of before, sent again under new ids: what has ended stays so.
    let late = Release {
        events: vec!["customer.subscription.created".to_owned(), "invoice.paid".to_owned()],
        patch: [("/id".to_owned(), json!("evt_late"))].into(),
        ..Release::default()
    };
    assert!(shop.release(late).await.iter().all(|status| *status == 200));
    assert_eq!(shop.status().await, "canceled");
    shop.pass(32 * DAY);
    assert!(!shop.is_pro().await);
    shop.assert_paid(1, "30000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_is_due_leaves_pro_on_for_seven_days() {
    let shop = ProShop::new().await;
    shop.subscribe("k", monthly("pm_card_visa")).await;
    shop.replace_card("pm_card_chargeCustomerFail").await;
    shop.tell(false).await;
    shop.pass(31 * DAY);
    shop.tell(true).await;
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("past_due", true));
    assert_eq!(shop.count("jobs WHERE kind = 'identity_letter' AND payload->>'subject' = 'The payment for Pro failed'").await, 1);
    shop.ada.http.post("/api/v1/pro/plan").json(&json!({ "plan": "yearly" })).expect_problem(409, "invalid_state").await;
    shop.pass(6 * DAY);
    shop.tell(true).await;
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("past_due", true));
    // Counted from Stripe's own figures, not from when it was heard of.
    shop.pass(DAY + 3_600);
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("past_due", false));
    shop.assert_paid(1, "30000000").await;
    // A good card, in time.
    let invoice = shop.subscription()["latest_invoice"].as_str().unwrap().to_owned();
    shop.at_stripe(&format!("/v1/invoices/{invoice}/pay"), &[("payment_method", "pm_card_visa")]).await;
    shop.tell(true).await;
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("active", true));
    shop.assert_paid(2, "60000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_that_fail_too_often_end_it() {
    let shop = ProShop::new().await;
    shop.subscribe("k", monthly("pm_card_visa")).await;
    shop.replace_card("pm_card_chargeCustomerFail").await;
    shop.pass(31 * DAY);
    shop.poll_pro().await;
    assert_eq!(shop.status().await, "past_due");
    for _ in 0..4 {
        shop.pass(3 * DAY + 60);
    }
    shop.tell(true).await;
    // What was not paid for is not given, although Stripe's period goes on.
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("canceled", false));
    assert_eq!(shop.count("jobs WHERE kind = 'identity_letter' AND payload->>'subject' = 'Pro has ended'").await, 1);
    shop.assert_paid(1, "30000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taxes_are_kept_as_stripe_gives_them() {
    let shop = ProShop::new().await;
    shop.stripe.fault(Fault {
        method: Some("GET".to_owned()),
        path: Some("/v1/invoices".to_owned()),
        times: 4,
        ..Fault::new(Kind::Status)
    });
    // The subscription is made, and its invoices cannot be read: asked again, with the tax that is on them by then.
    shop.ada.http.post("/api/v1/pro").idempotency_key("k").json(&monthly("pm_card_visa")).expect_problem(503, "unavailable").await;
    shop.stripe.with(|world| {
        let mut invoice = world.all("invoice")[0].clone();
        invoice["total_taxes"] = json!([{ "amount": 270, "tax_behavior": "inclusive", "tax_rate_details": { "tax_rate": "txr_1" },
            "taxability_reason": "standard_rated", "taxable_amount": 2730, "type": "tax_rate_details" }]);
        world.put(&invoice);
    });
    assert_eq!(shop.subscribe("k", monthly("pm_card_visa")).await["status"], "active");
    assert_eq!(shop.text("SELECT paid_micros || ' ' || tax_micros FROM pro_invoices").await, "30000000 2700000");
    assert_eq!(shop.text("SELECT taxes->0->>'tax_rate_id' FROM pro_invoices").await, "txr_1");
    assert_eq!(shop.stripe.with(|world| world.all("subscription").len()), 1);
    shop.assert_paid(1, "30000000").await;
}
