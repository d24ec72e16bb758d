//! The three calls of a Rigmark server that measuring needs.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::base::secret::Secret;
use crate::base::{Code, Error, Result};
use crate::measure::matrix::MatrixPlan;

const CALL_SECONDS: u64 = 30;
const UPLOAD_SECONDS: u64 = 120;
const TRIES: u32 = 3;
const WAIT_SECONDS_MAX: u64 = 60;

pub(super) struct Server {
    url: String,
    key: Option<Secret>,
    client: reqwest::Client,
}

/// What to measure. Members that are not needed here are ignored: a newer server may say more.
#[derive(Debug, Deserialize)]
pub(super) struct Challenge {
    contexts: Vec<u64>,
    concurrency_levels: Vec<u32>,
    #[serde(default)]
    prefill_contexts: Vec<u64>,
    duration_seconds: f64,
    max_tokens: u64,
    #[serde(default)]
    pub(super) machine_id: Option<String>,
    #[serde(default)]
    model: Value,
}

impl Challenge {
    pub(super) fn plan(&self) -> Result<MatrixPlan> {
        Ok(MatrixPlan {
            contexts: self.contexts.clone(),
            concurrency_levels: self.concurrency_levels.clone(),
            prefill_contexts: self.prefill_contexts.clone(),
            duration: super::duration(self.duration_seconds)?,
            max_tokens: self.max_tokens,
        })
    }

    /// The model's name, whether the server gives it as text or as an object.
    pub(super) fn model_name(&self) -> Option<&str> {
        self.model.as_str().or_else(|| self.model.get("hf_id")?.as_str())
    }
}

#[derive(Serialize)]
struct Upload<'a> {
    /// The file's own text, so that its hash is the file's.
    document: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge_id: Option<&'a str>,
}

/// The run as the server answers it.
#[derive(Debug, Deserialize)]
pub(super) struct RunAnswer {
    id: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) evidence_level: String,
    #[serde(default)]
    pub(super) checks: Vec<Check>,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Check {
    pub(super) code: String,
    pub(super) severity: String,
    #[serde(default)]
    pub(super) message: String,
}

impl RunAnswer {
    /// Address of the run's page.
    pub(super) fn page(&self, server: &str) -> String {
        self.url.clone().unwrap_or_else(|| format!("{server}/en/runs/{}", self.id))
    }
}

impl Server {
    pub(super) fn new(url: &str, key: Option<Secret>) -> Result<Self> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("rigmark-measure/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(Error::internal)?;
        let url = url.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Error::new(Code::InvalidInput, "--server must begin with http:// or https://."));
        }
        Ok(Self { url, key, client })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) async fn challenge(&self, id: &str) -> Result<Challenge> {
        if !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Error::new(Code::InvalidInput, "This is no id of a challenge."));
        }
        let request = self.client.get(format!("{}/api/v1/challenges/{id}", self.url)).timeout(Duration::from_secs(CALL_SECONDS));
        match self.call(request).await {
            Ok(body) => serde_json::from_slice(&body)
                .map_err(|e| Error::new(Code::Unavailable, "The server's challenge cannot be read.").with_source(e)),
            Err(failure) => Err(failure.error),
        }
    }

    /// Uploads the document; tries again after network errors, 429 and 5xx. The server answers the same bytes with the same run.
    pub(super) async fn upload(&self, document: &str, machine_id: Option<&str>, challenge_id: Option<&str>) -> Result<RunAnswer> {
        let document: &RawValue =
            serde_json::from_str(document).map_err(|e| Error::new(Code::InvalidInput, format!("The file is no JSON document: {e}.")))?;
        let body = serde_json::to_vec(&Upload { document, machine_id, challenge_id }).map_err(Error::internal)?;
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(&body).map_err(Error::internal)?;
        let packed = bytes::Bytes::from(packer.finish().map_err(Error::internal)?);
        let mut tries_left = TRIES;
        let mut wait_seconds = 3;
        loop {
            tries_left -= 1;
            let request = self
                .client
                .post(format!("{}/api/v1/matrix-runs", self.url))
                .header(CONTENT_TYPE, "application/json")
                .header(CONTENT_ENCODING, "gzip")
                .timeout(Duration::from_secs(UPLOAD_SECONDS))
                .body(packed.clone());
            match self.call(request).await {
                Ok(body) => {
                    return serde_json::from_slice(&body)
                        .map_err(|e| Error::new(Code::Unavailable, "The server's answer cannot be read.").with_source(e));
                }
                Err(failure) if failure.may_pass && tries_left > 0 => {
                    let seconds = failure.retry_after.unwrap_or(wait_seconds).min(WAIT_SECONDS_MAX);
                    eprintln!("{} Trying again in {seconds} s.", failure.error);
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    wait_seconds *= 3;
                }
                Err(failure) => return Err(failure.error),
            }
        }
    }

    async fn call(&self, request: reqwest::RequestBuilder) -> std::result::Result<bytes::Bytes, Failure> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        };
        let network = |e: reqwest::Error| Failure {
            error: Error::new(Code::Unavailable, format!("{} could not be reached.", self.url)).with_source(e.without_url()),
            may_pass: true,
            retry_after: None,
        };
        let response = request.send().await.map_err(network)?;
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
        let body = response.bytes().await.map_err(network)?;
        if status.is_success() {
            return Ok(body);
        }
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |name: &str| problem.get(name).and_then(Value::as_str);
        let detail = match (text("code"), text("detail").or(text("title"))) {
            (Some(code), Some(detail)) => format!("The server answered {}, {code}: {detail}", status.as_u16()),
            _ => format!("The server answered with status {}.", status.as_u16()),
        };
        let may_pass = status.is_server_error() || status.as_u16() == 429;
        Err(Failure { error: Error::new(Code::Unavailable, detail), may_pass, retry_after })
    }
}

struct Failure {
    error: Error,
    may_pass: bool,
    retry_after: Option<u64>,
}
