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
    Refund RefundId "ref";
    Dispute DisputeId "dsp";
    StripeCustomer StripeCustomerId "scu";
    CardSetup CardSetupId "cst";
    PayoutAccount PayoutAccountId "pac";
    Payout PayoutId "pay";
    WebhookEndpoint WebhookEndpointId "whe";
    /// Of one event to one account, the same in every try: the `webhook-id` of Standard Webhooks.
    WebhookEvent WebhookEventId "msg";
    ProSubscription ProSubscriptionId "pro";
    SavedSearch SavedSearchId "sch";
    LedgerAccount LedgerAccountId "lac";
    Job JobId "job";
    Request RequestId "req";
}

/// An id of kind `K`. Ordered by creation time, since the UUID is version 7.
pub struct Id<K>(Uuid, PhantomData<fn() -> K>);

impl<K: Kind> Id<K> {
    #[expect(clippy::new_without_default, reason = "an id is made on purpose, never by default")]
    pub fn new() -> Self {
        Self::from_uuid(Uuid::now_v7())
    }
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid, PhantomData)
    }
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

/// The text of an account's id: `usr_…` for a person, `org_…` for a team.
pub fn account_text(id: AccountId, is_organization: bool) -> String {
    encode(if is_organization { "org" } else { "usr" }, id.uuid())
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(K::PREFIX, self.0))
    }
}
impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl<K: Kind> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Why a text is no id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an id of the form {prefix}_ and 26 characters")]
pub struct ParseIdError {
    prefix: &'static str,
}

impl<K: Kind> FromStr for Id<K> {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = ParseIdError { prefix: K::PREFIX };
        let rest = text.strip_prefix(K::PREFIX).and_then(|r| r.strip_prefix('_'));
        rest.and_then(decode).map(Self::from_uuid).ok_or(error)
    }
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

fn encode(prefix: &str, uuid: Uuid) -> String {
    let value = uuid.as_u128();
    let mut text = String::with_capacity(prefix.len() + 27);
    text.push_str(prefix);
    text.push('_');
    for i in (0..26).rev() {
        let index = usize::try_from((value >> (i * 5)) & 31).unwrap_or(0);
        text.push(char::from(ALPHABET.get(index).copied().unwrap_or(b'0')));
    }
    text
}

/// Only the canonical text decodes: lower case, 26 characters, at most 128 bits; so one id has one spelling.
fn decode(text: &str) -> Option<Uuid> {
    if text.len() != 26 {
        return None;
    }
    let mut value: u128 = 0;
    for (i, byte) in text.bytes().enumerate() {
        let digit = u128::try_from(ALPHABET.iter().position(|c| *c == byte)?).ok()?;
        if i == 0 && digit > 7 {
            return None;
        }
        value = (value << 5) | digit;
    }
    Some(Uuid::from_u128(value))
}

impl<K: Kind> utoipa::PartialSchema for Id<K> {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .pattern(Some(format!("^{}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$", K::PREFIX)))
            .examples([format!("{}_01h455vb4pex5vsknk084sn02q", K::PREFIX)])
            .into()
    }
}
impl<K: Kind> utoipa::ToSchema for Id<K> {
    fn name() -> std::borrow::Cow<'static, str> {
        K::ID.into()
    }
}
