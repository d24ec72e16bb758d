//! What a receipt says.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::refunds::model::RefundStatus;
use crate::base::{
    Money,
    id::{RefundId, TopUpId},
    money::Currency,
    shape::{AccountIdText, HandleText},
};

/// What a receipt knows of the card: nothing that pays.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptCard {
    /// As Stripe writes it (`visa`); of what is no card, its kind.
    pub brand: String,
    pub last4: Option<String>,
}

/// What has gone back of a receipt's money, or is on its way.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptRefund {
    pub id: RefundId,
    pub amount: Money,
    pub status: RefundStatus,
    pub created_at: DateTime<Utc>,
}

/// A receipt for money that has come in.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptView {
    /// One of a kind, and the same whenever it is asked for.
    pub number: String,
    pub top_up_id: TopUpId,
    /// When it was credited. Its UTC date is the receipt's.
    pub paid_at: DateTime<Utc>,
    #[schema(value_type = AccountIdText)]
    pub account_id: String,
    /// Handle of the account, with `@`.
    #[schema(value_type = HandleText)]
    pub account: String,
    /// The name that the account gives itself.
    pub account_name: String,
    /// What was paid.
    pub amount: Money,
    pub currency: Currency,
    /// Null while Stripe has not said it.
    pub card: Option<ReceiptCard>,
    /// Stripe's name of the payment, as it stands in ledger entries and statements.
    pub payment: String,
    /// Without those that failed.
    pub refunds: Vec<ReceiptRefund>,
    /// Test mode: no money has moved.
    pub is_test: bool,
}
