//! Rigmark as a test sees it: a process's parts over HTTP on a free port, on a database of its own, with a clock of its own. Jobs and sweeps
//! do not run by themselves; a test steps them.

use std::sync::LazyLock;

use clap::Parser;
use rigmark::app::{self, Parts, Running};
use rigmark::config::{Config, ServeArgs};
use rigmark::ctx::Ctx;
use rigmark::db::Conn;
use rigmark::jobs;

use super::http::{Http, install_tls_provider};
use super::{TempDir, TestDatabase, database};

/// Outlives each test's own runtime, so that an app can be stopped when its test has ended, however it ended.
static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("test-app").enable_all().build().unwrap());

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    serve: ServeArgs,
}

pub struct TestApp {
    running: Option<Running>,
    config: Config,
    parts: Parts,
    /// A caller that is not signed in.
    pub http: Http,
    pub database: TestDatabase,
    pub data_dir: TempDir,
}

impl TestApp {
    /// The sandbox, with nothing running in the background.
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The sandbox with a changed configuration. What the environment says does not matter, except for what has no flag.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start(Parts { http: true, workers: false }, change).await
    }

    /// With jobs and sweeps running by themselves, for tests of just that.
    pub async fn with_workers(change: impl FnOnce(&mut Config)) -> Self {
        Self::start(Parts { http: true, workers: true }, change).await
    }

    async fn start(parts: Parts, change: impl FnOnce(&mut Config)) -> Self {
        install_tls_provider();
        let database = database().await;
        let data_dir = TempDir::new();
        let mut config = sandbox_config(database.url(), &data_dir);
        change(&mut config);
        let running = start(config.clone(), parts).await;
        let http = Http::new(&running.base_url);
        Self { running: Some(running), config, parts, http, database, data_dir }
    }

    /// Stops and starts again on the same database, as a deployment does. Signed-in callers must be made again from `self.http`, since the
    /// port changes.
    pub async fn restart(&mut self) {
        if let Some(running) = self.running.take() {
            RUNTIME.spawn(running.stop()).await.unwrap().unwrap();
        }
        let running = start(self.config.clone(), self.parts).await;
        self.http = Http::new(&running.base_url);
        self.running = Some(running);
    }

    /// Starts again on the same database without waiting for what is running, which the caller has cut off from the world.
    pub async fn replace(&mut self, change: impl FnOnce(&mut Config)) {
        if let Some(running) = self.running.take() {
            RUNTIME.spawn(running.stop());
        }
        change(&mut self.config);
        let running = start(self.config.clone(), self.parts).await;
        self.http = Http::new(&running.base_url);
        self.running = Some(running);
    }

    /// Why a server with another configuration does not start on the same database.
    pub async fn start_refused(&self, change: impl FnOnce(&mut Config)) -> rigmark::base::Error {
        let mut config = self.config.clone();
        change(&mut config);
        match RUNTIME.spawn(app::start(config, self.parts)).await.unwrap() {
            Ok(_) => panic!("it starts"),
            Err(error) => error,
        }
    }

    /// Restarts with the workers running by themselves.
    pub async fn start_workers(&mut self) {
        self.parts.workers = true;
        self.restart().await;
    }

    pub fn ctx(&self) -> &Ctx {
        &self.running.as_ref().expect("the app is running").ctx
    }

    /// A connection outside the app's pool, to look at and to prepare rows.
    pub async fn connect(&self) -> Conn {
        self.database.connect().await
    }

    /// Runs every sweep once and then jobs until none is due: what the workers would do by now.
    pub async fn work(&self) {
        jobs::run_sweeps(self.ctx()).await.unwrap();
        jobs::run_due_jobs(self.ctx()).await.unwrap();
    }

    /// Runs slow jobs until none is due: what the thread beside the workers would do by now.
    pub async fn measure(&self) -> usize {
        jobs::run_slow_jobs(self.ctx()).await.unwrap()
    }

    /// Moves business time, running what falls due on the way, as the sandbox's route does.
    pub async fn advance(&self, seconds: i64) {
        jobs::advance_business_clock(self.ctx(), seconds).await.unwrap();
    }

    /// Moves wall time, for tokens, leases and rate limits.
    pub fn shift_wall(&self, seconds: i64) {
        self.ctx().clock.shift_wall(seconds);
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // Not waited for: a connection that a failed test left open may hold it up.
            RUNTIME.spawn(running.stop());
        }
    }
}

async fn start(config: Config, parts: Parts) -> Running {
    RUNTIME.spawn(app::start(config, parts)).await.unwrap().unwrap()
}

/// From flags, so that every default of the program holds here too.
pub fn sandbox_config(database_url: &str, data_dir: &TempDir) -> Config {
    let data_dir = data_dir.path().to_str().unwrap();
    let flags = ["test", "--bind", "127.0.0.1:0", "--database-url", database_url, "--data-dir", data_dir];
    let none = ["--redis-url=", "--stripe-secret-key=", "--database-replica-url=", "--jwt-secret=", "--encryption-key="];
    let mut config = Command::parse_from(flags.into_iter().chain(none)).serve.into_config().unwrap();
    config.database_connections = 8;
    // The strength of password hashes is tested by itself; here it would only cost time.
    config.argon2_memory_kib = 64;
    // Tests change rows behind the app's back. What is kept and for how long is tested by itself.
    config.answers_kept = std::time::Duration::ZERO;
    config
}
