//! Marking runs stale: what was measured is no longer what the machine is. The run backs its listing for some days yet, so that the host can
//! answer a new challenge; the market does the rest.

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;

use super::{
    super::{
        history::{self, Doer, Event},
        model::{Run, RunDetail},
        queries::standing_fetch,
        remeasure::queries,
        staleness::{
            BaseLine, Stated, by_document, by_engine, by_statement, known_version, learn_document, learn_statement, learn_version,
        },
    },
    announce,
    remeasure::{run_changed, run_link},
};
use crate::{
    base::{Error, Result, id::MachineId, text},
    ctx::Ctx,
    db::Tx,
    identity,
    machines::{self, model::Machine},
    measure::inspect::{Identity, identify},
};

const ENGINES_AT_ONCE: usize = 16;
const VERSION_CHARS_MAX: usize = 200;

/// A new verified document of a machine: runs that it contradicts are stale.
pub(super) async fn note_document(ctx: &Ctx, tx: &mut Tx<'_>, new: &Run, now: DateTime<Utc>) -> Result<()> {
    let Some(machine) = new.machine_id.filter(|_| new.status == "verified") else { return Ok(()) };
    let Some(detail) = detail(new) else { return Ok(()) };
    for run in queries::run_list_verified(tx, machine, now).await? {
        if run.id != new.id
            && let Some(old) = self::detail(&run)
        {
            let (mut base_line, seen) = known_since(tx, &run).await?;
            let changes = by_document(&old, &base_line, seen.as_deref(), &detail);
            let mut learned = learn_document(&old, &mut base_line, &detail);
            if let Some(version) = learn_version(&old, seen.as_deref(), &detail) {
                learned.push(note_version(tx, &run, version).await?);
            }
            note_learned(tx, &run, &base_line, &learned, now).await?;
            mark(ctx, tx, &run, &changes, now).await?;
        }
    }
    Ok(())
}

/// A machine whose owner changed what they state of it.
///
/// # Errors
/// The database's own faults.
pub async fn note_machine(ctx: &Ctx, machine: MachineId) -> Result<()> {
    ctx.db
        .tx("staleness_machine", async |tx| {
            let machine = machines::service::fetch(tx, machine).await?;
            let now = ctx.business_now(tx).await?;
            let stated = Stated { driver: machine.driver.clone(), power_limit_w: machine.power_limit_w, ..Stated::default() };
            for run in queries::run_list_verified(tx, machine.id, now).await? {
                if let Some(detail) = detail(&run) {
                    let (mut base_line, _) = known_since(tx, &run).await?;
                    let changes = by_statement(&detail, &base_line, &stated);
                    let learned = learn_statement(&detail, &mut base_line, &stated);
                    note_learned(tx, &run, &base_line, &learned, now).await?;
                    mark(ctx, tx, &run, &changes, now).await?;
                }
            }
            Ok(())
        })
        .await
}

/// What the machine's engine says of itself.
pub(super) async fn note_engine(ctx: &Ctx, machine: MachineId, engine: &Identity) -> Result<()> {
    ctx.db
        .tx("staleness_engine", async |tx| {
            let now = ctx.business_now(tx).await?;
            for run in queries::run_list_verified(tx, machine, now).await? {
                let Some(detail) = detail(&run) else { continue };
                let (_, seen) = known_since(tx, &run).await?;
                if known_version(&detail).is_none() && seen.is_none() && !engine.version.is_empty() {
                    // Asked for within minutes of the run: no event, since nothing new was heard of the machine.
                    note_version(tx, &run, &engine.version).await?;
                }
                mark(ctx, tx, &run, &by_engine(&detail, seen.as_deref(), engine), now).await?;
            }
            Ok(())
        })
        .await
}

/// Asks the engines of listed machines for which `is_due` says so. One that does not answer says nothing.
///
/// # Errors
/// The database's own faults.
pub async fn note_listed_engines(ctx: &Ctx, is_due: impl Fn(MachineId) -> bool) -> Result<()> {
    let listed = machines::service::list_listed(&mut *ctx.db.conn().await?).await?;
    let asked = listed.into_iter().filter(|machine| is_due(machine.id)).map(async |machine| (machine.id, ask(ctx, &machine).await));
    let answers: Vec<(MachineId, Option<Identity>)> = futures::stream::iter(asked).buffer_unordered(ENGINES_AT_ONCE).collect().await;
    for (machine, engine) in answers {
        if let Some(engine) = engine {
            note_engine(ctx, machine, &engine).await?;
        }
    }
    Ok(())
}

async fn ask(ctx: &Ctx, machine: &Machine) -> Option<Identity> {
    let target = machines::service::target(ctx, machine).ok()?;
    identify(&ctx.engines, &target).await.ok()
}

/// What was heard of the machine since the run, and the engine's version.
async fn known_since(tx: &mut Tx<'_>, run: &Run) -> Result<(BaseLine, Option<String>)> {
    let standing = standing_fetch(tx, run.id).await?;
    let base_line = match standing.base_line {
        serde_json::Value::Null => BaseLine::default(),
        known => serde_json::from_value(known).map_err(Error::internal)?,
    };
    Ok((base_line, standing.engine_version_seen))
}

async fn note_version(tx: &mut Tx<'_>, run: &Run, version: &str) -> Result<String> {
    let version = text::label(version, VERSION_CHARS_MAX);
    queries::run_note_engine_version(tx, run.id, &version).await?;
    Ok(format!("the engine's version is {version}"))
}

/// What is heard of for the first time is what was measured, from now on; anyone may read when.
async fn note_learned(tx: &mut Tx<'_>, run: &Run, base_line: &BaseLine, learned: &[String], now: DateTime<Utc>) -> Result<()> {
    if learned.is_empty() {
        return Ok(());
    }
    queries::run_note_base_line(tx, run.id, &serde_json::to_value(base_line).map_err(Error::internal)?).await?;
    history::append(tx, run.id, Doer::SYSTEM, &Event::BaseLine { reason: learned.join("; ") }, now).await
}

/// None for a row whose detail this program cannot read: it says nothing that could be contradicted.
fn detail(run: &Run) -> Option<RunDetail> {
    run.detail.read().ok()
}

/// Adds what is new to the reasons; the deadline stays that of the first.
async fn mark(ctx: &Ctx, tx: &mut Tx<'_>, run: &Run, changes: &[String], now: DateTime<Utc>) -> Result<()> {
    let known = run.stale_reason.as_deref().unwrap_or_default();
    let new: Vec<&str> = changes.iter().map(String::as_str).filter(|change| !known.contains(change)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let new = new.join("; ");
    let reason = if known.is_empty() { new.clone() } else { format!("{known}; {new}") };
    let days = ctx.config.tunables.stale_valid_days;
    let until = match run.stale_at {
        Some(at) => standing_fetch(tx, run.id).await?.stale_until.unwrap_or(at),
        None => now + TimeDelta::days(days),
    };
    queries::run_note_stale(tx, run, &reason, now, until).await?;
    let text = format!(
        "What your run was measured on has changed since: {new}.\n\nIts badge is stale. Answer a new challenge before {} (UTC), or the listing \
         that stands on it leaves the market then.\n\n{}",
        until.format("%Y-%m-%d %H:%M"),
        run_link(ctx, run)
    );
    identity::service::notify(ctx, tx, run.account_id, "Your run is stale", &text).await?;
    announce::stale(ctx, tx, run, &reason, until).await?;
    history::append(tx, run.id, Doer::SYSTEM, &Event::Stale { reason: new, until }, now).await?;
    run_changed(tx, run.id, ctx.clock.wall_now()).await
}
