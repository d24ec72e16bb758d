//! How right and how cheap `rigmark measure` is: `make bench ONLY=measure`. Nothing here is a test.
//!
//! Against a server that writes down the instant at which it sent each token, so that a busy computer makes neither side wrong. The CPU time
//! is that of the client's process while all its streams run, for each token that the server sent meanwhile: starting up costs nothing here.
//! `PEER` is a shell command of another client to compare with, `{url}` and `{streams}` standing for the server and the number of streams:
//!
//! ```text
//! PEER='python3 llm_decode_bench.py --host {url} --contexts 0 --concurrency {streams} --duration 20 --skip-prefill --display-mode plain' \
//!     make bench ONLY=measure
//! ```

mod server;

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rigmark::{
    engines::{EngineAddress, EngineClient, Target},
    measure::{
        cell::{CellPlan, CellRecord, rest, run_cell},
        inspect::EngineKind,
        stats::percentile,
        stream::request_body,
    },
};
use tokio::process::{Child, Command};

use server::{Pace, RateServer, Sent};

const ROUNDS: usize = 3;
const WINDOW: Duration = Duration::from_secs(5);
const FIRST_TOKEN: Duration = Duration::from_secs(1);
/// (streams, milliseconds between two tokens of a stream).
const ACCURACY: [(u32, u64); 2] = [(1, 10), (128, 25)];
const CPU: [(u32, u64); 2] = [(1, 5), (64, 20)];
const ERROR_MAX: f64 = 0.01;
const CPU_SHARE_MAX: f64 = 0.1;
const CPU_SECONDS: u64 = 20;

fn main() -> Result<()> {
    // Under `cargo test --all-targets` there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    // As the command has it.
    let runtime = tokio::runtime::Builder::new_current_thread().on_thread_park(rest).enable_all().build()?;
    runtime.block_on(async {
        let signal = tokio::signal::ctrl_c();
        tokio::select! {
            done = measure() => done,
            _ = signal => anyhow::bail!("interrupted"),
        }
    })
}

async fn measure() -> Result<()> {
    for (streams, step_ms) in ACCURACY {
        let mut ratios: (Vec<f64>, Vec<f64>) = Default::default();
        for round in 1..=ROUNDS {
            eprintln!("{streams} streams, a token each {step_ms} ms: round {round} of {ROUNDS}");
            let (rate, ttft) = accuracy(streams, Duration::from_millis(step_ms)).await?;
            ratios.0.push(rate);
            ratios.1.push(ttft);
        }
        print_ratio(&format!("total rate, {streams} streams, to what was sent"), ratios.0, |r| (r - 1.0).abs() <= ERROR_MAX, "within 1 %");
        print_ratio(&format!("TTFT p50, {streams} streams, to what was sent"), ratios.1, |r| (r - 1.0).abs() <= ERROR_MAX, "within 1 %");
    }
    let peer = std::env::var("PEER").unwrap_or_default();
    for (streams, step_ms) in CPU {
        let step = Duration::from_millis(step_ms);
        eprintln!("CPU time at {streams} streams: rigmark measure");
        let ours = cpu_per_token(OURS, streams, step).await?;
        println!("CPU time of a token, {streams} streams: {:.1} µs", ours * 1e6);
        if peer.is_empty() {
            continue;
        }
        eprintln!("CPU time at {streams} streams: the peer");
        let theirs = cpu_per_token(&peer, streams, step).await?;
        let what = format!("CPU time of a token, {streams} streams, to the peer's {:.1} µs", theirs * 1e6);
        print_ratio(&what, vec![ours / theirs], |r| r <= CPU_SHARE_MAX, "at most 0.1");
    }
    if peer.is_empty() {
        println!("No PEER to compare the CPU time with; benches/measure/main.rs says how to name one.");
    }
    Ok(())
}

fn print_ratio(what: &str, mut ratios: Vec<f64>, is_met: impl Fn(f64) -> bool, goal: &str) {
    ratios.sort_by(f64::total_cmp);
    let (low, median, high) = (percentile(&ratios, 0.0), percentile(&ratios, 50.0), percentile(&ratios, 100.0));
    let verdict = if is_met(median) { "met" } else { "MISSED" };
    println!("{what}: {median:.4} ({low:.4} – {high:.4}), goal {goal}: {verdict}");
}

/// What the client says, divided by what the server knows: total rate and median TTFT.
async fn accuracy(streams: u32, step: Duration) -> Result<(f64, f64)> {
    let server = RateServer::start(Pace { step, first_token: FIRST_TOKEN })?;
    let target = Target { address: EngineAddress::parse(&server.url())?, api_key: None, allow_private: true };
    let plan = CellPlan {
        context_tokens: 0,
        concurrency: streams,
        bodies: vec![request_body("paced", "Tell the ships.", 1_000_000)],
        hears: false,
        max_tokens: 1_000_000,
        window: WINDOW,
        stable: Duration::from_secs(1),
        warmup_max: Duration::from_secs(30),
        kind: EngineKind::Proxy,
    };
    let record = run_cell(&EngineClient::for_measuring()?, &target, plan, |_| ()).await;
    ensure!(record.failure().is_none(), "{:?}", record.failure());
    for _ in 0..100 {
        if server.load().0 == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let sent = server.take_ended();
    ensure!(sent.len() == usize::try_from(streams)?, "{} streams were answered", sent.len());
    Ok((record.total_tokens_per_second() / true_rate(&record, &sent), record.speed().ttft_p50 / true_ttft(sent)))
}

/// By the client's own definition, from the server's instants.
fn true_rate(record: &CellRecord, sent: &[Sent]) -> f64 {
    let within = |at: &&Instant| **at > record.window_start && **at <= record.window_end;
    let tokens = sent.iter().flat_map(|stream| &stream.tokens).filter(within);
    let (count, last) = tokens.fold((0_u32, record.window_start), |(count, last), at| (count + 1, last.max(*at)));
    f64::from(count) / last.duration_since(record.window_start).as_secs_f64()
}

fn true_ttft(sent: Vec<Sent>) -> f64 {
    let mut each: Vec<f64> =
        sent.iter().filter_map(|stream| Some(stream.tokens.first()?.duration_since(stream.asked).as_secs_f64())).collect();
    each.sort_by(f64::total_cmp);
    percentile(&each, 50.0)
}

const OURS: &str = concat!(
    env!("CARGO_BIN_EXE_rigmark"),
    " measure --url {url} --contexts 0 --concurrency {streams} --prefill-contexts 0 --duration 20 --max-tokens 1000000 --output measured.json"
);

/// Seconds of CPU time for each token, over the longest time in which all streams ran.
async fn cpu_per_token(command: &str, streams: u32, step: Duration) -> Result<f64> {
    let server = RateServer::start(Pace { step, first_token: FIRST_TOKEN })?;
    let folder = tempfile::tempdir()?;
    let command = command.replace("{url}", &server.url()).replace("{streams}", &streams.to_string());
    let mut child = Command::new("sh")
        .args(["-c", &format!("exec {command}")])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let (mut since, mut longest) = (None, (Duration::ZERO, 0.0));
    while child.try_wait()?.is_none() {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let (open, tokens) = server.load();
        if open != usize::try_from(streams)? {
            since = None;
            continue;
        }
        let (now, cpu) = (Instant::now(), cpu_seconds(&child)?);
        let (start, tokens_then, cpu_then) = *since.get_or_insert((now, tokens, cpu));
        if now.duration_since(start) > longest.0 && tokens > tokens_then {
            longest = (now.duration_since(start), (cpu - cpu_then) / (tokens - tokens_then) as f64);
        }
    }
    ensure!(longest.0 >= Duration::from_secs(CPU_SECONDS / 2), "the streams ran together for only {:?}: {command}", longest.0);
    Ok(longest.1)
}

/// User and system time of all threads of the process; in hundredths of a second, as the kernel gives it to everyone.
fn cpu_seconds(child: &Child) -> Result<f64> {
    let path = format!("/proc/{}/stat", child.id().context("it has ended")?);
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let (_, fields) = text.rsplit_once(')').context("no name in stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / 100.0)
}
