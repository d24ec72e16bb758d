//! One PostgreSQL server a test run, and a database of its own for each test that asks for one.
//!
//! The server starts with the first test that needs it. A template is migrated once; each test gets a copy of it, so commits, locks and
//! constraints are real and no test sees another. Static values are not dropped when a process ends: an exit hook stops the server and removes
//! its directory, and after a kill the server ends by itself (its parent-death signal) and the next run sweeps the directory.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex, PoisonError};

use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use rigmark::base::Error;
use rigmark::db;
use rigmark::db::embedded::{Embedded, EmbeddedConfig};

use super::{TempDir, exit::at_exit};

const TEMPLATE: &str = "rigmark_template";

static RUNNING: Mutex<Option<(Embedded, TempDir)>> = Mutex::new(None);
static SERVER: LazyLock<Result<Postgres, String>> = LazyLock::new(Postgres::start);

/// The server of this test run.
pub fn postgres() -> &'static Postgres {
    SERVER.as_ref().unwrap_or_else(|why| panic!("no database for the tests: {why}"))
}

pub struct Postgres {
    /// Everything before the name of the database.
    base_url: String,
    admin: Sender<Order>,
}

/// What the one admin connection is asked to do. One at a time: PostgreSQL copies a template for one at a time anyway.
enum Order {
    Create(String, tokio::sync::oneshot::Sender<()>),
    Drop(String),
}

impl Postgres {
    fn start() -> Result<Self, String> {
        let (urls, url) = channel();
        let (admin, orders) = channel();
        // A thread and a runtime that outlive the test which happens to come first.
        std::thread::Builder::new().name("test-postgres".to_owned()).spawn(move || administer(&urls, &orders)).unwrap();
        let base_url = url.recv().expect("the thread answers before it ends")?;
        Ok(Self { base_url, admin })
    }

    /// URL of the database `name`, which need not exist.
    pub fn url(&self, name: &str) -> String {
        format!("{}{name}", self.base_url)
    }

    /// A migrated database for one test.
    pub async fn database(&self) -> TestDatabase {
        self.create(TEMPLATE).await
    }

    /// A database without any table.
    pub async fn empty_database(&self) -> TestDatabase {
        self.create("template0").await
    }

    async fn create(&self, template: &str) -> TestDatabase {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("t_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let (done, wait) = tokio::sync::oneshot::channel();
        let statement = format!("CREATE DATABASE {name} TEMPLATE {template}");
        self.admin.send(Order::Create(statement, done)).expect("the admin thread lives as long as the process");
        wait.await.expect("the admin thread tells why it failed");
        TestDatabase { url: self.url(&name), name }
    }
}

/// Dropped on the server when this is dropped; connections that are still open are cut.
pub struct TestDatabase {
    url: String,
    name: String,
}

impl TestDatabase {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A connection outside any pool.
    pub async fn connect(&self) -> AsyncPgConnection {
        AsyncPgConnection::establish(&self.url).await.unwrap()
    }

    /// A pool of a size that lets a test run a few tasks at once.
    pub fn pool(&self) -> db::Db {
        db::Db::new(&self.url, None, 8).unwrap()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        // Not waited for. At the end of the run the whole server goes.
        postgres().admin.send(Order::Drop(statement)).ok();
    }
}

fn administer(urls: &Sender<Result<String, String>>, orders: &Receiver<Order>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut connection = match runtime.block_on(start()) {
        Ok((server, directory, connection)) => {
            urls.send(Ok(server.url(""))).unwrap();
            *RUNNING.lock().unwrap() = Some((server, directory));
            at_exit(|| drop(RUNNING.lock().unwrap_or_else(PoisonError::into_inner).take()));
            connection
        }
        Err(error) => {
            urls.send(Err(format!("{error:?}"))).unwrap();
            return;
        }
    };
    for order in orders {
        match order {
            Order::Create(statement, done) => {
                runtime.block_on(connection.batch_execute(&statement)).unwrap();
                done.send(()).ok();
            }
            // At the end of the run the server may be gone already.
            Order::Drop(statement) => drop(runtime.block_on(connection.batch_execute(&statement))),
        }
    }
}

async fn start() -> rigmark::base::Result<(Embedded, TempDir, AsyncPgConnection)> {
    let directory = TempDir::new_in_memory();
    let bin_dir = std::env::var_os("PG_BIN_DIR").map(Into::into);
    let server = Embedded::start(EmbeddedConfig { data_dir: directory.path().to_owned(), bin_dir, fsync: false }).await?;
    let mut connection = AsyncPgConnection::establish(&server.url("postgres")).await.map_err(Error::internal)?;
    connection.batch_execute(&format!("CREATE DATABASE {TEMPLATE} TEMPLATE template0")).await?;
    db::migrate(&server.url(TEMPLATE)).await?;
    Ok((server, directory, connection))
}
