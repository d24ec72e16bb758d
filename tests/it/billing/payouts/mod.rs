//! Money out to hosts, over HTTP against the Stripe double: payout accounts, payouts, the weekly ones, and what comes back.

mod accounts;
mod banks;
mod demand;
mod faults;
mod weekly;

use chrono::{DateTime, TimeDelta, Utc};
use rigmark::base::{
    Money,
    id::{AccountId, HoldId, RentalId, TransferId},
};
use rigmark::ledger::{
    Actor, Charge, LedgerAccount, TransferCode,
    model::{Capture, Correction, HoldRequest, Posting, TransferRequest},
    service,
};
use serde_json::{Value, json};

use super::Shop;
use crate::support::{
    hosts::{account_id, business_now},
    http::Request,
    stripe_double::Release,
};

pub const DAY: i64 = 86_400;
const RETURN_URL: &str = "https://rigmark.example.org/back";

/// A shop where Ada is a host.
pub struct Hosting {
    pub shop: Shop,
    pub host: AccountId,
}

impl Hosting {
    pub async fn new() -> Self {
        let shop = Shop::new().await;
        let host = account_id(&shop.app, &shop.ada).await;
        Self { shop, host }
    }

    /// With a payout account that Stripe pays, and with money of the platform's at Stripe.
    pub async fn enabled() -> Self {
        let hosting = Self::new().await;
        hosting.onboard().await;
        hosting.at_stripe_becomes("complete").await;
        assert_eq!(hosting.account().await["status"], "enabled");
        hosting.fund(1_000_000).await;
        hosting
    }

    /// The same, with this much payable.
    pub async fn with_payable(net: &str) -> Self {
        let hosting = Self::enabled().await;
        hosting.make_payable(net).await;
        hosting
    }

    pub async fn onboard(&self) -> Value {
        self.shop.ada.http.post("/api/v1/payout-account").json(&json!({ "return_url": RETURN_URL })).expect(201).await
    }

    pub async fn account(&self) -> Value {
        self.shop.ada.http.get("/api/v1/payout-account").expect(200).await
    }

    pub async fn schedule(&self, schedule: &str) -> Value {
        self.shop.ada.http.patch("/api/v1/payout-account").json(&json!({ "schedule": schedule })).expect(200).await
    }

    pub async fn stripe_account(&self) -> String {
        self.shop.text("SELECT stripe_account_id FROM payout_accounts WHERE is_current").await
    }

    /// Stripe's own doing; what it says of it waits with the other webhooks.
    pub async fn at_stripe_becomes(&self, outcome: &str) {
        let path = format!("accounts/{}", self.stripe_account().await);
        self.shop.stripe.control("POST", &path, &json!({ "outcome": outcome })).unwrap();
    }

    /// Money of the platform's at Stripe.
    pub async fn fund(&self, cents: i64) {
        let cents = cents.to_string();
        let card = [("amount", cents.as_str()), ("currency", "usd"), ("payment_method", "pm_card_bypassPending"), ("confirm", "true")];
        assert_eq!(self.shop.at_stripe("/v1/payment_intents", &card).await["status"], "succeeded");
    }

    /// Earned `net` that is payable already.
    pub async fn make_payable(&self, net: &str) -> Correction {
        let old = business_now(&self.shop.app).await - TimeDelta::days(8);
        let charge = earn(&self.shop.app, self.host, net, old).await;
        self.shop.execute("UPDATE earnings_maturity SET due_at = now() - interval '1 year'").await;
        self.mature().await;
        charge
    }

    pub async fn mature(&self) {
        service::mature_due(self.shop.app.ctx(), business_now(&self.shop.app).await).await.unwrap();
    }

    pub async fn give_back(&self, correction: Correction) {
        self.shop.app.ctx().db.tx("test", async |tx| service::correct(tx, correction).await).await.unwrap();
    }

    pub fn request(&self, key: &str, form: &Value) -> Request {
        self.shop.ada.http.post("/api/v1/payouts").idempotency_key(key).json(form)
    }

    pub async fn pay_out(&self, key: &str, amount: &str) -> Value {
        self.request(key, &json!({ "amount": amount })).expect(201).await
    }

    pub async fn read(&self, payout: &Value) -> Value {
        self.shop.ada.http.get(&format!("/api/v1/payouts/{}", payout["id"].as_str().unwrap())).expect(200).await
    }

    /// Makes every open payout due and lets the poller run.
    pub async fn poll(&self) {
        self.shop.execute("UPDATE payouts SET ask_at = created_at WHERE ask_at IS NOT NULL").await;
        rigmark::billing::payouts::service::ask_due(self.shop.app.ctx()).await.unwrap();
    }

    pub async fn balance(&self) -> (String, String) {
        let balance = self.shop.ada.http.get("/api/v1/balance").expect(200).await;
        (balance["earnings"].as_str().unwrap().to_owned(), balance["payable"].as_str().unwrap().to_owned())
    }

    /// What is payable, and what stands on the payout account at Stripe less what the bank has, in dollars; the books are right.
    pub async fn assert_payable(&self, payable: &str) {
        assert_eq!(self.balance().await.1, payable);
        let report = service::reconcile(&mut self.shop.app.connect().await).await.unwrap();
        assert_eq!(report.differences, Vec::new());
        // What left the books is what Stripe has transferred and not taken back, and what is still on its way there.
        let out = "SELECT coalesce(sum(p.amount_micros), 0)::bigint / 10000 FROM transfers t JOIN postings p ON p.transfer_id = t.id
            JOIN ledger_accounts a ON a.id = p.ledger_account_id WHERE a.kind = 'stripe:clearing' AND t.code IN ('payout', 'payout_failed')";
        let open = "SELECT coalesce(sum(amount_micros), 0)::bigint / 10000 FROM payouts WHERE status = 'pending'";
        let sent: i64 = self.transfers().iter().map(|t| t["amount"].as_i64().unwrap() - t["amount_reversed"].as_i64().unwrap()).sum();
        let [out, open] = [self.shop.text(out).await, self.shop.text(open).await].map(|text| text.parse::<i64>().unwrap());
        assert_eq!(out, sent + open);
    }

    /// Stripe's transfers.
    pub fn transfers(&self) -> Vec<Value> {
        self.shop.stripe.with(|world| world.all("transfer"))
    }

    /// Delivers the events of this type that have not been delivered; the statuses.
    pub async fn release(&self, kind: &str) -> Vec<u64> {
        let fresh = self.shop.stripe.control("GET", "webhooks", &json!({})).unwrap();
        let fresh = fresh["undelivered"].as_array().unwrap().iter().filter(|event| event["type"] == kind);
        let events: Vec<String> = fresh.map(|event| event["event"].as_str().unwrap().to_owned()).collect();
        assert!(!events.is_empty(), "no event {kind}");
        // Signed by our clock, however far Stripe's has been moved.
        let wall_now = self.shop.app.ctx().clock.wall_now().timestamp();
        let age_seconds = self.shop.stripe.with(|world| world.now()) - wall_now;
        self.shop.release(Release { events, copies: 2, age_seconds, ..Release::default() }).await
    }

    /// A request of the connected account itself.
    pub async fn as_host_at_stripe(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let body = serde_urlencoded::to_string(form).unwrap();
        let request = reqwest::Client::new().post(format!("{}{path}", self.shop.stripe.url())).bearer_auth("sk_test_other");
        let request = request.header("Stripe-Account", self.stripe_account().await).body(body);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
    }

    /// Stripe sends this on to the bank, a while after it came.
    pub async fn to_the_bank(&self, cents: i64) {
        self.shop.stripe.advance(60);
        let made = self.as_host_at_stripe("/v1/payouts", &[("amount", &cents.to_string()), ("currency", "usd")]).await;
        assert_eq!(made["status"], "pending", "{made}");
    }

    /// Subjects of the letters that were written.
    pub async fn letters(&self) -> Vec<String> {
        rigmark::jobs::run_due_jobs(self.shop.app.ctx()).await.unwrap();
        let folder = self.shop.app.data_dir.path().join("mail");
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let texts = entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
        let subject = |text: String| text.lines().find_map(|line| line.strip_prefix("Subject: ").map(str::to_owned)).unwrap();
        let mut subjects: Vec<String> = texts.map(subject).filter(|subject| !subject.starts_with("Confirm")).collect();
        subjects.sort();
        subjects
    }

    pub async fn advance(&self, seconds: i64) {
        self.shop.app.advance(seconds).await;
    }
}

/// A rental that cost nine tenths of which are `net`, at `at`. Returns how to give all of it back.
pub async fn earn(app: &crate::support::TestApp, host: AccountId, net: &str, at: DateTime<Utc>) -> Correction {
    let net: Money = net.parse().unwrap();
    let gross = Money::usd_micros(net.micros() / 9 * 10);
    let charge = Charge::in_all(gross, 1_000).unwrap();
    assert_eq!(charge.host_share().unwrap(), net, "take an amount of which 10/9 is whole");
    let renter = AccountId::new();
    let insert = diesel::sql_query(
        "INSERT INTO accounts (id, kind, handle, handle_skeleton, display_name, created_at)
         VALUES ($1, 'user', 'a' || md5($1::text), 'a' || md5($1::text), 'A', now())",
    );
    let insert = insert.bind::<diesel::sql_types::Uuid, _>(renter.uuid());
    diesel_async::RunQueryDsl::execute(insert, &mut app.connect().await).await.unwrap();
    let bring = TransferRequest {
        id: TransferId::new(),
        code: TransferCode::SandboxCredit,
        postings: Posting::between(LedgerAccount::SandboxMint, LedgerAccount::Available(renter), gross).unwrap(),
        rental: None,
        payment: None,
        actor: Actor::System,
        business_at: at,
        linked: None,
    };
    let hold = HoldRequest {
        id: HoldId::new(),
        transfer_id: TransferId::new(),
        account: renter,
        rental: Some(RentalId::new()),
        amount: gross,
        actor: Actor::System,
        business_at: at,
        expires_at: None,
    };
    let capture = Capture { hold: hold.id, transfer_id: TransferId::new(), charge, host, business_at: at };
    let work = async |tx: &mut rigmark::db::Tx<'_>| {
        service::post(tx, bring.clone()).await?;
        service::hold(tx, hold.clone()).await?;
        service::capture(tx, capture).await?;
        service::release(tx, hold.id, TransferId::new(), at).await.map(drop)
    };
    app.ctx().db.tx("test", work).await.unwrap();
    let id = TransferId::new();
    Correction { id, original: capture.transfer_id, gross, fee_basis_points: 1_000, actor: Actor::System, business_at: at }
}
