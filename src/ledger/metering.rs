//! The arithmetic of a charge: what the renter pays, the platform's fee and the host's share (money.md 3, 4). Pure.
//!
//! Everything is taken cumulatively: a charge posted now is what is owed in all less what is posted already. So the number of ticks never
//! matters, and neither the price nor the fee gains or loses a micro-dollar by being cut into pieces.

use crate::base::{Error, Money, Result};

/// An amount that a renter pays, with the platform's fee in it. Never negative, and the fee is never more than the gross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    gross: Money,
    fee: Money,
}

impl Charge {
    pub const NOTHING: Self = Self { gross: Money::ZERO, fee: Money::ZERO };

    /// A charge read back from where it was recorded.
    ///
    /// # Errors
    /// `internal` when an amount is negative or the fee is more than the gross.
    pub fn new(gross: Money, fee: Money) -> Result<Self> {
        if fee.is_negative() || fee > gross {
            return Err(Error::internal(format!("a fee of {fee:?} in a charge of {gross:?}")));
        }
        Ok(Self { gross, fee })
    }

    /// The whole charge of a rental that has cost `gross` in all.
    ///
    /// # Errors
    /// `internal` when the gross is negative or the fee more than 10,000 basis points.
    pub fn in_all(gross: Money, fee_basis_points: u16) -> Result<Self> {
        Self::new(gross, gross.fee(fee_basis_points)?)
    }

    /// The whole charge of `seconds` at `price_per_hour`, counted from the segment's start.
    ///
    /// # Errors
    /// `internal` when an amount leaves 64 bits, or the fee 10,000 basis points.
    pub fn for_seconds(price_per_hour: Money, seconds: i64, fee_basis_points: u16) -> Result<Self> {
        Self::in_all(price_per_hour.charge_for_seconds(seconds)?, fee_basis_points)
    }

    /// What of this whole charge is not yet in `posted`; nothing when more is posted already.
    ///
    /// # Errors
    /// `internal` when `posted` has more fee in it than this whole charge: it was made at another rate.
    pub fn beyond(self, posted: Self) -> Result<Self> {
        if self.gross <= posted.gross {
            return Ok(Self::NOTHING);
        }
        Self::new(self.gross.minus(posted.gross)?, self.fee.minus(posted.fee)?)
    }

    /// The charge of `gross` more after `posted`, of one rental at one fee; nothing when the gross is not positive.
    ///
    /// # Errors
    /// As [`Charge::in_all`] and [`Charge::beyond`].
    pub fn after(posted: Self, gross: Money, fee_basis_points: u16) -> Result<Self> {
        if !gross.is_positive() {
            return Ok(Self::NOTHING);
        }
        Self::in_all(posted.gross.plus(gross)?, fee_basis_points)?.beyond(posted)
    }

    /// Both charges together.
    ///
    /// # Errors
    /// `internal` when the sum leaves 64 bits.
    pub fn plus(self, other: Self) -> Result<Self> {
        Ok(Self { gross: self.gross.plus(other.gross)?, fee: self.fee.plus(other.fee)? })
    }

    /// What the renter pays.
    pub const fn gross(self) -> Money {
        self.gross
    }
    /// The platform's part.
    pub const fn fee(self) -> Money {
        self.fee
    }
    /// The host's part: the gross less the fee.
    ///
    /// # Errors
    /// Never in fact: the fee is at most the gross.
    pub fn host_share(self) -> Result<Money> {
        self.gross.minus(self.fee)
    }
    pub const fn is_nothing(self) -> bool {
        self.gross.is_zero()
    }
}
