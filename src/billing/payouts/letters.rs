//! What a host is told about payouts that did not go as meant: subject and text.

use crate::base::Money;

/// The payout account is dead.
pub fn account_disabled(reason: &str) -> (&'static str, String) {
    let text = format!(
        "Stripe no longer pays to your payout account (reason: {reason}). Payouts have stopped, the weekly one too. What was on its way comes \
         back to what is payable as far as Stripe still has it.\n\nSet up a payout account anew to be paid."
    );
    ("Your payout account is closed", text)
}

/// A bank sent money back.
pub fn bank_refused(code: &str) -> (&'static str, String) {
    let text = format!(
        "Your bank sent a payout back (reason: {code}). Payouts have stopped, the weekly one too. The money comes back to what is payable.\n\n\
         Check the bank account at Stripe, then set the schedule of your payout account again to take payouts up."
    );
    ("Your bank sent a payout back", text)
}

/// Stripe refused a payout.
pub fn payout_failed(amount: Money, code: &str) -> (&'static str, String) {
    let text = format!("A payout of {amount} usd was refused by Stripe (reason: {code}). The money is payable again; nothing is lost.");
    ("A payout failed", text)
}
