//! Amounts of money: signed micro-dollars in 64 bits with the currency in the type (money.md 1–5).
//!
//! Invariants: checked arithmetic only; products in 128 bits; no float; JSON is a decimal string with at most six decimals.
#![deny(clippy::float_arithmetic, clippy::arithmetic_side_effects, clippy::as_conversions)]

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Error, Result};

/// Micro-dollars of one dollar.
pub const MICROS_PER_UNIT: i64 = 1_000_000;
const SECONDS_PER_HOUR: i128 = 3_600;
const BASIS_POINTS: i128 = 10_000;
/// The largest amount a client may name: a billion dollars. Sums of many stay far from the 64-bit limit.
const INPUT_MAX_MICROS: i64 = 1_000_000_000 * MICROS_PER_UNIT;

/// The currencies of the ledger: US dollars only, at launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Currency {
    Usd,
}

/// An amount in one currency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money {
    micros: i64,
    currency: Currency,
}

fn overflow() -> Error {
    Error::internal("amount overflow")
}

impl Money {
    pub const ZERO: Self = Self::usd_micros(0);

    pub const fn usd_micros(micros: i64) -> Self {
        Self { micros, currency: Currency::Usd }
    }
    pub const fn micros(self) -> i64 {
        self.micros
    }
    pub const fn currency(self) -> Currency {
        self.currency
    }
    pub const fn is_positive(self) -> bool {
        self.micros > 0
    }
    pub const fn is_negative(self) -> bool {
        self.micros < 0
    }
    pub const fn is_zero(self) -> bool {
        self.micros == 0
    }

    /// # Errors
    /// `internal` when the sum leaves 64 bits.
    pub fn plus(self, other: Self) -> Result<Self> {
        self.micros.checked_add(other.micros).map(Self::usd_micros).ok_or_else(overflow)
    }

    /// # Errors
    /// `internal` when the difference leaves 64 bits.
    pub fn minus(self, other: Self) -> Result<Self> {
        self.micros.checked_sub(other.micros).map(Self::usd_micros).ok_or_else(overflow)
    }

    /// # Errors
    /// `internal` for the one amount that has no opposite.
    pub fn negated(self) -> Result<Self> {
        self.micros.checked_neg().map(Self::usd_micros).ok_or_else(overflow)
    }

    /// What `seconds` cost at this price per hour, from a segment's start: floor(rate × seconds ÷ 3600) (money.md 3).
    /// A segment that would end before it starts costs nothing.
    ///
    /// # Errors
    /// `internal` when the charge leaves 64 bits.
    pub fn charge_for_seconds(self, seconds: i64) -> Result<Self> {
        let seconds = i128::from(seconds.max(0));
        let product = i128::from(self.micros).checked_mul(seconds).ok_or_else(overflow)?;
        let floor = product.checked_div_euclid(SECONDS_PER_HOUR).ok_or_else(overflow)?;
        i64::try_from(floor).map(Self::usd_micros).map_err(|_| overflow())
    }

    /// The longest whole number of seconds whose charge at `self` per hour is at most `budget`; `None` when the price is zero. A budget below
    /// zero covers none.
    pub fn seconds_covered_by(self, budget: Self) -> Option<i64> {
        if self.micros <= 0 {
            return None;
        }
        if budget.micros < 0 {
            return Some(0);
        }
        // floor(r·s/3600) ≤ b  ⇔  r·s < (b+1)·3600
        let bound = i128::from(budget.micros).checked_add(1)?.checked_mul(SECONDS_PER_HOUR)?;
        let seconds = bound.checked_sub(1)?.checked_div(i128::from(self.micros))?;
        Some(i64::try_from(seconds).unwrap_or(i64::MAX))
    }

    /// The platform's fee on this gross amount: half-even round of gross × basis points ÷ 10,000 (money.md 4).
    ///
    /// # Errors
    /// `internal` for more than 10,000 basis points: nothing would be left for the host.
    pub fn fee(self, basis_points: u16) -> Result<Self> {
        if i128::from(basis_points) > BASIS_POINTS {
            return Err(Error::internal(format!("a fee of {basis_points} basis points")));
        }
        let product = i128::from(self.micros).checked_mul(i128::from(basis_points)).ok_or_else(overflow)?;
        let rounded = div_half_even(product, BASIS_POINTS).ok_or_else(overflow)?;
        i64::try_from(rounded).map(Self::usd_micros).map_err(|_| overflow())
    }

    /// The price of a million output tokens when a machine at this price per hour gives `tokens_per_hour_micros` ÷ 10^6 tokens an hour:
    /// half-even at six decimals. Token rates enter as integers of micro-tokens, so no float meets money. `None` when no token comes.
    pub fn per_million_tokens(self, tokens_per_hour_micros: i128) -> Option<Self> {
        if tokens_per_hour_micros <= 0 {
            return None;
        }
        let scaled = i128::from(self.micros).checked_mul(1_000_000_000_000)?;
        i64::try_from(div_half_even(scaled, tokens_per_hour_micros)?).ok().map(Self::usd_micros)
    }

    /// Whole cents, rounded down: how a balance is shown (money.md 5).
    pub fn floor_to_cents(self) -> Self {
        let cents = self.micros.div_euclid(10_000);
        Self::usd_micros(cents.saturating_mul(10_000))
    }
}

impl Currency {
    pub const ALL: &'static [Self] = &[Self::Usd];

    /// ISO 4217, in lower case as Stripe writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usd => "usd",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|currency| currency.as_str() == text)
    }

    /// Micros of one of the smallest units that Stripe counts this currency in. The only place that knows how many there are to a unit.
    const fn micros_per_minor_unit(self) -> i64 {
        match self {
            // Exponent 2: cents.
            Self::Usd => 10_000,
        }
    }
}

impl Money {
    /// In the units that Stripe counts in; `None` when it is no whole number of them.
    pub const fn minor_units(self) -> Option<i64> {
        let per_unit = self.currency.micros_per_minor_unit();
        match (self.micros.checked_rem(per_unit), self.micros.checked_div(per_unit)) {
            (Some(0), units) => units,
            _ => None,
        }
    }

    /// # Errors
    /// `internal` when the amount leaves 64 bits.
    pub fn from_minor_units(units: i64, currency: Currency) -> Result<Self> {
        let micros = units.checked_mul(currency.micros_per_minor_unit()).ok_or_else(overflow)?;
        Ok(Self { micros, currency })
    }
}

/// numerator ÷ denominator (> 0), ties to the even neighbour.
fn div_half_even(numerator: i128, denominator: i128) -> Option<i128> {
    let quotient = numerator.checked_div_euclid(denominator)?;
    let remainder = numerator.checked_rem_euclid(denominator)?;
    let twice = remainder.checked_mul(2)?;
    let up = twice > denominator || (twice == denominator && quotient.checked_rem_euclid(2)? == 1);
    if up { quotient.checked_add(1) } else { Some(quotient) }
}

/// The shortest decimal text with at least two decimals: `0.37`, `3.60`, `0.006269`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.micros < 0 { "-" } else { "" };
        let abs = self.micros.unsigned_abs();
        let (units, micros) = (abs.div_euclid(1_000_000), abs.rem_euclid(1_000_000));
        let digits = format!("{micros:06}");
        let kept = digits.trim_end_matches('0');
        let decimals = if kept.len() < 2 { digits.get(..2).unwrap_or("00") } else { kept };
        write!(f, "{sign}{units}.{decimals}")
    }
}
impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} usd")
    }
}

/// Why a text is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseMoneyError {
    #[error("an amount is a decimal string such as \"0.37\", without sign, spaces or exponent")]
    Syntax,
    #[error("an amount has at most 6 decimals")]
    TooPrecise,
    #[error("an amount is at most 1000000000")]
    TooLarge,
}

/// Reads a non-negative decimal text: digits, optionally a point and one to six digits.
impl FromStr for Money {
    type Err = ParseMoneyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (units, decimals) = text.split_once('.').map_or((text, None), |(u, d)| (u, Some(d)));
        let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(units) || decimals.is_some_and(|d| !all_digits(d)) || (units.len() > 1 && units.starts_with('0')) {
            return Err(ParseMoneyError::Syntax);
        }
        let decimals = decimals.unwrap_or("");
        if decimals.len() > 6 {
            return Err(ParseMoneyError::TooPrecise);
        }
        let padded = format!("{decimals:0<6}");
        let units: i64 = units.parse().map_err(|_| ParseMoneyError::TooLarge)?;
        let micros: i64 = padded.parse().map_err(|_| ParseMoneyError::Syntax)?;
        units
            .checked_mul(MICROS_PER_UNIT)
            .and_then(|m| m.checked_add(micros))
            .filter(|m| *m <= INPUT_MAX_MICROS)
            .map(Self::usd_micros)
            .ok_or(ParseMoneyError::TooLarge)
    }
}
impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
impl utoipa::PartialSchema for Money {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .pattern(Some(r"^-?[0-9]+(\.[0-9]{1,6})?$"))
            .description(Some("US dollars as a decimal string with at most six decimals."))
            .examples(["0.37"])
            .into()
    }
}
impl utoipa::ToSchema for Money {}
