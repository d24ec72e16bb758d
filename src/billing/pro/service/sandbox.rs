//! Pro for play money, so that a sandbox can try it: one period, paid out of `available`, that does not renew.

use chrono::Months;

use super::{
    super::{
        model::{ProPlan, ProStatus, ProSubscription, ProSubscriptionView, SubscribeRequest},
        queries,
    },
    checked_seats,
    plans::sandbox_price,
    settle::note_sale,
};
use crate::{
    base::{Error, Money, Result, id::ProSubscriptionId},
    ctx::Ctx,
    db::Tx,
    identity::{self, Caller},
    ledger::{
        self, LedgerAccount, TransferCode,
        service::{Posting, TransferRequest},
    },
};

/// Buys one period. It stands as canceled, with the time that was paid left.
///
/// # Errors
/// `insufficient_funds`, `already_subscribed` while Pro is on, `invalid_input`.
pub async fn pro_buy_with_play_money(
    ctx: &Ctx,
    tx: &mut Tx<'_>,
    caller: &Caller,
    request: &SubscribeRequest,
) -> Result<ProSubscriptionView> {
    for (pointer, given) in [("/payment_method", &request.payment_method), ("/return_url", &request.return_url)] {
        if given.is_some() {
            return Err(Error::invalid(pointer, "not_in_sandbox", "In the sandbox Pro is paid with play money."));
        }
    }
    let seats = checked_seats(tx, caller, request.seats).await?;
    let now = ctx.business_now_held(tx).await?;
    // Whoever buys at the same time waits here, and then sees this one.
    ledger::service::available_lock(tx, caller.account_id).await?;
    if identity::service::entitlements(ctx, tx, caller.account_id).await?.is_pro {
        return Err(queries::already_subscribed());
    }
    let months = match request.plan {
        ProPlan::Monthly => Months::new(1),
        ProPlan::Yearly => Months::new(12),
    };
    let until = now.checked_add_months(months).ok_or_else(|| Error::internal("a month beyond all time"))?;
    let row = ProSubscription {
        plan: request.plan.as_str().to_owned(),
        means: "play_money".to_owned(),
        status: ProStatus::Canceled.as_str().to_owned(),
        is_ending: true,
        period_ends_at: Some(until),
        paid_until: Some(until),
        pro_until: Some(until),
        ended_at: Some(now),
        ..ProSubscription::blank(ProSubscriptionId::new(), caller.account_id, seats, now)
    };
    queries::pro_insert(tx, &row).await?;
    let rows = queries::pro_lock_all(tx, row.id).await?;
    note_sale(tx, caller.account_id, &rows).await?;
    let micros = sandbox_price(ctx, request.plan)?.micros().checked_mul(i64::from(seats));
    let price = micros.map(Money::usd_micros).ok_or_else(|| Error::internal("a price beyond 64 bits"))?;
    let transfer = TransferRequest {
        id: ledger::service::derived_id(&["pro_play_money", &row.id.to_string()]),
        code: TransferCode::ProPayment,
        postings: Posting::between(LedgerAccount::Available(caller.account_id), LedgerAccount::PlatformFees, price)?,
        rental: None,
        payment: Some(row.id.to_string()),
        actor: caller.into(),
        business_at: now,
        linked: None,
    };
    ledger::service::post(tx, transfer).await?;
    ProSubscriptionView::new(&row, None)
}
