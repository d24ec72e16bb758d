//! All SQL of the market: its own table, and what it reads of machines, accounts and runs.

mod details;
mod evidence;
mod run_page;
mod search;
mod values;

pub use details::{listing_details, listing_list_own, run_list_of_machine};
pub use evidence::{listing_list_of_run, listing_list_to_reassess, listing_mark_silent, listing_next_due};
pub use run_page::run_offers;
pub use search::{Found, listing_counts, listing_search};
pub use values::{ValueRow, value_list};

use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::model::{Listing, ListingChange};
use crate::{
    base::{
        Result,
        id::{AccountId, ListingId, MachineId},
    },
    db::{Conn, KeptDsl, Tx, schema::listings},
};

/// # Errors
/// The violation of `listings_one_open` when the machine has an open listing.
pub async fn listing_insert(tx: &mut Tx<'_>, listing: &Listing) -> Result<()> {
    tx.note_public_change();
    diesel::insert_into(listings::table).values(listing).execute(&mut **tx).await?;
    Ok(())
}

/// The listing with its row locked against changes and against being rented; also a closed one.
pub async fn listing_lock(tx: &mut Tx<'_>, id: ListingId) -> Result<Option<Listing>> {
    Ok(listings::table.find(id).select(Listing::as_select()).for_no_key_update().first(&mut **tx).await.optional()?)
}

/// The row without a lock.
pub async fn listing_fetch(conn: &mut Conn, id: ListingId) -> Result<Option<Listing>> {
    Ok(listings::table.find(id).select(Listing::as_select()).first(conn).await.optional()?)
}

/// Writes a locked listing back.
pub async fn listing_update(tx: &mut Tx<'_>, listing: &Listing) -> Result<()> {
    tx.note_public_change();
    diesel::update(listings::table.find(listing.id)).set(ListingChange::from(listing)).kept().execute(&mut **tx).await?;
    answers_refresh(tx, listing.id).await
}

/// What the listing answers to workloads, and what a dollar buys there, follow its run, its price and its state.
async fn answers_refresh(tx: &mut Tx<'_>, id: ListingId) -> Result<()> {
    let refresh =
        diesel::sql_query("SELECT listing_answers_refresh(ARRAY[$1]), listing_values_refresh(ARRAY[$1])").bind::<sql_types::Uuid, _>(id);
    refresh.kept().execute(&mut **tx).await?;
    Ok(())
}

pub async fn listing_set_taken(tx: &mut Tx<'_>, id: ListingId, is_taken: bool) -> Result<()> {
    tx.note_public_change();
    diesel::update(listings::table.find(id)).set(listings::is_taken.eq(is_taken)).kept().execute(&mut **tx).await?;
    Ok(())
}

/// The open listing of a machine.
pub async fn listing_of_machine(conn: &mut Conn, machine: MachineId) -> Result<Option<ListingId>> {
    let open = listings::table.filter(listings::machine_id.eq(machine)).filter(listings::closed_at.is_null());
    Ok(open.select(listings::id).first(conn).await.optional()?)
}

#[derive(QueryableByName)]
struct Flag {
    #[diesel(sql_type = sql_types::Bool)]
    flag: bool,
}

pub async fn account_is_closed(conn: &mut Conn, account: AccountId) -> Result<bool> {
    let row: Flag = diesel::sql_query("SELECT closed_at IS NOT NULL AS flag FROM accounts WHERE id = $1")
        .bind::<sql_types::Uuid, _>(account)
        .kept()
        .get_result(conn)
        .await?;
    Ok(row.flag)
}
