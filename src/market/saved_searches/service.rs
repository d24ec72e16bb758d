//! Saving a search, and telling of what fits.

use serde_json::json;

use super::{
    LISTING_OFFERED,
    model::{SaveSearch, SavedSearch, SavedSearchView},
    queries,
};
use crate::{
    base::{
        Code, Error, FieldError, Result,
        id::{AccountId, ListingId, SavedSearchId},
        text,
    },
    ctx::Ctx,
    db::Tx,
    identity::{self, Caller},
    jobs::{self, Job},
    market::{
        model::Listing,
        queries::{listing_counts, listing_fetch},
        search::Search,
        state::ListingState,
    },
};

/// Searches of one account.
const SEARCHES_MAX: i64 = 50;
const NAME_CHARS_MAX: usize = 80;
/// Searches that one statement asks for a listing.
const BATCH: i64 = 20;

/// Keeps a search.
///
/// # Errors
/// `pro_required`, `invalid_input`, `invalid_state` for one too many.
pub async fn save(ctx: &Ctx, caller: &Caller, form: &SaveSearch) -> Result<SavedSearchView> {
    let name = form.name.trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return Err(Error::invalid("/name", "invalid", "A name has 1 to 80 characters."));
    }
    let hidden = hidden_faults(form);
    if !hidden.is_empty() {
        return Err(Error::invalid_fields(hidden));
    }
    let search = Search::check(&form.query.listing_query()).map_err(of_body)?;
    let row = SavedSearch {
        id: SavedSearchId::new(),
        account_id: caller.account_id,
        name: name.to_owned(),
        query: serde_json::to_string(&form.query).map_err(Error::internal)?,
        hardware_slug: search.hardware_slug,
        model: search.workload.map(|workload| workload.model),
        created_at: ctx.clock.wall_now(),
    };
    let insert = async |tx: &mut Tx<'_>| {
        let has = identity::service::entitlements(ctx, tx, caller.account_id).await?;
        has.require_pro("A search that writes when something new fits needs Pro.")?;
        let is_kept = queries::saved_search_insert(tx, &row, SEARCHES_MAX).await?;
        let one_too_many = || Error::new(Code::InvalidState, format!("An account keeps at most {SEARCHES_MAX} searches."));
        if is_kept { Ok(()) } else { Err(one_too_many()) }
    };
    ctx.db.tx("saved_search_create", insert).await?;
    SavedSearchView::of(&row)
}

fn hidden_faults(form: &SaveSearch) -> Vec<FieldError> {
    let query = &form.query;
    let texts = [
        ("/name", Some(&form.name)),
        ("/query/by", query.by.as_ref()),
        ("/query/hardware", query.hardware.as_ref()),
        ("/query/model", query.model.as_ref()),
        ("/query/quantization", query.quantization.as_ref()),
    ];
    texts.into_iter().filter_map(|(pointer, given)| text::label_fault(pointer, given?)).collect()
}

/// Faults of query parameters, as faults of the body that holds them.
fn of_body(error: Error) -> Error {
    let fields = error.fields().iter();
    let fields = fields.map(|field| FieldError::new(field.pointer.replacen('?', "/query/", 1), field.code.clone(), field.detail.clone()));
    let fields = fields.collect();
    error.with_fields(fields)
}

/// The account's searches, newest first.
///
/// # Errors
/// The database's own faults.
pub async fn list(ctx: &Ctx, caller: &Caller, before: Option<SavedSearchId>, limit: i64) -> Result<Vec<SavedSearchView>> {
    let mut conn = ctx.db.conn().await?;
    let rows = queries::saved_search_list(&mut conn, caller.account_id, before, limit).await?;
    rows.iter().map(SavedSearchView::of).collect()
}

/// # Errors
/// `not_found` for one that is not the account's.
pub async fn forget(ctx: &Ctx, caller: &Caller, id: SavedSearchId) -> Result<()> {
    let is_gone = ctx.db.tx("saved_search_delete", async |tx| queries::saved_search_delete(tx, id, caller.account_id).await).await?;
    if is_gone { Ok(()) } else { Err(Error::not_found("saved search")) }
}

/// To be called in the transaction that puts a listing on the market or changes its terms there.
pub(in crate::market) async fn offered(ctx: &Ctx, tx: &mut Tx<'_>, listing: &Listing) -> Result<()> {
    if listing.state()? != ListingState::Published {
        return Ok(());
    }
    let payload = json!({ "listing_id": listing.id });
    let dedupe_key = Some(listing.id.to_string());
    jobs::enqueue(tx, Job { kind: LISTING_OFFERED, payload, dedupe_key, run_at: ctx.clock.wall_now() }).await
}

/// Tells every search that a listing fits, in batches; those that have told of it are passed over, so a second run goes on.
///
/// # Errors
/// The database's own faults.
pub async fn tell(ctx: &Ctx, id: ListingId) -> Result<()> {
    let listing = listing_fetch(&mut *ctx.db.conn().await?, id).await?;
    let Some(listing) = listing.filter(|listing| listing.state == ListingState::Published.as_str()) else { return Ok(()) };
    let model = listing.model.clone().unwrap_or_default();
    let mut after = None;
    loop {
        let candidates = {
            let mut conn = ctx.db.conn().await?;
            queries::saved_search_candidates(&mut conn, id, listing.account_id, &listing.hardware_slug, &model, after, BATCH).await?
        };
        let Some(last) = candidates.last() else { return Ok(()) };
        after = Some(last.id);
        for search in fitting(ctx, candidates, id).await? {
            tell_one(ctx, &search, &listing).await?;
        }
    }
}

/// Those of them that find the listing: one statement.
async fn fitting(ctx: &Ctx, candidates: Vec<SavedSearch>, id: ListingId) -> Result<Vec<SavedSearch>> {
    let mut searches = Vec::new();
    let mut asked = Vec::new();
    for row in candidates {
        match Search::check(&row.query()?.listing_query()) {
            Ok(search) => {
                searches.push(Search { only: Some(id), ..search });
                asked.push(row);
            }
            // A name that has come to mean several things since.
            Err(error) => tracing::warn!(search = %row.id, error = ?error, "a saved search is no longer valid"),
        }
    }
    let mut conn = ctx.db.conn().await?;
    let now = ctx.business_now(&mut conn).await?;
    let counts = listing_counts(&mut conn, ctx.db.shapes(), &searches, now, 1).await?;
    Ok(asked.into_iter().zip(counts).filter(|(_, count)| *count > 0).map(|(row, _)| row).collect())
}

async fn tell_one(ctx: &Ctx, search: &SavedSearch, listing: &Listing) -> Result<()> {
    let write = async |tx: &mut Tx<'_>| {
        if !identity::service::entitlements(ctx, tx, search.account_id).await?.is_pro {
            return Ok(());
        }
        if !queries::hit_insert(tx, search.id, listing.id, ctx.clock.wall_now()).await? {
            return Ok(());
        }
        announce(ctx, tx, search.account_id, search, listing).await
    };
    ctx.db.tx("saved_search_tell", write).await
}

/// Every way on which an account hears of it goes through here.
async fn announce(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId, search: &SavedSearch, listing: &Listing) -> Result<()> {
    let subject = format!("New on the market: {}", search.name);
    let text = format!(
        "A machine that your search \"{}\" finds is on the market at {} usd an hour:\n\n{}/en/listings/{}",
        search.name, listing.price_per_hour_micros, ctx.public_url, listing.id
    );
    identity::service::notify(ctx, tx, account, &subject, &text).await
}
