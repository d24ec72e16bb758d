//! All SQL of `saved_searches` and `saved_search_hits`.

use chrono::{DateTime, Utc};
use diesel::{
    dsl::{exists, not, sql},
    prelude::*,
    sql_types,
};
use diesel_async::RunQueryDsl;

use super::model::SavedSearch;
use crate::{
    base::{
        Result,
        id::{AccountId, ListingId, SavedSearchId},
    },
    db::{
        Conn, Tx,
        schema::{saved_search_hits, saved_searches},
    },
};

/// False when the account has `most` already. Two at once may both pass the count; the bound is for size, not for money.
pub async fn saved_search_insert(tx: &mut Tx<'_>, row: &SavedSearch, most: i64) -> Result<bool> {
    let own = saved_searches::table.filter(saved_searches::account_id.eq(row.account_id.uuid()));
    if own.count().get_result::<i64>(&mut **tx).await? >= most {
        return Ok(false);
    }
    diesel::insert_into(saved_searches::table).values(row).execute(&mut **tx).await?;
    Ok(true)
}

pub async fn saved_search_list(conn: &mut Conn, account: AccountId, before: Option<SavedSearchId>, limit: i64) -> Result<Vec<SavedSearch>> {
    let mut query = saved_searches::table.filter(saved_searches::account_id.eq(account.uuid())).into_boxed();
    if let Some(before) = before {
        query = query.filter(saved_searches::id.lt(before.uuid()));
    }
    Ok(query.order(saved_searches::id.desc()).limit(limit).select(SavedSearch::as_select()).load(conn).await?)
}

/// `false` when it is not there or another's.
pub async fn saved_search_delete(tx: &mut Tx<'_>, id: SavedSearchId, account: AccountId) -> Result<bool> {
    let own = saved_searches::table.find(id.uuid()).filter(saved_searches::account_id.eq(account.uuid()));
    Ok(diesel::delete(own).execute(&mut **tx).await? == 1)
}

/// Searches that a listing may fit and that have not told of it, by id from after `after`: never the lister's own.
pub async fn saved_search_candidates(
    conn: &mut Conn,
    listing: ListingId,
    lister: AccountId,
    hardware_slug: &str,
    model: &str,
    after: Option<SavedSearchId>,
    limit: i64,
) -> Result<Vec<SavedSearch>> {
    let told = saved_search_hits::table
        .filter(saved_search_hits::search_id.eq(saved_searches::id))
        .filter(saved_search_hits::listing_id.eq(listing.uuid()));
    // As the index has them.
    let mut query = saved_searches::table
        .filter(sql::<sql_types::Text>("coalesce(hardware_slug, '')").eq_any(["", hardware_slug]))
        .filter(sql::<sql_types::Text>("coalesce(model, '')").eq_any(["", model]))
        .filter(saved_searches::account_id.ne(lister.uuid()))
        .filter(not(exists(told)))
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(saved_searches::id.gt(after.uuid()));
    }
    Ok(query.order(saved_searches::id).limit(limit).select(SavedSearch::as_select()).load(conn).await?)
}

/// False when the search has told of the listing, or is gone.
pub async fn hit_insert(tx: &mut Tx<'_>, search: SavedSearchId, listing: ListingId, now: DateTime<Utc>) -> Result<bool> {
    let there = saved_searches::table.find(search.uuid()).select(saved_searches::id).for_share();
    if there.first::<SavedSearchId>(&mut **tx).await.optional()?.is_none() {
        return Ok(false);
    }
    let hit = (
        saved_search_hits::search_id.eq(search.uuid()),
        saved_search_hits::listing_id.eq(listing.uuid()),
        saved_search_hits::created_at.eq(now),
    );
    let inserted = diesel::insert_into(saved_search_hits::table).values(hit).on_conflict_do_nothing().execute(&mut **tx).await?;
    Ok(inserted == 1)
}
