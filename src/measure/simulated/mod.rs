//! `rigmark simulate-engine`: a stand-in for vLLM, for trying things out and for tests.
//!
//! It computes nothing. It keeps vLLM's books (waiting and running requests, KV tokens, prefix cache) and takes for each step the time that
//! [`law::SpeedLaw`] states. Invariants: one step gives one token to every running request whose prompt has been read; `usage` counts exactly
//! the tokens sent; a client that leaves is forgotten within one step. It names itself in `/v1/models`
//! ([`crate::engines::SIMULATED_OWNER`]), so that no mode but the sandbox takes its numbers.
//!
//! Tokens of a prompt: one for every four bytes of text (rounded up, each message by itself), four for each message and three for the
//! answer's head.

mod api;
mod driver;
pub mod law;
mod metrics;
mod request;
mod scheduler;
mod text;

use std::net::TcpListener;
use std::sync::Arc;

use crate::base::secret::Secret;
use crate::base::{Code, Error, Result};
use law::SpeedLaw;

/// Tokens of one KV block, as vLLM has it.
pub const BLOCK_TOKENS: u64 = 16;
const MODEL_LENGTH_MAX: u64 = 262_144;
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+rigmark-simulated");

/// How an engine answers questions about its prompt. All but the first are for tests of what must not pass for a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wits {
    /// Reads the prompt and answers.
    #[default]
    Reads,
    /// Says the prompt again.
    Echoes,
    /// Says what it has ready, whatever it is asked.
    Recites,
    /// Has dropped the middle of the prompt.
    Forgets,
}

/// What the engine is to be.
#[derive(Clone, Debug)]
pub struct SimulatedConfig {
    pub model: String,
    pub law: SpeedLaw,
    /// Size of the KV cache in tokens; rounded down to whole blocks.
    pub kv_tokens: u64,
    /// Requests that may run at once (vLLM's `--max-num-seqs`).
    pub max_running: usize,
    /// Longest prompt plus answer in tokens; never more than the KV cache holds.
    pub max_model_len: u64,
    /// When set, every `/v1` path wants it as bearer token.
    pub api_key: Option<Secret>,
    pub wits: Wits,
    /// Tokens that `usage` claims for each one that was sent; 1 is the truth.
    pub usage_factor: u64,
    /// What `/version` says.
    pub version: String,
}

impl SimulatedConfig {
    pub fn new(model: impl Into<String>, law: SpeedLaw, kv_tokens: u64) -> Self {
        let kv_tokens = (kv_tokens / BLOCK_TOKENS).max(1) * BLOCK_TOKENS;
        Self {
            model: model.into(),
            law,
            kv_tokens,
            max_running: 256,
            max_model_len: MODEL_LENGTH_MAX.min(kv_tokens),
            api_key: None,
            wits: Wits::Reads,
            usage_factor: 1,
            version: VERSION.to_owned(),
        }
    }

    /// An engine as fast as the law says for a hardware model of data/gpus.csv (`rtx-3090`).
    pub fn for_hardware(model: impl Into<String>, slug: &str) -> Result<Self> {
        let (law, kv_tokens) = law::of_hardware(slug)?;
        Ok(Self::new(model, law, kv_tokens))
    }

    /// An engine that gives `decode_tps` tokens/s to a single stream at context 0 and reads short prompts at `prefill_tps`.
    pub fn at_speed(model: impl Into<String>, decode_tps: f64, prefill_tps: f64) -> Result<Self> {
        Ok(Self::new(model, SpeedLaw::at_speed(decode_tps, prefill_tps)?, law::REFERENCE_KV_TOKENS))
    }

    pub fn with_kv_tokens(self, kv_tokens: u64) -> Self {
        let max_model_len = self.max_model_len;
        let kv_tokens = (kv_tokens / BLOCK_TOKENS).max(1) * BLOCK_TOKENS;
        Self { kv_tokens, max_model_len: max_model_len.min(kv_tokens), ..self }
    }
    pub fn with_max_running(self, max_running: usize) -> Self {
        Self { max_running: max_running.max(1), ..self }
    }
    pub fn with_max_model_len(self, tokens: u64) -> Self {
        Self { max_model_len: tokens.clamp(1, self.kv_tokens), ..self }
    }
    pub fn with_api_key(self, key: impl Into<String>) -> Self {
        Self { api_key: Some(Secret::new(key.into())), ..self }
    }
    pub fn with_wits(self, wits: Wits) -> Self {
        Self { wits, ..self }
    }
    pub fn with_usage_factor(self, usage_factor: u64) -> Self {
        Self { usage_factor, ..self }
    }
    pub fn with_version(self, version: impl Into<String>) -> Self {
        Self { version: version.into(), ..self }
    }
}

/// A running engine. Stops when dropped.
pub struct SimulatedEngine {
    url: String,
    server: api::ServerHandle,
    driver: Arc<driver::Driver>,
}

/// Binds `bind` (`127.0.0.1:0` for a free port) and starts an engine there.
pub fn start(config: SimulatedConfig, bind: &str) -> Result<SimulatedEngine> {
    let listener = TcpListener::bind(bind)
        .map_err(|e| Error::new(Code::InvalidInput, format!("The engine cannot listen on {bind}: {e}.")).with_source(e))?;
    start_on(config, listener)
}

/// Starts an engine on a listener. Needs a tokio runtime around it.
pub fn start_on(config: SimulatedConfig, listener: TcpListener) -> Result<SimulatedEngine> {
    let url = format!("http://{}", listener.local_addr().map_err(Error::internal)?);
    let config = Arc::new(config);
    let driver = driver::Driver::start(config.clone())?;
    let server = api::serve(config, driver.clone(), listener)?;
    Ok(SimulatedEngine { url, server, driver })
}

impl SimulatedEngine {
    /// `http://host:port`, without `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes every later step take `1 / factor` of its time: 0.5 is half as fast.
    pub fn set_speed_factor(&self, factor: f64) {
        self.driver.set_speed_factor(factor);
    }

    /// Requests that run and wait now.
    pub fn load(&self) -> (usize, usize) {
        self.driver.totals().load()
    }

    /// Tokens sent since the start.
    pub fn generated_tokens(&self) -> u64 {
        self.driver.totals().generated()
    }

    /// Closes the port and breaks off every answer. A connection that is idle may live a moment longer.
    pub async fn stop(self) {
        self.stop_now().await;
    }

    /// The same for one that somebody else still looks at.
    pub async fn stop_now(&self) {
        self.driver.stop();
        self.server.stop().await;
    }
}

impl Drop for SimulatedEngine {
    fn drop(&mut self) {
        self.driver.stop();
        self.server.abandon();
    }
}
