//! People, their machines, and runs that back listings. Runs are rows made by SQL: how one comes about is the business of `benchmarks`' tests.

use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::id::{AccountId, ListingId, MachineId, RunId};
use rigmark::measure::simulated::{self, SimulatedConfig, SimulatedEngine};
use serde_json::{Value, json};

use super::{TestApp, http::Http};

/// Somebody who has registered.
#[derive(Clone)]
pub struct Person {
    pub http: Http,
    pub handle: String,
}

pub async fn person(app: &TestApp, handle: &str) -> Person {
    let form = json!({ "email": format!("{handle}@example.org"), "password": "correct horse battery", "handle": handle });
    let body = app.http.post("/api/v1/auth/register").json(&form).expect(201).await;
    Person { http: app.http.with_bearer(body["access_token"].as_str().unwrap()), handle: handle.to_owned() }
}

/// The id in a JSON text, as `T`.
#[track_caller]
pub fn id<T: FromStr>(value: &Value) -> T {
    let text = value.as_str().unwrap_or_else(|| panic!("no id: {value}"));
    text.parse().unwrap_or_else(|_| panic!("no such id: {text}"))
}

/// An engine that answers at once.
pub fn engine() -> SimulatedEngine {
    simulated::start(SimulatedConfig::at_speed("org/model", 500.0, 50_000.0).unwrap(), "127.0.0.1:0").unwrap()
}

/// A machine with one RTX 3090 and this engine.
pub async fn machine(host: &Person, engine_url: Option<&str>) -> MachineId {
    let mut form = json!({ "name": "garage", "hardware": { "gpu": "RTX 3090", "gpu_count": 1 }, "region": "us-ca" });
    if let Some(url) = engine_url {
        form["endpoint"] = json!({ "url": url });
    }
    id(&host.http.post("/api/v1/machines").json(&form).expect(201).await["id"])
}

/// A decode cell of a run.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub context_tokens: i32,
    pub concurrency: i32,
    pub status: &'static str,
    pub total_tokens_per_second: f64,
    pub cold_ttft_ms: Option<f64>,
}

pub fn cell(context_tokens: i32, concurrency: i32, total_tokens_per_second: f64) -> Cell {
    Cell {
        context_tokens,
        concurrency,
        status: "valid",
        total_tokens_per_second,
        cold_ttft_ms: Some(100.0 + f64::from(context_tokens) / 10.0),
    }
}

/// A run bound to a machine. The default backs a listing of [`machine`] in the sandbox.
#[derive(Debug, Clone)]
pub struct RunRow {
    pub status: &'static str,
    pub level: &'static str,
    pub visibility: &'static str,
    pub model_slug: Option<&'static str>,
    pub model_name: &'static str,
    pub quantization: Option<&'static str>,
    pub hardware_slug: Option<&'static str>,
    pub gpu_count: Option<i32>,
    /// How long ago it was made, in seconds.
    pub age_seconds: i64,
    pub cells: Vec<Cell>,
}

impl Default for RunRow {
    fn default() -> Self {
        Self {
            status: "verified",
            level: "challenged",
            visibility: "public",
            model_slug: Some("gpt-oss-20b"),
            model_name: "gpt-oss-20b",
            quantization: Some("mxfp4"),
            hardware_slug: Some("rtx-3090"),
            gpu_count: Some(1),
            age_seconds: 0,
            cells: vec![cell(0, 1, 100.0), cell(0, 8, 400.0), cell(16_384, 1, 80.0), cell(16_384, 8, 240.0)],
        }
    }
}

pub async fn business_now(app: &TestApp) -> DateTime<Utc> {
    app.ctx().business_now(&mut app.connect().await).await.unwrap()
}

/// Inserts the run of the machine's owner.
pub async fn run(app: &TestApp, machine: MachineId, row: &RunRow) -> RunId {
    let id = RunId::new();
    let created_at = business_now(app).await - TimeDelta::seconds(row.age_seconds);
    let mut conn = app.connect().await;
    sql_query(
        "INSERT INTO runs (id, account_id, machine_id, status, evidence_level, visibility, model_slug, model_name, quantization, hardware_slug,
                           gpu_count, title, summary, detail, rules_version, document_sha256, upload_key, created_at, expires_at)
         SELECT $1, account_id, id, $3, $4, $5, $6, $7, $8, $9, $10, 'A run', 'A summary', '{}', '1', $1::text, $1::text, $11,
                $11 + interval '90 days'
         FROM machines WHERE id = $2",
    )
    .bind::<sql::Uuid, _>(id)
    .bind::<sql::Uuid, _>(machine)
    .bind::<sql::Text, _>(row.status)
    .bind::<sql::Text, _>(row.level)
    .bind::<sql::Text, _>(row.visibility)
    .bind::<sql::Nullable<sql::Text>, _>(row.model_slug)
    .bind::<sql::Text, _>(row.model_name)
    .bind::<sql::Nullable<sql::Text>, _>(row.quantization)
    .bind::<sql::Nullable<sql::Text>, _>(row.hardware_slug)
    .bind::<sql::Nullable<sql::Integer>, _>(row.gpu_count)
    .bind::<sql::Timestamptz, _>(created_at)
    .execute(&mut conn)
    .await
    .unwrap();
    for cell in &row.cells {
        sql_query(
            "INSERT INTO run_cells (run_id, context_tokens, concurrency, status, total_tokens_per_second, ttft_ms, cold_ttft_ms)
             VALUES ($1, $2, $3, $4, $5, 50, $6)",
        )
        .bind::<sql::Uuid, _>(id)
        .bind::<sql::Integer, _>(cell.context_tokens)
        .bind::<sql::Integer, _>(cell.concurrency)
        .bind::<sql::Text, _>(cell.status)
        .bind::<sql::Double, _>(cell.total_tokens_per_second)
        .bind::<sql::Nullable<sql::Double>, _>(cell.cold_ttft_ms)
        .execute(&mut conn)
        .await
        .unwrap();
    }
    id
}

/// A draft of the machine at this price.
pub async fn draft(host: &Person, machine: MachineId, price: &str) -> ListingId {
    let form = json!({ "machine_id": machine, "price_per_hour": price });
    id(&host.http.post("/api/v1/listings").json(&form).expect(201).await["id"])
}

/// A listing that is on the market.
pub struct Offer {
    pub machine: MachineId,
    pub run: RunId,
    pub listing: ListingId,
}

/// A machine with a run, published at this price.
pub async fn published(app: &TestApp, host: &Person, engine_url: &str, price: &str, row: &RunRow) -> Offer {
    let machine = machine(host, Some(engine_url)).await;
    let run = run(app, machine, row).await;
    let listing = draft(host, machine, price).await;
    host.http.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
    Offer { machine, run, listing }
}

/// The account behind a handle.
pub async fn account_id(app: &TestApp, person: &Person) -> AccountId {
    rigmark::identity::service::account_by_handle(&mut app.connect().await, &person.handle).await.unwrap().id
}

/// Gives somebody Pro for good, as an operator may.
pub async fn give_pro(app: &TestApp, person: &Person) {
    let id = account_id(app, person).await;
    let until = business_now(app).await + TimeDelta::days(3_650);
    let give = async |tx: &mut rigmark::db::Tx<'_>| rigmark::identity::service::set_pro_until(tx, id, until).await;
    app.ctx().db.tx("test", give).await.unwrap();
}

/// Runs a statement, for states that no route leads to.
pub async fn execute(app: &TestApp, statement: &str) {
    sql_query(statement).execute(&mut app.connect().await).await.unwrap();
}
