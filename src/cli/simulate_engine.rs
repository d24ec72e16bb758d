//! `rigmark simulate-engine`: runs a stand-in for vLLM until it is interrupted.

use std::process::ExitCode;

use crate::base::{Error, Result};
use crate::measure::simulated::{self, SimulatedConfig};

#[derive(clap::Args, Debug, Clone)]
pub struct Args {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:9000")]
    pub bind: String,
    /// Name of the served model.
    #[arg(long)]
    pub model: String,
    /// Be as fast as this hardware model of the catalog (data/gpus.csv), rtx-3090 when nothing is said.
    #[arg(long, conflicts_with_all = ["decode_tps", "prefill_tps"])]
    pub hardware: Option<String>,
    /// Tokens per second of a single stream at context 0.
    #[arg(long, requires = "prefill_tps")]
    pub decode_tps: Option<f64>,
    /// Prompt tokens per second of a short prompt.
    #[arg(long, requires = "decode_tps")]
    pub prefill_tps: Option<f64>,
    /// Size of the KV cache in tokens; by default what the hardware's memory allows.
    #[arg(long)]
    pub kv_tokens: Option<u64>,
    /// Requests that run at once; more wait.
    #[arg(long, default_value_t = 256)]
    pub max_running: usize,
    /// Longest prompt plus answer in tokens; at most 262144 and the KV cache.
    #[arg(long)]
    pub max_model_len: Option<u64>,
    /// Bearer token that the /v1 paths want.
    #[arg(long)]
    pub api_key: Option<String>,
}

impl Args {
    fn config(&self) -> Result<SimulatedConfig> {
        let mut config = match (self.decode_tps, self.prefill_tps) {
            (Some(decode), Some(prefill)) => SimulatedConfig::at_speed(&self.model, decode, prefill)?,
            _ => SimulatedConfig::for_hardware(&self.model, self.hardware.as_deref().unwrap_or("rtx-3090"))?,
        };
        if let Some(tokens) = self.kv_tokens {
            config = config.with_kv_tokens(tokens);
        }
        if let Some(tokens) = self.max_model_len {
            config = config.with_max_model_len(tokens);
        }
        if let Some(key) = &self.api_key {
            config = config.with_api_key(key);
        }
        Ok(config.with_max_running(self.max_running))
    }
}

pub async fn run(args: Args) -> Result<ExitCode> {
    let engine = simulated::start(args.config()?, &args.bind)?;
    println!("{} serves {} (simulated)", engine.url(), args.model);
    tokio::signal::ctrl_c().await.map_err(Error::internal)?;
    engine.stop().await;
    Ok(ExitCode::SUCCESS)
}
