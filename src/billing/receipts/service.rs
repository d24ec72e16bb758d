//! Making a receipt.

use super::{
    super::{
        model::TopUp,
        queries as billing_queries,
        refunds::{model::RefundStatus, queries as refund_queries},
        state::TopUpStatus,
    },
    model::{ReceiptCard, ReceiptRefund, ReceiptView},
    queries,
};
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, TopUpId},
    },
    config::Mode,
    ctx::Ctx,
    identity,
};

/// # Errors
/// `not_found` for a top-up that is not the account's, `invalid_state` for one that has not come in.
pub async fn receipt(ctx: &Ctx, account: AccountId, id: TopUpId) -> Result<ReceiptView> {
    let (row, owner, refunds) = {
        let mut conn = ctx.db.conn().await?;
        let row = billing_queries::top_up_fetch(&mut conn, id).await?;
        let row = row.filter(|row| row.account_id == account).ok_or_else(|| Error::not_found("top-up"))?;
        let refunds = refund_queries::refunds_of_top_up(&mut conn, id).await?;
        (row, identity::service::account_summary(&mut conn, account).await?, refunds)
    };
    if row.status()? != TopUpStatus::Succeeded {
        return Err(Error::new(Code::InvalidState, "There is a receipt once the money has come in."));
    }
    let gone = || Error::internal("a top-up that came in without a payment");
    let (Some(payment), Some(paid_at), Some(amount)) = (row.payment_intent_id.clone(), row.settled_at, row.received_micros) else {
        return Err(gone());
    };
    let mut went_back = Vec::new();
    for refund in refunds {
        let status = refund.status()?;
        if status != RefundStatus::Failed {
            went_back.push(ReceiptRefund { id: refund.id, amount: refund.amount_micros, status, created_at: refund.created_at });
        }
    }
    Ok(ReceiptView {
        number: number(row.id),
        top_up_id: row.id,
        paid_at,
        account_id: owner.id,
        account: format!("@{}", owner.handle),
        account_name: owner.display_name,
        amount,
        currency: amount.currency(),
        card: card(ctx, &row, &payment).await?,
        payment,
        refunds: went_back,
        is_test: ctx.config.mode == Mode::Test,
    })
}

/// Follows from the top-up's id, so that a receipt has its number without being stored.
fn number(id: TopUpId) -> String {
    let text = id.to_string();
    let rest = text.split_once('_').map_or(text.as_str(), |(_, rest)| rest);
    format!("RCT-{}", rest.to_ascii_uppercase())
}

async fn card(ctx: &Ctx, row: &TopUp, payment: &str) -> Result<Option<ReceiptCard>> {
    if let Some(brand) = row.card_brand.clone() {
        return Ok(Some(ReceiptCard { brand, last4: row.card_last4.clone() }));
    }
    let Some(stripe) = &ctx.stripe else { return Ok(None) };
    match stripe.payment_card(payment).await {
        Ok(Some(card)) => {
            queries::card_set(&mut *ctx.db.conn().await?, row.id, &card.brand, card.last4.as_deref()).await?;
            Ok(Some(ReceiptCard { brand: card.brand, last4: card.last4 }))
        }
        Ok(None) => Ok(None),
        Err(fault) => {
            tracing::warn!(top_up = %row.id, %fault, "a receipt without its card");
            Ok(None)
        }
    }
}
