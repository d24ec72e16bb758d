//! A whole run: look at the engine, calibrate, measure prefill and decode cells in the benchmark's order, write the document.

mod about;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::base::clock::{Clock, monotonic};
use crate::base::{Code, Error, Result};
use crate::engines::{EngineClient, Target};
use crate::measure::cell::{CellPlan, CellRecord, News, run_cell};
use crate::measure::document::{CellRow, DocumentParts, EventLog, PrefillRow, context_label, document};
use crate::measure::hardware;
use crate::measure::inspect::{EngineFacts, EngineKind, inspect, scrape, thousands};
use crate::measure::prompt::Prompts;
use crate::measure::record::StreamRecord;
use crate::measure::resume::Earlier;
use crate::measure::stream::{Asker, run_request};

/// Contexts above this have no prefill row.
const PREFILL_CONTEXT_MAX: u64 = 131_072;
/// More than the question and a chat template ever take.
const QUESTION_TOKENS_MAX: u64 = 256;
/// How long an engine that loads its model, or says that it is busy, is waited for.
const PATIENCE: Duration = Duration::from_secs(600);
const LOADING_WAIT: Duration = Duration::from_secs(1);
/// Tokens of a chat template that a prefix cache may know of any prompt.
const CACHED_SHARE_MAX: f64 = 0.02;
const INSPECT_SECONDS: u64 = 10;
/// Room for the question, the chat template and the inexactness of a calibrated context.
const MODEL_LENGTH_MARGIN: u64 = 64;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixPlan {
    pub contexts: Vec<u64>,
    pub concurrency_levels: Vec<u32>,
    pub prefill_contexts: Vec<u64>,
    pub duration: Duration,
    pub max_tokens: u64,
}

/// News of a run for whoever shows it.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A line of the event log.
    Line(&'a str),
    /// So many of so many steps are done; an estimate of the time left, and what comes next.
    Step { done: usize, of: usize, seconds_left: f64, next: String },
    /// What the step at hand is doing, twice a second.
    Doing(String),
    /// The document of what is measured so far, after each step.
    Document(&'a Value),
}

pub type Observer<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

/// A finished or interrupted run.
pub struct MatrixOutcome {
    pub document: Value,
    /// False when the run was interrupted: cells are missing.
    pub is_complete: bool,
    /// Cells measured now, not those of an earlier run.
    pub cells: Vec<CellRecord>,
    pub kept_cells: usize,
}

impl MatrixOutcome {
    /// Whether the document holds no measurement at all.
    pub fn is_empty(&self) -> bool {
        let has_none = |name: &str| self.document[name].as_array().is_none_or(Vec::is_empty);
        has_none("results") && self.document["prefill"].as_object().is_none_or(Map::is_empty)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Prefill(u64),
    Cell { context: u64, concurrency: u32, is_first_of_context: bool },
}

struct Run<'a> {
    client: &'a EngineClient,
    target: &'a Target,
    plan: &'a MatrixPlan,
    facts: EngineFacts,
    hardware: Value,
    /// The engine refuses what OpenAI's own API does not have.
    is_plain: bool,
    prompts: Prompts,
    /// The engine has told how many characters make a token.
    is_calibrated: bool,
    log: EventLog,
    observer: Observer<'a>,
    /// As in the document.
    prefill: BTreeMap<u64, Value>,
    rows: Vec<CellRow>,
    cells: Vec<CellRecord>,
    /// Tokens of each context's prompt as the engine counted them.
    prompt_tokens: BTreeMap<u64, u64>,
}

/// Runs the matrix. `cancel` ends it early; what was measured by then is in the document.
pub async fn run_matrix(
    client: &EngineClient,
    target: &Target,
    model: Option<&str>,
    plan: &MatrixPlan,
    observer: Observer<'_>,
    cancel: &CancellationToken,
) -> Result<MatrixOutcome> {
    go_on(client, target, model, plan, None, observer, cancel).await
}

/// The same, without measuring again what an earlier run has.
pub async fn go_on(
    client: &EngineClient,
    target: &Target,
    model: Option<&str>,
    plan: &MatrixPlan,
    earlier: Option<&Earlier>,
    observer: Observer<'_>,
    cancel: &CancellationToken,
) -> Result<MatrixOutcome> {
    let mut log = EventLog::new(Clock::default());
    let facts = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Error::new(Code::EngineError, "Interrupted before the engine was known.")),
        facts = load(client, target, model, &mut log, observer) => facts?,
    };
    // A simulated engine runs on no GPU: one that happens to be in this computer would contradict the machine that it stands for.
    let hardware = match facts.is_simulated() {
        true => json!({"nvidia_smi_error": "the engine is a simulated one"}),
        false => hardware::nvidia_smi().await,
    };
    let mut run = Run {
        client,
        target,
        plan,
        facts,
        hardware,
        is_plain: false,
        prompts: Prompts::new(Prompts::nonce()),
        is_calibrated: false,
        log,
        observer,
        prefill: BTreeMap::new(),
        rows: Vec::new(),
        cells: Vec::new(),
        prompt_tokens: BTreeMap::new(),
    };
    if let Some(earlier) = earlier {
        run.keep(earlier)?;
    }
    let kept_cells = run.rows.len();
    let is_complete = tokio::select! {
        biased;
        () = cancel.cancelled() => false,
        done = run.measure() => { done?; true }
    };
    Ok(MatrixOutcome { document: run.document(), is_complete, cells: run.cells, kept_cells })
}

/// Looks at the engine, and waits for one that is still loading.
async fn load(
    client: &EngineClient,
    target: &Target,
    model: Option<&str>,
    log: &mut EventLog,
    observer: Observer<'_>,
) -> Result<EngineFacts> {
    let started = monotonic();
    let mut is_told = false;
    // Whatever else is wrong the inspection says better.
    while let Ok((429 | 503, _)) = client.get(target, "/v1/models", INSPECT_SECONDS).await
        && started.elapsed() < PATIENCE
    {
        if !is_told {
            observer(Progress::Line(&log.add("startup WARNING: the engine is loading or busy; waiting for it")));
        }
        is_told = true;
        tokio::time::sleep(LOADING_WAIT).await;
    }
    inspect(client, target, model).await
}

impl Run<'_> {
    fn say(&mut self, text: &str) {
        let line = self.log.add(text);
        (self.observer)(Progress::Line(&line));
    }

    fn asker(&self) -> Asker<'_> {
        let Self { client, target, is_plain, .. } = *self;
        Asker { client, target, model: &self.facts.model.id, is_plain, patience: PATIENCE }
    }

    fn document(&self) -> Value {
        document(&DocumentParts {
            metadata: self.metadata(),
            startup_diagnostics: self.startup_diagnostics(),
            log: &self.log,
            prefill: &self.prefill,
            cells: &self.rows,
        })
    }

    /// Takes over what an earlier run measured of this plan.
    fn keep(&mut self, earlier: &Earlier) -> Result<()> {
        earlier.check(&self.metadata(), &self.hardware)?;
        self.log.go_on(earlier.log_lines());
        for (context, row) in earlier.prefill() {
            if self.plan.contexts.contains(&context) || self.plan.prefill_contexts.contains(&context) {
                self.prompt_tokens.insert(context, row["prompt_tokens"].as_u64().unwrap_or(context));
                self.prefill.insert(context, row);
            }
        }
        let is_wanted =
            |row: &CellRow| self.plan.contexts.contains(&row.context_tokens) && self.plan.concurrency_levels.contains(&row.concurrency);
        self.rows = earlier.cells().into_iter().filter_map(CellRow::kept).filter(is_wanted).collect();
        if let Some(ratio) = earlier.chars_per_token() {
            self.prompts.chars_per_token = ratio;
            self.is_calibrated = true;
        }
        Ok(())
    }

    async fn measure(&mut self) -> Result<()> {
        self.announce();
        self.choose_words().await?;
        self.calibrate().await?;
        let steps = self.steps();
        self.say("startup startup preparation done");
        self.warm_engine().await?;
        for (done, step) in steps.iter().enumerate() {
            let left = steps.iter().skip(done).map(|step| self.estimate(*step)).sum();
            (self.observer)(Progress::Step { done, of: steps.len(), seconds_left: left, next: describe(*step) });
            match *step {
                Step::Prefill(context) => self.prefill_only(context).await,
                Step::Cell { context, concurrency, is_first_of_context } => self.cell(context, concurrency, is_first_of_context).await,
            }
            (self.observer)(Progress::Document(&self.document()));
        }
        (self.observer)(Progress::Step { done: steps.len(), of: steps.len(), seconds_left: 0.0, next: String::new() });
        Ok(())
    }

    /// Some APIs refuse members that they do not know, such as those that keep an answer from ending.
    async fn choose_words(&mut self) -> Result<()> {
        let record = self.asker().one_token_record("\n").await;
        let Some(error) = record.error else { return Ok(()) };
        self.is_plain = true;
        if matches!(record.refused, Some(400 | 422)) && self.asker().one_token_record("\n").await.error.is_none() {
            self.say("startup WARNING: the engine takes no ignore_eos and no continuous usage; answers may end early");
            return Ok(());
        }
        Err(Error::new(Code::EngineError, format!("The engine failed at the first request: {error}")))
    }

    fn announce(&mut self) {
        let kind = self.facts.kind.as_str();
        self.say(&format!("benchmark start engine={kind}"));
        self.say(&format!("startup server={} model={}", self.target.address, self.facts.model.id));
        let contexts: Vec<String> = self.plan.contexts.iter().map(|c| context_label(*c)).collect();
        let levels: Vec<String> = self.plan.concurrency_levels.iter().map(u32::to_string).collect();
        self.say(&format!("startup decode concurrency={} contexts={}", levels.join(","), contexts.join(",")));
        let name = match self.facts.kind {
            EngineKind::Vllm => "vLLM",
            EngineKind::Sglang => "SGLang",
            EngineKind::Proxy => "proxy",
        };
        if !self.facts.version.is_empty() {
            self.say(&format!("startup engine {name} {}", self.facts.version));
        }
        if let Some(runs) = self.facts.max_running {
            self.say(&format!("startup max running requests: {runs}"));
        }
        if self.facts.kv_tokens > 0 {
            let line = format!("startup KV cache budget from {}", self.facts.kv_source);
            self.say(&line);
        }
        if let Some(length) = self.facts.model.max_model_len {
            self.say(&format!("startup model context length: {} tokens", thousands(length)));
        }
    }

    async fn calibrate(&mut self) -> Result<()> {
        let largest = self.plan.contexts.iter().chain(&self.plan.prefill_contexts).copied().max().unwrap_or(0);
        if largest == 0 {
            return Ok(());
        }
        self.say(&format!("startup calibrating padding text run={} up_to={}", self.prompts.run(), context_label(largest)));
        let sample = largest.min(4096);
        if self.is_calibrated {
            return Ok(());
        }
        let mut prompts = self.prompts.clone();
        let ratio = prompts.calibrate(&self.asker(), sample).await?;
        self.prompts = prompts;
        self.is_calibrated = ratio.is_some();
        match ratio {
            Some(ratio) => self.say(&format!("startup calibrated: {ratio:.2} chars/token (from {} probe)", context_label(sample))),
            None => self.say("startup WARNING: the engine reports no prompt tokens; assuming 4.00 chars/token"),
        }
        Ok(())
    }

    /// The steps in order: prefill contexts beyond the matrix, the first column, then row by row.
    fn steps(&mut self) -> Vec<Step> {
        let contexts: Vec<u64> = self.plan.contexts.clone();
        let levels: Vec<u32> = self.plan.concurrency_levels.clone();
        let mut steps: Vec<Step> = Vec::new();
        for context in self.plan.prefill_contexts.clone() {
            let is_new = !contexts.contains(&context) && !self.prefill.contains_key(&context);
            if context > 0 && is_new && self.has_prefill_row(context) {
                steps.push(Step::Prefill(context));
            }
        }
        let column = contexts.iter().filter_map(|context| levels.first().map(|level| (*context, *level)));
        let rows = contexts.iter().flat_map(|context| levels.iter().skip(1).map(move |level| (*context, *level)));
        let mut started: Vec<u64> = self.prefill.keys().copied().collect();
        for (context, concurrency) in column.chain(rows).collect::<Vec<_>>() {
            if self.rows.iter().any(|row| (row.context_tokens, row.concurrency) == (context, concurrency)) {
                continue;
            }
            if let Some(reason) = self.reason_to_skip(context, concurrency) {
                self.say(&format!("skip C={concurrency} ctx={} {reason}", context_label(context)));
                continue;
            }
            let is_first_of_context = !started.contains(&context);
            started.push(context);
            steps.push(Step::Cell { context, concurrency, is_first_of_context });
        }
        steps
    }

    fn has_prefill_row(&self, context: u64) -> bool {
        let limit = self.facts.model.max_model_len.map_or(u64::MAX, |length| length.saturating_sub(MODEL_LENGTH_MARGIN));
        context <= PREFILL_CONTEXT_MAX.min(limit)
    }

    /// The benchmark's own rule for cells that cannot fit.
    fn reason_to_skip(&self, context: u64, concurrency: u32) -> Option<String> {
        let needed = u64::from(concurrency).saturating_mul(context + self.plan.max_tokens);
        let runs = self.facts.max_running;
        if runs.is_some_and(|runs| u64::from(concurrency) > runs) {
            return Some(format!("over the engine's {} running requests", runs.unwrap_or_default()));
        }
        if self.facts.model.max_model_len.is_some_and(|length| context + self.plan.max_tokens > length) {
            return Some("over the model's context length".to_owned());
        }
        let fits_by_limit = context == 0 && runs.is_some();
        if self.facts.kv_tokens > 0 && needed > self.facts.kv_tokens && !fits_by_limit {
            return Some(format!("over capacity: {} > {} tokens", thousands(needed), thousands(self.facts.kv_tokens)));
        }
        None
    }

    /// First use of an engine compiles kernels and fills pools; that is not what is measured.
    async fn warm_engine(&mut self) -> Result<()> {
        self.say("decode warmup start");
        let seconds = self.plan.duration.min(Duration::from_secs(3));
        let stop = CancellationToken::new();
        let text = self.prompts.text("warm-up", 0);
        let body = self.asker().body(&text, self.plan.max_tokens.min(512));
        let streams = run_request(self.client, self.target, body, &stop, |_| ());
        if let Ok(StreamRecord { error: Some(error), .. }) = tokio::time::timeout(seconds, streams).await {
            return Err(Error::new(Code::EngineError, format!("The engine failed at the warm-up: {error}")));
        }
        let contexts = self.plan.prefill_contexts.iter().chain(&self.plan.contexts);
        if let Some(context) = contexts.copied().filter(|c| *c > 0 && self.has_prefill_row(*c)).min() {
            let label = context_label(context);
            self.say(&format!("prefill warmup start ctx={label}"));
            self.scout(&self.prompts.text("prefill warm-up", context)).await?;
            self.say(&format!("prefill warmup done ctx={label}"));
        }
        Ok(())
    }

    async fn scout(&self, prompt: &str) -> Result<StreamRecord> {
        (self.observer)(Progress::Doing("reading the prompt".to_owned()));
        self.asker().one_token(prompt).await
    }

    async fn prefill_only(&mut self, context: u64) {
        let label = context_label(context);
        self.say(&format!("prefill scout-only start ctx={label}"));
        match self.scout(&self.prompts.text("prefill", context)).await {
            Ok(record) => {
                if let Some(speed) = self.keep_prefill(context, &record, "scout_only") {
                    self.say(&format!("prefill scout-only done ctx={label} {} tok/s", thousands(speed)));
                }
            }
            Err(error) => self.say(&format!("prefill scout-only failed ctx={label} {error}")),
        }
    }

    fn keep_prefill(&mut self, context: u64, record: &StreamRecord, method: &'static str) -> Option<u64> {
        let row = PrefillRow::of(record, context, method)?;
        self.prompt_tokens.insert(context, row.prompt_tokens);
        if !self.has_prefill_row(context) {
            return None;
        }
        if let Some(cached) = row.cached_tokens.filter(|cached| *cached as f64 > CACHED_SHARE_MAX * row.prompt_tokens as f64) {
            let (cached, all, label) = (thousands(cached), thousands(row.prompt_tokens), context_label(context));
            self.say(&format!("prefill WARNING ctx={label}: {cached} of {all} prompt tokens came from the engine's cache"));
        }
        self.prefill.insert(context, row.to_json());
        Some(row.tokens_per_second().round() as u64)
    }

    async fn cell(&mut self, context: u64, concurrency: u32, is_first_of_context: bool) {
        self.drain().await;
        let started = monotonic();
        let label = context_label(context);
        self.say(&format!("cell start C={concurrency} ctx={label}"));
        let text = self.prompts.text("decode", context);
        if context > 0
            && let Err(error) = self.scout_for_cell(context, &text, is_first_of_context).await
        {
            self.rows.push(CellRow::failed(context, concurrency, error.detail()));
            self.say(&format!("cell failed C={concurrency} ctx={label} {error}"));
            return;
        }
        let prompt_tokens = self.prompt_tokens.get(&context).copied().unwrap_or(0);
        // The prompt may be a little longer than its context; an engine refuses what could grow beyond its limit.
        let room =
            self.facts.model.max_model_len.map_or(u64::MAX, |length| length.saturating_sub(prompt_tokens.max(QUESTION_TOKENS_MAX)).max(1));
        let max_tokens = self.plan.max_tokens.min(room);
        let plan = CellPlan {
            context_tokens: context,
            concurrency,
            bodies: vec![self.asker().body(&text, max_tokens)],
            hears: false,
            max_tokens,
            window: self.plan.duration,
            stable: stable(self.plan.duration),
            warmup_max: warmup_max(context),
            kind: if self.facts.metrics_available { self.facts.kind } else { EngineKind::Proxy },
        };
        let (log, observer) = (&mut self.log, self.observer);
        let on_news = |news: News<'_>| match news {
            News::Ready(ready) => {
                let what = if ready.timed_out { "warmup timeout" } else { "ready" };
                observer(Progress::Line(&log.add(&format!("{what} C={concurrency} ctx={label} {}", ready.reason))));
            }
            News::Warming { active_streams } => observer(Progress::Doing(format!("warming up, {active_streams} of {concurrency} streams"))),
            News::Counting { tokens_per_second } => observer(Progress::Doing(format!("{tokens_per_second:.1} tok/s"))),
        };
        let mut record = run_cell(self.client, self.target, plan, on_news).await;
        // The scout belongs to the cell's time.
        record.started = started;
        let row = CellRow::of(&record, prompt_tokens);
        let total = row.total_tokens_per_second;
        self.rows.push(row);
        match record.failure() {
            Some(reason) => self.say(&format!("cell failed C={concurrency} ctx={label} {reason}")),
            None => self.say(&format!("cell done C={concurrency} ctx={label} {total:.1} tok/s")),
        }
        if let Some(ratio) = record.reported_tokens_per_chunk().filter(|ratio| (ratio - 1.0).abs() > 0.01) {
            self.say(&format!(
                "cell WARNING C={concurrency} ctx={label}: the engine reports {ratio:.2} tokens a chunk; chunks were counted"
            ));
        }
        self.cells.push(record);
    }

    /// Makes sure the cell's prompt is in the engine's prefix cache; the first time this is the prefill measurement.
    async fn scout_for_cell(&mut self, context: u64, text: &str, is_first_of_context: bool) -> Result<()> {
        let is_measured = is_first_of_context && self.has_prefill_row(context);
        let label = context_label(context);
        if is_measured {
            self.say(&format!("integrated prefill start ctx={label}"));
        }
        let record = self.scout(text).await?;
        if is_first_of_context && let Some(speed) = self.keep_prefill(context, &record, "integrated_scout") {
            self.say(&format!("integrated prefill done ctx={label} {} tok/s", thousands(speed)));
        }
        Ok(())
    }

    /// Waits a moment for the streams of the cell before to leave the engine.
    async fn drain(&self) {
        let pause = Duration::from_millis(100);
        if !self.facts.metrics_available {
            return tokio::time::sleep(3 * pause).await;
        }
        for _ in 0..50 {
            match scrape(self.client, self.target, self.facts.kind).await {
                Some(gauges) if gauges.running + gauges.waiting > 0.0 => tokio::time::sleep(pause).await,
                _ => return,
            }
        }
    }

    /// Rough seconds of a step, for the display only.
    fn estimate(&self, step: Step) -> f64 {
        let speed = self.prefill.values().filter_map(|row| row["tok_per_sec"].as_f64()).fold(f64::INFINITY, f64::min);
        let read = |context: u64| context as f64 / if speed.is_finite() { speed } else { 5_000.0 };
        match step {
            Step::Prefill(context) => read(context),
            Step::Cell { context, is_first_of_context, .. } => {
                let seconds = self.plan.duration.as_secs_f64();
                seconds + stable(self.plan.duration).as_secs_f64() + 0.3 + if is_first_of_context { read(context) } else { 0.0 }
            }
        }
    }
}

fn describe(step: Step) -> String {
    match step {
        Step::Prefill(context) => format!("prefill {}", context_label(context)),
        Step::Cell { context, concurrency, .. } => format!("context {} × {concurrency}", context_label(context)),
    }
}

/// How long all streams must run undisturbed before a window opens: three seconds, less where the windows themselves are short.
fn stable(window: Duration) -> Duration {
    (window / 2).min(Duration::from_secs(3))
}

/// How long a cell may take to become steady.
fn warmup_max(context: u64) -> Duration {
    Duration::from_secs(match context {
        0..=65_535 => 60,
        65_536..=131_071 => 120,
        _ => 180,
    })
}

/// Reads `16k` or `16384`.
pub fn parse_tokens(text: &str) -> std::result::Result<u64, String> {
    let text = text.trim();
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text} is no number of tokens such as 16k or 16384"))?;
    number.checked_mul(factor).filter(|tokens| *tokens <= 16 << 20).ok_or_else(|| format!("{text} is too large"))
}
