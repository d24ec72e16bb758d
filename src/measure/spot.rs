//! Spot measurements: one context at one concurrency, measured by a server that wants to know whether a matrix is true. Prompts are random
//! and ask what only their reader knows; tokens are counted from the stream, and weighed against the text they came with.
//!
//! The method is the benchmark's: the prompt is read cold by one request, then all streams of the cell share it. Each stream ends with a
//! question of its own, so that one real stream cannot be shown to many.

use std::time::Duration;

use bytes::Bytes;

use super::cell::{CellPlan, CellRecord, run_cell};
use super::document::PrefillRow;
use super::inspect::{EngineFacts, EngineKind, inspect};
use super::prompt::Prompts;
use super::question::{Answer, Needles, Question};
use super::record::{Heard, StreamRecord};
use super::stream::Asker;
use crate::base::{Code, Error, Result};
use crate::engines::{EngineClient, Target};

/// Small requests whose fastest answer is the way to the engine and back.
const LATENCY_TRIES: usize = 3;
const STABLE_MAX: Duration = Duration::from_secs(3);
const WARMUP_MAX: Duration = Duration::from_secs(120);

/// Where to measure and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct SpotPlan {
    pub context_tokens: u64,
    pub concurrency: u32,
    pub window: Duration,
    /// Longest answer; large enough that no stream ends within the window.
    pub max_tokens: u64,
}

/// How many streams answered their question how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[schema(as = StreamAnswers)]
pub struct Answers {
    pub right: u32,
    pub wrong: u32,
    /// Cut off before an answer could be expected.
    pub unfinished: u32,
}

impl Answers {
    pub fn add(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.unfinished += other.unfinished;
    }
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The cold reading of the prompt; none at context 0.
    pub prefill: Option<PrefillRow>,
    pub cell: CellRecord,
    pub answers: Answers,
    /// Bytes of text for each counted token; `None` when there was neither.
    pub text_bytes_per_token: Option<f64>,
}

/// Measures spots of one engine. Calibrates once, so that contexts mean what they mean in the benchmark.
pub struct SpotMeter<'a> {
    client: &'a EngineClient,
    target: &'a Target,
    facts: EngineFacts,
    prompts: Prompts,
    latency: Duration,
}

impl<'a> SpotMeter<'a> {
    /// `context_max` is the largest context that will be asked for.
    pub async fn start(client: &'a EngineClient, target: &'a Target, model: Option<&str>, context_max: u64) -> Result<Self> {
        let facts = inspect(client, target, model).await?;
        let mut meter = Self { client, target, facts, prompts: Prompts::new(Prompts::nonce()), latency: Duration::MAX };
        let model = meter.facts.model.id.clone();
        let asker = Asker::once(client, target, &model);
        if context_max > 0 {
            meter.prompts.calibrate(&asker, context_max.min(4096)).await?;
        }
        for _ in 0..LATENCY_TRIES {
            let record = asker.one_token(&format!("{}\n", Prompts::nonce())).await?;
            meter.latency = meter.latency.min(record.ttft().ok_or_else(no_token)?);
        }
        Ok(meter)
    }

    pub fn facts(&self) -> &EngineFacts {
        &self.facts
    }

    /// Time to the first token of next to no prompt: the way there and back, and one step.
    pub fn latency(&self) -> Duration {
        self.latency
    }

    /// Characters of ordinary text for one token of a prompt, by the engine's count.
    pub fn chars_per_token(&self) -> f64 {
        self.prompts.chars_per_token
    }

    /// One spot: the prompt cold, then the streams. An engine that fails gives an error or a cell with [`CellRecord::failure`].
    pub async fn measure(&self, plan: &SpotPlan) -> Result<Spot> {
        let needles = Needles::draw(&mut rand::rng());
        // Another purpose for each spot: nothing of it is in a cache.
        let chars = self.prompts.chars(plan.context_tokens).saturating_sub(needles.chars());
        let head = self.prompts.padding(&Prompts::nonce(), chars);
        let context = needles.context(&head);
        let (questions, bodies) = self.questions(&needles, &context, plan);
        let prefill = if plan.context_tokens == 0 { None } else { Some(self.prefill(&needles, &context, plan.context_tokens).await?) };
        let cell = CellPlan {
            context_tokens: plan.context_tokens,
            concurrency: plan.concurrency,
            bodies,
            hears: true,
            max_tokens: plan.max_tokens,
            window: plan.window,
            stable: (plan.window / 2).min(STABLE_MAX),
            warmup_max: WARMUP_MAX,
            kind: if self.facts.metrics_available { self.facts.kind } else { EngineKind::Proxy },
        };
        let cell = run_cell(self.client, self.target, cell, |_| ()).await;
        let answers = judge(&questions, &cell.streams);
        let text_bytes_per_token = text_bytes_per_token(&cell.streams);
        Ok(Spot { prefill, cell, answers, text_bytes_per_token })
    }

    fn questions(&self, needles: &Needles, context: &str, plan: &SpotPlan) -> (Vec<Question>, Vec<Bytes>) {
        let mut random = rand::rng();
        let questions: Vec<Question> = (0..plan.concurrency).map(|_| needles.ask(&mut random)).collect();
        let asker = self.asker();
        let body = |question: &Question| asker.body(&format!("{context}\n{}", question.text), plan.max_tokens);
        let bodies = questions.iter().map(body).collect();
        (questions, bodies)
    }

    async fn prefill(&self, needles: &Needles, context: &str, context_tokens: u64) -> Result<PrefillRow> {
        let text = format!("{context}\n{}", needles.ask(&mut rand::rng()).text);
        let record = self.asker().one_token(&text).await?;
        PrefillRow::of(&record, context_tokens, "scout_only").ok_or_else(no_token)
    }

    fn asker(&self) -> Asker<'_> {
        Asker::once(self.client, self.target, &self.facts.model.id)
    }
}

fn no_token() -> Error {
    Error::new(Code::EngineError, "The engine gave no token for a prompt.")
}

/// Each stream by its own question.
fn judge(questions: &[Question], streams: &[StreamRecord]) -> Answers {
    let mut answers = Answers::default();
    for stream in streams {
        let Some((question, Heard { text, has_reasoning, .. })) = questions.get(stream.stream).zip(stream.heard.as_ref()) else { continue };
        match question.judge(text, stream.tokens(), *has_reasoning) {
            Answer::Right => answers.right += 1,
            Answer::Wrong => answers.wrong += 1,
            Answer::Unfinished => answers.unfinished += 1,
        }
    }
    answers
}

fn text_bytes_per_token(streams: &[StreamRecord]) -> Option<f64> {
    let tokens: u64 = streams.iter().map(StreamRecord::tokens).sum();
    let bytes: u64 = streams.iter().filter_map(|stream| stream.heard.as_ref()).map(|heard| heard.bytes).sum();
    (tokens > 0).then(|| bytes as f64 / tokens as f64)
}
