//! The span of time that a list or a statement is about.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};

use crate::base::{Error, FieldError, Result};

/// A half-open span of business time: `from` is in it, `to` is not. A bound that is missing leaves that side open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    pub from: Option<DateTime<Utc>>,
    pub to: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy)]
enum Bound {
    Instant(DateTime<Utc>),
    Day(NaiveDate),
}

impl Period {
    /// Reads the query parameters `from` and `to`. An instant (RFC 3339) stands for itself; a date stands for the whole UTC day (money.md 10),
    /// so that `from=2026-11-30&to=2026-11-30` is that one day.
    ///
    /// # Errors
    /// `invalid_input` for what is neither, and for a span that ends before it begins.
    pub fn parse(from: Option<&str>, to: Option<&str>) -> Result<Self> {
        let mut faults = Vec::new();
        let mut read = |pointer: &str, text: Option<&str>| {
            let fault = || FieldError::new(pointer, "invalid_instant", INSTANT);
            text.and_then(|text| bound(text).ok_or_else(fault).map_err(|fault| faults.push(fault)).ok())
        };
        let (first, last) = (read("?from", from), read("?to", to));
        if !faults.is_empty() {
            return Err(Error::invalid_fields(faults));
        }
        let period = Self { from: first.map(Bound::start), to: last.and_then(Bound::end) };
        // Two equal instants are an empty span; a day is never one.
        let backward = match (period.from, period.to, last) {
            (Some(from), Some(to), Some(Bound::Day(_))) => to <= from,
            (Some(from), Some(to), _) => to < from,
            _ => false,
        };
        if backward { Err(Error::invalid("?to", "too_early", "to is before from.")) } else { Ok(period) }
    }
}

const INSTANT: &str = "An instant is RFC 3339 (2026-11-30T12:00:00Z), or a date for the whole UTC day.";

impl Bound {
    fn start(self) -> DateTime<Utc> {
        match self {
            Self::Instant(at) => at,
            Self::Day(day) => day.and_time(NaiveTime::MIN).and_utc(),
        }
    }

    /// A day at the end of a span is in the span: its bound is the next day's start. None when there is no later day.
    fn end(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Instant(at) => Some(at),
            Self::Day(day) => day.checked_add_days(Days::new(1)).map(|next| Self::Day(next).start()),
        }
    }
}

/// Exactly `YYYY-MM-DD`, or RFC 3339 in years of four digits.
fn bound(text: &str) -> Option<Bound> {
    if text.len() == "2026-11-30".len() {
        let is_plain = text.bytes().enumerate().all(|(i, b)| if matches!(i, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
        return is_plain.then(|| text.parse().ok()).flatten().map(Bound::Day);
    }
    DateTime::parse_from_rfc3339(text).ok().map(|at| Bound::Instant(at.to_utc()))
}
