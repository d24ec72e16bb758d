//! What a host may say of a listing, checked: all faults at once.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use utoipa::ToSchema;

use super::model::Listing;
use crate::base::{
    Error, FieldError, Money, Result,
    given::{given, given_instant, optional_instant},
    id::{ListingId, MachineId},
    money::Currency,
    shape::PriceText,
    text,
};

const HOURS_MAX: i32 = 8_760;
const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// A million dollars an hour: sums over a year stay far from the 64-bit limit.
const PRICE_MAX: Money = Money::usd_micros(1_000_000_000_000);

/// A listing to draft.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateListing {
    pub machine_id: MachineId,
    /// For the whole machine, above zero.
    #[schema(value_type = PriceText)]
    pub price_per_hour: Money,
    /// `usd`, the only one.
    pub currency: Option<Currency>,
    /// Whole hours that a rental is billed at least, 0 (no minimum, the default) to 8760.
    #[schema(minimum = 0, maximum = 8760)]
    pub min_hours: Option<i32>,
    /// Whole hours that a rental lasts at most, 1 to 8760; no limit unless given.
    #[schema(minimum = 1, maximum = 8760)]
    pub max_hours: Option<i32>,
    /// When the listing leaves the market by itself; rentals do not last longer.
    #[serde(default, deserialize_with = "optional_instant")]
    pub available_until: Option<DateTime<Utc>>,
    /// At most 2000 characters.
    #[schema(max_length = 2000, pattern = "^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]*$")]
    pub description: Option<String>,
}

/// Changes of a listing; what is left out stays as it is. Running rentals and quotes given keep their terms.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateListing {
    #[schema(value_type = Option<PriceText>)]
    pub price_per_hour: Option<Money>,
    pub currency: Option<Currency>,
    #[schema(minimum = 0, maximum = 8760)]
    pub min_hours: Option<i32>,
    /// Null: no limit.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 8760)]
    pub max_hours: Option<Option<i32>>,
    /// Null: no end.
    #[serde(default, deserialize_with = "given_instant")]
    #[schema(value_type = Option<DateTime<Utc>>)]
    pub available_until: Option<Option<DateTime<Utc>>>,
    #[schema(max_length = 2000, pattern = "^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]*$")]
    pub description: Option<String>,
}

/// A listing to quote a price for.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateQuote {
    pub listing_id: ListingId,
    /// Length in whole hours; the quote then says what they cost.
    #[schema(minimum = 1, maximum = 8760)]
    pub hours: Option<i32>,
}

/// The terms a host sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    pub price_per_hour: Money,
    pub min_hours: i32,
    pub max_hours: Option<i32>,
    pub available_until: Option<DateTime<Utc>>,
    pub description: String,
}

impl Offer {
    pub fn new(form: &CreateListing) -> Self {
        Self {
            price_per_hour: form.price_per_hour,
            min_hours: form.min_hours.unwrap_or(0),
            max_hours: form.max_hours,
            available_until: form.available_until,
            description: form.description.clone().unwrap_or_default(),
        }
    }

    pub fn of(listing: &Listing) -> Self {
        Self {
            price_per_hour: listing.price_per_hour_micros,
            min_hours: listing.min_hours,
            max_hours: listing.max_hours,
            available_until: listing.available_until,
            description: listing.description.clone(),
        }
    }

    pub fn merged(self, update: &UpdateListing) -> Self {
        Self {
            price_per_hour: update.price_per_hour.unwrap_or(self.price_per_hour),
            min_hours: update.min_hours.unwrap_or(self.min_hours),
            max_hours: update.max_hours.unwrap_or(self.max_hours),
            available_until: update.available_until.unwrap_or(self.available_until),
            description: update.description.clone().unwrap_or(self.description),
        }
    }

    pub fn write_to(self, listing: &mut Listing) {
        listing.price_per_hour_micros = self.price_per_hour;
        listing.min_hours = self.min_hours;
        listing.max_hours = self.max_hours;
        listing.available_until = self.available_until;
        listing.description = self.description.trim().to_owned();
    }

    /// `was_until` is an end that stood before: one that has passed need not be given anew to change something else.
    ///
    /// # Errors
    /// `invalid_input` with every fault.
    pub fn check(&self, now: DateTime<Utc>, was_until: Option<DateTime<Utc>>) -> Result<()> {
        let mut faults = Vec::new();
        let mut add = |pointer: &str, code: &'static str, detail: String| faults.push(FieldError::new(pointer, code, detail));
        if !self.price_per_hour.is_positive() || self.price_per_hour > PRICE_MAX {
            add("/price_per_hour", "out_of_range", format!("A price is above 0 and at most {PRICE_MAX}."));
        }
        if !(0..=HOURS_MAX).contains(&self.min_hours) {
            add("/min_hours", "out_of_range", format!("min_hours is from 0 to {HOURS_MAX}."));
        }
        if let Some(max_hours) = self.max_hours {
            if !(1..=HOURS_MAX).contains(&max_hours) {
                add("/max_hours", "out_of_range", format!("max_hours is from 1 to {HOURS_MAX}."));
            } else if max_hours < self.min_hours {
                add("/max_hours", "less_than_minimum", "max_hours is not less than min_hours.".to_owned());
            }
        }
        if let Some(until) = self.available_until.filter(|until| *until <= now && self.available_until != was_until) {
            let [until, now] = [until, now].map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
            add("/available_until", "in_the_past", format!("{until} has passed: it is {now}."));
        }
        if self.description.chars().count() > DESCRIPTION_CHARS_MAX {
            add("/description", "too_long", format!("A description has at most {DESCRIPTION_CHARS_MAX} characters."));
        }
        faults.extend(text::prose_fault("/description", &self.description));
        if faults.is_empty() { Ok(()) } else { Err(Error::invalid_fields(faults)) }
    }
}

/// # Errors
/// `invalid_input` when a length does not fit what the listing allows.
pub(super) fn check_hours(hours: Option<i32>, min_hours: i32, max_hours: Option<i32>) -> Result<()> {
    let Some(hours) = hours else { return Ok(()) };
    let wrong = |code: &'static str, detail: String| Err(Error::invalid("/hours", code, detail));
    if !(1..=HOURS_MAX).contains(&hours) {
        return wrong("out_of_range", format!("hours is from 1 to {HOURS_MAX}."));
    }
    if hours < min_hours {
        return wrong("too_short", format!("This listing is rented for at least {min_hours} hours."));
    }
    match max_hours {
        Some(max_hours) if hours > max_hours => wrong("too_long", format!("This listing is rented for at most {max_hours} hours.")),
        _ => Ok(()),
    }
}
