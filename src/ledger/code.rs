//! Why money moves: the closed list of transfer codes, and for each the kinds of ledger account it may take from and give to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::model::LedgerAccountKind::{
    self, Available, Earnings, Held, Payable, PlatformFees, PlatformRounding, RefundsInTransit, SandboxMint, StripeClearing,
};

/// Why a transfer was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransferCode {
    /// Play money of the sandbox.
    SandboxCredit,
    /// A payment through Stripe.
    TopUp,
    /// A refund asked for: the money is on its way back to the card.
    Refund,
    /// A refund made in Stripe's dashboard: the money has left already, so this may leave a debt.
    RefundAtStripe,
    RefundSettled,
    /// It came back, before or after it was settled.
    RefundFailed,
    /// A bank took a payment back; may leave a debt.
    Chargeback,
    ChargebackReversed,
    /// Money set aside for a rental.
    Hold,
    HoldIncrease,
    HoldRelease,
    HoldExpire,
    /// Use of a rented machine, out of the hold: to the host, less the platform's fee.
    RentalCharge,
    /// A charge given back in whole or in part, linked to it.
    Correction,
    EarningsMatured,
    Payout,
    PayoutFailed,
    /// A Pro subscription paid through Stripe; in the sandbox, with play money.
    ProPayment,
    /// An operator's entry.
    Adjustment,
}

/// Everything but what is held: that moves only with its hold.
const ANY: &[LedgerAccountKind] =
    &[Available, Earnings, Payable, PlatformFees, PlatformRounding, StripeClearing, RefundsInTransit, SandboxMint];

impl TransferCode {
    pub const ALL: &'static [Self] = &[
        Self::SandboxCredit,
        Self::TopUp,
        Self::Refund,
        Self::RefundAtStripe,
        Self::RefundSettled,
        Self::RefundFailed,
        Self::Chargeback,
        Self::ChargebackReversed,
        Self::Hold,
        Self::HoldIncrease,
        Self::HoldRelease,
        Self::HoldExpire,
        Self::RentalCharge,
        Self::Correction,
        Self::EarningsMatured,
        Self::Payout,
        Self::PayoutFailed,
        Self::ProPayment,
        Self::Adjustment,
    ];

    /// The code as it stands in the database and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SandboxCredit => "sandbox_credit",
            Self::TopUp => "top_up",
            Self::Refund => "refund",
            Self::RefundAtStripe => "refund_at_stripe",
            Self::RefundSettled => "refund_settled",
            Self::RefundFailed => "refund_failed",
            Self::Chargeback => "chargeback",
            Self::ChargebackReversed => "chargeback_reversed",
            Self::Hold => "hold",
            Self::HoldIncrease => "hold_increase",
            Self::HoldRelease => "hold_release",
            Self::HoldExpire => "hold_expire",
            Self::RentalCharge => "rental_charge",
            Self::Correction => "correction",
            Self::EarningsMatured => "earnings_matured",
            Self::Payout => "payout",
            Self::PayoutFailed => "payout_failed",
            Self::ProPayment => "pro_payment",
            Self::Adjustment => "adjustment",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }

    /// What a statement calls it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SandboxCredit => "Sandbox credit",
            Self::TopUp => "Top-up",
            Self::Refund => "Refund",
            Self::RefundAtStripe => "Refund by Stripe",
            Self::RefundSettled => "Refund settled",
            Self::RefundFailed => "Refund returned",
            Self::Chargeback => "Chargeback",
            Self::ChargebackReversed => "Chargeback reversed",
            Self::Hold => "Hold",
            Self::HoldIncrease => "Hold increased",
            Self::HoldRelease => "Hold released",
            Self::HoldExpire => "Hold expired",
            Self::RentalCharge => "Rental",
            Self::Correction => "Correction",
            Self::EarningsMatured => "Earnings payable",
            Self::Payout => "Payout",
            Self::PayoutFailed => "Payout returned",
            Self::ProPayment => "Pro",
            Self::Adjustment => "Adjustment",
        }
    }

    /// Whether it moves the money of a hold; `service::post` takes none of these.
    pub const fn is_of_hold(self) -> bool {
        matches!(self, Self::Hold | Self::HoldIncrease | Self::HoldRelease | Self::HoldExpire | Self::RentalCharge)
    }

    /// The kinds of ledger account that this code may lessen, and those that it may add to.
    pub(super) const fn may_move(self) -> (&'static [LedgerAccountKind], &'static [LedgerAccountKind]) {
        match self {
            Self::SandboxCredit => (&[SandboxMint], &[Available]),
            Self::TopUp | Self::ChargebackReversed => (&[StripeClearing], &[Available]),
            Self::Refund | Self::RefundAtStripe => (&[Available], &[RefundsInTransit]),
            Self::RefundSettled => (&[RefundsInTransit], &[StripeClearing]),
            Self::RefundFailed => (&[RefundsInTransit, StripeClearing], &[Available]),
            Self::Chargeback => (&[Available], &[StripeClearing]),
            Self::Hold | Self::HoldIncrease => (&[Available], &[Held]),
            Self::HoldRelease | Self::HoldExpire => (&[Held], &[Available]),
            Self::RentalCharge => (&[Held], &[Earnings, PlatformFees]),
            Self::Correction => (&[Earnings, Payable, PlatformFees], &[Available]),
            Self::EarningsMatured => (&[Earnings], &[Payable]),
            Self::Payout => (&[Payable], &[StripeClearing]),
            Self::PayoutFailed => (&[StripeClearing], &[Payable]),
            Self::ProPayment => (&[StripeClearing, Available], &[PlatformFees]),
            Self::Adjustment => (ANY, ANY),
        }
    }
}
