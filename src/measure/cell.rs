//! One decode cell: C streams of the same prompt, warmed up until they are steady, then counted for a window.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::inspect::{EngineKind, Gauges, scrape};
use super::record::StreamRecord;
use super::stats::Spread;
use super::stream::{Shared, run_worker};
use crate::base::clock::monotonic;
use crate::engines::{EngineClient, Target};

const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const CONNECT_SECONDS: u64 = 5;
/// Between two pieces of news of a cell.
const NEWS_INTERVAL: Duration = Duration::from_millis(500);

/// What to measure and for how long.
#[derive(Debug, Clone)]
pub struct CellPlan {
    pub context_tokens: u64,
    pub concurrency: u32,
    /// The requests of the streams ([`super::stream::Asker::body`]), one after another; a single one is sent by all.
    pub bodies: Vec<Bytes>,
    /// Whether what the streams say is kept.
    pub hears: bool,
    pub max_tokens: u64,
    pub window: Duration,
    /// How long all streams must have run undisturbed before the window opens.
    pub stable: Duration,
    /// After this the window opens anyway, and the cell says so.
    pub warmup_max: Duration,
    /// Whose metrics tell about queues; [`EngineKind::Proxy`] for none.
    pub kind: EngineKind,
}

/// How the warm-up ended.
#[derive(Debug, Clone)]
pub struct Readiness {
    pub at: Instant,
    pub timed_out: bool,
    pub reason: String,
}

/// What a running cell tells whoever shows it.
#[derive(Debug)]
pub enum News<'a> {
    /// The window opens.
    Ready(&'a Readiness),
    Warming {
        active_streams: usize,
    },
    Counting {
        /// Of the window so far.
        tokens_per_second: f64,
    },
}

/// What the engine's own counters said.
#[derive(Debug, Clone, Default)]
pub struct ServerView {
    /// Samples within the window.
    pub gauges: Vec<Gauges>,
    pub output_tokens: u64,
    pub seconds: f64,
    pub kv_usage_after: f64,
}

/// A cell that was run.
#[derive(Debug, Clone)]
pub struct CellRecord {
    pub plan: CellPlan,
    pub started: Instant,
    pub ready: Readiness,
    pub window_start: Instant,
    pub window_end: Instant,
    pub joined: Instant,
    pub streams: Vec<StreamRecord>,
    pub failed_workers: u32,
    pub server: ServerView,
}

/// The numbers of a cell that other parts compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellSpeed {
    pub total_tokens_per_second: f64,
    pub output_tokens: u64,
    /// Chunks with text in the window: a count of ours, when the engine's usage is not to be trusted.
    pub text_chunks_share: f64,
    pub seconds: f64,
    pub inter_token_latency_p50: f64,
    pub ttft_p50: f64,
}

impl CellRecord {
    /// Tokens of the window by usage or chunks, and the seconds from its start to its last token, to the microsecond.
    pub fn counted(&self) -> (u64, f64) {
        let mut tokens = 0;
        let mut last = None;
        for stream in &self.streams {
            let (count, at) = stream.tokens_within(self.window_start, self.window_end);
            tokens += count;
            last = last.max(at);
        }
        let seconds = last.map_or(0.0, |at| at.duration_since(self.window_start).as_secs_f64());
        (tokens, super::stats::round(seconds, 6))
    }

    pub fn total_tokens_per_second(&self) -> f64 {
        let (tokens, seconds) = self.counted();
        if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 }
    }

    pub fn speed(&self) -> CellSpeed {
        let (output_tokens, seconds) = self.counted();
        let all_tokens: u64 = self.streams.iter().map(StreamRecord::tokens).sum();
        let all_chunks: u64 = self.streams.iter().map(|s| s.text_chunks).sum();
        CellSpeed {
            total_tokens_per_second: self.total_tokens_per_second(),
            output_tokens,
            text_chunks_share: if all_tokens == 0 { 0.0 } else { all_chunks as f64 / all_tokens as f64 },
            seconds,
            inter_token_latency_p50: Spread::of(self.streams.iter().map(inter_token_latency)).p50,
            ttft_p50: Spread::of(self.streams.iter().filter_map(StreamRecord::ttft).map(|t| t.as_secs_f64())).p50,
        }
    }

    /// Tokens by the engine's last usage for each chunk with text, of the completed requests; `None` where chunks were not what was counted.
    pub fn reported_tokens_per_chunk(&self) -> Option<f64> {
        let completed = self.streams.iter().filter(|stream| stream.completed.is_some() && !stream.has_continuous_usage);
        let sums = completed.filter_map(|stream| Some((stream.reported_tokens?, stream.text_chunks)));
        let (tokens, chunks) = sums.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        (chunks > 0).then(|| tokens as f64 / chunks as f64)
    }

    /// Why the cell counts for nothing, if it does.
    pub fn failure(&self) -> Option<String> {
        let failed = self.streams.iter().find_map(|s| s.error.as_deref());
        match failed {
            Some(error) => Some(format!("{} of {} streams failed: {error}", self.failed_workers, self.plan.concurrency)),
            None if self.counted().0 == 0 => Some("no token came within the window".to_owned()),
            None => None,
        }
    }
}

/// Mean time between the tokens of one stream over its whole life, in seconds; 0 with fewer than two tokens.
pub fn inter_token_latency(stream: &StreamRecord) -> f64 {
    match (stream.marks.first(), stream.marks.last()) {
        (Some(first), Some(last)) if last.tokens > first.tokens => {
            last.at.duration_since(first.at).as_secs_f64() / (last.tokens - first.tokens) as f64
        }
        _ => 0.0,
    }
}

/// Streams of all cells that run in this process.
static STREAMS: AtomicU32 = AtomicU32::new(0);
/// Fewer streams are read at once.
const RESTING_STREAMS_MIN: u32 = 8;
const REST: Duration = Duration::from_micros(200);

/// For a thread of many streams that is about to wait: tokens of the same step come within a millisecond, and being woken for each costs more
/// than reading it. An instant is late by a fifth of a millisecond at most, and never that of a prompt read alone.
pub fn rest() {
    if STREAMS.load(Relaxed) >= RESTING_STREAMS_MIN {
        std::thread::sleep(REST);
    }
}

/// Counts the streams of a cell while it lives.
struct Counted(u32);

impl Counted {
    fn new(streams: u32) -> Self {
        STREAMS.fetch_add(streams, Relaxed);
        Self(streams)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        STREAMS.fetch_sub(self.0, Relaxed);
    }
}

/// Runs the cell. Cancelling is done by dropping the future: the streams end with it.
pub async fn run_cell(client: &EngineClient, target: &Target, plan: CellPlan, mut on_news: impl FnMut(News<'_>)) -> CellRecord {
    let started = monotonic();
    connect(client, target, plan.concurrency).await;
    let stop = CancellationToken::new();
    let _stop_on_drop = stop.clone().drop_guard();
    let _counted = Counted::new(plan.concurrency);
    let shared = Arc::new(Shared::default());
    let mut workers = JoinSet::new();
    let bodies = plan.bodies.iter().cycle().take(usize::try_from(plan.concurrency).unwrap_or(usize::MAX));
    for (number, body) in bodies.cloned().enumerate() {
        let (client, target, hears, stop, shared) = (client.clone(), target.clone(), plan.hears, stop.clone(), shared.clone());
        workers.spawn(async move {
            let mut records = run_worker(client, target, body, hears, stop, &shared).await;
            records.iter_mut().for_each(|record| record.stream = number);
            records
        });
    }
    let sampler = Sampler::start(client, target, plan.kind, plan.window);
    let ready = warm_up(&plan, &shared, &sampler, started, &mut on_news).await;
    on_news(News::Ready(&ready));
    let (before, window_start) = sampler.now().await;
    let window_end = count(&plan, &shared, window_start, &mut on_news).await;
    let (after, after_at) = sampler.now().await;
    stop.cancel();
    let mut streams = Vec::new();
    while let Some(records) = workers.join_next().await {
        streams.extend(records.unwrap_or_default());
    }
    let joined = monotonic();
    let server = sampler.finish(before, after, window_start, window_end, after_at).await;
    let failed_workers = u32::try_from(shared.failed.load(Relaxed)).unwrap_or(u32::MAX);
    CellRecord { plan, started, ready, window_start, window_end, joined, streams, failed_workers, server }
}

/// Opens connections for all streams beforehand: a hundred at once take some milliseconds, which are not the engine's time to first token.
/// One that cannot be had is opened by its stream.
async fn connect(client: &EngineClient, target: &Target, count: u32) {
    let one = || client.get(target, "/v1/models", CONNECT_SECONDS);
    let _answers = futures::future::join_all((0..count).map(|_| one())).await;
}

/// Waits until every stream runs and nothing waits, for `stable` without interruption.
async fn warm_up(plan: &CellPlan, shared: &Shared, sampler: &Sampler, started: Instant, on_news: &mut impl FnMut(News<'_>)) -> Readiness {
    let mut told = started;
    let wanted = usize::try_from(plan.concurrency).unwrap_or(usize::MAX);
    let mut steady_since: Option<Instant> = None;
    loop {
        let (now, active) = (monotonic(), shared.active.load(Relaxed));
        let gauges = sampler.last().await;
        let seen =
            gauges.map_or("metrics_unavailable".to_owned(), |g| format!("running_reqs={}/{wanted}, queue_reqs={}", g.running, g.waiting));
        let all_run = gauges.is_none_or(|g| g.running >= wanted as f64 || restarts_often(plan, shared, wanted));
        let steady = active >= wanted && all_run && gauges.is_none_or(|g| g.waiting <= 0.0);
        steady_since = if steady { steady_since.or(Some(now)) } else { None };
        if steady_since.is_some_and(|since| now.duration_since(since) >= plan.stable) {
            let reason = format!("{seen}, active_streams={active}/{wanted}, stable={:.1}s", plan.stable.as_secs_f64());
            return Readiness { at: now, timed_out: false, reason };
        }
        let all_failed = shared.failed.load(Relaxed) >= wanted;
        if all_failed || now.duration_since(started) >= plan.warmup_max {
            return Readiness { at: now, timed_out: true, reason: format!("{seen}, active_streams={active}/{wanted}") };
        }
        if now.duration_since(told) >= NEWS_INTERVAL {
            told = now;
            on_news(News::Warming { active_streams: active });
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Waits for the end of the window.
async fn count(plan: &CellPlan, shared: &Shared, start: Instant, on_news: &mut impl FnMut(News<'_>)) -> Instant {
    let (end, before) = (start + plan.window, shared.tokens.load(Relaxed));
    loop {
        let now = monotonic();
        if now >= end {
            return now;
        }
        let (tokens, seconds) = (shared.tokens.load(Relaxed) - before, now.duration_since(start).as_secs_f64());
        if tokens > 0 && seconds > 0.0 {
            on_news(News::Counting { tokens_per_second: tokens as f64 / seconds });
        }
        tokio::time::sleep_until(end.min(now + NEWS_INTERVAL).into()).await;
    }
}

/// Short answers end between two looks at the gauges, so fewer than all seem to run although nothing is wrong.
fn restarts_often(plan: &CellPlan, shared: &Shared, wanted: usize) -> bool {
    plan.max_tokens <= 512 && shared.completed_requests.load(Relaxed) >= wanted
}

/// Reads the gauges beside the streams.
struct Sampler {
    client: EngineClient,
    target: Target,
    kind: EngineKind,
    samples: Arc<Mutex<Vec<(Instant, Gauges)>>>,
    task: JoinSet<()>,
}

impl Sampler {
    fn start(client: &EngineClient, target: &Target, kind: EngineKind, window: Duration) -> Self {
        let samples = Arc::new(Mutex::new(Vec::new()));
        let mut task = JoinSet::new();
        if kind != EngineKind::Proxy {
            // About once a second, oftener in short windows, so that each window has some samples.
            let interval = (window / 8).clamp(Duration::from_millis(100), Duration::from_secs(1));
            let (client, target, samples) = (client.clone(), target.clone(), samples.clone());
            task.spawn(async move {
                loop {
                    let at = monotonic();
                    if let Some(gauges) = scrape(&client, &target, kind).await {
                        samples.lock().await.push((at, gauges));
                    }
                    tokio::time::sleep_until((at + interval).into()).await;
                }
            });
        }
        Self { client: client.clone(), target: target.clone(), kind, samples, task }
    }

    async fn last(&self) -> Option<Gauges> {
        self.samples.lock().await.last().map(|(_, gauges)| *gauges)
    }

    /// A sample of this moment; the instant is the middle between question and answer.
    async fn now(&self) -> (Option<Gauges>, Instant) {
        let asked = monotonic();
        let gauges = scrape(&self.client, &self.target, self.kind).await;
        let at = asked + asked.elapsed() / 2;
        (gauges, at)
    }

    async fn finish(
        mut self,
        before: Option<Gauges>,
        after: Option<Gauges>,
        start: Instant,
        end: Instant,
        after_at: Instant,
    ) -> ServerView {
        self.task.shutdown().await;
        let samples = self.samples.lock().await;
        let within = samples.iter().filter(|(at, _)| *at > start && *at <= end).map(|(_, gauges)| *gauges);
        let gauges: Vec<Gauges> = before.into_iter().chain(within).chain(after).collect();
        let counter = |sample: Option<Gauges>| sample.and_then(|g| g.generated_tokens);
        let grown = counter(before).zip(counter(after)).map_or(0.0, |(first, last)| (last - first).max(0.0));
        ServerView {
            gauges,
            output_tokens: grown as u64,
            seconds: after_at.duration_since(start).as_secs_f64(),
            kv_usage_after: after.map_or(0.0, |g| g.kv_usage),
        }
    }
}
