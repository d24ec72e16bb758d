//! Accepting a rental: terms frozen, machine taken and money held in one transaction (money.md 11, 17).

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{
    super::{
        model::{Rental, period},
        queries,
        state::{self, Status},
    },
    settle, view,
};
use crate::{
    base::{
        Code, Error, FieldError, Money, Result,
        given::optional_instant,
        id::{HoldId, ListingId, RentalId},
        shape::CapText,
    },
    ctx::Ctx,
    db::Tx,
    identity::{self, Caller},
    ledger::{
        self,
        model::{HoldRequest, derived_id},
    },
    machines,
    market::{self, model::ListingTerms},
    rentals::model::RentalView,
};

const HOURS_MAX: i32 = 8_760;
/// How long ago `starts_at` may be: clocks of clients differ.
const LATE_MAX: TimeDelta = TimeDelta::minutes(5);

/// What a renter asks for. Give `listing_id` or `quote`; every other field is optional and changes the contract.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RentRequest {
    pub listing_id: Option<ListingId>,
    /// A quote that is still valid: rented at its price or refused.
    #[schema(max_length = 4096)]
    pub quote: Option<String>,
    /// Length in hours, counted from the first billed second.
    #[schema(minimum = 1, maximum = 8760)]
    pub hours: Option<i32>,
    /// Start later than now; the machine is taken and the money held from now on.
    #[serde(default, deserialize_with = "optional_instant")]
    pub starts_at: Option<DateTime<Utc>>,
    /// Deadline; give this or `hours`.
    #[serde(default, deserialize_with = "optional_instant")]
    pub ends_at: Option<DateTime<Utc>>,
    /// The most this rental may cost.
    #[schema(value_type = Option<CapText>)]
    pub max_spend: Option<Money>,
}

/// The request with its spans worked out.
struct Span {
    starts_at: DateTime<Utc>,
    is_reserved: bool,
    /// Length that is counted from the first billed second.
    hours: Option<i32>,
    ends_at: Option<DateTime<Utc>>,
    whole_seconds: Option<i64>,
}

/// The model that the machine's engine serves as far as is known, for the answer to the request: the renter can write the first call before the
/// machine has started. Asked before the transaction; whatever goes wrong here is no reason to refuse.
pub async fn served_model(ctx: &Ctx, request: &RentRequest) -> Option<String> {
    let model = async {
        let quoted = match &request.quote {
            Some(quote) => {
                let mut conn = ctx.db.conn().await?;
                let now = ctx.business_now(&mut conn).await?;
                Some(market::service::open_quote(ctx, now, quote)?.listing_id)
            }
            None => request.listing_id,
        };
        let Some(listing) = quoted else { return Ok(None) };
        let machine = market::service::show(ctx, None, listing).await?.machine.id;
        let machine = {
            let mut conn = ctx.db.conn().await?;
            machines::service::fetch(&mut conn, machine).await?
        };
        let served = ctx.engines.models_lately(&machines::service::target(ctx, &machine)?).await;
        Ok::<_, Error>(served.and_then(|models| models.first().cloned()))
    };
    model.await.ok().flatten()
}

/// Rents a machine. `model` is what its engine is thought to serve.
///
/// # Errors
/// `already_rented`, `insufficient_funds`, `listing_not_available`, `quote_expired`, `invalid_quote`, `invalid_input`.
pub async fn accept(ctx: &Ctx, tx: &mut Tx<'_>, caller: &Caller, request: &RentRequest, model: Option<&str>) -> Result<RentalView> {
    let received_at = ctx.business_now_held(tx).await?;
    let quote = match (&request.listing_id, &request.quote) {
        (Some(_), None) => None,
        (None, Some(quote)) => Some(market::service::open_quote(ctx, received_at, quote)?),
        _ => return Err(Error::invalid("/listing_id", "missing_field", "Give listing_id or quote, and not both.")),
    };
    let listing_id = match (&quote, request.listing_id) {
        (Some(quote), _) => quote.listing_id,
        (None, Some(id)) => id,
        (None, None) => return Err(Error::internal("neither listing nor quote")),
    };
    let mut terms = market::service::take_terms(ctx, tx, listing_id, received_at).await?;
    // After the listing's lock: what begins now begins after whatever another request has just ended.
    let now = ctx.business_now(tx).await?;
    if let Some(quote) = &quote {
        terms = terms.at_quote(quote);
    }
    if terms.host_account_id == caller.account_id {
        return Err(Error::new(Code::Forbidden, "An owner reaches the machine through the endpoint without renting it."));
    }
    let quoted_hours = quote.and_then(|quote| quote.hours);
    let ahead_max = match request.starts_at {
        Some(at) if at > now => identity::service::entitlements(ctx, tx, caller.account_id).await?.reservation_hours_ahead,
        _ => 0,
    };
    let span = check(request, quoted_hours, &terms, now, ahead_max)?;
    let fee_basis_points = identity::service::entitlements(ctx, tx, terms.host_account_id).await?.fee_basis_points;
    let rental = Rental { model: model.map(str::to_owned), ..draft(ctx, caller, request, &terms, &span, fee_basis_points, now)? };
    store(tx, caller, &rental, &terms, span.whole_seconds, now).await?;
    view::one(ctx, tx, rental).await
}

/// The spans of the contract, or every fault of the request.
fn check(request: &RentRequest, quoted_hours: Option<i32>, terms: &ListingTerms, now: DateTime<Utc>, hours_ahead_max: i64) -> Result<Span> {
    let mut faults = Vec::new();
    let mut fault = |pointer: &str, code: &'static str, detail: String| faults.push(FieldError::new(pointer, code, detail));
    let is_reserved = request.starts_at.is_some_and(|s| s > now);
    let starts_at = request.starts_at.filter(|s| *s > now).unwrap_or(now);
    if request.starts_at.is_some_and(|s| s < now - LATE_MAX) {
        fault("/starts_at", "in_the_past", format!("It is {}.", instant(now)));
    }
    if starts_at - now > TimeDelta::hours(hours_ahead_max) {
        fault("/starts_at", "too_far", format!("A rental can be reserved up to {hours_ahead_max} hours ahead."));
    }
    if request.hours.is_some_and(|hours| !(1..=HOURS_MAX).contains(&hours)) {
        fault("/hours", "out_of_range", format!("hours is from 1 to {HOURS_MAX}."));
    }
    if request.hours.is_some() && request.ends_at.is_some() {
        fault("/ends_at", "conflicting_field", "Give hours or ends_at, not both.".to_owned());
    }
    if request.ends_at.is_some_and(|e| e <= starts_at) {
        fault("/ends_at", "too_early", format!("It is {}.", instant(now)));
    }
    if request.ends_at.is_some_and(|e| e - starts_at > TimeDelta::hours(i64::from(HOURS_MAX))) {
        fault("/ends_at", "too_far", format!("A rental lasts at most {HOURS_MAX} hours."));
    }
    if request.max_spend.is_some_and(|m| !m.is_positive()) {
        fault("/max_spend", "too_small", "max_spend must be more than zero.".to_owned());
    }
    if !faults.is_empty() {
        return Err(Error::invalid_fields(faults));
    }
    // A quote for some hours is for those unless the request says otherwise.
    let hours = request.hours.or(quoted_hours.filter(|_| request.ends_at.is_none()));
    let asked_end = request.ends_at.or(hours.map(|h| starts_at + TimeDelta::hours(i64::from(h))));
    check_against_listing(request, terms, starts_at, asked_end)?;
    // A listing that is rented for a limited time, or until an instant, gives an open rental that deadline.
    let limit = [terms.available_until, terms.max_hours.map(|h| starts_at + TimeDelta::hours(i64::from(h)))];
    let ends_at = asked_end.or(limit.into_iter().flatten().min());
    Ok(Span { starts_at, is_reserved, hours, ends_at, whole_seconds: ends_at.map(|e| (e - starts_at).num_seconds()) })
}

/// The listing's own limits; a length longer than them is refused, an open one gets them as its deadline.
fn check_against_listing(
    request: &RentRequest,
    terms: &ListingTerms,
    starts_at: DateTime<Utc>,
    asked_end: Option<DateTime<Utc>>,
) -> Result<()> {
    let mut faults = Vec::new();
    let pointer = if request.ends_at.is_some() { "/ends_at" } else { "/hours" };
    let least = TimeDelta::hours(i64::from(terms.min_hours));
    if asked_end.is_some_and(|end| end - starts_at < least) {
        faults.push(FieldError::new(pointer, "too_short", format!("This listing is rented for at least {} hours.", terms.min_hours)));
    }
    if let Some(max) = terms.max_hours
        && asked_end.is_some_and(|end| end - starts_at > TimeDelta::hours(i64::from(max)))
    {
        faults.push(FieldError::new(pointer, "too_long", format!("This listing is rented for at most {max} hours.")));
    }
    if let Some(until) = terms.available_until {
        let detail = format!("This listing is available until {}.", instant(until));
        if starts_at >= until || until - starts_at < least {
            // A start of now needs no field to be wrong.
            let Some(_) = request.starts_at else { return Err(Error::new(Code::ListingNotAvailable, detail)) };
            faults.push(FieldError::new("/starts_at", "too_late", detail));
        } else if asked_end.is_some_and(|end| end > until) {
            faults.push(FieldError::new(pointer, "too_long", detail));
        }
    }
    let least = terms.price_per_hour.charge_for_seconds(least.num_seconds())?;
    if request.max_spend.is_some_and(|cap| cap < least) {
        faults.push(FieldError::new("/max_spend", "too_small", format!("This listing costs at least {least} usd.")));
    }
    if faults.is_empty() { Ok(()) } else { Err(Error::invalid_fields(faults)) }
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn draft(
    ctx: &Ctx,
    caller: &Caller,
    request: &RentRequest,
    terms: &ListingTerms,
    span: &Span,
    fee_basis_points: u16,
    now: DateTime<Utc>,
) -> Result<Rental> {
    let boot_deadline_at = span.starts_at + TimeDelta::seconds(ctx.config.tunables.boot_timeout_seconds);
    Ok(Rental {
        id: RentalId::new(),
        renter_account_id: caller.account_id,
        host_account_id: terms.host_account_id,
        listing_id: terms.listing_id,
        machine_id: terms.machine_id,
        run_id: terms.run_id,
        status: if span.is_reserved { Status::Reserved } else { Status::Held }.as_str().to_owned(),
        end_reason: None,
        period: period(span.starts_at, span.ends_at),
        price_per_hour_micros: terms.price_per_hour,
        fee_basis_points: i16::try_from(fee_basis_points).map_err(Error::internal)?,
        min_hours: terms.min_hours,
        max_hours: terms.max_hours,
        hours: span.hours,
        ends_at: span.ends_at,
        latest_end_at: terms.available_until,
        max_spend_micros: request.max_spend,
        hold_id: HoldId::new(),
        model: None,
        created_at: now,
        starts_at: span.starts_at,
        boot_deadline_at,
        active_at: None,
        paused_at: None,
        stop_requested_at: None,
        ended_at: None,
        settled_through: None,
        gross_posted_micros: Money::ZERO,
        fee_posted_micros: Money::ZERO,
        transfer_sequence: 0,
        runway_warned_seconds: None,
        next_due_at: Some(if span.is_reserved {
            span.starts_at
        } else {
            span.ends_at.map_or(boot_deadline_at, |e| e.min(boot_deadline_at))
        }),
    })
}

async fn store(
    tx: &mut Tx<'_>,
    caller: &Caller,
    rental: &Rental,
    terms: &ListingTerms,
    whole_seconds: Option<i64>,
    now: DateTime<Utc>,
) -> Result<()> {
    queries::rental_insert(tx, rental).await?;
    machines::service::watch(tx, rental.machine_id, &settle::watch_reason(rental)).await?;
    let amount = state::first_hold(&rental.terms(), whole_seconds)?;
    let hold = HoldRequest {
        id: rental.hold_id,
        transfer_id: derived_id(&["rental", &rental.id.to_string(), "0"]),
        account: rental.renter_account_id,
        rental: Some(rental.id),
        amount,
        actor: caller.into(),
        business_at: now,
        expires_at: None,
    };
    ledger::service::hold(tx, hold).await?;
    market::service::set_taken(tx, terms.listing_id, true).await?;
    queries::event_insert(tx, rental.id, "accepted", json!({"hold": amount}), now).await
}
