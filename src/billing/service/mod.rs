//! Use cases of billing.

mod events;
mod sandbox;
mod settle;
mod top_ups;

pub use super::disputes::{model::DisputeEvidence, service::evidence_for_operator};
pub use events::event_take;
pub use sandbox::{SandboxCreditRequest, SandboxCreditView, require_sandbox, sandbox_credit};
pub use settle::ask_due;
pub(super) use settle::{note_alarm, record as record_payment};
pub use top_ups::{Begun, ListFilter, STRIPE_MAX, top_up_begin, top_up_fetch, top_up_list, top_up_record};
pub(super) use top_ups::{KEY_KEPT, check_address, check_amount, check_method, is_address, is_method, new_row, pay, refused_method};

use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
    integrations::stripe::Stripe,
};

/// # Errors
/// `no_payment_provider` in the sandbox.
pub(super) fn require_stripe(ctx: &Ctx) -> Result<&Stripe> {
    let detail = "This is a sandbox, which takes no payments: POST /api/v1/sandbox/credits adds play money.";
    ctx.stripe.as_ref().ok_or_else(|| Error::new(Code::NoPaymentProvider, detail))
}
