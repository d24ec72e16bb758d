//! A receipt as a page of its own, without menus, to be printed or saved as PDF.

use askama::Template;
use chrono::{DateTime, SecondsFormat, Utc};

use super::model::ReceiptView;
use crate::{
    base::Money,
    web::html::{self, LANGUAGES, Messages},
};

#[derive(Template)]
#[template(path = "receipt.html")]
pub(super) struct ReceiptPage {
    t: Messages,
    css: &'static str,
    receipt: ReceiptView,
}

impl ReceiptPage {
    pub fn new(receipt: ReceiptView) -> Self {
        Self { t: Messages::of(&LANGUAGES[0]), css: html::asset_path("rigmark.css"), receipt }
    }

    fn day(&self) -> String {
        self.receipt.paid_at.date_naive().to_string()
    }
    fn paid_at(&self) -> String {
        self.receipt.paid_at.to_rfc3339_opts(SecondsFormat::Secs, true)
    }
    fn amount(&self) -> String {
        self.t.money(self.receipt.amount)
    }
    fn money(&self, amount: &Money) -> String {
        self.t.money(*amount)
    }
    fn refund_day(&self, at: &DateTime<Utc>) -> String {
        at.date_naive().to_string()
    }
    /// `visa …4242`
    fn card(&self) -> Option<String> {
        let card = self.receipt.card.as_ref()?;
        Some(match &card.last4 {
            Some(last4) => format!("{} …{last4}", card.brand),
            None => card.brand.clone(),
        })
    }
}
