//! Outgoing webhooks: endpoints over the API, receivers over real HTTP on free ports, and wall time moved by hand.

mod deliveries;
mod endpoints;
mod events;
mod signature;
mod targets;

use std::time::Duration;

use rigmark::jobs;
use serde_json::{Value, json};

use crate::support::{
    TestApp,
    hosts::{Person, person},
    http::Http,
    scripted::{Manner, Scripted},
    wait_for,
};

pub const ENDPOINTS: &str = "/api/v1/webhook-endpoints";
const ALL_SCOPES: [&str; 5] = ["account:read", "rentals:write", "runs:write", "listings:write", "billing:write"];

/// A key of the person's, which does not expire when wall time moves.
pub async fn key(app: &TestApp, person: &Person, scopes: &[&str]) -> Http {
    let made = person.http.post("/api/v1/api-keys").json(&json!({ "name": "hooks", "scopes": scopes })).expect(201).await;
    app.http.with_bearer(made["key"].as_str().unwrap())
}

/// An account with one endpoint at a receiver that answers as it is told: 204 at first.
pub struct Hooks {
    pub app: TestApp,
    pub ada: Person,
    pub http: Http,
    pub receiver: Scripted,
    pub id: String,
    pub secret: String,
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

pub fn no_content() -> Manner {
    Manner::Answer(200, String::new())
}

pub async fn receiver() -> Scripted {
    let receiver = Scripted::start(&[]).await;
    receiver.chat(no_content());
    receiver
}

impl Hooks {
    pub async fn new() -> Self {
        Self::on(TestApp::new().await).await
    }

    pub async fn on(app: TestApp) -> Self {
        let ada = person(&app, "ada").await;
        let http = key(&app, &ada, &ALL_SCOPES).await;
        let receiver = receiver().await;
        let made = endpoint(&http, &format!("{}/hooks?team=a", receiver.url), &["*"]).await;
        Self { app, ada, http, receiver, id: text(&made["id"]), secret: text(&made["secret"]) }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("{ENDPOINTS}/{}{rest}", self.id)
    }

    /// Asks for a test event; its id.
    pub async fn test(&self) -> String {
        text(&self.http.post(&self.path("/test")).expect(202).await["event_id"])
    }

    pub async fn show(&self) -> Value {
        self.http.get(&self.path("")).expect(200).await
    }

    /// The newest delivery.
    pub async fn newest(&self) -> Value {
        self.http.get(&self.path("/deliveries")).expect(200).await["data"][0].clone()
    }

    /// Lets the workers run until the newest delivery has been tried `attempt` times.
    pub async fn tried(&self, attempt: i64) -> Value {
        let is_tried = async |delivery: &Value| delivery["attempt"] == attempt && !is_under_way(&self.app).await;
        wait_for("a try", Duration::from_secs(30), async || {
            self.app.work().await;
            is_tried(&self.newest().await).await
        })
        .await;
        self.newest().await
    }

    /// Requests that came, as their parts.
    pub fn received(&self) -> Vec<Received> {
        received(&self.receiver)
    }
}

/// An endpoint for these events.
pub async fn endpoint(http: &Http, url: &str, events: &[&str]) -> Value {
    http.post(ENDPOINTS).json(&json!({ "url": url, "events": events })).expect(201).await
}

/// Whether a lease is held now.
async fn is_under_way(app: &TestApp) -> bool {
    count(app, "webhook_deliveries WHERE lease_until IS NOT NULL").await > 0
}

#[derive(diesel::QueryableByName)]
struct Count {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    count: i64,
}

pub async fn count(app: &TestApp, from: &str) -> i64 {
    use diesel_async::RunQueryDsl;
    let query = diesel::sql_query(format!("SELECT count(*) FROM {from}"));
    query.get_result::<Count>(&mut app.connect().await).await.unwrap().count
}

/// One request as a receiver saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    pub id: String,
    pub timestamp: i64,
    pub signature: String,
    pub body: String,
    pub head: String,
}

pub fn received(receiver: &Scripted) -> Vec<Received> {
    let parts = receiver.heads().into_iter().zip(receiver.bodies());
    parts
        .map(|(head, body)| {
            let header = |name: &str| {
                let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
                line.unwrap_or_else(|| panic!("no {name}: {head}")).to_owned()
            };
            let timestamp = header("webhook-timestamp").parse().unwrap();
            Received { id: header("webhook-id"), timestamp, signature: header("webhook-signature"), body, head: head.clone() }
        })
        .collect()
}

/// Texts of the letters that were written.
pub async fn letters(app: &TestApp) -> Vec<String> {
    jobs::run_due_jobs(app.ctx()).await.unwrap();
    let Ok(files) = std::fs::read_dir(app.data_dir.path().join("mail")) else { return Vec::new() };
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}
