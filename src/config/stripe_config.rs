//! What a process needs to know of Stripe; all of it or none.

use std::time::Duration;

use url::{Host, Url};

use super::{Mode, wrong};
use crate::base::{Result, secret::Secret};

/// Before the second try; doubled before each further one, and half of it is left to chance.
const BACK_OFF: Duration = Duration::from_millis(250);

/// Ids of the prices of one seat of Pro.
#[derive(Debug, Clone)]
pub struct ProPriceIds {
    pub monthly: String,
    pub yearly: String,
}

/// How Stripe is reached, and how its webhooks are known.
#[derive(Debug, Clone)]
pub struct StripeConfig {
    pub secret_key: Secret<String>,
    /// Any of them may have signed a webhook.
    pub webhook_secrets: Vec<Secret<String>>,
    /// Without a trailing slash. None: Stripe's own.
    pub api_base: Option<String>,
    /// What Pro costs. None: it is not for sale.
    pub pro_prices: Option<ProPriceIds>,
    /// How long one request may take.
    pub attempt_timeout: Duration,
    /// How often a request is sent before its outcome counts as unknown.
    pub attempts_max: u32,
}

impl StripeConfig {
    pub fn new(secret_key: Secret<String>, webhook_secrets: Vec<Secret<String>>, api_base: Option<String>) -> Self {
        Self { secret_key, webhook_secrets, api_base, pro_prices: None, attempt_timeout: Duration::from_secs(8), attempts_max: 3 }
    }

    /// How long one request may take with all its tries and the pauses between them.
    pub fn request_max(&self) -> Duration {
        let pauses = (1..self.attempts_max).fold(Duration::ZERO, |sum, tried| sum.saturating_add(Self::pause_max(tried)));
        self.attempt_timeout.saturating_mul(self.attempts_max).saturating_add(pauses)
    }

    /// The longest pause after this many tries: twice as long after each.
    pub fn pause_max(tried: u32) -> Duration {
        BACK_OFF.saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1).min(6)))
    }
}

/// What the environment says of Stripe.
pub(super) struct Given {
    pub key: Option<String>,
    pub webhook: Option<String>,
    pub api_base: Option<String>,
    pub price_monthly: Option<String>,
    pub price_yearly: Option<String>,
}

pub(super) fn read(mode: Mode, given: Given) -> Result<Option<StripeConfig>> {
    let Given { key, webhook, api_base, price_monthly, price_yearly } = given;
    let Some(key) = key.filter(|_| !mode.is_sandbox()) else { return Ok(None) };
    let webhook = webhook.unwrap_or_default();
    let secrets: Vec<Secret<String>> =
        webhook.split(',').map(str::trim).filter(|text| !text.is_empty()).map(|text| Secret::new(text.to_owned())).collect();
    if secrets.is_empty() {
        return Err(wrong("STRIPE_WEBHOOK_SECRET is required outside the sandbox."));
    }
    if secrets.iter().any(|secret| !secret.expose().starts_with("whsec_")) {
        return Err(wrong("STRIPE_WEBHOOK_SECRET must start with whsec_."));
    }
    let api_base = api_base.filter(|text| !text.is_empty());
    if let Some(base) = &api_base {
        check_base(mode, base)?;
    }
    let api_base = api_base.map(|base| base.trim_end_matches('/').to_owned());
    let pro_prices = read_prices(price_monthly, price_yearly)?;
    Ok(Some(StripeConfig { pro_prices, ..StripeConfig::new(Secret::new(key), secrets, api_base) }))
}

fn read_prices(monthly: Option<String>, yearly: Option<String>) -> Result<Option<ProPriceIds>> {
    let is_id = |text: &str| {
        text.strip_prefix("price_").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    };
    match (monthly.filter(|text| !text.is_empty()), yearly.filter(|text| !text.is_empty())) {
        (None, None) => Ok(None),
        (Some(monthly), Some(yearly)) if is_id(&monthly) && is_id(&yearly) && monthly != yearly => {
            Ok(Some(ProPriceIds { monthly, yearly }))
        }
        _ => Err(wrong("STRIPE_PRICE_PRO_MONTHLY and STRIPE_PRICE_PRO_YEARLY must be two prices (price_…), or neither must be set.")),
    }
}

/// The key goes there with every request.
fn check_base(mode: Mode, base: &str) -> Result<()> {
    let url = Url::parse(base).map_err(|_| wrong("STRIPE_API_BASE must be an address."))?;
    let loopback = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if mode == Mode::Live && url.host_str() != Some("api.stripe.com") {
        return Err(wrong("STRIPE_API_BASE must not be set in live mode."));
    }
    if url.scheme() == "https" || (url.scheme() == "http" && loopback) {
        return Ok(());
    }
    Err(wrong("STRIPE_API_BASE must be an https address, or an http one on loopback."))
}
