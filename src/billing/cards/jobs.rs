//! Taking removed cards off their customers at Stripe.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::service;
use crate::{
    base::{Error, Result},
    ctx::Ctx,
    jobs::JobHandler,
};

pub(super) const DETACH: &str = "card_detach";

/// Which card.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Detach {
    pub payment_method: String,
}

/// Runs [`service::detach_at_stripe`].
pub struct DetachCards;

#[async_trait(?Send)]
impl JobHandler for DetachCards {
    fn kind(&self) -> &'static str {
        DETACH
    }
    async fn run(&self, ctx: &Ctx, payload: serde_json::Value) -> Result<()> {
        let detach: Detach = serde_json::from_value(payload).map_err(Error::internal)?;
        service::detach_at_stripe(ctx, &detach.payment_method).await
    }
}
