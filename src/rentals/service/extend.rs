//! Extending a rental: a later deadline or a higher cap.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::{
    super::{
        model::{Rental, period},
        queries,
    },
    settle, view,
};
use crate::{
    base::{
        Code, Error, Money, Result,
        given::optional_instant,
        id::{AccountId, RentalId},
        shape::CapText,
    },
    ctx::Ctx,
    db::Tx,
    rentals::model::RentalView,
};

const HOURS_MAX: i32 = 8_760;

/// What `extend` may change.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    /// Hours to add to the deadline.
    #[schema(minimum = 1, maximum = 8760)]
    pub hours: Option<i32>,
    /// The new deadline, later than the old one.
    #[serde(default, deserialize_with = "optional_instant")]
    pub ends_at: Option<DateTime<Utc>>,
    /// The new cap, higher than the old one.
    #[schema(value_type = Option<CapText>)]
    pub max_spend: Option<Money>,
}

/// Moves the deadline or raises the cap of a rental that is not over. Only the renter may.
///
/// # Errors
/// `already_rented` when the machine is taken later, `invalid_state` when the rental is over or has no deadline to move, `invalid_input`.
pub async fn extend(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId, id: RentalId, request: &ExtendRequest) -> Result<RentalView> {
    check(request)?;
    let found = settle::lock(tx, id).await?.filter(|r| r.renter_account_id == account || r.host_account_id == account);
    let mut rental = found.ok_or_else(|| Error::not_found("rental"))?;
    if rental.renter_account_id != account {
        return Err(Error::new(Code::Forbidden, "Only the renter can extend a rental."));
    }
    let now = ctx.business_now(tx).await?;
    settle::settle(ctx, tx, &mut rental, now).await?;
    if rental.status()?.is_over() {
        return Err(Error::new(Code::InvalidState, "The rental is over."));
    }
    move_deadline(&mut rental, request)?;
    if let Some(cap) = request.max_spend {
        if rental.max_spend_micros.is_none_or(|old| cap <= old) {
            return Err(Error::invalid("/max_spend", "too_small", "max_spend can only be raised."));
        }
        rental.max_spend_micros = Some(cap);
    }
    let detail = json!({"ends_at": rental.ends_at, "max_spend": rental.max_spend_micros});
    queries::event_insert(tx, rental.id, "extended", detail, now).await?;
    // Settled again: the hold may grow now, and what falls due next is another instant.
    settle::settle(ctx, tx, &mut rental, now).await?;
    view::one(ctx, tx, rental).await
}

fn check(request: &ExtendRequest) -> Result<()> {
    if request.hours.is_none() && request.ends_at.is_none() && request.max_spend.is_none() {
        return Err(Error::invalid("", "missing_field", "Give hours, ends_at or max_spend."));
    }
    if request.hours.is_some() && request.ends_at.is_some() {
        return Err(Error::invalid("/ends_at", "conflicting_field", "Give hours or ends_at, not both."));
    }
    if request.hours.is_some_and(|hours| !(1..=HOURS_MAX).contains(&hours)) {
        return Err(Error::invalid("/hours", "out_of_range", format!("hours is from 1 to {HOURS_MAX}.")));
    }
    Ok(())
}

fn move_deadline(rental: &mut Rental, request: &ExtendRequest) -> Result<()> {
    if request.hours.is_none() && request.ends_at.is_none() {
        return Ok(());
    }
    let old = rental.ends_at.ok_or_else(|| Error::new(Code::InvalidState, "The rental has no deadline to move."))?;
    let added = request.hours.map(|hours| old + TimeDelta::hours(i64::from(hours)));
    let ends_at = request.ends_at.or(added).unwrap_or(old);
    let pointer = if request.ends_at.is_some() { "/ends_at" } else { "/hours" };
    let too_long = |detail: String| Err(Error::invalid(pointer, "too_long", detail));
    if ends_at <= old {
        return Err(Error::invalid(pointer, "too_early", "The new deadline must be later than the present one."));
    }
    let lasts = ends_at - rental.active_at.unwrap_or(rental.starts_at);
    if let Some(max) = rental.max_hours.filter(|max| lasts > TimeDelta::hours(i64::from(*max))) {
        return too_long(format!("This listing is rented for at most {max} hours."));
    }
    if lasts > TimeDelta::hours(i64::from(HOURS_MAX)) {
        return too_long(format!("A rental lasts at most {HOURS_MAX} hours."));
    }
    if let Some(latest) = rental.latest_end_at.filter(|latest| ends_at > *latest) {
        return too_long(format!("The machine is available until {}.", latest.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)));
    }
    // Before the first billed second a length in hours is what counts; a new deadline takes its place.
    rental.hours = rental.hours.zip(request.hours).map(|(old, more)| old.saturating_add(more));
    rental.ends_at = Some(ends_at);
    rental.period = period(rental.starts_at, Some(ends_at));
    Ok(())
}
