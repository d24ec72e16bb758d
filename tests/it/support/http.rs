//! A small HTTP client for tests: JSON in and out, and a failed expectation that shows what the server said.

use std::sync::Once;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// One caller: a base URL and, once signed in, a bearer token or an API key.
#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    base_url: String,
    bearer: Option<String>,
}

impl Http {
    /// `base_url` without a trailing slash.
    pub fn new(base_url: impl Into<String>) -> Self {
        install_tls_provider();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { client, base_url: base_url.into(), bearer: None }
    }

    /// The same server, called with this token or key.
    pub fn with_bearer(&self, bearer: impl Into<String>) -> Self {
        Self { bearer: Some(bearer.into()), ..self.clone() }
    }

    /// The same caller at another address, after a restart.
    pub fn at(&self, other: &Self) -> Self {
        Self { base_url: other.base_url.clone(), ..self.clone() }
    }

    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// `path` begins with a slash.
    pub fn request(&self, method: Method, path: &str) -> Request {
        let mut builder = self.client.request(method.clone(), format!("{}{path}", self.base_url));
        if let Some(bearer) = &self.bearer {
            builder = builder.bearer_auth(bearer);
        }
        Request { builder, what: format!("{method} {path}") }
    }
    pub fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }
    pub fn post(&self, path: &str) -> Request {
        self.request(Method::POST, path)
    }
    pub fn put(&self, path: &str) -> Request {
        self.request(Method::PUT, path)
    }
    pub fn patch(&self, path: &str) -> Request {
        self.request(Method::PATCH, path)
    }
    pub fn delete(&self, path: &str) -> Request {
        self.request(Method::DELETE, path)
    }
}

/// A client built before this would panic. `main` does it for the program.
pub fn install_tls_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails only when one is installed already, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    });
}

#[must_use = "nothing is sent before `send` or `expect`"]
pub struct Request {
    builder: RequestBuilder,
    what: String,
}

impl Request {
    pub fn json(self, body: &Value) -> Self {
        Self { builder: self.builder.json(body), ..self }
    }
    /// Bytes as they are; give the content type with [`Request::header`].
    pub fn body(self, body: impl Into<reqwest::Body>) -> Self {
        Self { builder: self.builder.body(body), ..self }
    }
    pub fn header(self, name: &str, value: impl AsRef<str>) -> Self {
        Self { builder: self.builder.header(name, value.as_ref()), ..self }
    }
    pub fn idempotency_key(self, key: impl AsRef<str>) -> Self {
        self.header("Idempotency-Key", key)
    }

    /// The response as it comes, for streams and for tests of headers.
    pub async fn send(self) -> Response {
        self.builder.send().await.unwrap_or_else(|error| panic!("{}: {error:?}", self.what))
    }

    /// The whole answer, of whatever status.
    pub async fn answer(self) -> Answer {
        let what = self.what.clone();
        let response = self.send().await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.text().await.unwrap_or_else(|error| panic!("{what}: the body: {error:?}"));
        Answer { what, status, headers, body }
    }

    /// The whole answer, or none when the server has gone away.
    pub async fn try_answer(self) -> Option<Answer> {
        let response = self.builder.send().await.ok()?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.text().await.ok()?;
        Some(Answer { what: self.what, status, headers, body })
    }

    /// The JSON body of an answer that must have `status`.
    #[track_caller]
    pub fn expect(self, status: u16) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let answer = self.answer().await;
            assert!(answer.status == status, "{caller}: {} gave {} instead of {status}: {}", answer.what, answer.status, answer.body);
            answer.json()
        }
    }

    /// The problem body of an answer that must have `status` and the code `code`.
    #[track_caller]
    pub fn expect_problem(self, status: u16, code: &str) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let answer = self.answer().await;
            let found = answer.json()["code"].clone();
            let kind = answer.header("content-type");
            assert!(
                answer.status == status && found == code && kind.as_deref() == Some("application/problem+json"),
                "{caller}: {} gave {} ({kind:?}) instead of {status} {code}: {}",
                answer.what,
                answer.status,
                answer.body
            );
            answer.json()
        }
    }
}

pub struct Answer {
    what: String,
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub body: String,
}

impl Answer {
    /// `Null` for an empty body or one that is no JSON; the caller's assertion on it then fails and shows it.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    }
}
