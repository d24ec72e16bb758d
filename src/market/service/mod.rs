//! Use cases of the market, and what rentals need of it.

mod evidence;
mod leaderboard;
mod listings;
mod quotes;
mod search;
mod terms;

pub use super::input::{CreateListing, CreateQuote, UpdateListing};
pub use super::search::{ListingQuery, Sort};
pub(super) use evidence::{next_due, reassess_changed, reassess_machine, reassess_run};
pub use leaderboard::leaderboard;
pub use listings::{create, list_own, pause, publish, show, show_with_run, update};
pub use quotes::{create_quote, open_quote};
pub use search::{Hit, RunOnMarket, count, search, show_run};
pub use terms::{lock, set_taken, take_terms};

use chrono::{DateTime, Utc};

use super::{
    gate::{MachineFacts, Rules, wanted_level},
    model::Listing,
    state::ListingState,
};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, ListingId},
    },
    ctx::Ctx,
    db::Tx,
    machines::{self, model::Machine},
    webhooks::{self, EventType},
};

fn no_listing() -> Error {
    Error::not_found("listing")
}

/// What this deployment asks of evidence, now.
fn rules(ctx: &Ctx, now: DateTime<Utc>) -> Rules {
    Rules { now, wanted: wanted_level(ctx.config.listing_evidence), is_sandbox: ctx.config.mode.is_sandbox(), is_publishing: false }
}

fn machine_facts(machine: &Machine) -> MachineFacts {
    MachineFacts {
        is_deleted: machine.deleted_at.is_some(),
        hardware_slug: machine.hardware_slug.clone(),
        gpu_count: machine.gpu_count,
        hardware_changed_at: machine.hardware_changed_at,
        endpoint_changed_at: machine.endpoint_changed_at,
    }
}

/// Why signs of life of a machine are wanted: it is on the market.
fn watch_reason(id: ListingId) -> String {
    format!("listing:{id}")
}

/// An open listing of the account, with its row locked.
async fn lock_owned(tx: &mut Tx<'_>, account: AccountId, id: ListingId) -> Result<Listing> {
    let listing = super::queries::listing_lock(tx, id).await?;
    listing.filter(|l| l.account_id == account && l.closed_at.is_none()).ok_or_else(no_listing)
}

/// Moves a locked listing off or back, and says whether signs of life of its machine are wanted.
async fn set_state(tx: &mut Tx<'_>, listing: &mut Listing, state: ListingState, reason: Option<&'static str>) -> Result<()> {
    listing.state = state.as_str().to_owned();
    listing.off_market_reason = reason.map(str::to_owned);
    let watch = watch_reason(listing.id);
    if state == ListingState::Published {
        machines::service::watch(tx, listing.machine_id, &watch).await
    } else {
        machines::service::unwatch(tx, listing.machine_id, &watch).await
    }
}

/// Tells webhooks when a listing that has been written back has come on the market, or was taken off it; `before` is what it was.
async fn announce(ctx: &Ctx, tx: &mut Tx<'_>, listing: &Listing, before: ListingState) -> Result<()> {
    let event = match (before, listing.state()?) {
        (ListingState::Published, ListingState::OffMarket) => EventType::ListingOffMarket,
        (ListingState::Published, _) | (_, ListingState::Draft | ListingState::Paused | ListingState::OffMarket) => return Ok(()),
        (_, ListingState::Published) => EventType::ListingPublished,
    };
    for account in webhooks::service::accounts_waiting_for(tx, &[listing.account_id], event).await? {
        let data = listings::view(ctx, tx, listing.id).await?;
        webhooks::service::emit(ctx, tx, account, event, &data).await?;
    }
    Ok(())
}

/// The copies that the search filters by.
fn copy_machine(listing: &mut Listing, machine: &Machine) {
    listing.hardware_slug.clone_from(&machine.hardware_slug);
    listing.gpu_count = machine.gpu_count;
    listing.vram_gib = machine.vram_gib;
    listing.region.clone_from(&machine.region);
}
