//! PostgreSQL: the pool, transactions as a type, migrations, the business clock's row, and the private cluster.
//!
//! Invariants: a function that must run inside a transaction takes [`Tx`], which only [`Db::tx`] makes; nothing outside the database happens
//! while a `Tx` lives; a function that queries takes a connection, never the pool, so that no task holds two.

pub mod embedded;
mod error;
mod prepared;
pub mod schema;
mod types;

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{ConnectionError, ConnectionResult, ExpressionMethods, QueryDsl, QueryableByName, sql_types};
use diesel_async::{
    AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection, TransactionManager,
    pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod, deadpool},
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use futures::FutureExt;

use crate::base::{Error, Result, clock::Clock};
pub use error::OnConstraint;
pub use prepared::{Bind, Draft, KeptDsl, Shapes, Statement};
pub use types::JsonText;

pub type Conn = AsyncPgConnection;
type Manager = <Conn as AsyncConnection>::TransactionManager;
/// A connection out of the pool; goes back when dropped, or is closed when a transaction is open on it.
pub type Pooled = deadpool::Object<Conn>;

/// Every migration, in the program itself.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

const TX_TRIES_MAX: u32 = 10;

/// The databases of a process: the primary, and a replica for public reads when there is one.
#[derive(Clone)]
pub struct Db {
    primary: deadpool::Pool<Conn>,
    replica: Option<deadpool::Pool<Conn>>,
    searches: deadpool::Pool<Conn>,
    shapes: Arc<Shapes>,
    public_generation: Arc<AtomicU64>,
}

impl Db {
    /// # Errors
    /// `internal` when the address is no PostgreSQL address. Connections are made on first use.
    pub fn new(url: &str, replica_url: Option<&str>, connections: u32) -> Result<Self> {
        let size = usize::try_from(connections).map_err(Error::internal)?;
        Ok(Self {
            primary: pool(url, size, Planning::Usual)?,
            replica: replica_url.map(|u| pool(u, size, Planning::Usual)).transpose()?,
            searches: pool(replica_url.unwrap_or(url), size, Planning::Once)?,
            shapes: Arc::default(),
            public_generation: Arc::default(),
        })
    }

    /// A connection to the primary.
    ///
    /// # Errors
    /// `unavailable` when none can be had.
    pub async fn conn(&self) -> Result<Pooled> {
        self.primary.get().await.map_err(error::unavailable)
    }

    /// A connection of the caller's own, which never goes back to the pool: what its session holds (an advisory lock) ends when it is dropped,
    /// however that comes about.
    ///
    /// # Errors
    /// `unavailable` when none can be had.
    pub async fn conn_apart(&self) -> Result<Conn> {
        Ok(Pooled::take(self.conn().await?))
    }

    /// Counts the transactions of this process that changed what public reads show ([`Tx::note_public_change`]). To be read before the rows.
    pub fn public_generation(&self) -> u64 {
        AtomicU64::load(&self.public_generation, Ordering::Acquire)
    }

    /// The texts that depend on a request and are kept prepared.
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// A connection for public searches, which may lag as [`Db::read`]'s. Here each statement that is kept is planned once and for all values:
    /// planning a search for its values takes several times as long as running it, and its text is such that one plan does. Of other
    /// statements that is not true (a limit that is a parameter, a partial index), so these connections are apart.
    ///
    /// # Errors
    /// `unavailable` when none can be had.
    pub async fn search(&self) -> Result<Pooled> {
        self.searches.get().await.map_err(error::unavailable)
    }

    /// A connection for public reads that may lag by the replica's delay.
    ///
    /// # Errors
    /// `unavailable` when none can be had.
    pub async fn read(&self) -> Result<Pooled> {
        match &self.replica {
            Some(replica) => replica.get().await.map_err(error::unavailable),
            None => self.conn().await,
        }
    }

    /// Runs `work` in one transaction and commits. Serialization failures and deadlocks are tried again, so `work` may run several times:
    /// it must do nothing but talk to this `Tx`. `name` stands in logs and metrics.
    ///
    /// # Errors
    /// What `work` returns, after a rollback; `unavailable` or `internal` for the database's own faults.
    pub async fn tx<T, F>(&self, name: &'static str, work: F) -> Result<T>
    where
        F: AsyncFn(&mut Tx<'_>) -> Result<T>,
    {
        let mut pooled = self.conn().await?;
        let conn: &mut Conn = &mut pooled;
        let mut tries = 0;
        loop {
            tries += 1;
            match tx_once(conn, &self.public_generation, &work).await {
                Err(error) if tries < TX_TRIES_MAX && error::is_transient(&error) => {
                    tracing::debug!(tx = name, tries, "transaction tried again");
                    metrics::counter!("rigmark_tx_retries_total", "tx" => name).increment(1);
                    let pause_ms = rand::random_range(1..=5_u64 * u64::from(tries));
                    tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
                }
                other => return other,
            }
        }
    }
}

/// One try. By hand rather than through `AsyncConnection::transaction`, whose closure must be `Send + Sync`. When this future is dropped half
/// way the connection still counts a transaction as open, and the pool closes it instead of handing it to the next request.
async fn tx_once<T, F>(conn: &mut Conn, public_generation: &AtomicU64, work: &F) -> Result<T>
where
    F: AsyncFn(&mut Tx<'_>) -> Result<T>,
{
    Manager::begin_transaction(conn).await?;
    let mut tx = Tx { conn, changes_public: false };
    let done = work(&mut tx).await;
    let Tx { conn, changes_public } = tx;
    match done {
        Ok(value) => {
            let committed = Manager::commit_transaction(conn).await;
            if changes_public {
                // Also when the outcome is not known.
                public_generation.fetch_add(1, Ordering::Release);
            }
            committed?;
            Ok(value)
        }
        Err(error) => {
            // The first fault is the one to report; a connection that cannot roll back is closed by the pool.
            if let Err(rollback) = Manager::rollback_transaction(conn).await {
                tracing::warn!(error = %rollback, "rollback failed");
            }
            Err(error)
        }
    }
}

fn pool(url: &str, size: usize, planning: Planning) -> Result<deadpool::Pool<Conn>> {
    let mut config = ManagerConfig::default();
    // The default recycling asks the server on every checkout: one round trip more for each request.
    config.recycling_method = RecyclingMethod::Fast;
    if planning == Planning::Once {
        config.custom_setup = Box::new(|url| connect_to_plan_once(url).boxed());
    }
    let manager = AsyncDieselConnectionManager::<Conn>::new_with_config(url, config);
    deadpool::Pool::builder(manager)
        .max_size(size)
        .runtime(::deadpool::Runtime::Tokio1)
        .wait_timeout(Some(std::time::Duration::from_secs(10)))
        .create_timeout(Some(std::time::Duration::from_secs(5)))
        .build()
        .map_err(Error::internal)
}

/// When PostgreSQL plans a statement that is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Planning {
    /// As it thinks best.
    Usual,
    /// For any parameters; and no look-up of rows by key remembers what it found: it is made a few times, and the memory for it is laid out for
    /// all rows of the table each time.
    Once,
}

async fn connect_to_plan_once(url: &str) -> ConnectionResult<Conn> {
    let mut conn = Conn::establish(url).await?;
    let set = conn.batch_execute("SET plan_cache_mode = force_generic_plan; SET enable_memoize = off").await;
    set.map(|()| conn).map_err(ConnectionError::CouldntSetupConfiguration)
}

/// An open transaction. Dereferences to the connection for queries.
pub struct Tx<'a> {
    conn: &'a mut Conn,
    changes_public: bool,
}

impl Tx<'_> {
    /// Says that rows which public reads show are changed: answers kept from before the commit are not served after it.
    pub fn note_public_change(&mut self) {
        self.changes_public = true;
    }
}

impl Deref for Tx<'_> {
    type Target = Conn;
    fn deref(&self) -> &Conn {
        self.conn
    }
}
impl DerefMut for Tx<'_> {
    fn deref_mut(&mut self) -> &mut Conn {
        self.conn
    }
}

/// Brings the schema of the database at `url` up to date. Two processes may do so at once: the second waits.
///
/// # Errors
/// `internal` when the database cannot be reached or a migration fails.
pub async fn migrate(url: &str) -> Result<()> {
    let mut conn = Conn::establish(url).await.map_err(Error::internal)?;
    // An advisory lock of our own number: released with the connection.
    diesel::sql_query("SELECT pg_advisory_lock(7241001)").execute(&mut conn).await?;
    let mut harness = diesel_async::AsyncMigrationHarness::new(conn);
    tokio::task::spawn_blocking(move || harness.run_pending_migrations(MIGRATIONS).map(|_| ()).map_err(Error::internal))
        .await
        .map_err(Error::internal)?
}

#[derive(QueryableByName)]
struct ModeRow {
    #[diesel(sql_type = sql_types::Text)]
    mode: String,
}

/// The mode that the database is of; `mode` if nothing had claimed it.
///
/// # Errors
/// The database's own faults.
pub async fn mode_claim(conn: &mut Conn, mode: &str) -> Result<String> {
    let claim = "INSERT INTO deployment (mode) VALUES ($1) ON CONFLICT DO NOTHING";
    diesel::sql_query(claim).bind::<sql_types::Text, _>(mode).execute(conn).await?;
    let row: ModeRow = diesel::sql_query("SELECT mode FROM deployment").get_result(conn).await?;
    Ok(row.mode)
}

/// Business time now: wall time plus the sandbox's offset, as every process sees it. Outside the sandbox it is wall time and costs nothing.
///
/// # Errors
/// The database's own faults.
pub async fn business_now(conn: &mut Conn, clock: &Clock) -> Result<DateTime<Utc>> {
    if !clock.business_moves() {
        return Ok(clock.wall_now());
    }
    let offset = offset_fetch(conn).await?;
    Ok(clock.wall_now() + TimeDelta::microseconds(offset))
}

/// The same, and business time is not moved by hand before the transaction ends: for what begins something that a move of the clock must then
/// see. It waits while a move chooses its next instant.
///
/// # Errors
/// The database's own faults.
pub async fn business_now_held(tx: &mut Tx<'_>, clock: &Clock) -> Result<DateTime<Utc>> {
    use schema::business_clock::dsl;
    if clock.business_moves() {
        let held: i64 = dsl::business_clock.select(dsl::offset_microseconds).for_share().first(&mut **tx).await?;
        return Ok(clock.wall_now() + TimeDelta::microseconds(held));
    }
    Ok(clock.wall_now())
}

/// Keeps others from beginning something by [`business_now_held`] until the transaction ends.
///
/// # Errors
/// The database's own faults.
pub async fn business_clock_lock(tx: &mut Tx<'_>) -> Result<()> {
    use schema::business_clock::dsl;
    let _offset: i64 = dsl::business_clock.select(dsl::offset_microseconds).for_update().first(&mut **tx).await?;
    Ok(())
}

/// Moves business time so that it is `now` at this moment. Only forward; sandbox only, which the caller has checked.
///
/// # Errors
/// The database's own faults.
pub async fn business_clock_set(conn: &mut Conn, clock: &Clock, now: DateTime<Utc>) -> Result<()> {
    business_offset_raise(conn, now - clock.wall_now()).await
}

/// How far business time is ahead of wall time.
///
/// # Errors
/// The database's own faults.
pub async fn business_offset(conn: &mut Conn) -> Result<TimeDelta> {
    Ok(TimeDelta::microseconds(offset_fetch(conn).await?))
}

/// Puts business time so far ahead, unless it is further already; sandbox only, which the caller has checked.
///
/// # Errors
/// The database's own faults.
pub async fn business_offset_raise(conn: &mut Conn, offset: TimeDelta) -> Result<()> {
    use schema::business_clock::dsl;
    let offset = offset.num_microseconds().unwrap_or(i64::MAX);
    diesel::update(dsl::business_clock.filter(dsl::offset_microseconds.lt(offset)))
        .set(dsl::offset_microseconds.eq(offset))
        .execute(conn)
        .await?;
    Ok(())
}

async fn offset_fetch(conn: &mut Conn) -> Result<i64> {
    use schema::business_clock::dsl;
    Ok(dsl::business_clock.select(dsl::offset_microseconds).first(conn).await?)
}
