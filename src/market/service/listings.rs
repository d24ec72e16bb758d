//! Listings of a host: drafting, changing, publishing, pausing, and showing.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    super::{
        gate::{self, Engine, Facts, Rules, Unmet},
        input::{CreateListing, Offer, UpdateListing},
        model::{Listing, ListingView},
        queries,
        saved_searches::offered,
        state::{ListingState, Move},
    },
    announce, copy_machine,
    evidence::{back, reassess_locked},
    lock_owned, machine_facts, no_listing, rules, set_state,
};
use crate::{
    base::{Code, Error, Result, id::ListingId},
    benchmarks::{self, model::RunView},
    ctx::Ctx,
    db::{Conn, OnConstraint, Tx},
    identity::Caller,
    machines::{self, model::Machine},
};

/// Drafts a listing of one's own machine.
///
/// # Errors
/// `invalid_input`, `not_found` for a machine that is not the caller's, `already_listed`.
pub async fn create(ctx: &Ctx, caller: &Caller, form: &CreateListing) -> Result<ListingView> {
    let offer = Offer::new(form);
    let id = ListingId::new();
    ctx.db
        .tx("listing_create", async |tx| {
            let now = ctx.business_now(tx).await?;
            offer.check(now, None)?;
            let machine = machines::service::fetch_owned(tx, caller, form.machine_id).await?;
            // Deleted meanwhile: its listing would never be closed.
            machines::service::lock(tx, machine.id).await.and_then(|m| if m.deleted_at.is_none() { Ok(()) } else { Err(no_machine()) })?;
            let listing = draft(id, &machine, &offer, now);
            queries::listing_insert(tx, &listing)
                .await
                .on_constraint("listings_one_open", || Error::new(Code::AlreadyListed, "The machine has a listing: change that one."))
        })
        .await?;
    let mut conn = ctx.db.conn().await?;
    view(ctx, &mut conn, id).await
}

fn no_machine() -> Error {
    Error::not_found("machine")
}

fn draft(id: ListingId, machine: &Machine, offer: &Offer, now: DateTime<Utc>) -> Listing {
    let mut listing = Listing {
        id,
        machine_id: machine.id,
        account_id: machine.account_id,
        state: ListingState::Draft.as_str().to_owned(),
        off_market_reason: None,
        price_per_hour_micros: offer.price_per_hour,
        min_hours: 0,
        max_hours: None,
        available_until: None,
        description: String::new(),
        run_id: None,
        valid_until: None,
        is_taken: false,
        is_silent: false,
        hardware_slug: String::new(),
        gpu_count: 1,
        vram_gib: None,
        region: None,
        model: None,
        quantization: None,
        published_at: None,
        created_at: now,
        updated_at: now,
        closed_at: None,
        version: 1,
    };
    offer.clone().write_to(&mut listing);
    copy_machine(&mut listing, machine);
    listing
}

/// Changes the terms of a listing. Running rentals and quotes given keep theirs.
///
/// # Errors
/// `not_found`, `invalid_input`.
pub async fn update(ctx: &Ctx, caller: &Caller, id: ListingId, form: &UpdateListing) -> Result<ListingView> {
    ctx.db
        .tx("listing_update", async |tx| {
            let mut listing = lock_owned(tx, caller.account_id, id).await?;
            let now = ctx.business_now(tx).await?;
            let was_until = listing.available_until;
            let offer = Offer::of(&listing).merged(form);
            offer.check(now, was_until)?;
            offer.write_to(&mut listing);
            listing.updated_at = now;
            listing.version = listing.version.saturating_add(1);
            // `available_until` bears on how long the listing is valid.
            reassess_locked(ctx, tx, &mut listing, &rules(ctx, now)).await?;
            offered(ctx, tx, &listing).await
        })
        .await?;
    let mut conn = ctx.db.conn().await?;
    view(ctx, &mut conn, id).await
}

/// Puts a listing on the market. One that is there stays as it is.
///
/// # Errors
/// `listing_not_measured` with every unmet condition, `not_found`.
pub async fn publish(ctx: &Ctx, caller: &Caller, id: ListingId) -> Result<ListingView> {
    let (listing, machine) = {
        let mut conn = ctx.db.conn().await?;
        let listing = queries::listing_fetch(&mut conn, id).await?;
        let listing = listing.filter(|l| l.account_id == caller.account_id && l.closed_at.is_none()).ok_or_else(no_listing)?;
        let machine = machines::service::fetch(&mut conn, listing.machine_id).await?;
        (listing, machine)
    };
    if listing.state()? != ListingState::Published {
        // Before the transaction: nothing waits for a network inside one.
        let engine = ask_engine(ctx, &machine).await;
        let asked = Asked { endpoint_url: machine.endpoint_url, engine };
        ctx.db.tx("listing_publish", async |tx| publish_locked(ctx, tx, caller, id, &asked).await).await?;
    }
    let mut conn = ctx.db.conn().await?;
    view(ctx, &mut conn, id).await
}

/// What an engine said, and where.
struct Asked {
    endpoint_url: Option<String>,
    engine: Engine,
}

async fn ask_engine(ctx: &Ctx, machine: &Machine) -> Engine {
    if machine.endpoint_url.is_none() {
        return Engine::Missing;
    }
    match machines::service::describe(ctx, machine).await {
        Ok(description) => Engine::Reachable { is_simulated: description.is_simulated() },
        Err(error) => Engine::Unreachable(error.detail().to_owned()),
    }
}

async fn publish_locked(ctx: &Ctx, tx: &mut Tx<'_>, caller: &Caller, id: ListingId, asked: &Asked) -> Result<()> {
    let mut listing = lock_owned(tx, caller.account_id, id).await?;
    let state = listing.state()?;
    if state == ListingState::Published {
        return Ok(());
    }
    let machine = machines::service::lock(tx, listing.machine_id).await?;
    if machine.endpoint_url != asked.endpoint_url {
        return Err(Error::new(Code::InvalidState, "The machine's endpoint was changed meanwhile; publish again."));
    }
    let now = ctx.business_now(tx).await?;
    let facts = gather(tx, &listing, &machine, asked.engine.clone()).await?;
    let rules = Rules { is_publishing: true, ..rules(ctx, now) };
    let run = gate::check(&facts, &rules).map_err(not_measured)?;
    back(&mut listing, run);
    copy_machine(&mut listing, &machine);
    listing.is_silent = false;
    let next = state.after(Move::Publish).ok_or_else(|| Error::internal("publishing has no next state"))?;
    set_state(tx, &mut listing, next, None).await?;
    listing.published_at = Some(now);
    listing.updated_at = now;
    listing.version = listing.version.saturating_add(1);
    queries::listing_update(tx, &listing).await?;
    offered(ctx, tx, &listing).await?;
    let is_simulated = asked.engine == Engine::Reachable { is_simulated: true };
    machines::service::note_simulated(tx, machine.id, is_simulated).await?;
    machines::service::note_seen(tx, machine.id, now).await?;
    announce(ctx, tx, &listing, state).await
}

/// Everything the gate looks at.
pub(super) async fn gather(conn: &mut Conn, listing: &Listing, machine: &Machine, engine: Engine) -> Result<Facts> {
    Ok(Facts {
        is_account_closed: queries::account_is_closed(conn, listing.account_id).await?,
        machine: machine_facts(machine),
        engine,
        has_price: listing.price_per_hour_micros.is_positive(),
        available_until: listing.available_until,
        runs: queries::run_list_of_machine(conn, machine.id).await?,
    })
}

fn not_measured(unmet: Vec<Unmet>) -> Error {
    let detail = match unmet.as_slice() {
        [one] => one.detail.clone(),
        many => format!("{} conditions are not met.", many.len()),
    };
    Error::new(Code::ListingNotMeasured, detail).with_extra("unmet", json!(unmet))
}

/// Takes one's listing down. One that is down by its owner stays as it is.
///
/// # Errors
/// `invalid_state` for a draft or one that the system took off the market, `not_found`.
pub async fn pause(ctx: &Ctx, caller: &Caller, id: ListingId) -> Result<ListingView> {
    ctx.db
        .tx("listing_pause", async |tx| {
            let mut listing = lock_owned(tx, caller.account_id, id).await?;
            let state = listing.state()?;
            let next = state.after(Move::Pause);
            let next = next.ok_or_else(|| Error::new(Code::InvalidState, format!("The listing is {}, not published.", state.as_str())))?;
            if next == state {
                return Ok(());
            }
            set_state(tx, &mut listing, next, None).await?;
            listing.updated_at = ctx.business_now(tx).await?;
            listing.version = listing.version.saturating_add(1);
            queries::listing_update(tx, &listing).await
        })
        .await?;
    let mut conn = ctx.db.conn().await?;
    view(ctx, &mut conn, id).await
}

/// A listing as anybody may see it; a draft only as its owner.
///
/// # Errors
/// `not_found`.
pub async fn show(ctx: &Ctx, caller: Option<&Caller>, id: ListingId) -> Result<ListingView> {
    let mut conn = ctx.db.read().await?;
    let details = queries::listing_details(&mut conn, id).await?;
    let is_owner = |account| caller.is_some_and(|caller| caller.account_id == account);
    let visible = details.filter(|d| d.listing.state != ListingState::Draft.as_str() || is_owner(d.listing.account_id));
    let now = ctx.business_now(&mut conn).await?;
    ListingView::new(visible.ok_or_else(no_listing)?, None, &rules(ctx, now))
}

/// A listing as anybody may see it, with the run that backs it.
///
/// # Errors
/// `not_found`.
pub async fn show_with_run(ctx: &Ctx, id: ListingId) -> Result<(ListingView, Option<RunView>)> {
    let listing = show(ctx, None, id).await?;
    let run = match &listing.run {
        Some(run) => Some(benchmarks::service::fetch(ctx, run.id).await?),
        None => None,
    };
    Ok((listing, run))
}

/// The caller's listings in every state, newest first.
///
/// # Errors
/// The database's own faults.
pub async fn list_own(ctx: &Ctx, caller: &Caller, before: Option<ListingId>, limit: i64) -> Result<Vec<ListingView>> {
    let mut conn = ctx.db.conn().await?;
    let now = ctx.business_now(&mut conn).await?;
    let rows = queries::listing_list_own(&mut conn, caller.account_id, before, limit).await?;
    rows.into_iter().map(|details| ListingView::new(details, None, &rules(ctx, now))).collect()
}

pub(super) async fn view(ctx: &Ctx, conn: &mut Conn, id: ListingId) -> Result<ListingView> {
    let details = queries::listing_details(conn, id).await?.ok_or_else(no_listing)?;
    let now = ctx.business_now(conn).await?;
    ListingView::new(details, None, &rules(ctx, now))
}
