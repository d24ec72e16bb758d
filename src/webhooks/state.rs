//! The pure rules: when a delivery is tried again, what an answer means, when an endpoint is given up.

use chrono::{DateTime, TimeDelta, Utc};

use crate::engines::PostFault;

/// Pauses between tries: twelve tries in about three days.
pub const RETRY_SECONDS: [i64; 11] = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 79_200];

/// An endpoint of which no try has succeeded for so long is disabled.
const GIVEN_UP_AFTER: TimeDelta = TimeDelta::days(5);

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = WebhookDeliveryStatus)]
pub enum DeliveryStatus {
    /// A try is to come, or under way.
    Pending,
    /// Answered with a 2xx status.
    Delivered,
    /// Every try has failed.
    Failed,
}

impl DeliveryStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Delivered, Self::Failed].into_iter().find(|status| status.as_str() == text)
    }
}

/// Why the service disabled an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = WebhookDisabledReason)]
pub enum DisabledReason {
    /// The receiver answered 410.
    Gone,
    /// Every try has failed for five days.
    Failing,
}

impl DisabledReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Gone, Self::Failing].into_iter().find(|reason| reason.as_str() == text)
    }
}

/// What is wrong with what came of a try, as one word; none for a delivery.
pub(super) const fn fault(status: Result<u16, PostFault>) -> Option<&'static str> {
    match status {
        Ok(200..=299) => None,
        Ok(300..=399) => Some("redirect"),
        Ok(_) => Some("status"),
        Err(PostFault::ForbiddenAddress) => Some("forbidden_address"),
        Err(PostFault::Unreachable) => Some("unreachable"),
        Err(PostFault::Timeout) => Some("timeout"),
        Err(PostFault::BadAnswer) => Some("bad_answer"),
    }
}

/// How long to wait after the try number `step` of the schedule has failed, up to a tenth longer by `permille` (0 to 1000), so that what
/// failed together does not come back together. None after the last.
pub(super) fn pause(step: i32, permille: i64) -> Option<TimeDelta> {
    let index = usize::try_from(step).ok()?.checked_sub(1)?;
    let milliseconds = RETRY_SECONDS.get(index)?.saturating_mul(1_000);
    TimeDelta::try_milliseconds(milliseconds.saturating_add(milliseconds / 10 * permille.clamp(0, 1_000) / 1_000))
}

/// The step after which one try is left.
pub(super) fn last_step() -> i32 {
    i32::try_from(RETRY_SECONDS.len()).unwrap_or(i32::MAX)
}

/// Whether a failure at `now` is the end of an endpoint that has failed since `failing_since`.
pub(super) fn disables(status: Result<u16, PostFault>, failing_since: DateTime<Utc>, now: DateTime<Utc>) -> Option<DisabledReason> {
    if status == Ok(410) {
        return Some(DisabledReason::Gone);
    }
    (now - failing_since >= GIVEN_UP_AFTER).then_some(DisabledReason::Failing)
}
