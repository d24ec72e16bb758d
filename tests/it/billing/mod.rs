//! Money in through Stripe, over HTTP against the Stripe double: top-ups, webhooks, the poller, and what goes wrong between us and Stripe.

mod automatic;
mod cards;
mod checkout;
mod disputes;
mod faults;
mod intake;
mod invoices;
mod orders;
pub mod payouts;
mod pro;
mod pro_changes;
mod pro_perks;
mod pro_states;
mod receipts;
mod reconcile;
mod refund_faults;
mod refunds;
mod signature;
mod top_ups;
mod webhooks;

use std::time::Duration;

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::{Code, secret::Secret};
use rigmark::config::{Config, Mode, ProPriceIds, StripeConfig};
use rigmark::ledger;
use serde_json::{Value, json};

use crate::support::{
    TestApp,
    hosts::{Person, person},
    stripe_double::{Fault, Kind, Release, StripeDouble, StripeDoubleConfig},
};

pub const WEBHOOK_SECRET: &str = "whsec_of_the_tests";
pub const WEBHOOK: &str = "/api/v1/stripe/events";

/// Test mode, against this address.
pub async fn app_at(stripe: &str) -> TestApp {
    app_in(Mode::Test, stripe).await
}

/// The same in another mode.
pub async fn app_in(mode: Mode, stripe: &str) -> TestApp {
    TestApp::with(|config| {
        test_mode(config, stripe, None);
        config.mode = mode;
    })
    .await
}

/// Puts it into test mode, against this address.
fn test_mode(config: &mut Config, stripe: &str, pro_prices: Option<ProPriceIds>) {
    config.mode = Mode::Test;
    let secrets = vec![Secret::new("whsec_older".to_owned()), Secret::new(WEBHOOK_SECRET.to_owned())];
    let mut stripe = StripeConfig::new(Secret::new("sk_test_rigmark".to_owned()), secrets, Some(stripe.to_owned()));
    stripe.attempt_timeout = Duration::from_millis(700);
    stripe.attempts_max = 2;
    stripe.pro_prices = pro_prices;
    config.stripe = Some(stripe);
}

/// A server in test mode with one customer, and its Stripe, whose webhooks wait until they are released.
pub struct Shop {
    pub app: TestApp,
    pub stripe: StripeDouble,
    pub ada: Person,
}

/// A Stripe whose webhooks wait until they are released.
fn double() -> StripeDouble {
    let config = StripeDoubleConfig { bind: "127.0.0.1:0".to_owned(), webhook_url: None, secret: WEBHOOK_SECRET.to_owned() };
    let stripe = StripeDouble::start(&config).unwrap();
    stripe.hold_webhooks();
    stripe
}

async fn post_to(stripe: &StripeDouble, path: &str, form: &[(&str, &str)]) -> Value {
    let body = serde_urlencoded::to_string(form).unwrap();
    let request = reqwest::Client::new().post(format!("{}{path}", stripe.url())).bearer_auth("sk_test_other");
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
    serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = sql::BigInt)]
    count: i64,
}

#[derive(QueryableByName)]
struct Text {
    #[diesel(sql_type = sql::Text)]
    text: String,
}

impl Shop {
    pub async fn new() -> Self {
        let stripe = double();
        let app = app_at(&stripe.url()).await;
        Self::of(app, stripe).await
    }

    async fn of(app: TestApp, stripe: StripeDouble) -> Self {
        stripe.set_webhook_url(&format!("{}{WEBHOOK}", app.http.base_url()));
        let ada = person(&app, "ada").await;
        Self { app, stripe, ada }
    }

    /// A top-up that must be answered 201.
    pub async fn top_up(&self, key: &str, form: Value) -> Value {
        self.ada.http.post("/api/v1/top-ups").idempotency_key(key).json(&form).expect(201).await
    }

    /// The top-up as the page that the payer returns to reads it.
    pub async fn read(&self, top_up: &Value) -> Value {
        self.ada.http.get(&format!("/api/v1/top-ups/{}", top_up["id"].as_str().unwrap())).expect(200).await
    }

    pub async fn available(&self) -> String {
        self.ada.http.get("/api/v1/balance").expect(200).await["available"].as_str().unwrap().to_owned()
    }

    /// Makes every open top-up due and lets the poller run.
    pub async fn poll(&self) {
        self.execute("UPDATE top_ups SET ask_at = created_at WHERE ask_at IS NOT NULL").await;
        rigmark::billing::service::ask_due(self.app.ctx()).await.unwrap();
    }

    pub async fn execute(&self, statement: &str) {
        sql_query(statement).execute(&mut self.app.connect().await).await.unwrap();
    }

    pub async fn count(&self, from: &str) -> i64 {
        let counted: Count = sql_query(format!("SELECT count(*) FROM {from}")).get_result(&mut self.app.connect().await).await.unwrap();
        counted.count
    }

    pub async fn text(&self, query: &str) -> String {
        let found: Text = sql_query(format!("SELECT ({query})::text AS text")).get_result(&mut self.app.connect().await).await.unwrap();
        found.text
    }

    /// What a payer's browser does at Stripe with the client secret.
    pub async fn pay(&self, payment: &str, method: &str) -> Value {
        self.at_stripe(&format!("/v1/payment_intents/{payment}/confirm"), &[("payment_method", method)]).await
    }

    /// A request to Stripe that is not Rigmark's.
    pub async fn at_stripe(&self, path: &str, form: &[(&str, &str)]) -> Value {
        post_to(&self.stripe, path, form).await
    }

    /// Saves a card of ada's at once; its id.
    pub async fn save_card(&self, card: &str) -> String {
        let form = json!({ "payment_method": card });
        let saved = self.ada.http.post("/api/v1/payment-methods").json(&form).expect(201).await;
        assert_eq!(saved["status"], "succeeded", "{saved}");
        saved["payment_method"].as_str().unwrap().to_owned()
    }

    /// Ada's saved cards.
    pub async fn cards(&self) -> Vec<Value> {
        self.ada.http.get("/api/v1/payment-methods").expect(200).await["data"].as_array().unwrap().clone()
    }

    /// Letters that were written so far, oldest first.
    pub async fn letters(&self) -> Vec<String> {
        rigmark::jobs::run_due_jobs(self.app.ctx()).await.unwrap();
        let folder = self.app.data_dir.path().join("mail");
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        // Their names are the ids of letters, which are in the order of time.
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let texts = paths.iter().map(|path| std::fs::read_to_string(path).unwrap());
        texts.filter(|text| text.contains("utomatic top-up")).collect()
    }

    /// Delivers as told; the statuses.
    pub async fn release(&self, how: Release) -> Vec<u64> {
        let sent = self.stripe.release(&how).await.unwrap();
        sent.iter().map(|sent| sent["status"].as_u64().unwrap()).collect()
    }

    pub fn fault(&self, kind: Kind, method: &str, times: u32) {
        self.stripe.fault(Fault {
            method: Some(method.to_owned()),
            path: Some("/v1/payment_intents".to_owned()),
            times,
            ..Fault::new(kind)
        });
    }

    /// Requests to Stripe that may have made a payment.
    pub fn payments_made(&self) -> usize {
        self.stripe.with(|world| world.all("payment_intent").len())
    }

    /// One credit of this amount, and books that are right.
    pub async fn assert_credited_once(&self, amount: &str) {
        assert_eq!(self.available().await, amount);
        assert_eq!(self.count("transfers WHERE code = 'top_up'").await, 1);
        let report = ledger::service::reconcile(&mut self.app.connect().await).await.unwrap();
        assert_eq!(report.differences, Vec::new());
    }

    pub async fn assert_nothing_credited(&self) {
        assert_eq!(self.available().await, "0.00");
        assert_eq!(self.count("transfers").await, 0);
    }
}

/// 50 dollars, paid with this card at once.
pub fn fifty(card: &str) -> Value {
    json!({ "amount": "50.00", "payment_method": card })
}

#[tokio::test]
async fn play_money_does_not_become_money() {
    let app = TestApp::new().await;
    let refusal = app.start_refused(|config| test_mode(config, "http://127.0.0.1:1", None)).await;
    assert_eq!(refusal.code(), Code::InvalidState);
    assert!(refusal.detail().contains("sandbox"), "{}", refusal.detail());
}
