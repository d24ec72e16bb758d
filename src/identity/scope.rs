//! Scopes of API keys and roles of members, and the one table of what each role allows.
//!
//! Invariants: an empty set allows nothing; `x:write` contains `x:read`; a caller's rights are what the key *and* the role of its maker allow.

use serde::Serialize;

use crate::base::shape;

macro_rules! scopes {
    ($($name:ident $text:literal $bit:literal;)*) => {
        /// What a key may be allowed to do (api.md, Conventions).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        pub enum Scope { $(#[serde(rename = $text)] $name),* }

        impl Scope {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $text),* } }
            pub fn parse(text: &str) -> Option<Self> { match text { $($text => Some(Self::$name),)* _ => None } }
            const fn bit(self) -> u16 { match self { $(Self::$name => 1 << $bit),* } }
        }

        $(
            #[doc = concat!("Marker of [`Auth`](super::extract::Auth): the handler needs `", $text, "`.")]
            pub enum $name {}
            impl Required for $name { const NEED: Need = Need::Scope(Scope::$name); }
        )*
    };
}

impl utoipa::PartialSchema for Scope {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        shape::closed(Self::ALL.iter().map(|scope| scope.as_str()), "What a key may be allowed to do; `x:write` contains `x:read`.")
    }
}
impl utoipa::ToSchema for Scope {}

scopes! {
    AccountRead "account:read" 0;
    MachinesRead "machines:read" 1;
    MachinesWrite "machines:write" 2;
    RunsWrite "runs:write" 3;
    ListingsWrite "listings:write" 4;
    RentalsRead "rentals:read" 5;
    RentalsWrite "rentals:write" 6;
    BillingRead "billing:read" 7;
    BillingWrite "billing:write" 8;
    Inference "inference" 9;
}

/// What a handler needs of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Scope(Scope),
    /// Any right at all: a key with an empty list of scopes fails.
    Any,
    /// A person who has signed in. No scope gives it to a key: it guards what changes who may do what (profile, password, members).
    Session,
}

/// A type-level [`Need`], the parameter of `Auth`.
pub trait Required: 'static {
    const NEED: Need;
}

/// See [`Need::Any`].
pub enum Any {}
impl Required for Any {
    const NEED: Need = Need::Any;
}

/// See [`Need::Session`].
pub enum Session {}
impl Required for Session {
    const NEED: Need = Need::Session;
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeSet(u16);

impl ScopeSet {
    pub const EMPTY: Self = Self(0);

    pub fn all() -> Self {
        Scope::ALL.iter().copied().collect()
    }
    /// Whether it allows what `scope` allows; `x:write` allows what `x:read` does.
    pub fn allows(self, scope: Scope) -> bool {
        self.widened().0 & scope.bit() != 0
    }
    /// Whether it allows everything that `other` does.
    pub fn covers(self, other: Self) -> bool {
        other.0 & !self.widened().0 == 0
    }
    pub fn intersection(self, other: Self) -> Self {
        Self(self.widened().0 & other.widened().0)
    }
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.0 & scope.bit() != 0)
    }

    /// With the reads that its writes contain.
    fn widened(self) -> Self {
        let pairs = [
            (Scope::MachinesWrite, Scope::MachinesRead),
            (Scope::RentalsWrite, Scope::RentalsRead),
            (Scope::BillingWrite, Scope::BillingRead),
        ];
        pairs.iter().fold(self, |set, (write, read)| if set.0 & write.bit() == 0 { set } else { Self(set.0 | read.bit()) })
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::EMPTY, |set, scope| Self(set.0 | scope.bit()))
    }
}

/// A member's part in an organization. A person is the owner of their own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Owner,
    Admin,
    Member,
    Billing,
}

impl Role {
    pub const ALL: &'static [Self] = &[Self::Owner, Self::Admin, Self::Member, Self::Billing];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Billing => "billing",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.as_str() == text)
    }

    /// The table: what a member of this role may do for the organization.
    pub fn scopes(self) -> ScopeSet {
        use Scope::{AccountRead, BillingRead, BillingWrite, Inference, MachinesRead, MachinesWrite, RentalsRead, RentalsWrite, RunsWrite};
        match self {
            Self::Owner | Self::Admin => ScopeSet::all(),
            Self::Member => {
                [AccountRead, MachinesRead, MachinesWrite, RunsWrite, RentalsRead, RentalsWrite, Inference].into_iter().collect()
            }
            Self::Billing => [AccountRead, MachinesRead, RentalsRead, BillingRead, BillingWrite].into_iter().collect(),
        }
    }

    /// Whether this role may invite, change and remove members, and see every key of the organization.
    pub const fn manages_members(self) -> bool {
        matches!(self, Self::Owner | Self::Admin)
    }
    /// Whether this role may give `other` to somebody, or take it away: admins do not make or unmake owners.
    pub const fn may_assign(self, other: Self) -> bool {
        match self {
            Self::Owner => true,
            Self::Admin => !matches!(other, Self::Owner),
            Self::Member | Self::Billing => false,
        }
    }
}
