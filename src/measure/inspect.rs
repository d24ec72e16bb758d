//! What an engine says of itself: kind, version, limits, gauges.

use serde_json::Value;

use crate::base::Result;
use crate::engines::{EngineClient, EngineModel, SIMULATED_OWNER, Target};

const SCRAPE_SECONDS: u64 = 5;

/// The kinds whose metrics are known; everything else is reached through OpenAI's paths only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    Vllm,
    Sglang,
    Proxy,
}

impl EngineKind {
    /// As the document names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Proxy => "openai_proxy",
        }
    }
}

/// The engine before anything is measured.
#[derive(Debug, Clone)]
pub struct EngineFacts {
    pub kind: EngineKind,
    pub version: String,
    pub models: Vec<EngineModel>,
    pub model: EngineModel,
    pub metrics_available: bool,
    /// KV tokens, and in words where the number comes from; 0 when unknown.
    pub kv_tokens: u64,
    pub kv_source: String,
    pub max_running: Option<u64>,
}

impl EngineFacts {
    /// True for `rigmark simulate-engine`, which names itself.
    pub fn is_simulated(&self) -> bool {
        self.model.owned_by.as_deref() == Some(SIMULATED_OWNER)
    }

    pub fn identity(&self) -> Identity {
        Identity { version: self.version.clone(), models: self.models.iter().map(|model| model.id.clone()).collect() }
    }
}

/// What an engine is, as far as it says: what a run made with another one is stale by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Empty when it does not say.
    pub version: String,
    pub models: Vec<String>,
}

/// Asks for the identity only.
pub async fn identify(client: &EngineClient, target: &Target) -> Result<Identity> {
    let models = client.models(target).await?;
    let version = small_json(client, target, "/version").await;
    Ok(Identity { version: version.get("version").and_then(Value::as_str).unwrap_or_default().to_owned(), models })
}

/// Gauges and counters at one moment; `None` where the engine has none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gauges {
    pub running: f64,
    pub waiting: f64,
    pub generated_tokens: Option<f64>,
    pub kv_usage: f64,
}

/// Finds out what there is behind the address. `model` picks one of several served models.
pub async fn inspect(client: &EngineClient, target: &Target, model: Option<&str>) -> Result<EngineFacts> {
    let models = client.describe(target).await?.models;
    let chosen = match model {
        Some(name) => models.iter().find(|m| m.id == name).cloned(),
        None => models.first().cloned(),
    };
    let Some(chosen) = chosen else {
        let names: Vec<&str> = models.iter().map(|m| m.id.as_str()).collect();
        let detail = format!("The engine does not serve {}; it serves: {}.", model.unwrap_or("any model"), names.join(", "));
        return Err(crate::base::Error::new(crate::base::Code::EngineError, detail));
    };
    let metrics = scrape_text(client, target).await.unwrap_or_default();
    let version = small_json(client, target, "/version").await;
    let server_info = if metrics.contains("vllm:") { Value::Null } else { small_json(client, target, "/get_server_info").await };
    let kind = if metrics.contains("vllm:") {
        EngineKind::Vllm
    } else if server_info.get("max_total_num_tokens").is_some() {
        EngineKind::Sglang
    } else {
        EngineKind::Proxy
    };
    let (kv_tokens, kv_source) = kv_budget(kind, &metrics, &server_info, &chosen);
    let version = version.get("version").or_else(|| server_info.get("version")).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(EngineFacts {
        kind,
        version,
        models,
        metrics_available: kind != EngineKind::Proxy && Gauges::parse(kind, &metrics).is_some(),
        model: chosen,
        kv_tokens,
        kv_source,
        max_running: server_info.get("max_running_requests").and_then(Value::as_u64),
    })
}

fn kv_budget(kind: EngineKind, metrics: &str, server_info: &Value, model: &EngineModel) -> (u64, String) {
    match kind {
        EngineKind::Vllm => {
            let number = |label| label_of(metrics, "vllm:cache_config_info", label).and_then(|text| text.parse::<u64>().ok());
            let (Some(blocks), Some(size)) = (number("num_gpu_blocks"), number("block_size")) else { return (0, String::new()) };
            let parallel = label_of(metrics, "vllm:cache_config_info", "dcp_world_size").and_then(|text| text.parse::<u64>().ok());
            let tokens = blocks.saturating_mul(size).saturating_mul(parallel.unwrap_or(1).max(1));
            // Less than one full-length request means that the cache is spread over GPUs by a factor nobody tells: better no budget.
            if parallel.is_none() && model.max_model_len.is_some_and(|length| tokens < length) {
                return (0, String::new());
            }
            (tokens, format!("vLLM metrics: {} tokens ({blocks} blocks x {size})", thousands(tokens)))
        }
        EngineKind::Sglang => {
            let tokens = server_info.get("max_total_num_tokens").and_then(Value::as_u64).unwrap_or(0);
            (tokens, format!("SGLang: {} tokens", thousands(tokens)))
        }
        EngineKind::Proxy => (0, String::new()),
    }
}

/// Reads the gauges; `None` when the engine has none or did not answer.
pub async fn scrape(client: &EngineClient, target: &Target, kind: EngineKind) -> Option<Gauges> {
    if kind == EngineKind::Proxy {
        return None;
    }
    Gauges::parse(kind, &scrape_text(client, target).await?)
}

async fn scrape_text(client: &EngineClient, target: &Target) -> Option<String> {
    let (status, body) = client.get(target, "/metrics", SCRAPE_SECONDS).await.ok()?;
    (status == 200).then(|| String::from_utf8_lossy(&body).into_owned())
}

async fn small_json(client: &EngineClient, target: &Target, path: &str) -> Value {
    match client.get(target, path, SCRAPE_SECONDS).await {
        Ok((200, body)) => serde_json::from_slice(&body).unwrap_or(Value::Null),
        _ => Value::Null,
    }
}

impl Gauges {
    /// Reads the text of `/metrics`; sums over the engines of a data-parallel group.
    pub fn parse(kind: EngineKind, text: &str) -> Option<Self> {
        let [running, waiting, generated, usage] = match kind {
            EngineKind::Vllm => {
                ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:generation_tokens_total", "vllm:kv_cache_usage_perc"]
            }
            EngineKind::Sglang => {
                ["sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:generation_tokens_total", "sglang:token_usage"]
            }
            EngineKind::Proxy => return None,
        };
        Some(Self {
            running: sum_of(text, running)?,
            waiting: sum_of(text, waiting).unwrap_or(0.0),
            generated_tokens: sum_of(text, generated).filter(|_| kind == EngineKind::Vllm),
            kv_usage: sum_of(text, usage).unwrap_or(0.0),
        })
    }
}

fn samples<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.strip_prefix(name)).filter(|rest| rest.starts_with(['{', ' ']))
}

fn sum_of(text: &str, name: &str) -> Option<f64> {
    let values = samples(text, name).filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
    values.fold(None, |sum: Option<f64>, value| Some(sum.unwrap_or(0.0) + value))
}

fn label_of<'a>(text: &'a str, name: &'a str, label: &str) -> Option<&'a str> {
    let line = samples(text, name).next()?;
    let (_, value) = line.split_once(&format!("{label}=\""))?;
    value.split('"').next()
}

/// `622592` as `622,592`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let head = digits.len() % 3;
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == head {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
