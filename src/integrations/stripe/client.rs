//! Sending: the key, time limits, trying again, and what a failure means.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use stripe::{ClientBuilder, IdempotencyKey, RequestStrategy, StripeError};
use stripe_client_core::StripeRequest;
use stripe_shared::ApiErrorsType;

use super::subscriptions::Price;
use crate::{
    base::{Code, Error, Result, secret::Secret},
    config::StripeConfig,
};

/// Stripe's API with our key. Cheap to clone.
#[derive(Clone)]
pub struct Stripe {
    client: stripe::Client,
    attempts_max: u32,
    webhook_secrets: Vec<Secret<String>>,
    /// Prices that were read: their amounts never change.
    pub(super) prices: Arc<Mutex<BTreeMap<String, Price>>>,
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe").finish_non_exhaustive()
    }
}

/// What Stripe refused, and why.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Stripe's own code, such as `resource_missing`.
    pub code: Option<String>,
    /// The parameter at fault.
    pub param: Option<String>,
}

/// Why there is no answer to go by.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StripeFault {
    /// The card was declined. The PaymentIntent or SetupIntent is there and may be confirmed otherwise.
    #[error("the card was declined ({code:?})")]
    Declined { payment_id: Option<String>, setup_id: Option<String>, code: Option<String> },
    /// Nothing was done, and the same request will be refused again.
    #[error("Stripe refused: code {:?}, parameter {:?}", .0.code, .0.param)]
    Refused(Refusal),
    #[error("Stripe has no such object")]
    NotFound,
    /// Nobody knows whether it was done: no answer, or one that says nothing of it.
    #[error("unknown outcome: {0}")]
    Unknown(String),
    /// An answer that means nothing known.
    #[error("unreadable: {0}")]
    Unreadable(String),
}

impl From<StripeFault> for Error {
    /// For callers that cannot do without the answer now.
    fn from(fault: StripeFault) -> Self {
        Self::new(Code::Unavailable, "Stripe cannot be asked right now.").with_retry_after(5).with_source(fault)
    }
}

impl Stripe {
    /// # Errors
    /// A sentence for the operator when the key or the address cannot be used.
    pub fn new(config: &StripeConfig) -> Result<Self> {
        let mut builder = ClientBuilder::new(config.secret_key.expose()).timeout(config.attempt_timeout);
        if let Some(base) = &config.api_base {
            builder = builder.url(format!("{base}/"));
        }
        let wrong = |_| Error::new(Code::InvalidInput, "STRIPE_SECRET_KEY or STRIPE_API_BASE cannot be used.");
        Ok(Self {
            client: builder.build().map_err(wrong)?,
            attempts_max: config.attempts_max.max(1),
            webhook_secrets: config.webhook_secrets.clone(),
            prices: Arc::default(),
        })
    }

    pub fn webhook_secrets(&self) -> &[Secret<String>] {
        &self.webhook_secrets
    }

    /// A request that changes something. `key` follows from our own row and is the same for every try.
    pub(super) async fn change<T: miniserde::Deserialize>(&self, request: &impl StripeRequest, key: &str) -> Result<T, StripeFault> {
        let key = IdempotencyKey::new(key).map_err(|error| StripeFault::Unreadable(error.to_string()))?;
        self.send(request, &RequestStrategy::Idempotent(key), None).await
    }

    /// A request that changes nothing.
    pub(super) async fn read<T: miniserde::Deserialize>(&self, request: &impl StripeRequest) -> Result<T, StripeFault> {
        self.send(request, &RequestStrategy::Once, None).await
    }

    /// As [`Self::read`], of what belongs to a connected account.
    pub(super) async fn read_of<T: miniserde::Deserialize>(&self, request: &impl StripeRequest, account: &str) -> Result<T, StripeFault> {
        self.send(request, &RequestStrategy::Once, Some(account)).await
    }

    async fn send<T: miniserde::Deserialize>(
        &self,
        request: &impl StripeRequest,
        strategy: &RequestStrategy,
        account: Option<&str>,
    ) -> Result<T, StripeFault> {
        let mut tried = 1;
        loop {
            let once = request.build().customize::<T>().request_strategy(strategy.clone());
            let once = account.into_iter().fold(once, |once, account| once.account_id(account.into()));
            let error = match once.send(&self.client).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let (fault, may_pass) = meaning(error);
            if !may_pass || tried >= self.attempts_max {
                return Err(fault);
            }
            tokio::time::sleep(back_off(tried)).await;
            tried = tried.saturating_add(1);
        }
    }
}

/// Half of the pause is chance, so that many callers do not come back together.
fn back_off(tried: u32) -> Duration {
    StripeConfig::pause_max(tried).div_f32(2.0).mul_f32(1.0 + rand::random::<f32>())
}

/// The fault, and whether another try may fare better. Texts of Stripe's errors are left out: they may quote what was sent.
fn meaning(error: StripeError) -> (StripeFault, bool) {
    let (error, status) = match error {
        StripeError::Stripe(error, status) => (error, status),
        StripeError::Timeout => return (StripeFault::Unknown("no answer in time".to_owned()), true),
        StripeError::ClientError(text) => return (StripeFault::Unknown(text), true),
        StripeError::ConfigError(_) => return (StripeFault::Unreadable("the client is not configured".to_owned()), false),
        // The status is lost: it may be an answer to something that was done, or the page of a proxy.
        StripeError::JSONDeserialize(_) => return (StripeFault::Unknown("an answer that could not be read".to_owned()), true),
    };
    let code = error.code.map(|code| code.as_str().to_owned());
    match (status, error.type_) {
        // The same key with other content: what the first request did has to be found out.
        (_, ApiErrorsType::IdempotencyError) => (StripeFault::Unknown("the idempotency key was used before".to_owned()), status == 409),
        (402, _) => {
            let payment_id = error.payment_intent.map(|payment| payment.id.to_string());
            let setup_id = error.setup_intent.map(|setup| setup.id.to_string());
            (StripeFault::Declined { payment_id, setup_id, code: error.decline_code.or(code) }, false)
        }
        (404, _) => (StripeFault::NotFound, false),
        // A connected account that is gone, or that has let us go.
        (403, _) if code.as_deref() == Some("account_invalid") => (StripeFault::NotFound, false),
        // Our key is at fault, not what was asked.
        (401 | 403, _) => (StripeFault::Unknown(format!("Stripe does not accept the secret key: status {status}")), false),
        (409 | 424 | 429 | 500.., _) => (StripeFault::Unknown(format!("status {status}")), true),
        _ => (StripeFault::Refused(Refusal { code, param: error.param }), false),
    }
}
