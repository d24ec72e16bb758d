//! Stripe's error object, with the status it goes out under.

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Refusal {
    pub status: u16,
    /// What stands under `error`.
    pub error: Value,
}

pub type Answer<T = Value> = Result<T, Refusal>;

impl Refusal {
    pub fn new(status: u16, kind: &str, message: impl Into<String>) -> Self {
        Self { status, error: json!({ "type": kind, "message": message.into() }) }
    }

    pub fn invalid(message: impl Into<String>, param: Option<&str>) -> Self {
        let refusal = Self::new(400, "invalid_request_error", message);
        match param {
            Some(param) => refusal.with("param", json!(param)),
            None => refusal,
        }
    }

    pub fn coded(code: &str, message: impl Into<String>, param: Option<&str>) -> Self {
        Self::invalid(message, param).with("code", json!(code))
    }

    pub fn missing(param: &str) -> Self {
        Self::coded("parameter_missing", format!("Missing required param: {param}."), Some(param))
    }

    pub fn no_such(what: &str, id: &str, param: Option<&str>) -> Self {
        let refusal = Self::coded("resource_missing", format!("No such {}: '{id}'", what.replace('_', "")), Some(param.unwrap_or("id")));
        Self { status: if param.is_some() { 400 } else { 404 }, ..refusal }
    }

    pub fn card(code: &str, decline_code: Option<&str>, message: &str) -> Self {
        let refusal = Self::new(402, "card_error", message).with("code", json!(code));
        match decline_code {
            Some(decline_code) => refusal.with("decline_code", json!(decline_code)),
            None => refusal,
        }
    }

    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.error[name] = value;
        self
    }

    /// A parameter that was never looked at leaves no trace under its idempotency key; a declined card does.
    pub fn is_kept(&self) -> bool {
        self.status == 402 || self.status == 500
    }

    pub fn body(&self, request_id: &str) -> Value {
        let mut error = self.error.clone();
        if let Some(code) = error["code"].as_str() {
            error["doc_url"] = json!(format!("https://docs.stripe.com/error-codes/{}", code.replace('_', "-")));
        }
        error["request_log_url"] = json!(format!("https://dashboard.stripe.com/test/logs/{request_id}"));
        json!({ "error": error })
    }
}
