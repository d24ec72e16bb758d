//! Rows of the rentals' tables and what the API shows of them.

use std::ops::Bound;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use serde::Serialize;
use utoipa::ToSchema;

use super::state::{EndReason, Segment, Status, Terms};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, HoldId, ListingId, MachineId, RentalId, RunId},
        money::Currency,
    },
    db::schema::{rental_events, rental_segments, rentals},
};

/// The span for which a machine is taken: closed at the start, open at the end.
pub type Period = (Bound<DateTime<Utc>>, Bound<DateTime<Utc>>);

/// The half-open span from `start` to `end`, or without an end.
pub fn period(start: DateTime<Utc>, end: Option<DateTime<Utc>>) -> Period {
    (Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// One row of `rentals`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = rentals, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub struct Rental {
    pub id: RentalId,
    pub renter_account_id: AccountId,
    pub host_account_id: AccountId,
    pub listing_id: ListingId,
    pub machine_id: MachineId,
    pub run_id: Option<RunId>,
    pub status: String,
    pub end_reason: Option<String>,
    pub period: Period,
    pub price_per_hour_micros: Money,
    pub fee_basis_points: i16,
    pub min_hours: i32,
    pub max_hours: Option<i32>,
    pub hours: Option<i32>,
    pub ends_at: Option<DateTime<Utc>>,
    pub latest_end_at: Option<DateTime<Utc>>,
    pub max_spend_micros: Option<Money>,
    pub hold_id: HoldId,
    pub model: Option<String>,
    pub created_at: DateTime<Utc>,
    pub starts_at: DateTime<Utc>,
    pub boot_deadline_at: DateTime<Utc>,
    pub active_at: Option<DateTime<Utc>>,
    pub paused_at: Option<DateTime<Utc>>,
    pub stop_requested_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    pub settled_through: Option<DateTime<Utc>>,
    pub gross_posted_micros: Money,
    pub fee_posted_micros: Money,
    pub transfer_sequence: i32,
    pub runway_warned_seconds: Option<i32>,
    pub next_due_at: Option<DateTime<Utc>>,
}

impl Rental {
    /// # Errors
    /// `internal` when the row holds a status this program does not know.
    pub fn status(&self) -> Result<Status> {
        Status::parse(&self.status).ok_or_else(|| Error::internal(format!("rental status {}", self.status)))
    }

    /// Moves the rental on.
    ///
    /// # Errors
    /// `internal` for a move that a rental cannot make.
    pub fn move_to(&mut self, next: Status) -> Result<()> {
        let now = self.status()?;
        if !now.may_become(next) {
            return Err(Error::internal(format!("rental {} is {} and cannot become {}", self.id, now.as_str(), next.as_str())));
        }
        self.status = next.as_str().to_owned();
        Ok(())
    }

    pub fn end_reason(&self) -> Option<EndReason> {
        self.end_reason.as_deref().and_then(EndReason::parse)
    }

    pub fn terms(&self) -> Terms {
        Terms {
            price_per_hour: self.price_per_hour_micros,
            min_hours: i64::from(self.min_hours),
            max_spend: self.max_spend_micros,
            ends_at: self.ends_at,
        }
    }
}

/// A rental whose clock runs, as far as its renter's money is concerned.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = rentals, check_for_backend(diesel::pg::Pg))]
pub struct Running {
    pub id: RentalId,
    pub renter_account_id: AccountId,
    #[diesel(column_name = price_per_hour_micros)]
    pub price_per_hour: Money,
    pub hold_id: HoldId,
    #[diesel(column_name = max_spend_micros)]
    pub max_spend: Option<Money>,
    #[diesel(column_name = gross_posted_micros)]
    pub gross_posted: Money,
    pub settled_through: Option<DateTime<Utc>>,
    pub next_due_at: Option<DateTime<Utc>>,
}

impl Running {
    /// When it will have cost its cap, to the second.
    pub fn reaches_cap_at(&self) -> Option<DateTime<Utc>> {
        let left = self.max_spend?.minus(self.gross_posted).ok()?;
        let seconds = self.price_per_hour.seconds_covered_by(left)?;
        self.settled_through?.checked_add_signed(TimeDelta::try_seconds(seconds)?)
    }

    pub fn of(rental: &Rental) -> Self {
        Self {
            id: rental.id,
            renter_account_id: rental.renter_account_id,
            price_per_hour: rental.price_per_hour_micros,
            hold_id: rental.hold_id,
            max_spend: rental.max_spend_micros,
            gross_posted: rental.gross_posted_micros,
            settled_through: rental.settled_through,
            next_due_at: rental.next_due_at,
        }
    }
}

/// One row of `rental_segments`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = rental_segments, check_for_backend(diesel::pg::Pg))]
pub struct SegmentRow {
    pub rental_id: RentalId,
    pub sequence: i32,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub gross_posted_micros: Money,
}

impl SegmentRow {
    pub fn segment(&self) -> Segment {
        Segment { started_at: self.started_at, gross_posted: self.gross_posted_micros }
    }
}

/// One row of `rental_events`.
#[derive(Debug, Clone, Queryable, Selectable, Serialize, ToSchema)]
#[diesel(table_name = rental_events, check_for_backend(diesel::pg::Pg))]
pub struct RentalEvent {
    pub sequence: i64,
    #[serde(skip)]
    pub rental_id: RentalId,
    /// What happened: `accepted`, `started`, `provisioning`, `active`, `paused`, `resumed`, `extended`, `runway`, `ended`, `failed`.
    pub kind: String,
    pub detail: serde_json::Value,
    pub at: DateTime<Utc>,
}

/// How to reach a rented machine.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Access {
    /// The endpoint's address, to be given to any OpenAI client.
    pub base_url: String,
    /// The model to ask for; what the engine said last before the machine has answered its first token, or null.
    pub model: Option<String>,
}

/// A rental as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RentalView {
    pub id: RentalId,
    pub status: Status,
    pub end_reason: Option<EndReason>,
    pub listing_id: ListingId,
    pub machine_id: MachineId,
    pub run_id: Option<RunId>,
    /// Handle of the renter.
    pub renter: String,
    /// Handle of the host.
    pub host: String,
    pub price_per_hour: Money,
    pub currency: Currency,
    pub fee_basis_points: i16,
    pub min_hours: i32,
    pub hours: Option<i32>,
    pub max_spend: Option<Money>,
    /// Money held for this rental and not yet charged.
    pub hold: Money,
    /// Charged so far, through `settled_through`.
    pub spend: Money,
    pub billed_seconds: i64,
    pub created_at: DateTime<Utc>,
    pub starts_at: DateTime<Utc>,
    pub active_at: Option<DateTime<Utc>>,
    pub paused_at: Option<DateTime<Utc>>,
    pub ends_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    pub settled_through: Option<DateTime<Utc>>,
    pub access: Access,
}

/// A rental as a statement names it.
#[derive(Debug, Clone)]
pub struct RentalOnStatement {
    pub id: RentalId,
    pub renter_account_id: AccountId,
    pub host_account_id: AccountId,
    /// Of the machine, such as `2 × RTX 3090`.
    pub machine: String,
    pub price_per_hour: Money,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    /// Whole seconds of each billed span within the statement's period.
    pub billed_seconds: i64,
}

/// A rental whose renter's money lasts only for a while; sent to the renter alone.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RentalLowFunds {
    #[serde(flatten)]
    pub rental: RentalView,
    /// How long the money lasts that is held and available for all of the renter's rentals.
    pub runway_seconds: i64,
}

/// A span of billed time as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct UsageSegment {
    pub started_at: DateTime<Utc>,
    /// Null while it is open.
    pub ended_at: Option<DateTime<Utc>>,
    pub billed_seconds: i64,
    pub gross: Money,
}

/// What a rental has cost and why; the sums are those of the ledger.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Usage {
    pub rental_id: RentalId,
    pub status: Status,
    pub price_per_hour: Money,
    pub currency: Currency,
    pub segments: Vec<UsageSegment>,
    /// Billed beyond the seconds used because the contract has a least length.
    pub min_hours_remainder: Money,
    pub gross: Money,
    pub platform_fee: Money,
    pub host_share: Money,
    pub events: Vec<RentalEvent>,
}
