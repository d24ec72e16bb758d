//! Use cases of payouts.

mod accounts;
mod events;
mod payouts;
mod settle;
mod weekly;

pub use accounts::{payout_account_onboard, payout_account_show, payout_account_update};
pub(in super::super) use events::{
    AccountSeen, BankSeen, TransferSeen, account_seen, apply_to_account, apply_to_bank_payout, apply_to_payout, bank_payout_seen,
    transfer_seen,
};
pub use payouts::{Begun, ListFilter, payout_begin, payout_fetch, payout_list, payout_record};
pub use settle::ask_due;
pub use weekly::{pay_weekly, weekly_next_due};

use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
    integrations::stripe::Stripe,
};

/// # Errors
/// `no_payment_provider` in the sandbox.
fn require_stripe(ctx: &Ctx) -> Result<&Stripe> {
    let detail = "This is a sandbox: play money is earned and becomes payable, but is not paid out.";
    ctx.stripe.as_ref().ok_or_else(|| Error::new(Code::NoPaymentProvider, detail))
}
