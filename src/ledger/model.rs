//! What the books consist of, as other domains and the API see it.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{code::TransferCode, period::Period};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, ApiKeyId, HoldId, LedgerAccountId, RentalId, TransferId},
    },
    identity,
};

/// What a ledger account is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LedgerAccountKind {
    /// An account's money to spend.
    Available,
    /// An account's money set aside for rentals.
    Held,
    /// A host's money that may still be corrected.
    Earnings,
    /// A host's money that the next payout takes.
    Payable,
    PlatformFees,
    PlatformRounding,
    /// What Stripe has for us, as a negative balance.
    StripeClearing,
    RefundsInTransit,
    /// Where play money comes from: negative by all there ever was.
    SandboxMint,
}

impl LedgerAccountKind {
    pub const ALL: &'static [Self] = &[
        Self::Available,
        Self::Held,
        Self::Earnings,
        Self::Payable,
        Self::PlatformFees,
        Self::PlatformRounding,
        Self::StripeClearing,
        Self::RefundsInTransit,
        Self::SandboxMint,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Held => "held",
            Self::Earnings => "earnings",
            Self::Payable => "payable",
            Self::PlatformFees => "platform:fees",
            Self::PlatformRounding => "platform:rounding",
            Self::StripeClearing => "stripe:clearing",
            Self::RefundsInTransit => "stripe:refunds_in_transit",
            Self::SandboxMint => "sandbox:mint",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }

    /// Whether nothing limits it from below: accounts of the platform's own side. The table's CHECK says the same.
    pub const fn may_be_negative(self) -> bool {
        matches!(self, Self::PlatformFees | Self::PlatformRounding | Self::StripeClearing | Self::SandboxMint)
    }

    /// Place in the lock order, and first byte of the id.
    const fn rank(self) -> u8 {
        match self {
            Self::Available => 0x10,
            Self::Held => 0x18,
            Self::Earnings => 0x20,
            Self::Payable => 0x28,
            Self::PlatformFees | Self::PlatformRounding | Self::StripeClearing | Self::RefundsInTransit | Self::SandboxMint => 0x30,
        }
    }
}

/// One ledger account, by what it is. It need not exist yet: the first posting opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LedgerAccount {
    Available(AccountId),
    Held(AccountId),
    Earnings(AccountId),
    Payable(AccountId),
    PlatformFees,
    PlatformRounding,
    StripeClearing,
    RefundsInTransit,
    SandboxMint,
}

impl LedgerAccount {
    pub const fn kind(self) -> LedgerAccountKind {
        match self {
            Self::Available(_) => LedgerAccountKind::Available,
            Self::Held(_) => LedgerAccountKind::Held,
            Self::Earnings(_) => LedgerAccountKind::Earnings,
            Self::Payable(_) => LedgerAccountKind::Payable,
            Self::PlatformFees => LedgerAccountKind::PlatformFees,
            Self::PlatformRounding => LedgerAccountKind::PlatformRounding,
            Self::StripeClearing => LedgerAccountKind::StripeClearing,
            Self::RefundsInTransit => LedgerAccountKind::RefundsInTransit,
            Self::SandboxMint => LedgerAccountKind::SandboxMint,
        }
    }

    pub const fn owner(self) -> Option<AccountId> {
        match self {
            Self::Available(owner) | Self::Held(owner) | Self::Earnings(owner) | Self::Payable(owner) => Some(owner),
            _ => None,
        }
    }

    /// `platform:fees`, or `<account's uuid>:available`.
    pub fn key(self) -> String {
        match self.owner() {
            Some(owner) => format!("{}:{}", owner.uuid(), self.kind().as_str()),
            None => self.kind().as_str().to_owned(),
        }
    }

    /// Follows from the key; sorts by the lock order's ranks.
    pub fn id(self) -> LedgerAccountId {
        let mut bytes = derived_bytes("ledger_account", &[&self.key()]);
        if let Some(first) = bytes.first_mut() {
            *first = self.kind().rank();
        }
        LedgerAccountId::from_uuid(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// A transfer's id that follows from what the transfer is for, such as `["rental", rental id, number of the step]`: a step that is repeated
/// after a crash posts under the same id and so changes nothing.
pub fn derived_id(parts: &[&str]) -> TransferId {
    TransferId::from_uuid(uuid::Builder::from_custom_bytes(derived_bytes("transfer", parts)).into_uuid())
}

/// The first 128 bits of SHA-256 over the parts, each preceded by its length so that no two lists run together. `from_custom_bytes` then
/// makes a UUIDv8 of them.
fn derived_bytes(purpose: &str, parts: &[&str]) -> [u8; 16] {
    let mut hasher = Sha256::new();
    for part in std::iter::once(&purpose).chain(parts) {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    for (byte, digest) in bytes.iter_mut().zip(hasher.finalize()) {
        *byte = digest;
    }
    bytes
}

/// Who caused a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    User(AccountId),
    ApiKey(ApiKeyId),
    /// The program itself: the meter, a sweep, a provider's event.
    System,
}

impl Actor {
    pub const fn kind(self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::ApiKey(_) => "api_key",
            Self::System => "system",
        }
    }
    pub const fn id(self) -> Option<Uuid> {
        match self {
            Self::User(id) => Some(id.uuid()),
            Self::ApiKey(id) => Some(id.uuid()),
            Self::System => None,
        }
    }
    /// # Errors
    /// `internal` for a pair that the table's CHECKs do not let in.
    pub(super) fn from_row(kind: &str, id: Option<Uuid>) -> Result<Self> {
        match (kind, id) {
            ("user", Some(id)) => Ok(Self::User(AccountId::from_uuid(id))),
            ("api_key", Some(id)) => Ok(Self::ApiKey(ApiKeyId::from_uuid(id))),
            ("system", None) => Ok(Self::System),
            _ => Err(Error::internal(format!("an actor of kind {kind}"))),
        }
    }
}

impl From<&identity::Caller> for Actor {
    fn from(caller: &identity::Caller) -> Self {
        match caller.actor {
            identity::Actor::User => Self::User(caller.user_id),
            identity::Actor::ApiKey(key) => Self::ApiKey(key),
        }
    }
}

/// One side of a transfer: what is added to a ledger account, or taken from it when negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    pub account: LedgerAccount,
    pub amount: Money,
}

impl Posting {
    pub const fn new(account: LedgerAccount, amount: Money) -> Self {
        Self { account, amount }
    }

    /// `amount` out of one ledger account into another.
    ///
    /// # Errors
    /// `internal` for the one amount that has no opposite.
    pub fn between(from: LedgerAccount, to: LedgerAccount, amount: Money) -> Result<Vec<Self>> {
        Ok(vec![Self::new(from, amount.negated()?), Self::new(to, amount)])
    }
}

/// A transfer to be posted.
#[derive(Debug, Clone)]
pub struct TransferRequest {
    /// Chosen by the caller; the idempotency key. See [`derived_id`].
    pub id: TransferId,
    pub code: TransferCode,
    pub postings: Vec<Posting>,
    pub rental: Option<RentalId>,
    /// The provider's name of the payment, such as a PaymentIntent's id.
    pub payment: Option<String>,
    pub actor: Actor,
    /// When it happened, business time.
    pub business_at: DateTime<Utc>,
    /// The transfer that this one corrects, settles or reverses.
    pub linked: Option<TransferId>,
}

/// What posting a transfer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    New,
    /// A transfer of this id and content was there; nothing was changed.
    AlreadyPosted,
}

/// Money to be set aside.
#[derive(Debug, Clone)]
pub struct HoldRequest {
    pub id: HoldId,
    pub transfer_id: TransferId,
    pub account: AccountId,
    pub rental: Option<RentalId>,
    pub amount: Money,
    pub actor: Actor,
    pub business_at: DateTime<Utc>,
    /// When what is left goes back by itself, business time. None for a rental: its end releases the hold.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Money set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    pub id: HoldId,
    pub account: AccountId,
    pub rental: Option<RentalId>,
    /// Set aside in all, increases included.
    pub amount: Money,
    pub captured: Money,
    pub released: Money,
    pub is_open: bool,
}

impl Hold {
    /// What can still be captured or released.
    ///
    /// # Errors
    /// Never in fact: the table's CHECK keeps it from zero up.
    pub fn remaining(&self) -> Result<Money> {
        self.amount.minus(self.captured)?.minus(self.released)
    }
}

/// A rental's use of a machine, to be paid out of its hold.
#[derive(Debug, Clone, Copy)]
pub struct Capture {
    pub hold: HoldId,
    pub transfer_id: TransferId,
    pub charge: super::metering::Charge,
    pub host: AccountId,
    pub business_at: DateTime<Utc>,
}

/// Part or all of a rental's charges, to be given back.
#[derive(Debug, Clone, Copy)]
pub struct Correction {
    pub id: TransferId,
    /// A charge of the rental; the correction is linked to it. How much can be given back is counted over all charges of the rental.
    pub original: TransferId,
    pub gross: Money,
    /// That of the rental.
    pub fee_basis_points: u16,
    pub actor: Actor,
    pub business_at: DateTime<Utc>,
}

/// What an account has. `available` and `earnings` are below zero while a chargeback or a correction is unpaid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Balance {
    pub available: Money,
    /// Set aside for rentals that have not ended.
    pub held: Money,
    /// Earned as a host, not payable yet.
    pub earnings: Money,
    /// Earned as a host, to be paid out.
    pub payable: Money,
}

impl Balance {
    /// # Errors
    /// `internal` when the sum leaves 64 bits.
    pub fn total(&self) -> Result<Money> {
        self.available.plus(self.held)?.plus(self.earnings)?.plus(self.payable)
    }
}

/// Which entries to list.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    pub period: Period,
    pub code: Option<TransferCode>,
    pub rental: Option<RentalId>,
}

/// Place of an entry in the list of an account's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
pub struct EntryKey {
    pub business_at: DateTime<Utc>,
    pub sequence: i64,
}

/// One posting to a ledger account of an account.
#[derive(Debug, Clone)]
pub struct Entry {
    pub sequence: i64,
    pub transfer: TransferId,
    pub code: TransferCode,
    pub kind: LedgerAccountKind,
    pub amount: Money,
    /// The balance of that ledger account once this was posted. Entries that are written late stand earlier in time than in this order.
    pub balance_after: Money,
    pub actor: Actor,
    pub rental: Option<RentalId>,
    pub payment: Option<String>,
    pub linked: Option<TransferId>,
    pub business_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

impl Entry {
    pub const fn key(&self) -> EntryKey {
        EntryKey { business_at: self.business_at, sequence: self.sequence }
    }
}

/// Place of a line in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
pub struct LineKey {
    pub day: NaiveDate,
    pub sequence: i64,
}

/// All transfers of one UTC day, code, rental and payment that changed what the account has in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementLine {
    pub key: LineKey,
    pub code: TransferCode,
    pub rental: Option<RentalId>,
    pub payment: Option<String>,
    pub transfer_count: i64,
    /// Positive for a credit, negative for a charge.
    pub amount: Money,
    /// The platform's part of what the account earned as a host, negative where it was given back; none for any other line.
    pub fee: Option<Money>,
    /// What the account had in all after this line.
    pub balance_after: Money,
}

impl StatementLine {
    /// What the renter paid for what the account earned: its amount and the fee.
    ///
    /// # Errors
    /// `internal` when the sum leaves 64 bits.
    pub fn gross(&self) -> Result<Option<Money>> {
        self.fee.map(|fee| self.amount.plus(fee)).transpose()
    }
}

/// A fold of an account's postings over a span: opening + credits − charges = closing (money.md 8). It is about all that the account has;
/// what moves between its own ledger accounts (a hold, its release) is no line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub period: Period,
    pub opening: Money,
    pub credits: Money,
    pub charges: Money,
    /// What renters paid for what the account earned as a host, less what was given back; and the platform's part of it.
    pub earned_gross: Money,
    pub earned_fee: Money,
    pub closing: Money,
    /// What the closing balance consists of.
    pub closing_balance: Balance,
    pub lines: Vec<StatementLine>,
    /// Where the next page of lines begins, when there are more.
    pub next: Option<LineKey>,
}

/// What one rental cost or earned an account over a span, corrections taken off: host share + fee = gross (money.md 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RentalFold {
    pub rental: RentalId,
    /// The account paid for it; otherwise it was paid.
    pub is_renter: bool,
    pub gross: Money,
    /// The platform's part.
    pub fee: Money,
    /// What it changed for the account: the gross with a minus, or the gross less the fee.
    pub own: Money,
}

/// Something the books say that the postings do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which comparison found it, such as `balance` or `hold`.
    pub what: String,
    pub subject: String,
    pub expected: String,
    pub found: String,
}

/// Outcome of recomputing everything from the postings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub ledger_accounts: i64,
    pub transfers: i64,
    pub holds: i64,
    /// None: the books are right.
    pub differences: Vec<Difference>,
}

impl fmt::Display for LedgerAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key())
    }
}
