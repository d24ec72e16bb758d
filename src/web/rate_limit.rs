//! Which requests are limited, to how many, and the `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers).
//!
//! Everyone who proves an account counts by account; all others by address. Only failed sign-ins are held tightly. The sandbox must stand 100
//! registrations an hour from one address (api.md) and a hundred clients that rent at once.

use actix_web::{
    HttpMessage, HttpRequest,
    http::header::{HeaderMap, HeaderName, HeaderValue},
};

use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
    integrations::limits::{Decision, Quota},
};

const fn quota(name: &'static str, limit: u32, window_seconds: u32) -> Quota {
    Quota { name, limit, window_seconds }
}

/// Every request with a valid token or key, by account; charged by the extractor that authorises.
pub const API: Quota = quota("api", 6_000, 60);
/// Every other request, by address; charged by [`super::api`].
pub const PUBLIC: Quota = quota("public", 6_000, 60);
/// Failed sign-ins, by address.
pub const AUTH: Quota = quota("auth", 30, 300);
/// Failed sign-ins, by address and the account that was tried (hash of what was typed in).
pub const AUTH_PAIR: Quota = quota("auth_pair", 10, 300);
/// Failed sign-ins, by the account that was tried alone, from addresses where it has not signed in before. Loose, since it holds the account's
/// owner back too at a new address.
pub const AUTH_NAME: Quota = quota("auth_name", 60, 3_600);
/// By address.
pub const REGISTER: Quota = quota("register", 600, 3_600);
/// Mails sent on somebody's request (reset, confirmation), by receiver.
pub const MAIL: Quota = quota("mail", 5, 3_600);
/// By account.
pub const CHALLENGES: Quota = quota("challenges", 600, 3_600);
/// Run documents, by account.
pub const UPLOADS: Quota = quota("uploads", 1_200, 3_600);
/// Speeds that people type in, by account.
pub const REPORTS: Quota = quota("reports", 120, 3_600);

/// Every policy, for the documentation.
pub const ALL: [Quota; 10] = [API, PUBLIC, AUTH, AUTH_PAIR, AUTH_NAME, REGISTER, MAIL, CHALLENGES, UPLOADS, REPORTS];

/// What was decided about this request, for the headers.
#[derive(Default)]
struct Decisions(Vec<Decision>);

/// Counts one request of `key`; the answer's headers will say what is left.
///
/// # Errors
/// `rate_limited` with the time to wait.
pub async fn charge(ctx: &Ctx, req: &HttpRequest, quota: Quota, key: &str) -> Result<()> {
    let decision = ctx.limits.take(quota, key).await;
    req.extensions_mut().get_or_insert_with(Decisions::default).0.push(decision);
    answer(decision)
}

/// [`charge`] where no request is at hand: no headers.
///
/// # Errors
/// `rate_limited` with the time to wait.
pub async fn charge_quietly(ctx: &Ctx, quota: Quota, key: &str) -> Result<()> {
    answer(ctx.limits.take(quota, key).await)
}

fn answer(decision: Decision) -> Result<()> {
    if decision.allowed {
        return Ok(());
    }
    let seconds = decision.retry_after_seconds;
    metrics::counter!("rigmark_rate_limited_total", "policy" => decision.quota.name).increment(1);
    let detail = format!("The limit `{}` is used up; try again in {seconds} s.", decision.quota.name);
    Err(Error::new(Code::RateLimited, detail).with_retry_after(seconds.into()))
}

pub(super) fn was_charged(req: &HttpRequest) -> bool {
    req.extensions().get::<Decisions>().is_some_and(|decisions| !decisions.0.is_empty())
}

/// `RateLimit-Policy` and `RateLimit`, when something was charged.
pub(super) fn insert_headers(req: &HttpRequest, headers: &mut HeaderMap) {
    let extensions = req.extensions();
    let Some(decisions) = extensions.get::<Decisions>() else { return };
    let mut insert = |name: &'static str, item: fn(&Decision) -> String| {
        let text = decisions.0.iter().map(item).collect::<Vec<_>>().join(", ");
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    insert("ratelimit-policy", |d| format!("\"{}\";q={};w={}", d.quota.name, d.quota.limit, d.quota.window_seconds));
    insert("ratelimit", |d| format!("\"{}\";r={};t={}", d.quota.name, d.remaining, d.reset_seconds));
}
