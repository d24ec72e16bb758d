//! A client of Rigmark's own API: the demo does what its people would do, over HTTP, with nobody's rights but theirs.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::cast::{PASSWORD, Person};
use crate::base::{Code, Error, Result};

const CALL_SECONDS: u64 = 120;

/// One signed-in person.
pub(super) struct Session {
    http: reqwest::Client,
    base_url: String,
    token: String,
}

/// What a call was answered with.
pub(super) struct Answer {
    what: String,
    pub status: u16,
    pub body: Value,
}

impl Answer {
    /// The stable code of a problem; empty for anything else.
    pub fn code(&self) -> &str {
        self.body.get("code").and_then(Value::as_str).unwrap_or_default()
    }

    /// The body of a success.
    ///
    /// # Errors
    /// `unavailable` with what the server said.
    pub fn success(self) -> Result<Value> {
        if (200..300).contains(&self.status) { Ok(self.body) } else { Err(self.into_error()) }
    }

    /// What the server said, as an error of the demo.
    pub fn into_error(self) -> Error {
        let detail = self.body.get("detail").and_then(Value::as_str).unwrap_or("no detail");
        Error::new(Code::Unavailable, format!("{} was answered {} {}: {detail}", self.what, self.status, self.code()))
    }
}

/// Signs a demo account in, registering it if it is not there. `is_new` says what to try first.
///
/// # Errors
/// `handle_taken` when the handle is somebody else's: the demo leaves that account alone.
pub(super) async fn sign_in(base_url: &str, person: &Person, is_new: bool) -> Result<Session> {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(CALL_SECONDS)).build().map_err(Error::internal)?;
    let mut session = Session { http, base_url: base_url.to_owned(), token: String::new() };
    let tries = if is_new { [true, false] } else { [false, true] };
    for register in tries {
        let answer = if register { session.register(person).await? } else { session.login(person).await? };
        match answer.status {
            200 | 201 => {
                session.token = text(&answer.success()?, "/access_token")?.to_owned();
                return Ok(session);
            }
            401 | 409 => {}
            _ => return Err(answer.into_error()),
        }
    }
    let detail = format!("The handle @{} is taken by an account that is not the demo's (or its password was changed).", person.handle);
    Err(Error::new(Code::HandleTaken, detail))
}

impl Session {
    async fn register(&self, person: &Person) -> Result<Answer> {
        let body = json!({
            "email": person.email(), "password": PASSWORD, "handle": person.handle, "display_name": person.display_name,
        });
        self.post("/api/v1/auth/register", &body).await
    }

    async fn login(&self, person: &Person) -> Result<Answer> {
        self.post("/api/v1/auth/login", &json!({"email": person.email(), "password": PASSWORD})).await
    }

    /// The body of a GET that must succeed.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, None::<&Value>, None).await?.success()
    }

    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<Answer> {
        self.call(Method::POST, path, Some(body), None).await
    }

    /// A POST that happens once for `key`, however often it is sent.
    pub async fn post_once(&self, path: &str, key: &str, body: &Value) -> Result<Answer> {
        self.call(Method::POST, path, Some(body), Some(key)).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Result<Answer> {
        self.call(Method::PATCH, path, Some(body), None).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<&impl Serialize>, key: Option<&str>) -> Result<Answer> {
        let what = format!("{method} {path}");
        let mut request = self.http.request(method, format!("{}{path}", self.base_url));
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let unreachable = |e: reqwest::Error| Error::new(Code::Unavailable, format!("{what} was not answered.")).with_source(e);
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(unreachable)?;
        Ok(Answer { what, status, body: serde_json::from_slice(&body).unwrap_or_default() })
    }
}

/// The text at a JSON pointer.
///
/// # Errors
/// `internal` when there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).ok_or_else(|| Error::internal(format!("an answer has no text at {pointer}")))
}

/// The rows of a list's page.
pub(super) fn rows(page: &Value) -> impl Iterator<Item = &Value> {
    page.get("data").and_then(Value::as_array).into_iter().flatten()
}
