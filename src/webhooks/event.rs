//! What accounts can be told of: a closed list. A new event is a line here and a call of `service::emit` where it happens.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use crate::{base::shape, identity::scope::Scope};

/// Subscribes to every event, those of later versions included.
pub(super) const ALL_EVENTS: &str = "*";

/// Sent when its owner asks for it, to one endpoint, whatever that subscribes to.
pub(super) const TEST_EVENT: &str = "webhook.test";

macro_rules! events {
    ($($name:ident $text:literal $scope:ident $schema:literal $meaning:literal;)*) => {
        /// A kind of event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum EventType { $(#[doc = $meaning] $name),* }

        impl EventType {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
            /// As it stands in `type`.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $text),* } }
            /// When it is sent.
            pub const fn meaning(self) -> &'static str { match self { $(Self::$name => $meaning),* } }
            /// The schema of its `data` in the OpenAPI document.
            pub const fn data_schema(self) -> &'static str { match self { $(Self::$name => $schema),* } }
            /// What whoever subscribes to it must be allowed.
            pub(super) const fn scope(self) -> Scope { match self { $(Self::$name => Scope::$scope),* } }
            pub(super) fn parse(text: &str) -> Option<Self> { match text { $($text => Some(Self::$name),)* _ => None } }
        }
    };
}

events! {
    RentalStarted "rental.started" RentalsWrite "RentalView" "A rented machine has given its first token; to renter and host.";
    RentalEnded "rental.ended" RentalsWrite "RentalView" "A rental is over; `end_reason` says why. To renter and host.";
    RentalFailed "rental.failed" RentalsWrite "RentalView" "A rented machine did not start in time; nothing was charged. To renter and host.";
    RentalLowFunds "rental.low_funds" RentalsWrite "RentalLowFunds" "The renter's money lasts for no more than 24 hours, 2 hours or 15 minutes; once for each.";
    RunVerdict "run.verdict" RunsWrite "RunSummaryView" "An uploaded run has got its verdict, or another one.";
    BadgeStale "badge.stale" ListingsWrite "StaleRun" "What a run was measured on has changed: its badge is stale, and the listing on it leaves the market at `stale_until`.";
    ListingPublished "listing.published" ListingsWrite "ListingView" "A listing has come on the market.";
    ListingOffMarket "listing.off_market" ListingsWrite "ListingView" "The service has taken a listing off the market; `off_market_reason` says why.";
    TopUpSucceeded "top_up.succeeded" BillingWrite "TopUpView" "A top-up is on the account.";
    TopUpFailed "top_up.failed" BillingWrite "TopUpView" "A try to pay a top-up has failed, or the top-up was canceled.";
}

/// What an endpoint can subscribe to, in the OpenAPI document.
pub enum Subscription {}

impl PartialSchema for Subscription {
    fn schema() -> RefOr<Schema> {
        let names = EventType::ALL.iter().map(|event| event.as_str()).chain([ALL_EVENTS]);
        shape::closed(names, "A kind of event, or `*` for all of them, those of later versions included.")
    }
}
impl ToSchema for Subscription {
    fn name() -> Cow<'static, str> {
        "WebhookSubscription".into()
    }
}

/// What `type` can be, in the OpenAPI document.
pub enum EventName {}

impl PartialSchema for EventName {
    fn schema() -> RefOr<Schema> {
        let names = EventType::ALL.iter().map(|event| event.as_str()).chain([TEST_EVENT]);
        shape::closed(names, "A kind of event; `webhook.test` is sent when it is asked for.")
    }
}
impl ToSchema for EventName {
    fn name() -> Cow<'static, str> {
        "WebhookEventName".into()
    }
}

/// The scopes that a list of subscriptions needs; a name that is not known any more needs all of them.
pub(super) fn scopes_of(subscriptions: &[String]) -> Vec<Scope> {
    let of = |name: &String| EventType::parse(name).map_or_else(|| EventType::ALL.to_vec(), |event| vec![event]);
    let mut scopes: Vec<Scope> = subscriptions.iter().flat_map(of).map(EventType::scope).collect();
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}
