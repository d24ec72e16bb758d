//! What rentals take from a listing.

use chrono::{DateTime, Utc};

use super::{
    super::{
        gate::run_conditions,
        model::{ListingDetails, ListingTerms},
        queries,
        state::ListingState,
    },
    no_listing, rules,
};
use crate::{
    base::{Code, Error, Result, id::ListingId},
    ctx::Ctx,
    db::{Conn, Tx},
};

/// The terms of a published listing, its row locked until the transaction ends: of renting, changing, and leaving the market at the same
/// instant each sees the others' outcome.
///
/// # Errors
/// `not_found`, or `listing_not_available` when it is not on the market or what backs it no longer holds.
pub async fn take_terms(ctx: &Ctx, tx: &mut Tx<'_>, id: ListingId, now: DateTime<Utc>) -> Result<ListingTerms> {
    queries::listing_lock(tx, id).await?.ok_or_else(no_listing)?;
    available(ctx, tx, id, now).await
}

/// The terms of a listing that is on the market at `now`.
pub(super) async fn available(ctx: &Ctx, conn: &mut Conn, id: ListingId, now: DateTime<Utc>) -> Result<ListingTerms> {
    let ListingDetails { listing, machine, run, .. } = queries::listing_details(conn, id).await?.ok_or_else(no_listing)?;
    let not_available = |detail: String| Error::new(Code::ListingNotAvailable, detail);
    match listing.state()? {
        ListingState::Published => {}
        ListingState::Draft => return Err(no_listing()),
        state => return Err(not_available(format!("The listing is {}.", state.as_str().replace('_', " ")))),
    }
    if listing.available_until.is_some_and(|until| until <= now) {
        return Err(not_available("The listing's time is over.".to_owned()));
    }
    if !machine.has_endpoint {
        return Err(not_available("The machine has no endpoint.".to_owned()));
    }
    // A change may be younger than the job that takes the listing off the market for it.
    let rules = rules(ctx, now);
    let lacking = run.as_ref().map(|run| run_conditions(&run.facts, &machine.facts, &rules));
    match lacking {
        Some(conditions) if conditions.is_empty() && !machine.facts.is_deleted => {}
        Some(conditions) => {
            let why = conditions.into_iter().next().map_or_else(|| "The machine was deleted.".to_owned(), |unmet| unmet.detail);
            return Err(not_available(why));
        }
        None => return Err(not_available("No run backs the listing.".to_owned())),
    }
    Ok(ListingTerms {
        listing_id: listing.id,
        machine_id: listing.machine_id,
        host_account_id: listing.account_id,
        price_per_hour: listing.price_per_hour_micros,
        min_hours: listing.min_hours,
        max_hours: listing.max_hours,
        available_until: listing.available_until,
        run_id: listing.run_id,
        model: listing.model,
        quantization: listing.quantization,
    })
}

/// Locks a listing's row, also a closed one's, until the transaction ends: what changes whether its machine is taken stands in line with
/// [`take_terms`].
///
/// # Errors
/// The database's own faults.
pub async fn lock(tx: &mut Tx<'_>, id: ListingId) -> Result<()> {
    queries::listing_lock(tx, id).await.map(drop)
}

/// Says whether a rental has the listing's machine, now or reserved.
///
/// # Errors
/// The database's own faults.
pub async fn set_taken(tx: &mut Tx<'_>, id: ListingId, is_taken: bool) -> Result<()> {
    queries::listing_set_taken(tx, id, is_taken).await
}
