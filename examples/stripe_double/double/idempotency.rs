//! Idempotency keys: same key and request, same answer; another request under the key is an error; one that runs still is a conflict.
//!
//! Keys are per account and are kept for 24 hours of the double's clock.

use std::collections::BTreeMap;

use serde_json::Value;

use super::call::Call;
use super::refusal::Refusal;

const KEPT_SECONDS: i64 = 24 * 3600;

struct Kept {
    request: (String, String, Value),
    at: i64,
    /// `None` while it runs.
    answer: Option<(u16, Value)>,
}

#[derive(Default)]
pub struct Keys(BTreeMap<(Option<String>, String), Kept>);

pub enum Claim {
    /// Go ahead.
    Free,
    /// What was answered then.
    Replay(u16, Value),
}

impl Keys {
    pub fn claim(&mut self, call: &Call, now: i64) -> Result<Claim, Refusal> {
        let Some(key) = slot(call) else { return Ok(Claim::Free) };
        self.0.retain(|_, kept| now - kept.at < KEPT_SECONDS);
        let request = (call.method.clone(), call.path.clone(), call.params.clone());
        match self.0.get(&key) {
            None => {
                self.0.insert(key, Kept { request, at: now, answer: None });
                Ok(Claim::Free)
            }
            Some(kept) if kept.request != request => {
                let message = format!(
                    "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '{}' if you meant to execute a different request.",
                    key.1
                );
                Err(Refusal::new(400, "idempotency_error", message))
            }
            Some(Kept { answer: Some((status, body)), .. }) => Ok(Claim::Replay(*status, body.clone())),
            Some(Kept { answer: None, .. }) => {
                let message = format!(
                    "There is currently another in-progress request using this Stripe-Idempotency-Key (that probably means you submitted twice, and the other request is still going through): {}.",
                    key.1
                );
                Err(Refusal::new(409, "idempotency_error", message).with("code", "idempotency_key_in_use".into()))
            }
        }
    }

    /// The answer that the key gives from now on; without one the key is free again.
    pub fn finish(&mut self, call: &Call, answer: Option<(u16, Value)>) {
        let Some(key) = slot(call) else { return };
        match answer {
            Some(answer) => {
                if let Some(kept) = self.0.get_mut(&key) {
                    kept.answer = Some(answer);
                }
            }
            None => {
                self.0.remove(&key);
            }
        }
    }
}

fn slot(call: &Call) -> Option<(Option<String>, String)> {
    let key = call.idempotency_key.clone().filter(|_| call.method == "POST")?;
    Some((call.account.clone(), key))
}
