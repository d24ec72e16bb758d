//! The Stripe double itself: what it answers is what Stripe's published schema says, and it does what Stripe does.

mod answers;
mod billing;
mod hosts;
mod receiver;
mod schema;
mod webhooks;

use serde_json::Value;

use crate::support::http::{Answer, Http};
use crate::support::stripe_double::{StripeDouble, StripeDoubleConfig};

pub const SECRET: &str = "whsec_test";

pub struct Stripe {
    pub double: StripeDouble,
    pub http: Http,
}

impl Stripe {
    pub fn start() -> Self {
        Self::with_webhook(None)
    }

    pub fn with_webhook(url: Option<String>) -> Self {
        let config = StripeDoubleConfig { bind: "127.0.0.1:0".to_owned(), webhook_url: url, secret: SECRET.to_owned() };
        let double = StripeDouble::start(&config).unwrap();
        let http = Http::new(double.url()).with_bearer("sk_test_double");
        Self { double, http }
    }

    /// A POST under an idempotency key, as a connected account when one is given.
    pub async fn keyed(&self, path: &str, form: &str, key: &str, account: &str) -> Option<Answer> {
        let mut request = self.http.post(path).header("content-type", "application/x-www-form-urlencoded").body(form.to_owned());
        if !key.is_empty() {
            request = request.idempotency_key(key);
        }
        if !account.is_empty() {
            request = request.header("stripe-account", account);
        }
        request.try_answer().await
    }

    #[track_caller]
    pub fn post(&self, path: &str, form: &str, status: u16) -> impl Future<Output = Value> {
        self.post_as(path, form, "", status)
    }

    #[track_caller]
    pub fn post_as(&self, path: &str, form: &str, account: &str, status: u16) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let answer = self.keyed(path, form, "", account).await.unwrap();
            assert!(answer.status == status, "{caller}: {path} gave {}: {}", answer.status, answer.body);
            answer.json()
        }
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> impl Future<Output = Value> {
        self.http.get(path).expect(200)
    }

    /// A customer with a card that pays for everything.
    pub async fn customer(&self, card: &str) -> String {
        let customer = self.post("/v1/customers", "email=a@example.org", 200).await;
        let id = text(&customer["id"]);
        let method = self.post(&format!("/v1/payment_methods/{card}/attach"), &format!("customer={id}"), 200).await;
        let default = format!("invoice_settings[default_payment_method]={}", text(&method["id"]));
        self.post(&format!("/v1/customers/{id}"), &default, 200).await;
        id
    }

    /// A confirmed payment.
    pub async fn pay(&self, cents: u32, card: &str) -> Value {
        self.post("/v1/payment_intents", &format!("amount={cents}&currency=usd&payment_method={card}&confirm=true"), 200).await
    }

    /// Types of the events so far, oldest first.
    pub fn events(&self) -> Vec<String> {
        let all = self.double.with(|world| world.everything());
        all.iter().filter(|object| object["object"] == "event").map(|event| text(&event["type"])).collect()
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
