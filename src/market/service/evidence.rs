//! Keeping listings and what backs them together: a sweep looks for listings whose evidence may not hold any more, jobs name one at once.
//! Either way the gate decides again on the locked row. Running rentals go on.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        gate::{self, Engine, Facts, Rules, RunFacts, Unmet, UnmetCode, run_conditions},
        model::Listing,
        queries,
        saved_searches::offered,
        state::{ListingState, Move},
    },
    announce, copy_machine,
    listings::gather,
    rules, set_state,
};
use crate::{
    base::{
        Result,
        id::{ListingId, MachineId, RunId},
    },
    ctx::Ctx,
    db::{Conn, Tx},
    machines::{self, model::Machine},
};

const BATCH: i64 = 500;

/// Makes the run the one that backs the listing.
pub(super) fn back(listing: &mut Listing, run: &RunFacts) {
    listing.run_id = Some(run.id);
    listing.model = Some(run.model.clone());
    listing.quantization.clone_from(&run.quantization);
    let until = run.backs_until();
    listing.valid_until = Some(listing.available_until.map_or(until, |end| end.min(until)));
}

/// Looks at a locked listing again and writes it back: a published one stays with the newest run that backs it, or leaves the market.
pub(super) async fn reassess_locked(ctx: &Ctx, tx: &mut Tx<'_>, listing: &mut Listing, rules: &Rules) -> Result<()> {
    let before = listing.state()?;
    put_right(tx, listing, rules).await?;
    queries::listing_update(tx, listing).await?;
    announce(ctx, tx, listing, before).await
}

async fn put_right(tx: &mut Tx<'_>, listing: &mut Listing, rules: &Rules) -> Result<()> {
    let machine = machines::service::fetch(tx, listing.machine_id).await?;
    copy_machine(listing, &machine);
    let state = listing.state()?;
    let is_doubted = listing.off_market_reason.as_deref() == Some(UnmetCode::RemeasureDisagreed.as_str());
    if state == ListingState::OffMarket && is_doubted && machine.deleted_at.is_none() {
        return put_back(tx, listing, &machine, rules).await;
    }
    let off = if machine.deleted_at.is_some() {
        listing.closed_at = Some(rules.now);
        Some(UnmetCode::MachineDeleted)
    } else if state == ListingState::Published {
        // Whether it answers is for the signs of life; that there is something to ask is for the gate.
        let engine = if machine.endpoint_url.is_some() { Engine::NotAsked } else { Engine::Missing };
        let facts = gather(tx, listing, &machine, engine).await?;
        match gate::check(&facts, rules) {
            Ok(run) => {
                back(listing, run);
                None
            }
            Err(unmet) => Some(reason(listing, &facts, rules, &unmet)),
        }
    } else {
        None
    };
    if let Some(code) = off {
        // A deleted machine's draft or paused listing is closed as well.
        let next = state.after(Move::TakeOff).unwrap_or(ListingState::OffMarket);
        set_state(tx, listing, next, Some(code.as_str())).await?;
        listing.updated_at = rules.now;
        tracing::info!(listing.id = %listing.id, reason = code.as_str(), "listing taken off the market");
    }
    Ok(())
}

/// What the server's own measurement took off the market comes back by itself when a later one agrees, or a person accepts the run.
async fn put_back(tx: &mut Tx<'_>, listing: &mut Listing, machine: &Machine, rules: &Rules) -> Result<()> {
    let engine = if machine.endpoint_url.is_some() { Engine::NotAsked } else { Engine::Missing };
    let facts = gather(tx, listing, machine, engine).await?;
    if let Ok(run) = gate::check(&facts, rules) {
        back(listing, run);
        set_state(tx, listing, ListingState::Published, None).await?;
        listing.updated_at = rules.now;
        tracing::info!(listing.id = %listing.id, "listing put back on the market");
    }
    Ok(())
}

/// The one reason to name: the listing's own, else what its run lacks, not what other runs of the machine lack.
fn reason(listing: &Listing, facts: &Facts, rules: &Rules, unmet: &[Unmet]) -> UnmetCode {
    let own = [UnmetCode::MachineDeleted, UnmetCode::AccountClosed, UnmetCode::AvailabilityEnded, UnmetCode::EndpointMissing];
    let first = unmet.first().map(|u| u.code).filter(|code| own.contains(code));
    let of_run = || {
        let run = facts.runs.iter().find(|run| Some(run.id) == listing.run_id)?;
        run_conditions(run, &facts.machine, rules).first().map(|u| u.code)
    };
    first.or_else(of_run).unwrap_or(UnmetCode::RunMissing)
}

async fn reassess(ctx: &Ctx, id: ListingId, now: DateTime<Utc>) -> Result<()> {
    let rules = rules(ctx, now);
    ctx.db
        .tx("listing_reassess", async |tx| match queries::listing_lock(tx, id).await? {
            Some(mut listing) if listing.closed_at.is_none() => {
                let before = listing.clone();
                put_right(tx, &mut listing, &rules).await?;
                if listing == before {
                    return Ok(());
                }
                queries::listing_update(tx, &listing).await?;
                announce(ctx, tx, &listing, before.state()?).await?;
                // Back on the market, or with another run.
                offered(ctx, tx, &listing).await
            }
            _ => Ok(()),
        })
        .await
}

/// Looks again at every published listing whose evidence may not hold at `now`, or that has a newer run.
pub(in super::super) async fn reassess_changed(ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
    let ids = {
        let mut conn = ctx.db.conn().await?;
        queries::listing_list_to_reassess(&mut conn, &rules(ctx, now), BATCH).await?
    };
    for id in ids {
        reassess(ctx, id, now).await?;
    }
    let silent_since = now - TimeDelta::seconds(ctx.config.tunables.host_silent_end_seconds);
    ctx.db.tx("listing_silence", async |tx| queries::listing_mark_silent(tx, silent_since).await).await
}

/// Looks again at the open listing of a machine that was changed or deleted.
pub(in super::super) async fn reassess_machine(ctx: &Ctx, machine: MachineId) -> Result<()> {
    let (id, now) = {
        let mut conn = ctx.db.conn().await?;
        (queries::listing_of_machine(&mut conn, machine).await?, ctx.business_now(&mut conn).await?)
    };
    match id {
        Some(id) => reassess(ctx, id, now).await,
        None => Ok(()),
    }
}

/// Looks again at the listings that a changed run backs or could back.
pub(in super::super) async fn reassess_run(ctx: &Ctx, run: RunId) -> Result<()> {
    let (ids, now) = {
        let mut conn = ctx.db.conn().await?;
        (queries::listing_list_of_run(&mut conn, run).await?, ctx.business_now(&mut conn).await?)
    };
    for id in ids {
        reassess(ctx, id, now).await?;
    }
    Ok(())
}

/// When the next listing leaves the market by itself.
pub(in super::super) async fn next_due(conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    queries::listing_next_due(conn, after).await
}
