//! The private PostgreSQL server that Rigmark runs when no `DATABASE_URL` is set, and that the tests run.
//!
//! Owns a data directory: `lock` (held while a process runs the server), `cluster/` (PGDATA), `password` and `url` (0600, for other commands
//! of the same user), `postgres.log`. Invariants:
//! - one process runs the server of a data directory; the kernel releases the lock however that process ends;
//! - the server never outlives that process for long: it gets SIGINT when the process dies (see `server`), and a start first ends what is left;
//! - a cluster is either complete or absent: `initdb` works in a draft beside it, which is renamed when it is done;
//! - only holders of the password get in: TCP on 127.0.0.1 with SCRAM, no Unix socket.
//!
//! PostgreSQL refuses to run as root; as root its processes run as another user (see `account`).

mod account;
mod binaries;
mod cluster;
mod home;
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

use crate::base::{Code, Error, Result, clock};

use self::account::Account;
use self::binaries::Binaries;
use self::home::Home;
use self::server::{Launch, Server};

/// The database that [`Embedded::start`] makes.
pub const DATABASE: &str = "rigmark";
const SUPERUSER: &str = "rigmark";
/// A start that replays the log of a crash may take this long.
const READY_SECONDS_MAX: u64 = 300;
/// Another program may take the chosen port between the choice and the start.
const START_ATTEMPTS_MAX: u32 = 20;

pub struct EmbeddedConfig {
    /// A directory of our own; made if absent.
    pub data_dir: PathBuf,
    /// Where `postgres` and `initdb` are; searched for when `None`.
    pub bin_dir: Option<PathBuf>,
    /// Off only in tests: a crash of the machine may then lose the data.
    pub fsync: bool,
}

/// A running server. Dropping it stops the server and waits for that; [`Embedded::stop`] does the same without blocking the async thread.
pub struct Embedded {
    // Dropped in this order: the lock goes last.
    server: Server,
    home: Home,
}

impl Embedded {
    /// Starts the server of `config.data_dir`, making the cluster and the database [`DATABASE`] the first time.
    ///
    /// # Errors
    /// `unavailable`, with a text for the operator: no PostgreSQL installed, directory in use or not usable, the server's own message.
    pub async fn start(config: EmbeddedConfig) -> Result<Self> {
        let embedded = tokio::task::spawn_blocking(move || Self::start_blocking(&config)).await.map_err(Error::internal)??;
        embedded.database_create().await?;
        embedded.home.publish_url(&embedded.url(DATABASE))?;
        Ok(embedded)
    }

    /// The URL of [`DATABASE`] in the server that another process runs in `data_dir`; `None` when none does.
    pub fn running_url(data_dir: &Path) -> Result<Option<String>> {
        home::running_url(data_dir)
    }

    /// URL of a database of this server, password included.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}:{}@127.0.0.1:{}/{database}", self.home.password(), self.server.port())
    }

    /// The process id of the server, for tests that kill it. `None` between a crash and the restart.
    pub fn server_pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Disconnects everybody, stops the server and waits until it has ended.
    pub async fn stop(self) -> Result<()> {
        tokio::task::spawn_blocking(move || drop(self)).await.map_err(Error::internal)
    }

    fn start_blocking(config: &EmbeddedConfig) -> Result<Self> {
        let mut home = Home::open(&config.data_dir)?;
        let account = Account::for_cluster(&home)?;
        home.make_reachable(&account)?;
        let binaries = Binaries::find(config.bin_dir.as_deref(), &account, cluster::major_version(&home)?)?;
        cluster::settle(&home.cluster());
        if !home.cluster().exists() {
            cluster::create(&mut home, &account, &binaries, SUPERUSER, config.fsync)?;
        }
        home.read_password()?;
        let mut last = String::new();
        for _ in 0..START_ATTEMPTS_MAX {
            let launch = Launch::new(&home, account, &binaries, config.fsync)?;
            match Server::start(launch, Duration::from_secs(READY_SECONDS_MAX)) {
                Ok(server) => return Ok(Self { server, home }),
                Err(failure) if failure.is_transient() => {
                    last = failure.to_string();
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(failure) => return Err(unavailable(failure.to_string())),
            }
        }
        Err(unavailable(last))
    }

    async fn database_create(&self) -> Result<()> {
        let mut connection = AsyncPgConnection::establish(&self.url("postgres")).await.map_err(Error::internal)?;
        let found = diesel::sql_query("SELECT 1 FROM pg_database WHERE datname = $1")
            .bind::<diesel::sql_types::Text, _>(DATABASE)
            .execute(&mut connection)
            .await
            .map_err(Error::internal)?;
        if found == 0 {
            connection.batch_execute(&format!("CREATE DATABASE {DATABASE}")).await.map_err(Error::internal)?;
        }
        Ok(())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.home.withdraw_url();
        self.server.stop();
    }
}

fn unavailable(detail: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(Code::Unavailable, detail)
}

/// An I/O error with the path it is about, in words for the operator.
fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |error| unavailable(format!("{}: {error}", path.display())).with_source(error)
}

/// Asks `condition` every few milliseconds until it holds; `false` when it does not within `bound`.
fn poll(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = clock::monotonic();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() >= bound {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
