//! The states of a listing and the moves between them. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a listing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListingState {
    /// Never published. Only its owner sees it.
    Draft,
    Published,
    /// Taken down by its owner.
    Paused,
    /// Taken down by the system; the reason stands beside it.
    OffMarket,
}

/// What may happen to a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    Publish,
    Pause,
    /// By the system.
    TakeOff,
}

impl ListingState {
    pub const ALL: [Self; 4] = [Self::Draft, Self::Published, Self::Paused, Self::OffMarket];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Published => "published",
            Self::Paused => "paused",
            Self::OffMarket => "off_market",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// The state after a move; `None` when the move is not one of this state's. A move that was made already changes nothing.
    pub const fn after(self, step: Move) -> Option<Self> {
        match (self, step) {
            (_, Move::Publish) => Some(Self::Published),
            (Self::Published | Self::Paused, Move::Pause) => Some(Self::Paused),
            (Self::Draft | Self::OffMarket, Move::Pause) => None,
            (Self::Published | Self::OffMarket, Move::TakeOff) => Some(Self::OffMarket),
            (Self::Draft | Self::Paused, Move::TakeOff) => None,
        }
    }
}
