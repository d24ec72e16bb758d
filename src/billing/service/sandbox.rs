//! Play money.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::{Error, Money, Result, id::TransferId, money::Currency, shape::PriceText},
    ctx::Ctx,
    db::Tx,
    identity::Caller,
    ledger::{
        self, LedgerAccount, TransferCode,
        model::Balance,
        service::{Posting, TransferRequest},
    },
};

/// The most play money that one request gives.
const SANDBOX_CREDIT_MAX: Money = Money::usd_micros(1_000_000_000_000);

/// How much play money to add.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxCreditRequest {
    /// More than zero, at most 1000000.
    #[schema(value_type = PriceText)]
    pub amount: Money,
}

/// Play money that was added.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SandboxCreditView {
    /// The transfer.
    pub id: TransferId,
    pub amount: Money,
    pub currency: Currency,
    /// What the account has now.
    pub balance: Balance,
}

/// # Errors
/// `not_found` outside the sandbox: the route is not there.
pub fn require_sandbox(ctx: &Ctx) -> Result<()> {
    if ctx.config.mode.is_sandbox() { Ok(()) } else { Err(Error::not_found("path")) }
}

/// Adds play money to the caller's account.
///
/// # Errors
/// `not_found` outside the sandbox, `invalid_input` for an amount of nothing or too much.
pub async fn sandbox_credit(ctx: &Ctx, tx: &mut Tx<'_>, caller: &Caller, request: &SandboxCreditRequest) -> Result<SandboxCreditView> {
    require_sandbox(ctx)?;
    if !request.amount.is_positive() {
        return Err(Error::invalid("/amount", "too_small", "The amount must be more than zero."));
    }
    if request.amount > SANDBOX_CREDIT_MAX {
        return Err(Error::invalid("/amount", "too_large", format!("The amount is at most {SANDBOX_CREDIT_MAX}.")));
    }
    let account = caller.account_id;
    let transfer = TransferRequest {
        id: TransferId::new(),
        code: TransferCode::SandboxCredit,
        postings: Posting::between(LedgerAccount::SandboxMint, LedgerAccount::Available(account), request.amount)?,
        rental: None,
        payment: None,
        actor: caller.into(),
        business_at: ctx.business_now(tx).await?,
        linked: None,
    };
    let id = transfer.id;
    ledger::service::post(tx, transfer).await?;
    let balance = ledger::service::balance(tx, account).await?;
    Ok(SandboxCreditView { id, amount: request.amount, currency: Currency::Usd, balance })
}
