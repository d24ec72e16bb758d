//! Spot measurements: one context at one concurrency, measured by a server that wants to know whether a matrix is true. Prompts are random,
//! so nothing can be known of them beforehand; tokens are counted from the stream as well as taken from usage.

use std::time::Duration;

use super::cell::{CellPlan, CellRecord, run_cell};
use super::document::PrefillRow;
use super::inspect::{EngineFacts, EngineKind, inspect};
use super::prompt::Prompts;
use super::stream::{one_token, request_body};
use crate::base::{Code, Error, Result};
use crate::engines::{EngineClient, Target};

/// Where to measure and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct SpotPlan {
    pub context_tokens: u64,
    pub concurrency: u32,
    pub window: Duration,
    /// Longest answer; large enough that no stream ends within the window.
    pub max_tokens: u64,
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The cold reading of the prompt; none at context 0.
    pub prefill: Option<PrefillRow>,
    pub cell: CellRecord,
}

/// Measures spots of one engine. Calibrates once, so that contexts mean what they mean in the benchmark.
pub struct SpotMeter<'a> {
    client: &'a EngineClient,
    target: &'a Target,
    facts: EngineFacts,
    prompts: Prompts,
}

impl<'a> SpotMeter<'a> {
    /// `context_max` is the largest context that will be asked for.
    pub async fn start(client: &'a EngineClient, target: &'a Target, model: Option<&str>, context_max: u64) -> Result<Self> {
        let facts = inspect(client, target, model).await?;
        let mut meter = Self { client, target, facts, prompts: Prompts::new(Prompts::nonce()) };
        if context_max > 0 {
            let model = meter.facts.model.id.clone();
            meter.prompts.calibrate(client, target, &model, context_max.min(4096)).await?;
        }
        Ok(meter)
    }

    pub fn facts(&self) -> &EngineFacts {
        &self.facts
    }

    /// One spot: the prompt cold, then the streams. An engine that fails gives an error or a cell with [`CellRecord::failure`].
    pub async fn measure(&self, plan: &SpotPlan) -> Result<Spot> {
        // Another purpose for each spot: nothing of it is in a cache.
        let text = self.prompts.text(&Prompts::nonce(), plan.context_tokens);
        let prefill = if plan.context_tokens == 0 { None } else { Some(self.prefill(&text, plan.context_tokens).await?) };
        let cell = CellPlan {
            context_tokens: plan.context_tokens,
            concurrency: plan.concurrency,
            body: request_body(&self.facts.model.id, &text, plan.max_tokens),
            max_tokens: plan.max_tokens,
            window: plan.window,
            stable: (plan.window / 2).min(Duration::from_secs(3)),
            warmup_max: Duration::from_secs(180),
            kind: if self.facts.metrics_available { self.facts.kind } else { EngineKind::Proxy },
        };
        Ok(Spot { prefill, cell: run_cell(self.client, self.target, cell, |_| ()).await })
    }

    async fn prefill(&self, text: &str, context: u64) -> Result<PrefillRow> {
        let record = one_token(self.client, self.target, &self.facts.model.id, text).await?;
        let ttft = record.ttft().ok_or_else(|| Error::new(Code::EngineError, "The engine gave no token for a prompt."))?;
        let prompt_tokens = record.prompt_tokens.unwrap_or(context);
        Ok(PrefillRow { ttft_seconds: ttft.as_secs_f64(), prompt_tokens, method: "scout_only" })
    }
}
