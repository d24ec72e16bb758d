//! Everything that is measured against: a private PostgreSQL, markets of two sizes in it, servers on both, people who rent, and what the
//! server sends for each request.

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use clap::Parser;
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use rigmark::{
    app::{self, Parts, Running},
    config::{Config, ServeArgs},
    db::embedded::{Embedded, EmbeddedConfig},
    measure::simulated::{self, SimulatedConfig, SimulatedEngine},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    bare::{self, Peers, Rent, Script},
    load::{self, Connection, Renter},
    record::{Recorder, Sent},
};

pub const CLIENTS: usize = 8;
pub const BIG_LISTINGS: u32 = 100_000;
pub const SMALL_LISTINGS: u32 = 1_000;
const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/documents");
const MARKET: &str = include_str!("../../tests/it/market/load.sql");

/// The reads that are measured. `{n}` changes with every request and does not change the answer.
pub const FILTERS: &str = "/api/v1/listings?region=us&gpu_count=2&vram_gib=24&max_price=3.{n}";
/// Fills a page in the small market too.
pub const COMMON_FILTERS: &str = "/api/v1/listings?region=us&gpu_count=1&max_price=3.{n}";
pub const WORKLOAD: &str = "/api/v1/listings?model=load-model-0&context=16k&concurrency=4&max_price=9.{n}";
/// Rankings and lists of runs that fill a page in the small market too. No answer of theirs is kept.
pub const RUN_READS: [(&str, &str); 9] = [
    ("leaderboard", "/api/v1/leaderboard?limit=20"),
    ("leaderboard, decode_at", "/api/v1/leaderboard?metric=decode_at&context=16k&concurrency=8"),
    ("leaderboard, ttft_at", "/api/v1/leaderboard?metric=ttft_at&context=16k&concurrency=8"),
    ("leaderboard, prefill_at", "/api/v1/leaderboard?metric=prefill_at&context=8k"),
    ("leaderboard, one model", "/api/v1/leaderboard?model=load-model-0"),
    ("leaderboard, tokens_per_dollar", "/api/v1/leaderboard?metric=tokens_per_dollar&context=16k&concurrency=8"),
    ("run list", "/api/v1/matrix-runs?sort=newest"),
    ("run list, one model, by peak", "/api/v1/matrix-runs?model=load-model-0&sort=decode_peak"),
    ("run list, one engine, by single", "/api/v1/matrix-runs?engine=vllm&sort=decode_single"),
];
pub const CACHED: &str = "/api/v1/listings?region=us&gpu_count=2&vram_gib=24&max_price=3.5";

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    serve: ServeArgs,
}

pub struct World {
    pub big: Running,
    pub small: Running,
    pub run_path: String,
    pub renters: Arc<Vec<Renter>>,
    pub reads: HashMap<&'static str, Vec<Sent>>,
    pub rents: Vec<Vec<Sent>>,
    pub rent_fresh: Vec<(Vec<Vec<u8>>, Vec<u8>)>,
    pub prepared_anew: HashMap<&'static str, Vec<String>>,
    pub postgres: Embedded,
    _engine: SimulatedEngine,
    pub dir: TempDir,
}

pub fn address(running: &Running) -> Result<SocketAddr> {
    Ok(running.base_url.strip_prefix("http://").context("not http")?.parse()?)
}

pub fn config(url: &str, dir: &Path) -> Result<Config> {
    let dir = dir.to_str().context("a path that is no text")?;
    let flags = ["bench", "--bind", "127.0.0.1:0", "--database-url", url, "--data-dir", dir];
    let none = ["--redis-url=", "--stripe-secret-key=", "--database-replica-url=", "--jwt-secret=", "--encryption-key="];
    let mut config = Command::try_parse_from(flags.into_iter().chain(none))?.serve.into_config()?;
    config.database_connections = u32::try_from(CLIENTS)?;
    Ok(config)
}

const HTTP: Parts = Parts { http: true, workers: false };

impl World {
    pub async fn build(say: &(dyn Fn(&str) + Sync)) -> Result<Self> {
        let dir = TempDir::new()?;
        say("starting PostgreSQL");
        // Nothing waits for the disk, so that what is compared is the work.
        let postgres = Embedded::start(EmbeddedConfig { data_dir: dir.path().join("postgres"), bin_dir: None, fsync: false }).await?;
        for name in ["small", "big"] {
            let mut conn = AsyncPgConnection::establish(&postgres.url("postgres")).await?;
            conn.batch_execute(&format!("CREATE DATABASE {name}")).await?;
        }
        say("a market of 10,000 cells");
        let small = app::start(config(&postgres.url("small"), &dir.path().join("small"))?, HTTP).await?;
        fill(&postgres.url("small"), SMALL_LISTINGS).await?;
        say("a market of 1,000,000 cells");
        let url = postgres.url("big");
        let recorder = Recorder::start(&url).await?;
        // One connection, so that every statement is seen to be prepared.
        let mut recorded = config(recorder.url(), &dir.path().join("big"))?;
        recorded.database_connections = 1;
        let stage = app::start(recorded, HTTP).await?;
        fill(&url, BIG_LISTINGS).await?;
        let engine = simulated::start(SimulatedConfig::at_speed("org/model", 500.0, 50_000.0)?, "127.0.0.1:0")?;
        say("people and their rentals");
        let people = People::new(&stage, &url);
        let run_path = people.upload().await?;
        let renters = people.renters(engine.url()).await?;
        say("what the server sends");
        let mut world = Recorded::new(&stage, &recorder, &run_path, &renters).await?;
        stage.stop().await?;
        let peers = world.peers(&url)?;
        let big = app::start_with(config(&url, &dir.path().join("big"))?, HTTP, bare::routes(peers)).await?;
        let Recorded { reads, rents, rent_fresh, prepared_anew, .. } = world;
        Ok(Self {
            big,
            small,
            run_path,
            renters: Arc::new(renters),
            reads,
            rents,
            rent_fresh,
            prepared_anew,
            postgres,
            _engine: engine,
            dir,
        })
    }

    /// The folder of the PostgreSQL programs that run here.
    pub fn bin_dir(&self) -> Result<PathBuf> {
        let pid = self.postgres.server_pid().context("PostgreSQL has ended")?;
        let program = std::fs::read_link(format!("/proc/{pid}/exe"))?;
        Ok(program.parent().context("no folder")?.to_owned())
    }

    pub async fn stop(self) -> Result<()> {
        self.big.stop().await?;
        self.small.stop().await?;
        self.postgres.stop().await?;
        Ok(())
    }
}

async fn fill(url: &str, listings: u32) -> Result<()> {
    let mut conn = AsyncPgConnection::establish(url).await?;
    conn.batch_execute(&format!("SET load.listings = '{listings}'")).await?;
    conn.batch_execute(MARKET).await?;
    conn.batch_execute("VACUUM (ANALYZE)").await?;
    Ok(())
}

struct People<'a> {
    http: reqwest::Client,
    base: &'a str,
    database_url: &'a str,
}

impl<'a> People<'a> {
    fn new(running: &'a Running, database_url: &'a str) -> Self {
        Self { http: reqwest::Client::new(), base: &running.base_url, database_url }
    }

    async fn post(&self, token: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let request = self.http.post(format!("{}{path}", self.base)).header("idempotency-key", format!("set-up-{}", load::unique()));
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        let request = body.iter().fold(request, |request, body| request.json(body));
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status.is_success(), "{path}: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    async fn register(&self, handle: &str) -> Result<String> {
        let form = json!({"email": format!("{handle}@example.org"), "password": "correct horse battery", "handle": handle});
        Ok(text(&self.post("", "/api/v1/auth/register", Some(&form)).await?["access_token"])?.to_owned())
    }

    /// The reference run, and where it is read.
    async fn upload(&self) -> Result<String> {
        let token = self.register("uploader").await?;
        let document: Value = serde_json::from_slice(&std::fs::read(Path::new(DOCUMENTS).join("reference-run.json"))?)?;
        let claim: Value = serde_json::from_slice(&std::fs::read(Path::new(DOCUMENTS).join("reference-run.meta.json"))?)?;
        let mut body = json!({"document": document});
        for part in ["hardware", "model", "engine", "launch_command"] {
            if !claim[part].is_null() {
                body[part] = claim[part].clone();
            }
        }
        let run = self.post(&token, "/api/v1/matrix-runs", Some(&body)).await?;
        Ok(format!("/api/v1/matrix-runs/{}", text(&run["id"])?))
    }

    /// One renter and one listing for each client.
    async fn renters(&self, engine_url: &str) -> Result<Vec<Renter>> {
        let host = self.register("bench-host").await?;
        let mut renters = Vec::new();
        for client in 0..CLIENTS {
            let listing = self.offer(&host, engine_url).await?;
            let token = self.register(&format!("renter-{client}")).await?;
            self.post(&token, "/api/v1/sandbox/credits", Some(&json!({"amount": "1000"}))).await?;
            let form = json!({"name": "bench", "scopes": ["rentals:write", "rentals:read"]});
            let key = self.post(&token, "/api/v1/api-keys", Some(&form)).await?;
            renters.push(Renter { key: text(&key["key"])?.to_owned(), listing });
        }
        Ok(renters)
    }

    async fn offer(&self, host: &str, engine_url: &str) -> Result<String> {
        let form =
            json!({"name": "bench", "hardware": {"gpu": "RTX 3090", "gpu_count": 1}, "region": "us-ca", "endpoint": {"url": engine_url}});
        let machine = self.post(host, "/api/v1/machines", Some(&form)).await?;
        let machine: rigmark::base::id::MachineId = text(&machine["id"])?.parse().ok().context("no machine id")?;
        let mut conn = AsyncPgConnection::establish(self.database_url).await?;
        let (run, id) = (uuid::Uuid::new_v4(), machine.uuid());
        conn.batch_execute(&format!(
            "INSERT INTO runs (id, account_id, machine_id, status, evidence_level, visibility, model_slug, model_name, quantization,
                               hardware_slug, gpu_count, title, summary, detail, rules_version, document_sha256, upload_key, created_at, expires_at)
             SELECT '{run}', account_id, id, 'verified', 'challenged', 'public', 'gpt-oss-20b', 'gpt-oss-20b', 'mxfp4', 'rtx-3090', 1, 'A run',
                    'A summary', '{{}}', '1', '{run}', '{run}', now(), now() + interval '90 days' FROM machines WHERE id = '{id}';
             INSERT INTO run_cells (run_id, context_tokens, concurrency, status, total_tokens_per_second, ttft_ms, cold_ttft_ms)
             VALUES ('{run}', 0, 1, 'valid', 100, 50, 100), ('{run}', 16384, 8, 'valid', 240, 50, 1700)"
        ))
        .await?;
        let form = json!({"machine_id": machine, "price_per_hour": "0.30"});
        let listing = text(&self.post(host, "/api/v1/listings", Some(&form)).await?["id"])?.to_owned();
        self.post(host, &format!("/api/v1/listings/{listing}/publish"), None).await?;
        Ok(listing)
    }
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("no text: {value}"))
}

/// What is sent for each kind of request, and what is answered.
#[derive(Default)]
struct Recorded {
    reads: HashMap<&'static str, Vec<Sent>>,
    answers: HashMap<&'static str, Bytes>,
    rents: Vec<Vec<Sent>>,
    rent_steps: Vec<[(Vec<Sent>, Bytes); 2]>,
    rent_fresh: Vec<(Vec<Vec<u8>>, Vec<u8>)>,
    prepared_anew: HashMap<&'static str, Vec<String>>,
}

/// As often as a statement must be seen until it is kept prepared, and once more.
const WARM: usize = 6;

impl Recorded {
    async fn new(stage: &Running, recorder: &Recorder, run_path: &str, renters: &[Renter]) -> Result<Self> {
        let mut all = Self::default();
        let mut connection = Connection::open(address(stage)?).await?;
        for (name, path) in [("filters", FILTERS), ("workload", WORKLOAD), ("run", run_path), ("cached", CACHED)] {
            for _ in 0..WARM {
                recorder.take();
                let answer = connection.call(&load::get(path)).await.with_context(|| path.to_owned())?;
                all.answers.insert(name, Bytes::copy_from_slice(answer));
            }
            let (sent, parsed) = recorder.take();
            if name != "cached" {
                all.reads.insert(name, sent);
                all.prepared_anew.insert(name, parsed);
            }
        }
        for renter in renters {
            let mut before = None;
            let mut parsed = Vec::new();
            for pass in 0..3 {
                let key = format!("recorded-{:08}", load::unique());
                recorder.take();
                let created = Bytes::copy_from_slice(connection.call(&load::create(renter, &key)).await?);
                let first = recorder.take();
                let id: Value = serde_json::from_slice(&created)?;
                let stopped = Bytes::copy_from_slice(connection.call(&load::stop(renter, text(&id["id"])?)).await?);
                let second = recorder.take();
                parsed = [first.1, second.1].concat();
                let this = ([(first.0, created), (second.0, stopped)], key);
                if pass == 2 {
                    all.note_rent(before.take().context("no earlier pass")?, this)?;
                } else {
                    before = Some(this);
                }
            }
            all.prepared_anew.insert("rent", parsed);
        }
        Ok(all)
    }

    /// What differs between two passes and is an id is new each time.
    fn note_rent(&mut self, before: ([(Vec<Sent>, Bytes); 2], String), (steps, key): ([(Vec<Sent>, Bytes); 2], String)) -> Result<()> {
        const UUID: u32 = 2950;
        let mut fresh: Vec<Vec<u8>> = Vec::new();
        for (a, b) in before.0.iter().flat_map(|step| &step.0).zip(steps.iter().flat_map(|step| &step.0)) {
            let (Sent::Execute { sql: sql_a, values: a, .. }, Sent::Execute { sql, types, values: b }) = (a, b) else {
                ensure!(a == b, "two passes differ: {a:?} and {b:?}");
                continue;
            };
            ensure!(sql_a == sql, "two passes differ: {sql_a} and {sql}");
            for ((a, b), kind) in a.iter().zip(b).zip(types) {
                if a != b
                    && *kind == UUID
                    && let Some(id) = b
                    && !fresh.contains(id)
                {
                    fresh.push(id.clone());
                }
            }
        }
        self.rents.push(steps.iter().flat_map(|step| step.0.clone()).collect());
        self.rent_fresh.push((fresh, key.into_bytes()));
        self.rent_steps.push(steps);
        Ok(())
    }

    fn peers(&mut self, url: &str) -> Result<Arc<Peers>> {
        let script = |(name, sent): (&&'static str, &Vec<Sent>)| {
            let answer = self.answers.get(*name).cloned().unwrap_or_default();
            ((*name).to_owned(), Script { sent: sent.clone(), answer, plans_once: *name != "run" })
        };
        let reads = self.reads.iter().map(script).collect();
        let statics = self.answers.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
        let rents = std::mem::take(&mut self.rent_steps).into_iter().zip(&self.rent_fresh).map(|(steps, (fresh, key))| Rent {
            steps: steps.map(|(sent, answer)| Script { sent, answer, plans_once: false }),
            fresh: fresh.clone(),
            key: key.clone(),
        });
        let rents = rents.collect();
        Peers::new(url, CLIENTS, reads, statics, rents)
    }
}
