//! Re-measuring: asking for it, doing it, and what follows.
//!
//! Nothing is measured in a transaction, and nothing that was measured counts unless the machine is still the one that was measured and no
//! rental has it. A worker that is killed leaves the row `running`; the next begins it from fresh, with cells drawn anew.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        RUN_CHANGED, boards,
        history::{self, Doer, Event},
        model::{Run, RunChanged, RunDetail},
        queries::standing_fetch,
        remeasure::{
            Judgement, PublicRemeasurement, Reason, Reference, Status, Tolerances, judge,
            model::{Due, REMEASURE, RemeasureJob, Remeasurement, RemeasurementView},
            queries,
        },
    },
    announce,
    measuring::{self, Findings},
    staleness,
};
use crate::{
    base::{
        Code, Error, Result,
        id::{MachineId, RemeasurementId, RunId},
    },
    ctx::Ctx,
    db::{Conn, Tx},
    engines::EngineClient,
    identity::{self, Caller},
    jobs::{self, Job},
    machines::{self, model::Machine},
};

/// Re-measurements that an owner may ask for within an hour of business time.
const PER_HOUR_MAX: i64 = 6;
/// Of those that nobody asked for so many are open at once: a moved clock starts no crowd of them.
const RANDOM_OPEN_MAX: i64 = 2;
const POLL_RENTED: Duration = Duration::from_secs(1);
/// How often workers may begin one before it counts as failed.
const ATTEMPTS_MAX: i32 = 5;
const POSTPONED: TimeDelta = TimeDelta::hours(1);
const BACK_OFF_MINUTES: i64 = 10;
const BACK_OFF_DOUBLINGS_MAX: i32 = 8;

/// Has a machine of one's own re-measured; while that is open, asking again gives the same.
///
/// # Errors
/// `not_found`, `no_endpoint`, `no_verified_run`, `machine_in_use` while it is rented, `rate_limited`.
pub async fn remeasure(ctx: &Ctx, caller: &Caller, machine: MachineId) -> Result<RemeasurementView> {
    let wall_now = ctx.clock.wall_now();
    let row = ctx
        .db
        .tx("remeasure", async |tx| {
            let machine = machines::service::fetch_owned(tx, caller, machine).await?;
            if let Some(open) = queries::remeasurement_open(tx, machine.id).await? {
                return Ok(open);
            }
            let now = ctx.business_now(tx).await?;
            let run = measurable(tx, &machine, now).await?;
            if queries::remeasurement_count_since(tx, machine.id, now - TimeDelta::hours(1)).await? >= PER_HOUR_MAX {
                let detail = format!("A machine may be re-measured {PER_HOUR_MAX} times an hour.");
                return Err(Error::new(Code::RateLimited, detail).with_retry_after(600));
            }
            enqueue(tx, machine.id, run, Reason::Requested, now, wall_now).await
        })
        .await?;
    RemeasurementView::of(row)
}

/// The run that the machine would be compared with.
async fn measurable(conn: &mut Conn, machine: &Machine, now: DateTime<Utc>) -> Result<RunId> {
    if machine.endpoint_url.is_none() {
        return Err(Error::new(Code::NoEndpoint, "The machine has no endpoint that could be measured: register one."));
    }
    let run = queries::run_newest_verified(conn, machine.id, now).await?;
    let run = run.filter(|run| reference(run).is_ok_and(|reference| !reference.cells().is_empty()));
    let Some(run) = run else {
        let detail = "No verified public run with valid cells is bound to the machine: answer a challenge first.";
        return Err(Error::new(Code::NoVerifiedRun, detail));
    };
    if machines::service::is_rented(conn, machine.id).await? {
        return Err(Error::new(Code::MachineInUse, "The machine is rented: a renter is not disturbed."));
    }
    Ok(run.id)
}

fn reference(run: &Run) -> Result<Reference> {
    Ok(Reference::of(&detail(run)?.matrix))
}

fn detail(run: &Run) -> Result<RunDetail> {
    run.detail.read()
}

/// Queues one; when another is open, that one.
async fn enqueue(
    tx: &mut Tx<'_>,
    machine: MachineId,
    run: RunId,
    reason: Reason,
    now: DateTime<Utc>,
    wall_now: DateTime<Utc>,
) -> Result<Remeasurement> {
    let row = Remeasurement::queued(machine, run, reason, now);
    if !queries::remeasurement_insert(tx, &row).await? {
        let open = queries::remeasurement_open(tx, machine).await?;
        return open.ok_or_else(|| Error::new(Code::InvalidState, "Another re-measurement ended this moment; ask again."));
    }
    let payload = serde_json::to_value(RemeasureJob { remeasurement_id: row.id }).map_err(Error::internal)?;
    jobs::enqueue(tx, Job { kind: REMEASURE, payload, dedupe_key: Some(row.id.to_string()), run_at: wall_now }).await?;
    Ok(row)
}

/// Re-measurements of one's own machine, newest first.
///
/// # Errors
/// `not_found`.
pub async fn remeasurements(
    ctx: &Ctx,
    caller: &Caller,
    machine: MachineId,
    before: Option<RemeasurementId>,
    limit: i64,
) -> Result<Vec<RemeasurementView>> {
    let mut conn = ctx.db.conn().await?;
    let machine = machines::service::fetch_owned(&mut conn, caller, machine).await?;
    let rows = queries::remeasurement_list(&mut conn, machine.id, before, limit).await?;
    rows.into_iter().map(RemeasurementView::of).collect()
}

/// Queues what has fallen due: listed machines at their random instants, and second tries that had to wait.
///
/// # Errors
/// The database's own faults.
pub async fn enqueue_due(ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
    let mean_days = ctx.config.tunables.remeasure_mean_days;
    ctx.db.tx("remeasure_schedule", async |tx| queries::schedule_fill(tx, now, mean_days).await).await?;
    let (due, open) = {
        let mut conn = ctx.db.conn().await?;
        (queries::schedule_due(&mut conn, now, 100).await?, queries::remeasurement_count_random(&mut conn).await?)
    };
    let mut room = usize::try_from((RANDOM_OPEN_MAX - open).max(0)).unwrap_or(0);
    for due in due {
        if due.reason == Reason::Random && room == 0 {
            continue;
        }
        let was_queued = ctx.db.tx("remeasure_due", async |tx| enqueue_one(ctx, tx, &due, now).await).await?;
        room -= usize::from(was_queued && due.reason == Reason::Random);
    }
    Ok(())
}

async fn enqueue_one(ctx: &Ctx, tx: &mut Tx<'_>, due: &Due, now: DateTime<Utc>) -> Result<bool> {
    let machine = machines::service::lock(tx, due.machine_id).await?;
    match measurable(tx, &machine, now).await {
        Ok(run) if machine.deleted_at.is_none() => {
            enqueue(tx, machine.id, run, due.reason, now, ctx.clock.wall_now()).await?;
            // The outcome sets the next instant; until then it waits, should the row be lost.
            queries::schedule_set(tx, due, now + POSTPONED).await?;
            Ok(true)
        }
        Err(error) if error.code() == Code::Internal => Err(error),
        // Rented, or nothing to compare with: looked at again in a while.
        _ => {
            queries::schedule_set(tx, due, now + POSTPONED).await?;
            Ok(false)
        }
    }
}

/// What a worker has begun.
struct Begun {
    row: Remeasurement,
    machine: Machine,
    run: Run,
}

/// Measures one that is queued, or that a killed worker has begun.
///
/// # Errors
/// The database's own faults; an engine's fault is an outcome.
pub async fn run_remeasurement(ctx: &Ctx, id: RemeasurementId) -> Result<()> {
    let begun = ctx.db.tx("remeasure_begin", async |tx| begin(ctx, tx, id).await).await?;
    let Some(begun) = begun else { return Ok(()) };
    let measured = tokio::select! {
        measured = measure(ctx, &begun) => measured,
        () = rented(ctx, begun.machine.id) => Err(Ended::interrupted("A rental began.")),
    };
    let end = match measured {
        Ok(findings) => {
            let judgement = judge(&findings.samples, &tolerances(ctx));
            staleness::note_engine(ctx, begun.machine.id, &findings.identity).await?;
            Ended { judgement, findings: Some(findings) }
        }
        Err(ended) => ended,
    };
    let wall_now = ctx.clock.wall_now();
    ctx.db.tx("remeasure_finish", async |tx| finish(ctx, tx, &begun, &end, wall_now).await).await
}

/// How a measurement ended.
struct Ended {
    judgement: Judgement,
    findings: Option<Findings>,
}

impl Ended {
    fn without(outcome: Status, detail: impl Into<String>) -> Self {
        Self { judgement: Judgement { outcome, answers: Default::default(), detail: Some(detail.into()) }, findings: None }
    }
    fn interrupted(detail: &str) -> Self {
        Self::without(Status::Interrupted, detail)
    }
    fn failed(detail: impl Into<String>) -> Self {
        Self::without(Status::Failed, detail)
    }
}

async fn begin(ctx: &Ctx, tx: &mut Tx<'_>, id: RemeasurementId) -> Result<Option<Begun>> {
    let Some(mut row) = queries::remeasurement_lock(tx, id).await? else { return Ok(None) };
    if !row.status()?.is_open() {
        return Ok(None);
    }
    let now = ctx.business_now(tx).await?;
    let machine = machines::service::fetch(tx, row.machine_id).await?;
    let run = queries::run_lock(tx, row.run_id).await?.filter(|run| run.status == "verified");
    row.attempts += 1;
    let (None, Some(run)) = (obstacle(tx, &machine).await?.or((row.attempts > ATTEMPTS_MAX).then_some("It was begun too often.")), run)
    else {
        row.status = Status::Interrupted.as_str().to_owned();
        row.detail = Some("The machine is rented or gone, or the run is no longer verified.".to_owned());
        row.finished_at = Some(now);
        queries::remeasurement_update(tx, &row).await?;
        return Ok(None);
    };
    row.status = Status::Running.as_str().to_owned();
    row.started_at = Some(now);
    row.samples = serde_json::Value::Array(Vec::new());
    queries::remeasurement_update(tx, &row).await?;
    Ok(Some(Begun { row, machine, run }))
}

/// Why nothing may follow from measuring the machine.
async fn obstacle(conn: &mut Conn, machine: &Machine) -> Result<Option<&'static str>> {
    Ok(match () {
        () if machine.deleted_at.is_some() => Some("The machine was deleted."),
        () if machine.endpoint_url.is_none() => Some("The machine's endpoint was taken away."),
        () if machines::service::is_rented(conn, machine.id).await? => Some("The machine is rented."),
        () => None,
    })
}

/// Comes back when a rental has the machine.
async fn rented(ctx: &Ctx, machine: MachineId) {
    loop {
        tokio::time::sleep(POLL_RENTED).await;
        let asked = async { machines::service::is_rented(&mut *ctx.db.conn().await?, machine).await };
        if asked.await.unwrap_or(false) {
            return;
        }
    }
}

fn tolerances(ctx: &Ctx) -> Tolerances {
    let share = |percent: u32| f64::from(percent) / 100.0;
    let tunables = &ctx.config.tunables;
    Tolerances {
        time_between_tokens: share(tunables.remeasure_time_between_tokens_percent),
        total: share(tunables.remeasure_total_percent),
        cold_ttft: share(tunables.remeasure_cold_ttft_percent),
        right_answers: share(tunables.remeasure_right_answers_percent),
    }
}

async fn measure(ctx: &Ctx, begun: &Begun) -> Result<Findings, Ended> {
    let engine_failed = |error: Error| Ended::failed(error.detail().to_owned());
    let target = machines::service::target(ctx, &begun.machine).map_err(engine_failed)?;
    let detail = detail(&begun.run).map_err(engine_failed)?;
    // A client of its own: its connections live on this thread, which has little else to do.
    let client = EngineClient::new().map_err(engine_failed)?;
    let findings = measuring::measure(ctx, &client, &target, &detail, &tolerances(ctx)).await.map_err(engine_failed)?;
    if findings.is_simulated && !ctx.config.mode.is_sandbox() {
        return Err(Ended::failed("The engine is a simulated one; those are for the sandbox."));
    }
    Ok(findings)
}

async fn finish(ctx: &Ctx, tx: &mut Tx<'_>, begun: &Begun, end: &Ended, wall_now: DateTime<Utc>) -> Result<()> {
    let now = ctx.business_now(tx).await?;
    let Some(mut row) = queries::remeasurement_lock(tx, begun.row.id).await? else { return Ok(()) };
    if row.status()? != Status::Running || row.attempts != begun.row.attempts {
        return Ok(());
    }
    let machine = machines::service::fetch(tx, row.machine_id).await?;
    let run = queries::run_lock(tx, row.run_id).await?;
    let mut judgement = end.judgement.clone();
    let changed = obstacle(tx, &machine).await?.or(match &run {
        _ if machine.endpoint_url != begun.machine.endpoint_url => Some("The machine's endpoint was changed meanwhile."),
        Some(run) if run.status == "verified" => None,
        _ => Some("The run is no longer verified."),
    });
    if let Some(why) = changed {
        judgement = Ended::interrupted(why).judgement;
    }
    row.status = judgement.outcome.as_str().to_owned();
    row.detail.clone_from(&judgement.detail);
    row.finished_at = Some(now);
    if let Some(findings) = &end.findings {
        row.plan = serde_json::to_value(&findings.plan).map_err(Error::internal)?;
        row.samples = serde_json::to_value(&findings.samples).map_err(Error::internal)?;
        row.answers = Some(serde_json::to_value(judgement.answers).map_err(Error::internal)?);
    }
    queries::remeasurement_update(tx, &row).await?;
    let follow = Follow { row: &row, machine: &machine, judgement: &judgement, now, wall_now };
    match (judgement.outcome, run) {
        (Status::Agreed, Some(run)) => {
            follow.show(tx, &run, end).await?;
            follow.agreed(ctx, tx, &run).await
        }
        (Status::Disagreed, Some(run)) => {
            follow.show(tx, &run, end).await?;
            follow.disagreed(ctx, tx, &run).await
        }
        _ => follow.undecided(tx).await,
    }
}

/// What follows from an outcome.
struct Follow<'a> {
    row: &'a Remeasurement,
    machine: &'a Machine,
    judgement: &'a Judgement,
    now: DateTime<Utc>,
    wall_now: DateTime<Utc>,
}

impl Follow<'_> {
    async fn show(&self, tx: &mut Tx<'_>, run: &Run, end: &Ended) -> Result<()> {
        let samples = end.findings.as_ref().map(|findings| findings.samples.clone()).unwrap_or_default();
        let outcome = PublicRemeasurement {
            at: self.now,
            outcome: self.judgement.outcome,
            detail: self.judgement.detail.clone(),
            answers: self.judgement.answers,
            samples,
        };
        queries::run_show_outcome(tx, run.id, &serde_json::to_value(outcome).map_err(Error::internal)?).await
    }

    async fn agreed(&self, ctx: &Ctx, tx: &mut Tx<'_>, run: &Run) -> Result<()> {
        let was_disputed = standing_fetch(tx, run.id).await?.disputed_at.is_some();
        let settled = queries::run_note_agreed(tx, run, self.now).await?;
        queries::schedule_forget(tx, self.machine.id).await?;
        if was_disputed {
            let text = format!(
                "The second measurement of your machine {} fits its matrix again. Its badge is back, and so is its listing, if it had one.\n\n{}",
                self.machine.name,
                run_link(ctx, run)
            );
            identity::service::notify(ctx, tx, run.account_id, "Your machine is measured again", &text).await?;
        }
        history::append(tx, run.id, Doer::SYSTEM, &Event::Remeasured, self.now).await?;
        for id in settled {
            let event = Event::DisputeEnded { other_run: Some(run.id).filter(|other| *other != id) };
            history::append(tx, id, Doer::SYSTEM, &event, self.now).await?;
            boards::run_changed(tx, id).await?;
        }
        run_changed(tx, run.id, self.wall_now).await
    }

    /// The first time withdraws the badge and tries again; the second sends the run to review.
    async fn disagreed(&self, ctx: &Ctx, tx: &mut Tx<'_>, run: &Run) -> Result<()> {
        let is_second = standing_fetch(tx, run.id).await?.disputed_at.is_some();
        let doubted = queries::run_note_disputed(tx, run, self.now).await?;
        self.note_disputed(tx, run, doubted).await?;
        let what_next = if is_second {
            queries::run_send_to_review(tx, run.id).await?;
            announce::verdict(ctx, tx, run.id).await?;
            let event = Event::SentToReview { reason: self.judgement.detail.clone() };
            history::append(tx, run.id, Doer::SYSTEM, &event, self.now).await?;
            queries::schedule_forget(tx, self.machine.id).await?;
            "It is the second time in a row, so a person will look at the run. You can answer a new challenge at any time."
        } else {
            let due = Due { machine_id: self.machine.id, reason: Reason::SecondTry, failures: 0 };
            queries::schedule_set(tx, &due, self.now + POSTPONED).await?;
            enqueue(tx, self.machine.id, run.id, Reason::SecondTry, self.now, self.wall_now).await?;
            "Until that is settled it has no badge and its listing is off the market; running rentals go on. It is measured once more now, with \
             other cells: if that fits, all is as before."
        };
        let text = format!(
            "Rigmark measured a few cells of your machine {} itself, and they do not fit the matrix of its run:\n\n{}\n\n{what_next}\n\n{}",
            self.machine.name,
            self.judgement.detail.as_deref().unwrap_or_default(),
            run_link(ctx, run)
        );
        identity::service::notify(ctx, tx, run.account_id, "Your machine does not fit its matrix", &text).await?;
        run_changed(tx, run.id, self.wall_now).await
    }

    /// The measured run each time; those that it takes along when their doubt begins.
    async fn note_disputed(&self, tx: &mut Tx<'_>, run: &Run, doubted: Vec<RunId>) -> Result<()> {
        let event = Event::Disputed { reason: self.judgement.detail.clone(), other_run: None };
        history::append(tx, run.id, Doer::SYSTEM, &event, self.now).await?;
        for id in doubted.into_iter().filter(|id| *id != run.id) {
            let event = Event::Disputed { reason: None, other_run: Some(run.id) };
            history::append(tx, id, Doer::SYSTEM, &event, self.now).await?;
            boards::run_changed(tx, id).await?;
        }
        Ok(())
    }

    /// Nothing follows but that it is tried again later, unless its owner asked for it and will ask again.
    async fn undecided(&self, tx: &mut Tx<'_>) -> Result<()> {
        let reason = self.row.reason()?;
        if reason == Reason::Requested || self.machine.deleted_at.is_some() {
            return Ok(());
        }
        let has_failed = self.judgement.outcome == Status::Failed;
        let failures = if has_failed { queries::schedule_failures(tx, self.machine.id).await? + 1 } else { 0 };
        let doubled = 1_i64 << failures.clamp(0, BACK_OFF_DOUBLINGS_MAX);
        let wait = if has_failed { TimeDelta::minutes(BACK_OFF_MINUTES * doubled) } else { POSTPONED };
        queries::schedule_set(tx, &Due { machine_id: self.machine.id, reason, failures }, self.now + wait).await
    }
}

pub(super) fn run_link(ctx: &Ctx, run: &Run) -> String {
    format!("{}/en/runs/{}", ctx.public_url, run.id)
}

/// Counts a run whose standing changed anew, and tells the market of it.
pub(super) async fn run_changed(tx: &mut Tx<'_>, run_id: RunId, wall_now: DateTime<Utc>) -> Result<()> {
    boards::run_changed(tx, run_id).await?;
    let payload = serde_json::to_value(RunChanged { run_id }).map_err(Error::internal)?;
    jobs::enqueue(tx, Job { kind: RUN_CHANGED, payload, dedupe_key: Some(run_id.to_string()), run_at: wall_now }).await
}
