//! Quotes: a price that holds for a while.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        input::{CreateQuote, check_hours},
        model::{QuoteTerms, QuoteView},
        quote,
    },
    terms::available,
};
use crate::{
    base::{Money, Result},
    ctx::Ctx,
};

/// Signs the present price of a listing.
///
/// # Errors
/// `not_found`, `listing_not_available`, `invalid_input` for a length that the listing does not take.
pub async fn create_quote(ctx: &Ctx, form: &CreateQuote) -> Result<QuoteView> {
    let mut conn = ctx.db.conn().await?;
    let now = ctx.business_now(&mut conn).await?;
    let listing = available(ctx, &mut conn, form.listing_id, now).await?;
    check_hours(form.hours, listing.min_hours, listing.max_hours)?;
    let terms = QuoteTerms {
        listing_id: form.listing_id,
        price_per_hour: listing.price_per_hour,
        min_hours: listing.min_hours,
        max_hours: listing.max_hours,
        hours: form.hours,
        expires_at: now + TimeDelta::seconds(ctx.config.tunables.quote_valid_seconds),
    };
    Ok(QuoteView {
        quote: quote::sign(&ctx.config.keys.root, &terms)?,
        total: form.hours.map(|hours| price_of(terms.price_per_hour, hours)).transpose()?,
        listing_id: terms.listing_id,
        price_per_hour: terms.price_per_hour,
        currency: terms.price_per_hour.currency(),
        min_hours: terms.min_hours,
        max_hours: terms.max_hours,
        hours: terms.hours,
        expires_at: terms.expires_at,
    })
}

fn price_of(price_per_hour: Money, hours: i32) -> Result<Money> {
    price_per_hour.charge_for_seconds(i64::from(hours).saturating_mul(3_600))
}

/// What a quote promises. Renting at it: [`super::super::model::ListingTerms::at_quote`].
///
/// # Errors
/// `invalid_quote` when it was not made here, `quote_expired`.
pub fn open_quote(ctx: &Ctx, now: DateTime<Utc>, text: &str) -> Result<QuoteTerms> {
    quote::open(&ctx.config.keys.root, text, now)
}
