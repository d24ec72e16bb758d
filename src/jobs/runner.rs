//! The loops that run jobs and sweeps in the background.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::{sync::watch, task::LocalSet};

use super::{JobHandler, Lane, Sweep, queue};
use crate::{
    base::{Error, Result},
    ctx::Ctx,
};

const LEASE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);
const JOB_WORKERS: usize = 2;

/// A slow job that takes longer is stuck.
const SLOW_MAX: Duration = Duration::from_secs(30 * 60);

/// The running workers of a process, on threads of their own: one for sweeps and quick jobs, one for slow jobs, which measure time.
pub struct Workers {
    stop: watch::Sender<bool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Workers {
    /// # Errors
    /// `internal` when no thread can be started.
    pub fn start(ctx: &Ctx) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let quick = spawn("workers", ctx, &stopped, run_loops)?;
        let slow = spawn("slow-jobs", ctx, &stopped, slow_loop)?;
        Ok(Self { stop, threads: vec![quick, slow] })
    }

    /// Lets each worker finish what it has in hand; a slow job is given back.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        for thread in self.threads {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("a thread of the workers ended with a panic");
            }
        }
    }
}

fn spawn<F: Future<Output = ()>>(
    name: &str,
    ctx: &Ctx,
    stopped: &watch::Receiver<bool>,
    run: impl FnOnce(Ctx, watch::Receiver<bool>) -> F + Send + 'static,
) -> Result<std::thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::internal)?;
    let (ctx, stopped) = (ctx.clone(), stopped.clone());
    let work = move || LocalSet::new().block_on(&runtime, run(ctx, stopped));
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(Error::internal)
}

async fn run_loops(ctx: Ctx, stopped: watch::Receiver<bool>) {
    let sweeps = ctx.registry.sweeps.iter().map(|sweep| sweep_loop(ctx.clone(), Arc::clone(sweep), stopped.clone()).boxed_local());
    let jobs = (0..JOB_WORKERS).map(|_| job_loop(ctx.clone(), stopped.clone()).boxed_local());
    futures::future::join_all(sweeps.chain(jobs)).await;
}

async fn pause(stopped: &mut watch::Receiver<bool>, length: Duration) -> bool {
    tokio::select! {
        _ = stopped.wait_for(|s| *s) => true,
        () = tokio::time::sleep(length) => false,
    }
}

async fn sweep_loop(ctx: Ctx, sweep: Arc<dyn Sweep>, mut stopped: watch::Receiver<bool>) {
    loop {
        run_sweep(&ctx, sweep.as_ref()).await;
        if pause(&mut stopped, sweep.every()).await {
            return;
        }
    }
}

async fn run_sweep(ctx: &Ctx, sweep: &dyn Sweep) {
    let outcome = async {
        let now = {
            let mut conn = ctx.db.conn().await?;
            ctx.business_now(&mut conn).await?
        };
        sweep.run(ctx, now).await
    };
    // A panic in one sweep must not end its loop: the state it works on is in the database and will be looked at again.
    match std::panic::AssertUnwindSafe(outcome).catch_unwind().await {
        Ok(Ok(())) => metrics::counter!("rigmark_sweeps_total", "sweep" => sweep.name(), "outcome" => "ok").increment(1),
        Ok(Err(error)) => {
            metrics::counter!("rigmark_sweeps_total", "sweep" => sweep.name(), "outcome" => "error").increment(1);
            tracing::error!(sweep = sweep.name(), error = ?error, "sweep failed");
        }
        Err(_) => {
            metrics::counter!("rigmark_sweeps_total", "sweep" => sweep.name(), "outcome" => "panic").increment(1);
            tracing::error!(sweep = sweep.name(), "sweep panicked");
        }
    }
}

/// Runs every sweep once, in order, at the present business time.
///
/// # Errors
/// The first sweep's fault; the later ones have then not run.
pub async fn run_sweeps(ctx: &Ctx) -> Result<()> {
    let now = {
        let mut conn = ctx.db.conn().await?;
        ctx.business_now(&mut conn).await?
    };
    for sweep in &ctx.registry.sweeps {
        sweep.run(ctx, now).await?;
    }
    Ok(())
}

async fn job_loop(ctx: Ctx, mut stopped: watch::Receiver<bool>) {
    loop {
        match run_one_job(&ctx).await {
            Ok(true) if !*stopped.borrow() => {}
            Ok(_) => {
                if pause(&mut stopped, POLL).await {
                    return;
                }
            }
            Err(error) => {
                tracing::error!(error = ?error, "the table of jobs cannot be read");
                if pause(&mut stopped, POLL * 4).await {
                    return;
                }
            }
        }
    }
}

/// Slow jobs, one after another.
async fn slow_loop(ctx: Ctx, mut stopped: watch::Receiver<bool>) {
    loop {
        let more = run_slow_job(&ctx, async {
            // A sender that is gone means the same.
            let _ = stopped.clone().wait_for(|s| *s).await;
        });
        let wait = match more.await {
            Ok(true) if *stopped.borrow() => return,
            Ok(true) => continue,
            Ok(false) => POLL,
            Err(error) => {
                tracing::error!(error = ?error, "the table of jobs cannot be read");
                POLL * 4
            }
        };
        if pause(&mut stopped, wait).await {
            return;
        }
    }
}

/// Runs due quick jobs until none is left; returns how many ran.
///
/// # Errors
/// The database's own faults. A job's fault is recorded on the job.
pub async fn run_due_jobs(ctx: &Ctx) -> Result<usize> {
    let mut count = 0;
    while run_one_job(ctx).await? {
        count += 1;
    }
    Ok(count)
}

/// Runs due slow jobs until none is left; returns how many ran.
///
/// # Errors
/// The database's own faults. A job's fault is recorded on the job.
pub async fn run_slow_jobs(ctx: &Ctx) -> Result<usize> {
    let mut count = 0;
    while run_slow_job(ctx, std::future::pending()).await? {
        count += 1;
    }
    Ok(count)
}

async fn run_one_job(ctx: &Ctx) -> Result<bool> {
    let Some((job, handler)) = take(ctx, Lane::Quick).await? else { return Ok(false) };
    let outcome = run_handler(ctx, handler.as_ref(), job.payload.clone(), LEASE).await;
    note(ctx, handler.as_ref(), &job, outcome).await?;
    Ok(true)
}

/// Takes a slow job and runs it until it ends or `stopped` does; then it is given back.
async fn run_slow_job(ctx: &Ctx, stopped: impl Future<Output = ()>) -> Result<bool> {
    let Some((job, handler)) = take(ctx, Lane::Slow).await? else { return Ok(false) };
    let outcome = tokio::select! {
        outcome = run_handler(ctx, handler.as_ref(), job.payload.clone(), SLOW_MAX) => Some(outcome),
        () = renew(ctx, &job) => None,
        () = stopped => None,
    };
    match outcome {
        Some(outcome) => note(ctx, handler.as_ref(), &job, outcome).await?,
        None => queue::job_release(&mut *ctx.db.conn().await?, &job).await?,
    }
    Ok(true)
}

/// Renews the job's lease for as long as it is polled.
async fn renew(ctx: &Ctx, job: &queue::Taken) {
    loop {
        tokio::time::sleep(LEASE / 3).await;
        let renewed = async {
            let mut conn = ctx.db.conn().await?;
            queue::job_renew(&mut conn, job, ctx.clock.wall_now(), LEASE).await
        };
        if let Err(error) = renewed.await {
            tracing::warn!(job.id = %job.id, error = ?error, "a lease could not be renewed");
        }
    }
}

async fn take(ctx: &Ctx, lane: Lane) -> Result<Option<(queue::Taken, Arc<dyn JobHandler>)>> {
    let kinds: Vec<&str> = ctx.registry.handlers.iter().filter(|h| h.lane() == lane).map(|h| h.kind()).collect();
    let taken = {
        let mut conn = ctx.db.conn().await?;
        queue::job_take(&mut conn, &kinds, ctx.clock.wall_now(), LEASE).await?
    };
    let handler = |job: &queue::Taken| ctx.registry.handlers.iter().find(|h| h.kind() == job.kind).cloned();
    Ok(taken.and_then(|job| handler(&job).map(|handler| (job, handler))))
}

async fn note(ctx: &Ctx, handler: &dyn JobHandler, job: &queue::Taken, outcome: std::result::Result<(), String>) -> Result<()> {
    let mut conn = ctx.db.conn().await?;
    let now = ctx.clock.wall_now();
    match outcome {
        Ok(()) => queue::job_finish(&mut conn, job, now).await?,
        Err(text) => {
            let dead = queue::job_fail(&mut conn, job, now, &text).await?;
            tracing::error!(job.id = %job.id, job.kind = job.kind, job.attempts, dead, error = text, "job failed");
            if dead {
                metrics::counter!("rigmark_jobs_dead_total", "kind" => handler.kind()).increment(1);
            }
        }
    }
    Ok(())
}

async fn run_handler(
    ctx: &Ctx,
    handler: &dyn JobHandler,
    payload: serde_json::Value,
    longest: Duration,
) -> std::result::Result<(), String> {
    let work = tokio::time::timeout(longest, handler.run(ctx, payload));
    match std::panic::AssertUnwindSafe(work).catch_unwind().await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(format!("{error:?}")),
        Ok(Err(_)) => Err("took longer than its lease".to_owned()),
        Err(_) => Err("panicked".to_owned()),
    }
}
