//! Re-measuring and staleness: machines with simulated engines, and runs whose matrix is what such an engine's law says.

mod follows;
mod impostors;
mod parts;
mod schedule;
mod stale;

use diesel::{sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::id::{ListingId, MachineId, RemeasurementId, RunId};
use rigmark::benchmarks::model::RunDetail;
use rigmark::benchmarks::service::run_remeasurement;
use rigmark::config::Config;
use rigmark::measure::simulated::law::SpeedLaw;
use rigmark::measure::simulated::{self, SimulatedConfig, SimulatedEngine};
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{self, Person, RunRow, draft, id, machine, person};

pub const MODEL: &str = "org/model";
pub const DECODE_TPS: f64 = 200.0;
pub const PREFILL_TPS: f64 = 20_000.0;

pub fn config() -> SimulatedConfig {
    SimulatedConfig::at_speed(MODEL, DECODE_TPS, PREFILL_TPS).unwrap()
}

pub fn engine() -> SimulatedEngine {
    simulated::start(config(), "127.0.0.1:0").unwrap()
}

/// Short windows; and bounds so wide that a busy computer does not matter to tests of everything but speed.
pub fn quick(config: &mut Config) {
    config.tunables.remeasure_window_milliseconds = 400;
    config.tunables.remeasure_time_between_tokens_percent = 80;
    config.tunables.remeasure_total_percent = 60;
    config.tunables.remeasure_cold_ttft_percent = 150;
}

/// What a run of an engine with this law holds, without having measured it.
pub fn detail(law: &SpeedLaw) -> Value {
    let contexts = [0_u64, 1_024, 4_096];
    let cell = |context: u64, concurrency: u32| {
        let total = f64::from(concurrency) / law.decode_step(concurrency, context as f64 + 300.0).as_secs_f64();
        json!({"context_tokens": context, "concurrency": concurrency, "status": "valid", "total_tokens_per_second": total})
    };
    let prefill = |context: u64| {
        let ttft = law.read(0, context).as_secs_f64();
        json!({"context_tokens": context, "prompt_tokens": context, "tokens_per_second": context as f64 / ttft, "ttft_ms": ttft * 1_000.0})
    };
    let decode: Vec<Value> = contexts.iter().flat_map(|context| [1, 2, 6].map(|level| cell(*context, level))).collect();
    let detail = json!({
        "claim": {"hardware": {"gpu": "RTX 3090", "gpu_count": 1, "driver": "570.10", "power_limit_w": 350.0}},
        "tool": {"name": "rigmark", "version": "1"},
        "run": {"served_model": MODEL, "max_output_tokens": 2_048, "engine": "vllm"},
        "hardware_seen": {"gpus": [{"name": "NVIDIA GeForce RTX 3090", "memory_mib": 24_576.0, "power_limit_w": 350.0}], "driver": "570.10"},
        "engine_summary": "", "matrix_summary": "",
        "matrix": {"mode": "duration", "prefill": contexts[1..].iter().map(|c| prefill(*c)).collect::<Vec<_>>(), "decode": decode,
                   "kv_capacity": {}},
        "findings": [], "notes": null,
    });
    serde_json::from_value::<RunDetail>(detail.clone()).unwrap();
    detail
}

/// A run bound to a machine, with what it holds.
pub async fn run_with(app: &TestApp, machine: MachineId, row: &RunRow, detail: &Value) -> RunId {
    let run = hosts::run(app, machine, row).await;
    sql_query("UPDATE runs SET detail = $2 WHERE id = $1")
        .bind::<sql::Uuid, _>(run)
        .bind::<sql::Jsonb, _>(detail)
        .execute(&mut app.connect().await)
        .await
        .unwrap();
    run
}

/// A host's machine with an engine, and a run that the engine is as fast as.
pub struct Stage {
    pub app: TestApp,
    pub host: Person,
    pub engine: SimulatedEngine,
    pub machine: MachineId,
    pub run: RunId,
}

impl Stage {
    pub async fn new(change: impl FnOnce(&mut Config)) -> Self {
        Self::with(engine(), change).await
    }

    pub async fn with(engine: SimulatedEngine, change: impl FnOnce(&mut Config)) -> Self {
        let app = TestApp::with(change).await;
        let host = person(&app, "host").await;
        let machine = machine(&host, Some(engine.url())).await;
        let run = run_with(&app, machine, &RunRow::default(), &detail(&config().law)).await;
        // What registering has left.
        rigmark::jobs::run_due_jobs(app.ctx()).await.unwrap();
        Self { app, host, engine, machine, run }
    }

    pub async fn publish(&self) -> ListingId {
        let listing = draft(&self.host, self.machine, "3.60").await;
        self.host.http.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
        listing
    }

    pub fn path(&self, what: &str) -> String {
        format!("/api/v1/machines/{}/{what}", self.machine)
    }

    /// Asks for a re-measurement.
    pub async fn ask(&self) -> Value {
        self.host.http.post(&self.path("remeasure")).expect(202).await
    }

    /// Does this one and nothing that follows from it.
    pub async fn measure(&self, remeasurement: &Value) -> Value {
        let id: RemeasurementId = id(&remeasurement["id"]);
        run_remeasurement(self.app.ctx(), id).await.unwrap();
        let all = self.all().await;
        all.into_iter().find(|row| row["id"] == remeasurement["id"]).unwrap()
    }

    /// The machine's re-measurements, newest first.
    pub async fn all(&self) -> Vec<Value> {
        self.host.http.get(&self.path("remeasurements")).expect(200).await["data"].as_array().unwrap().clone()
    }

    /// Status of the only re-measurement, and how often it was begun: asked of the database, for when the server has moved.
    pub async fn progress(&self) -> (String, i32) {
        #[derive(diesel::QueryableByName)]
        struct Row {
            #[diesel(sql_type = sql::Text)]
            status: String,
            #[diesel(sql_type = sql::Integer)]
            attempts: i32,
        }
        let row: Row = sql_query("SELECT status, attempts FROM remeasurements").get_result(&mut self.app.connect().await).await.unwrap();
        (row.status, row.attempts)
    }

    pub async fn public_run(&self) -> Value {
        self.app.http.get(&format!("/api/v1/matrix-runs/{}", self.run)).expect(200).await
    }

    pub async fn listing(&self, listing: ListingId) -> Value {
        self.app.http.get(&format!("/api/v1/listings/{listing}")).expect(200).await
    }

    /// Subjects of all letters but those of registering, sorted.
    pub fn letters(&self) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(self.app.data_dir.path().join("mail")) else { return Vec::new() };
        let texts = folder.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
        let subjects = texts.filter_map(|text| Some(text.lines().find_map(|line| line.strip_prefix("Subject: "))?.to_owned()));
        let mut subjects: Vec<String> = subjects.filter(|subject| subject != "Confirm your e-mail address").collect();
        subjects.sort();
        subjects
    }
}
