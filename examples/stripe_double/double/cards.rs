//! Stripe's test cards: their numbers, the names of their payment methods and tokens, and what they do.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    Pays,
    /// Code, decline code.
    Declines(&'static str, &'static str),
    /// Can be saved, but is declined when charged.
    DeclinesLater,
    /// Wants the customer every time; declined without one.
    AsksAlways,
    /// Wants the customer unless it was set up for off-session use.
    AsksUntilSetUp,
    /// Pays, and is disputed for this reason.
    Disputes(&'static str),
    /// Its refunds fail after they seemed to succeed.
    RefundFails,
    /// Its refunds stay pending.
    RefundPends,
}

#[derive(Debug)]
pub struct Card {
    /// After `pm_card_`; the token is `tok_` and the same.
    pub name: &'static str,
    pub number: &'static str,
    pub brand: &'static str,
    pub conduct: Conduct,
}

use Conduct::{AsksAlways, AsksUntilSetUp, Declines, DeclinesLater, Disputes, Pays, RefundFails, RefundPends};

const fn card(name: &'static str, number: &'static str, brand: &'static str, conduct: Conduct) -> Card {
    Card { name, number, brand, conduct }
}

static TABLE: [Card; 30] = [
    card("visa", "4242424242424242", "visa", Pays),
    card("visa_debit", "4000056655665556", "visa", Pays),
    card("mastercard", "5555555555554444", "mastercard", Pays),
    card("mastercard_debit", "5200828282828210", "mastercard", Pays),
    card("amex", "378282246310005", "amex", Pays),
    card("discover", "6011111111111117", "discover", Pays),
    card("jcb", "3566002020360505", "jcb", Pays),
    card("bypassPending", "4000000000000077", "visa", Pays),
    card("us", "4242424242424242", "visa", Pays),
    card("chargeDeclined", "4000000000000002", "visa", Declines("card_declined", "generic_decline")),
    card("visa_chargeDeclined", "4000000000000002", "visa", Declines("card_declined", "generic_decline")),
    card("chargeDeclinedInsufficientFunds", "4000000000009995", "visa", Declines("card_declined", "insufficient_funds")),
    card("visa_chargeDeclinedInsufficientFunds", "4000000000009995", "visa", Declines("card_declined", "insufficient_funds")),
    card("chargeDeclinedLostCard", "4000000000009987", "visa", Declines("card_declined", "lost_card")),
    card("chargeDeclinedStolenCard", "4000000000009979", "visa", Declines("card_declined", "stolen_card")),
    card("chargeDeclinedFraudulent", "4100000000000019", "visa", Declines("card_declined", "fraudulent")),
    card("chargeDeclinedExpiredCard", "4000000000000069", "visa", Declines("expired_card", "")),
    card("chargeDeclinedIncorrectCvc", "4000000000000127", "visa", Declines("incorrect_cvc", "")),
    card("chargeDeclinedProcessingError", "4000000000000119", "visa", Declines("processing_error", "")),
    card("chargeDeclinedVelocityLimitExceeded", "4000000000006975", "visa", Declines("card_declined", "card_velocity_exceeded")),
    card("chargeCustomerFail", "4000000000000341", "visa", DeclinesLater),
    card("authenticationRequired", "4000002760003184", "visa", AsksAlways),
    card("authenticationRequiredOnSetup", "4000002500003155", "visa", AsksUntilSetUp),
    card("threeDSecure2Required", "4000000000003220", "visa", AsksAlways),
    card("threeDSecureRequired", "4000000000003063", "visa", AsksAlways),
    card("createDispute", "4000000000000259", "visa", Disputes("fraudulent")),
    card("createDisputeProductNotReceived", "4000000000002685", "visa", Disputes("product_not_received")),
    card("createDisputeInquiry", "4000000000001976", "visa", Disputes("inquiry")),
    card("refundFail", "4000000000005126", "visa", RefundFails),
    card("pendingRefund", "4000000000007726", "visa", RefundPends),
];

impl Card {
    /// By `pm_card_visa` or `tok_visa`.
    pub fn named(token: &str) -> Option<&'static Self> {
        let name = token.strip_prefix("pm_card_").or_else(|| token.strip_prefix("tok_"))?;
        TABLE.iter().find(|card| card.name == name)
    }

    /// By what somebody types into the page.
    pub fn numbered(number: &str) -> Option<&'static Self> {
        let digits: String = number.chars().filter(char::is_ascii_digit).collect();
        TABLE.iter().find(|card| card.number == digits)
    }

    pub fn last4(&self) -> &'static str {
        &self.number[self.number.len() - 4..]
    }

    pub fn fingerprint(&self) -> String {
        super::world::letters(self.number, 16)
    }

    pub fn declined_message(code: &str, decline_code: &str) -> &'static str {
        match (code, decline_code) {
            ("expired_card", _) => "Your card has expired.",
            ("incorrect_cvc", _) => "Your card's security code is incorrect.",
            ("processing_error", _) => "An error occurred while processing your card. Try again in a little bit.",
            ("authentication_required", _) => "Your card was declined. This transaction requires authentication.",
            (_, "insufficient_funds") => "Your card has insufficient funds.",
            _ => "Your card was declined.",
        }
    }

    /// `card` of a payment method.
    pub fn details(&self) -> Value {
        let mut details = super::shapes::blank("payment_method_card");
        details["brand"] = json!(self.brand);
        details["display_brand"] = json!(self.brand);
        details["exp_month"] = json!(12);
        details["exp_year"] = json!(2034);
        details["fingerprint"] = json!(self.fingerprint());
        details["funding"] = json!(if self.name.ends_with("debit") { "debit" } else { "credit" });
        details["last4"] = json!(self.last4());
        details["networks"]["available"] = json!([self.brand]);
        details
    }

    /// `payment_method_details.card` of a charge.
    pub fn charged(&self, amount: i64) -> Value {
        let details = self.details();
        json!({
            "amount_authorized": amount, "authorization_code": null, "brand": self.brand,
            "checks": details["checks"], "country": "US", "exp_month": 12, "exp_year": 2034,
            "extended_authorization": { "status": "disabled" }, "fingerprint": details["fingerprint"],
            "funding": details["funding"], "incremental_authorization": { "status": "unavailable" },
            "installments": null, "last4": self.last4(), "mandate": null, "multicapture": { "status": "unavailable" },
            "network": self.brand, "network_token": { "used": false }, "network_transaction_id": "103180014210155",
            "overcapture": { "maximum_amount_capturable": amount, "status": "unavailable" },
            "regulated_status": "unregulated", "three_d_secure": null, "wallet": null
        })
    }
}
