//! Typed ids: a UUIDv7 that prints as a TypeID (`mch_01h…`). Two kinds never mix, and a text of the wrong kind does not parse.
//!
//! Format: <https://github.com/jetify-com/typeid/tree/main/spec>: lower-case prefix, `_`, 26 characters of Crockford base 32.

use std::{cmp::Ordering, fmt, hash::Hash, hash::Hasher, marker::PhantomData, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

/// What an id names; `PREFIX` stands before the underscore.
pub trait Kind: 'static {
    const PREFIX: &'static str;
    /// Name of the id's type, in the OpenAPI document too.
    const ID: &'static str;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $alias:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        pub enum $name {}
        impl Kind for $name {
            const PREFIX: &'static str = $prefix;
            const ID: &'static str = stringify!($alias);
        }
        pub type $alias = Id<$name>;
    )*};
}

kinds! {
    /// A person or a team. The prefix shown depends on the account's kind, see [`account_text`].
    Account AccountId "acc";
    ApiKey ApiKeyId "key";
    UploadToken UploadTokenId "upt";
    Session SessionId "ses";
    Invitation InvitationId "inv";
    Machine MachineId "mch";
    Challenge ChallengeId "chl";
    Run RunId "run";
    Remeasurement RemeasurementId "rem";
    Report ReportId "rep";
    Listing ListingId "lst";
    Rental RentalId "rnt";
    Transfer TransferId "trf";
    Hold HoldId "hld";
    TopUp TopUpId "top";
    StripeCustomer StripeCustomerId "scu";
