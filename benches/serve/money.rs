//! What money costs: one tick of the meter over 10,000 active rentals against pgbench inserting the same transfers and postings, and a balance
//! with a long history against one with a short one.

use std::{path::Path, time::Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use rigmark::{
    app::{self, Parts, Running},
    base::id::AccountId,
    db::embedded::{Embedded, EmbeddedConfig},
    ledger::{self, LedgerAccount},
    rentals,
};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::{
    ROUNDS, pgbench,
    table::{Goal, Row, Table},
    world,
};

const MARKET: &str = include_str!("money.sql");
const RENTALS: u32 = 10_000;
const RENTERS: u32 = 5_000;
const HOSTS: u32 = 1_000;
/// A balance is read this often for one figure.
const BALANCES: u32 = 3_000;

/// One transfer of a charge with its three postings in a transaction of its own, as pgbench sends it; all that is looked up is one row by its key.
const CHARGE: &str = r"\set i :i + 1
\set n mod(:client_id * :share + :i - 1, 10000)
\set id random(1, 9000000000000000000)
BEGIN;
INSERT INTO transfers (id, code, posting_count, hold_id, rental_id, actor_kind, business_at) SELECT CAST(lpad(to_hex(CAST(:id AS bigint)), 32, '0') AS uuid), 'rental_charge', 3, hold_id, rental_id, 'system', now() FROM bench_charges WHERE number = CAST(:n AS integer);
INSERT INTO postings (transfer_id, ledger_account_id, amount_micros) SELECT CAST(lpad(to_hex(CAST(:id AS bigint)), 32, '0') AS uuid), v.account, v.amount FROM bench_charges c, LATERAL (VALUES (c.held, -6000), (c.earnings, 5400), (c.fees, 600)) v(account, amount) WHERE c.number = CAST(:n AS integer);
COMMIT;
";

struct Money {
    running: Running,
    /// On the meter's database.
    own: Client,
    /// On the database that pgbench writes to: a copy of the meter's.
    peer: Client,
    peer_url: String,
    postgres: Embedded,
    dir: TempDir,
}

pub async fn measure(table: &mut Table, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let money = Money::build(say).await?;
    let measured = async {
        money.ticks(table, say).await?;
        money.balances(table, say).await
    };
    let measured = measured.await;
    money.running.stop().await?;
    money.postgres.stop().await?;
    measured
}

async fn client(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Money {
    async fn build(say: &(dyn Fn(&str) + Sync)) -> Result<Self> {
        let dir = TempDir::new()?;
        say("money: starting PostgreSQL");
        let postgres = Embedded::start(EmbeddedConfig { data_dir: dir.path().join("postgres"), bin_dir: None, fsync: false }).await?;
        let maintenance = client(&postgres.url("postgres")).await?;
        maintenance.batch_execute("CREATE DATABASE money").await?;
        let url = postgres.url("money");
        let parts = Parts { http: false, workers: false };
        let config = || world::config(&url, &dir.path().join("money"));
        // Once for the schema and the catalog.
        app::start(config()?, parts).await?.stop().await?;
        say("money: 10,000 active rentals, and an account with 1,000,000 postings");
        fill(&url).await?;
        maintenance.batch_execute("CREATE DATABASE money_peer TEMPLATE money").await?;
        let running = app::start(config()?, parts).await?;
        let peer_url = postgres.url("money_peer");
        let peer = client(&peer_url).await?;
        // pgbench renews no holds: it writes the same rows, from holds without end.
        peer.batch_execute(
            "SET session_replication_role = replica; ALTER TABLE holds DROP CONSTRAINT holds_within_amount;
             UPDATE ledger_accounts SET balance_micros = balance_micros + 1000000000000 WHERE kind = 'held'; RESET session_replication_role",
        )
        .await?;
        Ok(Self { running, own: client(&url).await?, peer, peer_url, postgres, dir })
    }

    async fn ticks(&self, table: &mut Table, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
        let script = self.dir.path().join("charge.sql");
        std::fs::write(&script, CHARGE)?;
        let (mut one, mut four) = (Vec::new(), Vec::new());
        let mut written = 0;
        for round in 0..=ROUNDS {
            say(&format!("a tick of 10,000 rentals: round {round} of {ROUNDS}"));
            let (ours, transfers) = self.tick(u32::try_from(round)? + 1).await?;
            let alone = self.peer_ms(&script, 1, transfers).await?;
            let together = self.peer_ms(&script, 4, transfers).await?;
            // The first warms.
            if round > 0 {
                one.push((ours, alone));
                four.push((ours, together));
                written = transfers;
            }
        }
        table.add(Row::of_times("one tick of 10,000 active rentals", "pgbench", &one, Goal::AtMost(3.0)));
        table.add(Row::of_times("one tick of 10,000 active rentals", "pgbench -c 4", &four, Goal::AtMost(3.0)));
        table.note(format!(
            "one tick: {written} transfers, of which 10,000 are charges of three postings and the others renewed holds; pgbench writes as many \
             charges, each in a transaction of its own, from one client and from four"
        ));
        Ok(())
    }

    /// How long the meter takes for the tick of that minute, and how many transfers it writes.
    async fn tick(&self, minute: u32) -> Result<(f64, u32)> {
        let start = "SELECT (extract(epoch FROM min(started_at)) * 1000000)::bigint FROM rental_segments";
        let start: i64 = self.own.query_one(start, &[]).await?.get(0);
        let start = DateTime::<Utc>::from_timestamp_micros(start).context("no segment")?;
        let now = start + TimeDelta::minutes(minute.into());
        let now_text = now.to_rfc3339();
        self.own.execute("UPDATE machines SET last_seen_at = $1::text::timestamptz", &[&now_text]).await?;
        self.own.batch_execute("VACUUM ANALYZE").await?;
        let count = "SELECT count(*) FROM transfers";
        let before: i64 = self.own.query_one(count, &[]).await?.get(0);
        let began = Instant::now();
        rentals::service::settle_due(&self.running.ctx, now).await?;
        let elapsed_ms = began.elapsed().as_secs_f64() * 1_000.0;
        let after: i64 = self.own.query_one(count, &[]).await?.get(0);
        let settled = "SELECT count(*) FROM rentals WHERE settled_through = $1::text::timestamptz AND gross_posted_micros = 6000::bigint * $2::integer";
        let settled: i64 = self.own.query_one(settled, &[&now_text, &i32::try_from(minute)?]).await?.get(0);
        ensure!(settled == i64::from(RENTALS), "the tick charged {settled} rentals");
        Ok((elapsed_ms, u32::try_from(after - before)?))
    }

    async fn peer_ms(&self, script: &Path, clients: u32, transfers: u32) -> Result<f64> {
        self.peer.batch_execute("VACUUM ANALYZE").await?;
        let share = transfers / clients;
        let pid = self.postgres.server_pid().context("PostgreSQL has ended")?;
        let program = std::fs::read_link(format!("/proc/{pid}/exe"))?;
        let bin_dir = program.parent().context("no folder")?;
        let per_second = pgbench::run_counted(bin_dir, &self.peer_url, script, clients, share).await?;
        Ok(f64::from(share * clients) / per_second * 1_000.0)
    }

    async fn balances(&self, table: &mut Table, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
        let account = async |history: &str| -> Result<AccountId> {
            let sql = "SELECT id::text FROM bench_balances WHERE history = $1";
            let id: String = self.own.query_one(sql, &[&history]).await?.get(0);
            Ok(AccountId::from_uuid(id.parse()?))
        };
        let (long, short) = (account("long").await?, account("short").await?);
        let mut rounds = Vec::new();
        for round in 0..=ROUNDS {
            say(&format!("a balance: round {round} of {ROUNDS}"));
            rounds.push((self.balance_ms(long).await?, self.balance_ms(short).await?));
        }
        table.add(Row::of_times("a balance with 1,000,000 postings", "10 postings", &rounds.split_off(1), Goal::AtMost(1.5)));
        Ok(())
    }

    async fn balance_ms(&self, account: AccountId) -> Result<f64> {
        let mut conn = self.running.ctx.db.conn().await?;
        let began = Instant::now();
        for _ in 0..BALANCES {
            ensure!(ledger::service::balance(&mut conn, account).await?.available.is_positive(), "no balance");
        }
        Ok(began.elapsed().as_secs_f64() * 1_000.0 / f64::from(BALANCES))
    }
}

/// Ids of ledger accounts follow from what they are for, so they are made here; all else is SQL. The triggers are off meanwhile, and what they
/// would have written is written by hand; then the reconciler looks at it.
async fn fill(url: &str) -> Result<()> {
    let mut conn = AsyncPgConnection::establish(url).await?;
    let mut rows = Vec::new();
    for (kind, count) in [("renter", RENTERS), ("host", HOSTS), ("long", 1), ("short", 1)] {
        for number in 0..count {
            let account = AccountId::new();
            let of = |make: fn(AccountId) -> LedgerAccount| make(account).id().uuid();
            let (available, held) = (of(LedgerAccount::Available), of(LedgerAccount::Held));
            rows.push(format!("('{kind}', {number}, '{}', '{available}', '{held}', '{}')", account.uuid(), of(LedgerAccount::Earnings)));
        }
    }
    let (fees, mint) = (LedgerAccount::PlatformFees.id().uuid(), LedgerAccount::SandboxMint.id().uuid());
    conn.batch_execute(&format!(
        "CREATE TABLE bench_accounts (kind text, number integer, id uuid, available uuid, held uuid, earnings uuid);
         INSERT INTO bench_accounts VALUES {};
         CREATE TABLE bench_platform AS SELECT '{fees}'::uuid AS fees, '{mint}'::uuid AS mint;",
        rows.join(", ")
    ))
    .await?;
    conn.batch_execute(MARKET).await?;
    let report = ledger::service::reconcile(&mut conn).await?;
    ensure!(report.differences.is_empty(), "the bench's books are wrong: {:?}", report.differences.first());
    conn.batch_execute("VACUUM (ANALYZE)").await?;
    Ok(())
}
