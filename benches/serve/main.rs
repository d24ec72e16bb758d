//! `make bench`: how fast the server is, as ratios to peers that do the same with less in between. Nothing here is a test.
//!
//! Peers alternate within one run, several rounds each; what counts is the median of the rounds' ratios. Absolute figures are those of this
//! machine at this moment, and are shown only to tell what is cheap and what is not.

mod bare;
mod document;
mod load;
mod memory;
mod money;
mod pgbench;
mod record;
mod table;
mod world;

use std::{
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};

use load::Work;
use table::{Goal, Row, Table, median};
use world::{CACHED, CLIENTS, COMMON_FILTERS, FILTERS, RUN_READS, WORKLOAD, World, address};

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(1_000);
/// A statement that takes longer is one whose time is PostgreSQL's own.
const CHEAP_MS: f64 = 1.0;

fn main() -> Result<()> {
    // Under `cargo test --all-targets` there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    rustls::crypto::ring::default_provider().install_default().ok();
    // As in production, so that what a request costs to log is counted; written nowhere.
    let log = tracing_subscriber::EnvFilter::new("info,actix_server=warn,tokio_postgres=warn");
    tracing_subscriber::fmt().with_env_filter(log).with_writer(std::io::sink).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let signal = tokio::signal::ctrl_c();
        tokio::select! {
            done = measure() => done,
            _ = signal => anyhow::bail!("interrupted"),
        }
    })
}

/// Which parts to measure: `make bench ONLY=search,rent`; all without it.
fn is_wanted(part: &str) -> bool {
    std::env::var("ONLY").map_or(true, |only| only.is_empty() || only.split(',').any(|wanted| wanted == part))
}

async fn measure() -> Result<()> {
    let bar = Progress::new()?;
    let mut table = Table::default();
    if is_wanted("document") {
        bar.say("the reference document");
        table.add(document::measure()?);
    }
    if is_wanted("money") {
        money::measure(&mut table, &|text| bar.say(text)).await?;
    }
    let server_parts = ["search", "run", "rent", "cached", "size", "memory"];
    if server_parts.into_iter().any(is_wanted) {
        let say = |text: &str| bar.say(format!("setting up: {text}"));
        let world = World::build(&say).await?;
        let measured = Bench { world: &world, bar: &bar }.all(&mut table).await;
        bar.say("stopping");
        world.stop().await?;
        bar.0.finish_and_clear();
        // What was measured before a fault is worth reading.
        println!("{table}");
        return measured;
    }
    bar.0.finish_and_clear();
    println!("{table}");
    Ok(())
}

/// What is being done: in place on a terminal, line by line elsewhere.
struct Progress(ProgressBar);

impl Progress {
    fn new() -> Result<Self> {
        let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{spinner} {elapsed} {msg}")?);
        bar.enable_steady_tick(Duration::from_millis(200));
        Ok(Self(bar))
    }

    fn say(&self, text: impl Into<String>) {
        let text = text.into();
        if self.0.is_hidden() {
            eprintln!("{:4.0} s  {text}", self.0.elapsed().as_secs_f64());
        }
        self.0.set_message(text);
    }
}

struct Bench<'a> {
    world: &'a World,
    bar: &'a Progress,
}

impl Bench<'_> {
    async fn all(&self, table: &mut Table) -> Result<()> {
        let server = address(&self.world.big)?;
        let reads = [
            ("search", "search by filters", "filters", FILTERS),
            ("search", "search by workload", "workload", WORKLOAD),
            ("run", "one run", "run", &self.world.run_path),
        ];
        for (part, what, name, path) in reads {
            if is_wanted(part) {
                let script = pgbench::Writer::new(&self.url()).await?.read(self.world.reads.get(name).context("not recorded")?).await?;
                let bare = Work::Get { path: format!("/api/v1/bench/read/{name}") };
                self.against_both(table, what, name, Work::Get { path: path.to_owned() }, bare, &script).await?;
            }
        }
        if is_wanted("rent") {
            let script = pgbench::Writer::new(&self.url()).await?.rent(&self.world.rents, &self.world.rent_fresh).await?;
            let ours = Work::Rent { renters: self.world.renters.clone() };
            self.against_both(table, "creating and stopping a rental", "rent", ours, Work::RentBare, &script).await?;
        }
        if is_wanted("cached") {
            let (cached, fixed) = (Work::Get { path: CACHED.to_owned() }, Work::Get { path: "/api/v1/bench/static/cached".to_owned() });
            let rounds = self.alternate("a cached search", || self.rate(server, &cached), || self.rate(server, &fixed)).await?;
            table.add(Row::of_rates("a cached search", "static route", &rounds, Goal::AtLeast(0.5)));
        }
        if is_wanted("size") {
            self.by_size(table).await?;
        }
        if is_wanted("memory") {
            self.bar.say("memory at rest");
            for row in memory::measure(self.world).await? {
                table.add(row);
            }
        }
        Ok(())
    }

    fn url(&self) -> String {
        self.world.postgres.url("big")
    }

    async fn against_both(&self, table: &mut Table, what: &str, name: &str, ours: Work, bare: Work, script: &str) -> Result<()> {
        let server = address(&self.world.big)?;
        let file = self.world.dir.path().join(format!("{name}.sql"));
        std::fs::write(&file, script)?;
        let (bin_dir, url) = (self.world.bin_dir()?, self.url());
        self.bar.say(format!("{what}: pgbench alone"));
        let alone = pgbench::run(&bin_dir, &url, &file, 1, 2).await?;
        for work in [&ours, &bare] {
            load::run(server, work.clone(), CLIENTS, WARM_UP).await.with_context(|| what.to_owned())?;
        }
        let mut rounds: (Vec<_>, Vec<_>) = Default::default();
        for round in 1..=ROUNDS {
            self.bar.say(format!("{what}: round {round} of {ROUNDS}"));
            let mine = load::run(server, ours.clone(), CLIENTS, ROUND).await?;
            let bare = load::run(server, bare.clone(), CLIENTS, ROUND).await?;
            let again = load::run(server, ours.clone(), CLIENTS, ROUND).await?;
            let pgbench = pgbench::run(&bin_dir, &url, &file, CLIENTS, ROUND.as_secs()).await?;
            rounds.0.push((mine, bare));
            rounds.1.push((again, pgbench));
        }
        let latency_ms = 1_000.0 / alone;
        // A rental is some fifty cheap statements, none of which takes a millisecond.
        let statements = self.world.reads.get(name).map_or(usize::MAX, Vec::len);
        let is_cheap = name == "rent" || latency_ms < CHEAP_MS;
        table.add(Row::of_rates(what, "bare driver", &rounds.0, Goal::AtLeast(0.75)));
        table.add(Row::of_rates(what, "pgbench", &rounds.1, Goal::AtLeast(if is_cheap { 0.3 } else { 0.6 })));
        let anew = self.world.prepared_anew.get(name).map(Vec::as_slice).unwrap_or_default();
        let count = if name == "rent" { self.world.rents.first().map_or(0, Vec::len) } else { statements };
        table.note(format!("{what}: {count} statements, {} of them prepared anew; {latency_ms:.2} ms in pgbench alone", anew.len()));
        for sql in anew {
            table.note(format!("    prepared anew: {}", sql.chars().take(100).collect::<String>()));
        }
        Ok(())
    }

    async fn rate(&self, server: SocketAddr, work: &Work) -> Result<f64> {
        load::run(server, work.clone(), CLIENTS, ROUND).await
    }

    async fn alternate<A, B>(&self, what: &str, ours: impl Fn() -> A, peer: impl Fn() -> B) -> Result<Vec<(f64, f64)>>
    where
        A: Future<Output = Result<f64>>,
        B: Future<Output = Result<f64>>,
    {
        let mut rounds = Vec::new();
        for round in 0..=ROUNDS {
            self.bar.say(format!("{what}: round {round} of {ROUNDS}"));
            rounds.push((ours().await?, peer().await?));
        }
        // The first warms.
        Ok(rounds.split_off(1))
    }

    /// The same searches in a market a hundred times as large, one client at a time.
    async fn by_size(&self, table: &mut Table) -> Result<()> {
        let (big, small) = (address(&self.world.big)?, address(&self.world.small)?);
        let workload = format!("{WORKLOAD}&sort=");
        let searches = [
            ("filters", COMMON_FILTERS.to_owned()),
            ("workload, sort=price", format!("{workload}price")),
            ("workload, sort=price_per_million_tokens", format!("{workload}price_per_million_tokens")),
            ("workload, sort=tokens_per_second", format!("{workload}tokens_per_second")),
            ("workload, sort=ttft", format!("{workload}ttft")),
        ];
        let market = searches.map(|(what, path)| (format!("1,000,000 cells / 10,000: {what}"), path));
        let runs = RUN_READS.map(|(what, path)| (format!("100,000 runs / 1,000: {what}"), path.to_owned()));
        for (what, path) in market.into_iter().chain(runs) {
            let work = Work::Get { path };
            let time = async |server| Ok::<_, anyhow::Error>(1_000.0 / load::run(server, work.clone(), 1, ROUND / 2).await?);
            let rounds = self.alternate(&what, || time(big), || time(small)).await?;
            table.add(Row::of_times(&what, "small market", &rounds, Goal::AtMost(1.5)));
        }
        Ok(())
    }
}

/// The median time of `work` in milliseconds.
fn time_ms(times: usize, mut work: impl FnMut()) -> f64 {
    let each = (0..times).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1_000.0
    });
    median(each.collect())
}

/// The program as the bench profile builds it.
fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_rigmark"))
}
