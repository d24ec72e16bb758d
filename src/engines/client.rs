//! The client: one pool of connections for public addresses and one for callers that may reach private ones.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, redirect};
use serde_json::json;

use super::EngineAddress;
use super::address::forbidden_error;
use super::answers::{Completion, EngineDescription, ModelList, ProbeAnswer};
use super::recent::Recent;
use super::resolver::{self, CheckedResolver, ForbiddenName, LookUp, Reach, checked};
use crate::base::secret::Secret;
use crate::base::{Code, Error, Result, clock};

const CONNECT_SECONDS: u64 = 5;
const ALIVE_SECONDS: u64 = 3;
const DESCRIBE_SECONDS: u64 = 10;
/// A cold engine may have to load kernels for its first token.
const PROBE_SECONDS: u64 = 60;
/// Longest silence inside one answer: the first token of a long prompt on a slow machine takes minutes.
const SILENCE_SECONDS: u64 = 600;
const SMALL_BODY_BYTES: usize = 4 << 20;
/// Bound for an answer that is not streamed.
const ANSWER_BODY_BYTES: usize = 32 << 20;

/// An engine and how to reach it.
#[derive(Clone, Debug)]
pub struct Target {
    pub address: EngineAddress,
    pub api_key: Option<Secret>,
    /// Only in the sandbox, and only while the server itself is bound to loopback.
    pub allow_private: bool,
}

pub type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// An answer whose body has not been read. Dropping it closes the connection unless the body has ended.
pub struct EngineResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: BodyStream,
}

impl fmt::Debug for EngineResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

impl EngineResponse {
    /// Reads the whole body, up to 32 MiB.
    pub async fn bytes(self) -> Result<Bytes> {
        collect(self.body, ANSWER_BODY_BYTES).await
    }
}

/// Cheap to clone; clones share the connections. A process that forwards many streams keeps one for each of its threads.
#[derive(Clone)]
pub struct EngineClient {
    public: reqwest::Client,
    any: reqwest::Client,
    look_up: LookUp,
    pub(super) recent: Recent,
}

impl EngineClient {
    pub fn new() -> Result<Self> {
        Self::with_look_up(resolver::system())
    }

    /// Without a bound on silence within an answer: for a caller that has bounds of its own and reads thousands of small pieces a second,
    /// for each of which the bound's clock would have to be set.
    pub fn for_measuring() -> Result<Self> {
        let _already = rustls::crypto::ring::default_provider().install_default();
        let look_up = resolver::system();
        Ok(Self { public: build(false, &look_up, None)?, any: build(true, &look_up, None)?, look_up, recent: Recent::new() })
    }

    /// With another way from names to addresses. Every answer of it is checked as the system's are.
    pub fn with_look_up(look_up: LookUp) -> Result<Self> {
        // Installed by main already; tests and other callers may come first. A second installation is refused and that is fine.
        let _already = rustls::crypto::ring::default_provider().install_default();
        let silence = Some(Duration::from_secs(SILENCE_SECONDS));
        Ok(Self { public: build(false, &look_up, silence)?, any: build(true, &look_up, silence)?, look_up, recent: Recent::new() })
    }

    /// Names of the served models.
    pub async fn models(&self, target: &Target) -> Result<Vec<String>> {
        Ok(self.describe(target).await?.models.into_iter().map(|model| model.id).collect())
    }

    /// `/v1/models` with what it says of the engine.
    pub async fn describe(&self, target: &Target) -> Result<EngineDescription> {
        let (status, body) = self.get(target, "/v1/models", DESCRIBE_SECONDS).await?;
        if status != 200 {
            return Err(bad_status("/v1/models", status, &body));
        }
        let list: ModelList = serde_json::from_slice(&body)
            .map_err(|e| Error::new(Code::EngineError, "The engine's /v1/models is no list of models.").with_source(e))?;
        Ok(EngineDescription { models: list.data })
    }

    /// A GET of a small body: status and bytes, whatever the status. Used for `/metrics` and `/version`.
    pub async fn get(&self, target: &Target, path: &str, seconds: u64) -> Result<(u16, Bytes)> {
        let read = async {
            let response = self.send(target, Method::GET, path, None, "*/*").await?;
            let status = response.status;
            Ok((status, collect(response.body, SMALL_BODY_BYTES).await?))
        };
        within(seconds, read).await
    }

    /// Whether the engine answers `/v1/models` within a few seconds. `false` for every kind of failure but a forbidden address.
    pub async fn is_alive(&self, target: &Target) -> bool {
        matches!(self.get(target, "/v1/models", ALIVE_SECONDS).await, Ok((200, _)))
    }

    /// One real token through the whole path: name look-up, connection, key, model, sampling.
    pub async fn one_token_probe(&self, target: &Target, model: &str) -> Result<ProbeAnswer> {
        let started = clock::monotonic();
        let body = json!({
            "model": model, "stream": false, "max_tokens": 1, "temperature": 0.0,
            "messages": [{"role": "user", "content": "Answer with one word: ready?"}],
        });
        let read = async {
            let response = self.chat(target, Bytes::from(body.to_string()), false).await?;
            let status = response.status;
            Ok((status, response.bytes().await?))
        };
        let (status, bytes) = within(PROBE_SECONDS, read).await?;
        if status != 200 {
            return Err(bad_status("a one-token completion", status, &bytes));
        }
        serde_json::from_slice::<Completion>(&bytes)
            .map_err(|e| Error::new(Code::EngineError, "The engine's completion could not be read.").with_source(e))?
            .into_probe(model, started.elapsed())
            .ok_or_else(|| Error::new(Code::EngineError, "The engine's completion has no token."))
    }

    /// `POST /v1/chat/completions`; `body` goes out as it is.
    pub async fn chat(&self, target: &Target, body: Bytes, stream: bool) -> Result<EngineResponse> {
        self.post(target, "/v1/chat/completions", body, stream).await
    }

    /// `POST` of JSON to one of the engine's paths. The answer's status is handed on as it is; only redirects are errors.
    pub async fn post(&self, target: &Target, path: &str, body: Bytes, stream: bool) -> Result<EngineResponse> {
        self.send(target, Method::POST, path, Some(body), if stream { "text/event-stream" } else { "application/json" }).await
    }

    /// Looks the engine's name up and checks every address it has, without connecting.
    pub async fn check(&self, target: &Target) -> Result<()> {
        target.address.check_literal(target.allow_private)?;
        if target.address.literal().is_none() {
            checked(&self.look_up, target.address.host(), reach(target.allow_private)).await.map_err(|e| classify(e.as_ref()))?;
        }
        Ok(())
    }

    async fn send(&self, target: &Target, method: Method, path: &str, body: Option<Bytes>, accept: &'static str) -> Result<EngineResponse> {
        // The connector never asks the resolver about a literal address.
        target.address.check_literal(target.allow_private)?;
        let client = if target.allow_private { &self.any } else { &self.public };
        let mut request = client.request(method, target.address.join(path)).header(ACCEPT, accept);
        if let Some(key) = &target.api_key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
                .map_err(|_| Error::new(Code::EngineError, "The engine's key cannot be sent in a header."))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = request.send().await.map_err(|e| classify(&e))?;
        if response.status().is_redirection() {
            return Err(Error::new(Code::EngineError, "The engine answered with a redirect; redirects are not followed."));
        }
        Ok(EngineResponse {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.bytes_stream().map_err(|e| classify(&e)).boxed(),
        })
    }
}

fn reach(allow_private: bool) -> Reach {
    if allow_private { Reach::Any } else { Reach::Public }
}

fn build(allow_private: bool, look_up: &LookUp, silence: Option<Duration>) -> Result<reqwest::Client> {
    let builder = || {
        let builder = match silence {
            Some(silence) => reqwest::Client::builder().read_timeout(silence),
            None => reqwest::Client::builder(),
        };
        builder
            .user_agent(concat!("rigmark/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_secs(CONNECT_SECONDS))
            .pool_idle_timeout(Duration::from_secs(60))
            .dns_resolver(CheckedResolver { reach: reach(allow_private), look_up: look_up.clone() })
    };
    // A container without certificates of authorities can still reach engines by http; https then fails by itself.
    builder().build().or_else(|_| builder().tls_certs_only([]).build()).map_err(Error::internal)
}

/// Which error of ours a failure of the client is. The text names no address: the caller may not be the engine's owner.
fn classify(error: &(dyn std::error::Error + 'static)) -> Error {
    if let Some(kind) = ForbiddenName::among(error) {
        return forbidden_error(kind);
    }
    let (code, detail) = match error.downcast_ref::<reqwest::Error>() {
        Some(e) if e.is_timeout() && !e.is_connect() => (Code::EngineUnreachable, "The engine did not answer in time."),
        Some(e) if e.is_body() || e.is_decode() => (Code::EngineError, "The engine broke off its answer."),
        _ => (Code::EngineUnreachable, "The engine could not be reached."),
    };
    Error::new(code, detail).with_source(chain(error))
}

/// The whole chain of causes as one text, without the URL.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(e) = cause {
        if e.downcast_ref::<reqwest::Error>().is_none() {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&e.to_string());
        }
        cause = e.source();
    }
    text
}

fn bad_status(what: &str, status: u16, body: &[u8]) -> Error {
    let excerpt: String = String::from_utf8_lossy(body.get(..body.len().min(300)).unwrap_or_default()).into_owned();
    Error::new(Code::EngineError, format!("The engine answered {what} with status {status}.")).with_source(excerpt)
}

async fn within<T>(seconds: u64, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(Duration::from_secs(seconds), work)
        .await
        .unwrap_or_else(|_| Err(Error::new(Code::EngineUnreachable, format!("The engine did not answer within {seconds} s."))))
}

async fn collect(mut body: BodyStream, bytes_max: usize) -> Result<Bytes> {
    let mut all = BytesMut::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        if all.len() + piece.len() > bytes_max {
            return Err(Error::new(Code::EngineError, format!("The engine's answer is larger than {} MiB.", bytes_max >> 20)));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}
